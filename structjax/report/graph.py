"""A program's graph as SVG: observation fields, latents with their weights, actions."""

from collections.abc import Iterable, Mapping
from html import escape
from itertools import chain
from typing import NamedTuple

from structjax.language.structure import (
    Expression,
    Observation,
    Previous,
    Structure,
    Variable,
    Weight,
    walk,
)
from structjax.report.graph_layout import HEIGHT, WIDTH, Node, place


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
    layout = place(nodes)
    size = f"{layout.width:.0f}", f"{layout.height:.0f}"
    edges = [f'<path d="{edge}" marker-end="url(#arrow)"/>' for edge in layout.edges]
    edges += [
        f'<path class="memory" d="{edge}" marker-end="url(#recall)"/>'
        for edge in layout.memory
    ]
    boxes = [_box(node) for node in nodes.values()]
    return (
        f'<svg class="graph" xmlns="http://www.w3.org/2000/svg" '
        f'viewBox="0 0 {size[0]} {size[1]}" width="{size[0]}" height="{size[1]}" '
        f'font-family="sans-serif">{_STYLE}{_ARROWS}{"".join(edges)}{"".join(boxes)}'
        "</svg>"
    )


_ARROWS = "<defs>{}</defs>".format(
    "".join(
        f'<marker id="{name}" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" '
        f'markerHeight="8" markerUnits="userSpaceOnUse" orient="auto">'
        f'<polygon points="0 0.5 8 4 0 7.5" fill="{colour}"/></marker>'
        for name, colour in (("arrow", "#718096"), ("recall", "#dd6b20"))
    )
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
    for node in chain.from_iterable(map(walk, expressions)):
        match node:
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


def _box(node: Node) -> str:
    x, y = node.left[0], node.left[1] - HEIGHT / 2
    note = node.note if len(node.note) <= 34 else node.note[:33] + "…"
    title = escape(". ".join(t for t in (node.title, node.note) if t) or node.name)
    return (
        f'<g class="{node.kind}" data-name="{escape(node.name)}"><title>{title}</title>'
        f'<rect x="{x}" y="{y:.0f}" width="{WIDTH}" height="{HEIGHT}"/>'
        f'<text x="{x + 8}" y="{y + 17:.0f}">{escape(_short(node.name))}</text>'
        f'<text class="note" x="{x + 8}" y="{y + 31:.0f}">{escape(note)}</text></g>'
    )


def _short(name: str, limit: int = 25) -> str:
    return name if len(name) <= limit else name[: limit - 1] + "…"
