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
  const views = root.querySelector(".views");
  const told = root.querySelector(".outcomes");
  const list = root.querySelector(".series");
  const picker = root.querySelector(".picker");
  const MAX_LATENTS = 5, MAX_ACTIONS = 3;
  let episode = null, step = 0, timer = null, shown = [], plans = [];

  episodes.forEach((e, i) => {
    const option = document.createElement("option");
    option.value = i;
    option.textContent = `${e.label}: seed ${e.seed}, return ${e.return}, ${e.steps} steps`;
    select.appendChild(option);
  });

  function drawViews() {
    views.querySelectorAll("canvas").forEach((canvas, i) => {
      drawView(canvas, plans[i], episode, step);
    });
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
    drawViews(); drawSeries();
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

  function legend() {
    const box = document.createElement("div");
    const labelled = episode.scene ? episode.scene.shapes.filter(shape => shape.label) : [];
    box.className = "legend";
    box.append(...labelled.map(shape => {
      const entry = document.createElement("span"), dot = document.createElement("i");
      dot.style.background = shape.colour;
      entry.append(dot, shape.label);
      return entry;
    }));
    return box;
  }

  function buildViews() {
    plans = episode.scene ? episode.scene.views.map(view => prepared(view, episode)) : [];
    views.replaceChildren(...plans.map(({ view }) => {
      const box = document.createElement("figure"), caption = document.createElement("figcaption");
      caption.textContent = `${view.title} (${view.right} to the right, ${view.up} up)`;
      box.append(caption, document.createElement("canvas"));
      return box;
    }), legend());
    told.textContent = Object.entries(episode.outcomes).map(pair => pair.join(" = ")).join(" · ");
  }

  function pick() {
    shown = [...picker.querySelectorAll("input:checked")].map(i => i.value);
    rebuild();
  }

  function open(index) {
    episode = episodes[index]; step = 0; slider.max = episode.steps - 1;
    buildViews();
    const names = [...new Set(episode.first.concat(Object.keys(episode.series)))];
    if (!picker.children.length) {
      const first = new Set(episode.first
        .concat(names.filter(n => n.startsWith("latent_")).slice(0, MAX_LATENTS))
        .concat(names.filter(n => /^action_[a-z]+$/.test(n)).slice(0, MAX_ACTIONS)));
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
