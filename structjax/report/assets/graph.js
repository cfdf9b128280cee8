"use strict";
(function () {
  const data = JSON.parse(document.getElementById("data").textContent);
  const panel = document.getElementById("details");
  const slider = document.querySelector("input[type=range]");
  const clock = document.querySelector("output");
  const boxes = [...document.querySelectorAll(".graph [data-name]")];
  const SVG = "http://www.w3.org/2000/svg";
  const HEIGHT = 48, WIDTH = 288;
  let chosen = null, step = 0;

  function element(parent, tag, text, kind) {
    const made = document.createElement(tag);
    if (kind) made.className = kind;
    made.textContent = text;
    parent.appendChild(made);
    return made;
  }

  function drawing(parent, tag, attributes) {
    const made = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    parent.appendChild(made);
    return made;
  }

  const shown = value => (value === null || value === undefined ? "not finite" : String(value));

  function sparkline(column) {
    const known = column.values.filter(v => v !== null);
    const low = Math.min(...known), span = Math.max(...known) - low || 1;
    const x = t => t / Math.max(column.values.length - 1, 1) * WIDTH;
    const y = v => HEIGHT - 4 - (v - low) / span * (HEIGHT - 8);
    const svg = drawing(panel, "svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none" });
    const points = column.values.map((v, t) => [t, v]).filter(p => p[1] !== null);
    drawing(svg, "polyline", {
      points: points.map(p => `${x(p[0]).toFixed(1)},${y(p[1]).toFixed(1)}`).join(" "),
      fill: "none", stroke: "#2b6cb0",
    });
    drawing(svg, "line", { x1: x(step), x2: x(step), y1: 0, y2: HEIGHT, stroke: "#dd6b20" });
  }

  function describe() {
    boxes.forEach(box => box.classList.toggle("chosen", box.dataset.name === chosen));
    panel.textContent = "";
    if (chosen === null) {
      element(panel, "p", "Point at a box.");
      return;
    }
    const node = data.nodes[chosen];
    element(panel, "h2", chosen);
    if (node.doc) element(panel, "p", node.doc);
    if (node.formula) element(panel, "code", node.formula);
    if (node.weights) element(panel, "p", node.weights);
    for (const column of node.columns) {
      const range = `min ${shown(column.min)}, mean ${shown(column.mean)}, max ${shown(column.max)}`;
      element(panel, "div", column.name, "column");
      element(panel, "p", `${range}; at step ${step}: ${shown(column.values[step])}`);
      sparkline(column);
    }
  }

  function mark() {
    for (const box of boxes) {
      const columns = data.nodes[box.dataset.name].columns;
      const label = box.querySelector(".value");
      if (label) label.textContent = shown(columns[0].values[step]);
    }
  }

  for (const box of boxes) {
    box.addEventListener("mouseenter", () => { chosen = box.dataset.name; describe(); });
    const columns = data.nodes[box.dataset.name].columns;
    if (!columns.length || (columns.length > 1 && !box.classList.contains("action"))) continue;
    const rect = box.querySelector("rect");
    drawing(box, "text", {
      class: "value",
      x: Number(rect.getAttribute("x")) + Number(rect.getAttribute("width")) - 6,
      y: Number(rect.getAttribute("y")) - 4,
    });
  }
  if (slider) {
    slider.max = data.steps - 1;
    slider.addEventListener("input", () => {
      step = Number(slider.value);
      clock.textContent = step;
      mark();
      describe();
    });
  }
  mark();
  describe();
})();
