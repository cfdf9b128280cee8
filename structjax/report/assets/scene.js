"use strict";
// Where a point of a shape is at a step: origin + Rz(angle) p + sum of value * vector.
function placed(shape, point, series, step) {
  const angle = shape.turn ? series[shape.turn][step] : 0;
  const cosine = Math.cos(angle), sine = Math.sin(angle), [x, y, z] = point;
  const place = [cosine * x - sine * y, sine * x + cosine * y, z].map((v, i) => v + shape.origin[i]);
  for (const [name, vector] of Object.entries(shape.moves)) {
    vector.forEach((v, i) => { place[i] += v * series[name][step]; });
  }
  return place;
}

function projected(view, shape, series, step) {
  const right = "xyz".indexOf(view.right), up = "xyz".indexOf(view.up);
  return shape.points.map(p => {
    const place = placed(shape, p, series, step);
    return [place[right], place[up]];
  });
}

// [left, right, bottom, top] of everything that a view shows in an episode.
function extent(view, scene, series, steps) {
  const box = [Infinity, -Infinity, Infinity, -Infinity];
  for (const shape of scene.shapes) {
    const moving = shape.turn || Object.keys(shape.moves).length;
    const margin = shape.kind === "ring" ? shape.width / 2 : 0;
    for (let t = 0; t < (moving ? steps : 1); t++) {
      for (const [x, y] of projected(view, shape, series, t)) {
        box[0] = Math.min(box[0], x - margin); box[1] = Math.max(box[1], x + margin);
        box[2] = Math.min(box[2], y - margin); box[3] = Math.max(box[3], y + margin);
      }
    }
  }
  return box;
}

const MARGIN = 20;

// From metres to pixels: the view as wide as it may be, and not higher than wide.
function fitted([x0, x1, y0, y1], width) {
  const inner = width - 2 * MARGIN;
  const scale = inner / Math.max(x1 - x0, y1 - y0, 1e-9);
  const height = (y1 - y0) * scale + 2 * MARGIN;
  const left = (width - (x1 - x0) * scale) / 2;
  return { scale, height, at: ([x, y]) => [left + (x - x0) * scale, height - MARGIN - (y - y0) * scale] };
}

function path(c, points) {
  c.beginPath();
  points.forEach(([x, y]) => c.lineTo(x, y));
}

function drawTrace(c, points, step, colour) {
  c.strokeStyle = colour;
  c.globalAlpha = 0.3; c.lineWidth = 1.5; path(c, points); c.stroke();
  c.globalAlpha = 1; c.lineWidth = 2; path(c, points.slice(0, step + 1)); c.stroke();
}

function drawShape(c, shape, points, scale) {
  c.strokeStyle = c.fillStyle = shape.colour;
  const size = shape.width * scale;
  if (shape.kind === "ring" || points.length === 1) {
    for (const [x, y] of points) {
      c.beginPath(); c.arc(x, y, Math.max(size / 2, 2), 0, 2 * Math.PI);
      if (shape.kind === "ring") { c.lineWidth = 1.5; c.stroke(); } else c.fill();
    }
    return;
  }
  path(c, points);
  if (shape.kind === "area") { c.closePath(); c.fill(); return; }
  if (shape.kind === "loop") c.closePath();
  c.lineJoin = c.lineCap = "round";
  c.lineWidth = Math.max(size, 1.5);
  c.setLineDash(shape.dashed ? [4, 4] : []);
  c.stroke();
  c.setLineDash([]);
}

// A bar of a round length, so that sizes can be read.
function drawRule(c, fit, width) {
  const wanted = width / 5 / fit.scale, unit = 10 ** Math.floor(Math.log10(wanted));
  const length = unit * [5, 2, 1].find(n => n * unit <= wanted);
  c.strokeStyle = c.fillStyle = "#718096"; c.lineWidth = 1.5;
  path(c, [[8, fit.height - 6], [8 + length * fit.scale, fit.height - 6]]); c.stroke();
  c.font = "11px system-ui, sans-serif";
  c.fillText(`${+length.toPrecision(1)} m`, 14 + length * fit.scale, fit.height - 3);
}

// What does not change while an episode is shown in a view.
function prepared(view, { scene, series, steps }) {
  const way = shape => Array.from({ length: steps }, (_, t) => projected(view, shape, series, t)[0]);
  const ways = scene.shapes.map(shape => shape.kind === "trace" ? way(shape) : null);
  return { view, ways, box: extent(view, scene, series, steps) };
}

function drawView(canvas, { view, ways, box }, { scene, series }, step) {
  const width = canvas.clientWidth, ratio = window.devicePixelRatio || 1;
  const fit = fitted(box, width);
  canvas.width = width * ratio; canvas.height = fit.height * ratio;
  canvas.style.height = `${fit.height}px`;
  const c = canvas.getContext("2d");
  c.scale(ratio, ratio);
  scene.shapes.forEach((shape, i) => {
    if (ways[i]) drawTrace(c, ways[i].map(fit.at), step, shape.colour);
    else drawShape(c, shape, projected(view, shape, series, step).map(fit.at), fit.scale);
  });
  drawRule(c, fit, width);
}
