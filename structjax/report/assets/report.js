"use strict";
(function () {
  const data = document.getElementById("episodes");
  const episodes = data ? JSON.parse(data.textContent) : [];
  const root = document.getElementById("player");
  if (!root || !episodes.length) return;
  const select = root.querySelector("select");
  const slider = root.querySelector("input[type=range]");
  const button = root.querySelector("button");
  const clock = root.querySelector(".clock");
  const view = root.querySelector("canvas.view");
  const list = root.querySelector(".series");
  const picker = root.querySelector(".picker");
  const MAX_SERIES = 8;
  let episode = null, step = 0, timer = null, shown = [];

  episodes.forEach((e, i) => {
    const option = document.createElement("option");
    option.value = i;
    option.textContent = `${e.label}: seed ${e.seed}, return ${e.return}, ${e.steps} steps`;
    select.appendChild(option);
  });

  function bounds(e) {
    const xs = e.path.x.concat(e.scene ? e.scene.x : []);
    const ys = e.path.y.concat(e.scene ? e.scene.y : []);
    return [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
  }

  function drawView() {
    if (!episode.path) { view.style.display = "none"; return; }
    view.style.display = "block";
    const width = view.clientWidth, ratio = window.devicePixelRatio || 1;
    view.width = width * ratio; view.height = width * ratio;
    view.style.height = width + "px";
    const c = view.getContext("2d");
    c.scale(ratio, ratio);
    const [x0, x1, y0, y1] = bounds(episode);
    const scale = (width - 40) / Math.max(x1 - x0, y1 - y0, 1e-9);
    const px = x => 20 + (x - x0) * scale, py = y => width - 20 - (y - y0) * scale;
    const trace = (xs, ys, n) => {
      c.beginPath();
      for (let i = 0; i < n; i++) c.lineTo(px(xs[i]), py(ys[i]));
    };
    if (episode.scene) {
      trace(episode.scene.x, episode.scene.y, episode.scene.x.length);
      c.closePath();
      c.lineJoin = "round"; c.strokeStyle = "#cbd5e0";
      c.lineWidth = Math.max(2, episode.scene.width * scale); c.stroke();
      c.strokeStyle = "#fff"; c.lineWidth = 1; c.setLineDash([4, 4]); c.stroke();
      c.setLineDash([]);
    }
    c.strokeStyle = "rgba(49,130,206,.25)"; c.lineWidth = 1.5;
    trace(episode.path.x, episode.path.y, episode.steps); c.stroke();
    c.strokeStyle = "#3182ce"; c.lineWidth = 2;
    trace(episode.path.x, episode.path.y, step + 1); c.stroke();
    const x = px(episode.path.x[step]), y = py(episode.path.y[step]);
    c.save(); c.translate(x, y); c.rotate(-episode.path.heading[step]);
    c.fillStyle = "#c53030"; c.beginPath();
    c.moveTo(0, -8); c.lineTo(5, 7); c.lineTo(-5, 7); c.closePath(); c.fill();
    c.restore();
  }

  function drawSeries() {
    list.querySelectorAll("canvas").forEach((canvas, i) => {
      const values = episode.series[shown[i]];
      const width = canvas.clientWidth, height = 54, ratio = window.devicePixelRatio || 1;
      canvas.width = width * ratio; canvas.height = height * ratio;
      const c = canvas.getContext("2d");
      c.scale(ratio, ratio);
      let low = Infinity, high = -Infinity;
      for (const v of values) { if (v < low) low = v; if (v > high) high = v; }
      const span = high - low || 1;
      const px = t => t / Math.max(values.length - 1, 1) * width;
      const py = v => height - 4 - (v - low) / span * (height - 8);
      c.strokeStyle = "#e2e8f0";
      if (low < 0 && high > 0) { c.beginPath(); c.moveTo(0, py(0)); c.lineTo(width, py(0)); c.stroke(); }
      c.strokeStyle = "#2d3748"; c.beginPath();
      values.forEach((v, t) => c.lineTo(px(t), py(v)));
      c.stroke();
      c.strokeStyle = "#c53030"; c.beginPath(); c.moveTo(px(step), 0); c.lineTo(px(step), height); c.stroke();
      canvas.previousSibling.textContent = `${shown[i]} = ${values[step]}   [${low} .. ${high}]`;
    });
  }

  function draw() {
    slider.value = step;
    clock.textContent = `step ${step + 1} of ${episode.steps}`;
    drawView(); drawSeries();
  }

  function rebuild() {
    list.replaceChildren(...shown.map(() => {
      const box = document.createElement("div"), label = document.createElement("div");
      const canvas = document.createElement("canvas");
      canvas.style.height = "54px"; canvas.style.width = "100%";
      box.append(label, canvas);
      return box;
    }));
    draw();
  }

  function pick() {
    shown = [...picker.querySelectorAll("input:checked")].map(i => i.value);
    rebuild();
  }

  function open(index) {
    episode = episodes[index]; step = 0; slider.max = episode.steps - 1;
    const names = Object.keys(episode.series);
    if (!picker.children.length) {
      const first = new Set(names.filter(n => n.startsWith("latent_")).slice(0, MAX_SERIES - 3)
        .concat(names.filter(n => /^action_[a-z]+$/.test(n)).slice(0, 3)));
      names.forEach(name => {
        const label = document.createElement("label"), box = document.createElement("input");
        box.type = "checkbox"; box.value = name; box.checked = first.has(name);
        box.addEventListener("change", pick);
        label.append(box, " " + name);
        picker.append(label);
      });
    }
    pick();
  }

  function play() {
    if (timer) { clearInterval(timer); timer = null; button.textContent = "play"; return; }
    button.textContent = "pause";
    timer = setInterval(() => {
      step = step + 2 >= episode.steps ? 0 : step + 2;
      draw();
    }, 40);
  }

  select.addEventListener("change", () => open(+select.value));
  slider.addEventListener("input", () => { step = +slider.value; draw(); });
  button.addEventListener("click", play);
  window.addEventListener("resize", draw);
  open(0);
})();
