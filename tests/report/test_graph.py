"""The graph as SVG, DOT and a page with values that are derived by hand."""

import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from itertools import pairwise
from xml.etree import ElementTree

import pandas as pd
import pytest
from language.export.cases import INTEGRATOR, NAMES, load
from toy import PROGRAM, SCHEMA

from structjax.language.parse import parse
from structjax.report.graph import graph_nodes, graph_svg
from structjax.report.graph_dot import graph_dot
from structjax.report.graph_page import graph_html

TOY = parse(PROGRAM, SCHEMA)
ROWS = pd.DataFrame(
    {
        "episode": [0, 0, 1, 1, 2],
        "step": [0, 1, 0, 1, 0],
        "obs_x": [0.5, 0.25, 1.0, float("nan"), 0.125],
        "latent_demand": [-0.5, -0.25, -1.0, 0.0, -0.125],
        "action_push_mean": [-0.5, -0.25, -1.0, 0.0, -0.125],
        "action_push_std": [0.1] * 5,
        "action_push": [-0.5, -0.25, -1.0, 0.0, -0.125],
        "reward": [-1.0, -1.0, -3.0, -3.0, -0.5],  # returns -2, -6, -0.5
    }
)


def test_boxes_and_what_they_read():
    nodes = graph_nodes(TOY.structure, TOY.docs, {"gain": 1.25})
    assert {name: node.inputs for name, node in nodes.items()} == {
        "obs.x": [],
        "demand": ["obs.x"],
        "-> push": ["demand"],
    }
    assert nodes["demand"].note == "gain 1.25"
    assert nodes["demand"].title == "wanted push"
    assert nodes["-> push"].note == "normal, std_push"


def test_helpers_are_drawn_through():
    text = """
def policy(obs):
    total = 0
    for i in range(2):
        total = total + obs.x * i
    return action(push=normal(total))
"""
    nodes = graph_nodes(parse(text, SCHEMA).structure)
    assert list(nodes) == ["obs.x", "total", "-> push"]
    assert nodes["total"].inputs == ["obs.x"]


def test_memory_is_an_edge_of_its_own_and_no_cycle():
    nodes = graph_nodes(INTEGRATOR)
    assert nodes["integral"].inputs == ["obs.error"]
    assert nodes["integral"].recalled == ["integral"]
    assert nodes["pulling"].recalled == ["phase"]  # defined later
    assert graph_svg(INTEGRATOR).count('<path class="memory"') == 2
    dot = graph_dot(INTEGRATOR)
    assert '"phase" -> "pulling" [style=dashed, constraint=false];' in dot


@pytest.mark.parametrize("name", [*NAMES, "operators"])
def test_the_drawing_is_xml_with_a_box_for_every_latent(name):
    structure, _, docs = load(name)
    values = {p.name: p.initial for p in structure.parameters}
    root = ElementTree.fromstring(graph_svg(structure, docs, values))
    boxes = {g.get("data-name") for g in root.iter("{http://www.w3.org/2000/svg}g")}
    assert {v.name for v in structure.latents if v.logged} < boxes
    assert {f"-> {head.action}" for head in structure.heads} < boxes


def test_dot():
    assert graph_dot(TOY.structure, TOY.docs, {"gain": 1.0, "std_push": 0.1}) == (
        "digraph policy {\n"
        "  rankdir=LR;\n"
        '  node [shape=box, style="rounded,filled", fontname="sans-serif"];\n'
        '  "obs.x" [label="obs.x", fillcolor="#e6f0fa"];\n'
        '  "demand" [label="demand\\ngain 1", fillcolor="#ffffff", '
        'tooltip="wanted push"];\n'
        '  "-> push" [label="-> push\\nnormal, std_push 0.1", fillcolor="#e9f7e6"];\n'
        '  "obs.x" -> "demand";\n'
        '  "demand" -> "-> push";\n'
        "}\n"
    )


class Reader(HTMLParser):
    """Tags, attributes and the text of scripts."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.scripts = [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_data(self, data):
        if self.tags and self.tags[-1][0] == "script" and data.strip():
            self.scripts.append(data)


def page(**options):
    return graph_html(TOY.structure, TOY.docs, {"gain": 1.0}, schema=SCHEMA, **options)


def test_the_page_holds_the_values_of_a_rollout():
    reader = Reader(page(frame=ROWS))
    data = json.loads(reader.scripts[0])
    assert data["steps"] == 2  # the median return is that of episode 0
    assert data["nodes"]["obs.x"]["columns"] == [
        # mean of 0.5, 0.25, 1 and 0.125: what is not finite is left out
        {
            "name": "obs_x",
            "min": 0.125,
            "mean": 0.4688,
            "max": 1.0,
            "values": [0.5, 0.25],
        }
    ]
    demand = data["nodes"]["demand"]
    assert demand["formula"] == "-gain * obs.x"
    assert demand["doc"] == "wanted push"
    assert [c["values"] for c in demand["columns"]] == [[-0.5, -0.25]]
    pushed = data["nodes"]["-> push"]["columns"]
    names = ["action_push_mean", "action_push_std", "action_push"]
    assert [c["name"] for c in pushed] == names
    assert ("input", {"type": "range", "min": "0", "value": "0"}) in reader.tags


def test_without_a_rollout_there_is_no_slider():
    reader = Reader(page())
    assert not any(tag == "input" for tag, _ in reader.tags)
    data = json.loads(reader.scripts[0])
    assert data["nodes"]["demand"]["columns"] == []


def test_the_page_asks_nothing_of_the_network():
    text = page(frame=ROWS, title="</script><b>")
    assert set(re.findall(r"https?://[^\s\"']+", text)) == {
        "http://www.w3.org/2000/svg"
    }
    for _, attributes in Reader(text).tags:
        assert not {"src", "href"} & set(attributes)
    assert "<title>&lt;/script&gt;&lt;b&gt;</title>" in text


NODE = shutil.which("node")
DOM = """
const { readFileSync } = require("fs");
const [script, data] = [0, 1].map(i => readFileSync(process.argv[2 + i], "utf8"));
function made(name) {
  const self = { name, dataset: {}, attributes: {}, children: [], textContent: "",
    handlers: {}, classList: { toggle(kind, on) { self.marked = on; },
      contains: kind => kind === self.kind } };
  self.setAttribute = (k, v) => { self.attributes[k] = v; };
  self.getAttribute = k => self.attributes[k] ?? 0;
  self.appendChild = child => self.children.push(child);
  self.addEventListener = (event, handler) => { self.handlers[event] = handler; };
  self.querySelector = what => what === ".value"
    ? self.children.find(c => c.attributes.class === "value") : made("rect");
  return self;
}
const panel = made("aside"), slider = made("input"), clock = made("output");
Object.defineProperty(panel, "textContent", { set() { panel.children = []; } });
const boxes = Object.entries(JSON.parse(data).nodes).map(([name, node]) => {
  const box = made("g"); box.dataset.name = name; box.kind = node.kind; return box; });
global.document = {
  getElementById: id => (id === "data" ? { textContent: data } : panel),
  querySelector: what => (what === "output" ? clock : slider),
  querySelectorAll: () => boxes,
  createElement: made, createElementNS: (_, name) => made(name),
};
eval(script);
boxes[1].handlers.mouseenter();
slider.value = "1"; slider.handlers.input();
console.log(JSON.stringify({
  values: boxes.map(b => b.querySelector(".value")?.textContent),
  panel: panel.children.map(c => c.textContent), marked: boxes.map(b => b.marked) }));
"""


@pytest.mark.skipif(NODE is None, reason="needs node")
def test_the_script_shows_the_values_of_the_chosen_step(tmp_path):
    data, script = Reader(page(frame=ROWS)).scripts
    for name, text in (("run.js", DOM), ("script.js", script), ("data.json", data)):
        (tmp_path / name).write_text(text)
    command = [NODE, "run.js", "script.js", "data.json"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    shown = json.loads(ran.stdout)
    assert shown["values"] == ["0.25", "-0.25", "-0.25"]
    assert shown["marked"] == [False, True, False]
    assert shown["panel"][:5] == [
        "demand",
        "wanted push",
        "-gain * obs.x",
        "gain 1",
        "latent_demand",
    ]
    # mean of -0.5, -0.25, -1, 0 and -0.125
    assert shown["panel"][5] == "min -1, mean -0.375, max 0; at step 1: -0.25"


LONG = """
gain = weight(1.0)

def policy(obs):
    first = gain * obs.x
    second = tanh(first)
    third = second * 2 + obs.x
    fourth = previous(third, start=0.0) + first
    return action(push=normal(fourth + obs.x, std=0.1))
"""
SVG = "{http://www.w3.org/2000/svg}"


def _points(path):
    """Points along a path of M, C, H and V, thirty for each piece."""
    x = y = 0.0
    for letter, rest in re.findall(r"([MCHV])([^MCHV]*)", path):
        numbers = [float(number) for number in rest.split()]
        if letter == "H":
            numbers = [numbers[0], y]
        elif letter == "V":
            numbers = [x, numbers[0]]
        ends = [(x, y), *zip(numbers[::2], numbers[1::2], strict=True)]
        x, y = ends[-1]
        if letter == "M":
            continue
        for t in (step / 30 for step in range(31)):
            points = ends
            while len(points) > 1:  # de Casteljau
                points = [
                    (a + (c - a) * t, b + (d - b) * t)
                    for (a, b), (c, d) in pairwise(points)
                ]
            yield points[0]


@pytest.mark.parametrize("structure", [parse(LONG, SCHEMA).structure, INTEGRATOR])
def test_no_edge_runs_behind_a_box(structure):
    root = ElementTree.fromstring(graph_svg(structure))
    boxes = [
        [float(rect.get(key)) for key in ("x", "y", "width", "height")]
        for rect in root.iter(f"{SVG}rect")
    ]
    paths = list(root.iter(f"{SVG}path"))
    nodes = graph_nodes(structure)
    assert len(paths) == sum(len(n.inputs) + len(n.recalled) for n in nodes.values())
    for path in paths:
        assert path.get("marker-end") in ("url(#arrow)", "url(#recall)")
        for px, py in _points(path.get("d")):
            for x, y, width, height in boxes:
                assert not (x < px < x + width and y < py < y + height)
