"""A program's graph as SVG: observation fields, latents with their weights, actions."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from html import escape
from typing import NamedTuple

from structjax.language.structure import (
    Call,
    Expression,
    Index,
    Observation,
    Previous,
    Slice,
    Structure,
    Variable,
    Weight,
)

_COLUMN, _ROW, _WIDTH, _MARGIN = 230, 62, 170, 20
_SWEEPS = 8


@dataclass
class Node:
    """A box: a field, a logged latent or an action.

    Attributes:
      name: `obs.speed`, a latent's name, or `-> steer`.
      kind: `obs`, `latent` or `action`.
      note: what stands in the second line: weights with values, an action's family.
      title: documentation.
      inputs: names of the boxes it reads in the same step.
      recalled: names of the boxes whose value of the step before it reads.
    """

    name: str
    kind: str
    note: str = ""
    title: str = ""
    inputs: list[str] = field(default_factory=list)
    recalled: list[str] = field(default_factory=list)
    depth: int = 0
    row: float = 0.0


def graph_svg(
    structure: Structure,
    docs: Mapping[str, str] | None = None,
    values: Mapping[str, float] | None = None,
) -> str:
    """The graph from left (observations) to right (actions).

    A latent's box lists the weights it uses, with their values; temporaries are drawn
    through. Docs become tooltips.
    """
    return drawn(graph_nodes(structure, docs, values))


def drawn(nodes: Mapping[str, Node]) -> str:
    """The nodes as SVG; what is recalled from the step before is dashed."""
    place(nodes)
    width = max(n.depth for n in nodes.values()) * _COLUMN + _WIDTH + 2 * _MARGIN
    height = (max(n.row for n in nodes.values()) + 1) * _ROW + _MARGIN
    edges = [_edge(nodes[s], n) for n in nodes.values() for s in n.inputs]
    edges += [
        _edge(nodes[s], n, memory=True) for n in nodes.values() for s in n.recalled
    ]
    boxes = [_box(node) for node in nodes.values()]
    return (
        f'<svg class="graph" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} '
        f'{height:.0f}" width="{width}" height="{height:.0f}" '
        f'font-family="sans-serif">{_STYLE}{"".join(edges)}{"".join(boxes)}</svg>'
    )


_STYLE = (
    "<style>.graph rect{stroke:#4a5568;rx:6}.graph .obs rect{fill:#e6f0fa}"
    ".graph .latent rect{fill:#fff}.graph .action rect{fill:#e9f7e6}"
    ".graph text{font-size:12px;fill:#1a202c}.graph .note{font-size:9px;fill:#718096}"
    ".graph path{fill:none;stroke:#a0aec0;stroke-width:1.2}"
    ".graph .memory{stroke:#dd6b20;stroke-dasharray:4 3}</style>"
)


class _Reading(NamedTuple):
    """What an expression reads, each once: boxes, boxes of the step before, weights."""

    inputs: dict[str, None]
    recalled: dict[str, None]
    weights: dict[str, None]

    def add(self, other: "_Reading") -> None:
        for mine, theirs in zip(self, other, strict=True):
            mine.update(theirs)


def _reading(
    expressions: Iterable[Expression], through: dict[str, _Reading]
) -> _Reading:
    """What expressions read; `through`: the same for the temporaries so far."""
    found = _Reading({}, {}, {})
    stack = list(expressions)[::-1]
    while stack:
        match stack.pop():
            case Call(_, arguments):
                stack += reversed(arguments)
            case Index(vector) | Slice(vector):
                stack.append(vector)
            case Observation(name):
                found.inputs[f"obs.{name}"] = None
            case Weight(name):
                found.weights[name] = None
            case Variable(name) if name in through:
                found.add(through[name])
            case Variable(name):
                found.inputs[name] = None
            case Previous(name):
                found.recalled[name] = None
    return found


def graph_nodes(
    structure: Structure,
    docs: Mapping[str, str] | None = None,
    values: Mapping[str, float] | None = None,
) -> dict[str, Node]:
    """Boxes with their inputs, fields first, then in the program's order."""
    docs, values = docs or {}, values or {}
    found: list[Node] = []
    through: dict[str, _Reading] = {}
    for latent in structure.latents:
        reading = _reading([latent.expression], through)
        if not latent.logged:
            through[latent.name] = reading
            continue
        node = Node(latent.name, "latent", title=docs.get(latent.name, ""))
        found.append(_filled(node, reading, values))
    for head in structure.heads:
        node = Node(f"-> {head.action}", "action", head.family)
        found.append(_filled(node, _reading(head.arguments, through), values))
    if structure.coupling:
        node = Node("-> coupling", "action")
        found.append(_filled(node, _reading(structure.coupling, through), values))
    fields = {
        name: Node(name, "obs", title=docs.get(name, ""))
        for node in found
        for name in node.inputs
        if name.startswith("obs.")
    }
    nodes = fields | {node.name: node for node in found}
    for node in found:  # a temporary of the step before has no box
        node.recalled = [name for name in node.recalled if name in nodes]
    return nodes


def _filled(node: Node, reading: _Reading, values: Mapping[str, float]) -> Node:
    """The node with what it reads; its weights stand in the note."""
    parts = [node.note] if node.note else []
    node.note = ", ".join([*parts, *(_weight(w, values) for w in reading.weights)])
    node.inputs, node.recalled = list(reading.inputs), list(reading.recalled)
    return node


def _weight(name: str, values: Mapping[str, float]) -> str:
    return f"{name} {values[name]:.3g}" if name in values else name


def place(nodes: Mapping[str, Node]) -> None:
    """Depth by the longest path, rows by the mean row of the inputs."""
    for node in nodes.values():
        if node.kind != "obs":
            node.depth = 1 + max((nodes[i].depth for i in node.inputs), default=0)
    last = max(node.depth for node in nodes.values())
    columns: dict[int, list[Node]] = {}
    for node in nodes.values():
        if node.kind == "action":
            node.depth = last
        columns.setdefault(node.depth, []).append(node)
    outputs: dict[str, list[Node]] = {name: [] for name in nodes}
    for node in nodes.values():
        for name in node.inputs:
            outputs[name].append(node)
    for sweep in range(_SWEEPS):
        for depth in sorted(columns, reverse=sweep % 2 == 1):
            _order(columns[depth], nodes, outputs, forward=sweep % 2 == 0)


def _order(
    column: list[Node],
    nodes: Mapping[str, Node],
    outputs: dict[str, list[Node]],
    *,
    forward: bool,
) -> None:
    """Sorts a column by the mean row of its neighbours on one side."""

    def wish(node: Node) -> float:
        near = [nodes[i] for i in node.inputs] if forward else outputs[node.name]
        return sum(n.row for n in near) / len(near) if near else node.row

    column.sort(key=wish)
    for row, node in enumerate(column):
        node.row = float(row)


def _edge(source: Node, target: Node, *, memory: bool = False) -> str:
    kind = ' class="memory"' if memory else ""
    x1, y1 = source.depth * _COLUMN + _MARGIN + _WIDTH, source.row * _ROW + 40
    x2, y2 = target.depth * _COLUMN + _MARGIN, target.row * _ROW + 40
    bend = (x2 - x1) / 2
    return (
        f'<path{kind} d="M{x1} {y1:.0f} C{x1 + bend:.0f} {y1:.0f} '
        f'{x2 - bend:.0f} {y2:.0f} {x2} {y2:.0f}"/>'
    )


def _box(node: Node) -> str:
    x, y = node.depth * _COLUMN + _MARGIN, node.row * _ROW + _MARGIN
    note = node.note if len(node.note) <= 34 else node.note[:33] + "…"
    title = escape(". ".join(t for t in (node.title, node.note) if t) or node.name)
    return (
        f'<g class="{node.kind}" data-name="{escape(node.name)}"><title>{title}</title>'
        f'<rect x="{x}" y="{y:.0f}" width="{_WIDTH}" height="40"/>'
        f'<text x="{x + 8}" y="{y + 17:.0f}">{escape(_short(node.name))}</text>'
        f'<text class="note" x="{x + 8}" y="{y + 31:.0f}">{escape(note)}</text></g>'
    )


def _short(name: str, limit: int = 25) -> str:
    return name if len(name) <= limit else name[: limit - 1] + "…"
