"""A program's graph as SVG: observation fields, latents with their weights, actions."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape

from structjax.language.structure import Expression, Observation, Structure, Weight
from structjax.language.usage import leaves

_COLUMN, _ROW, _WIDTH, _MARGIN = 230, 62, 170, 20
_SWEEPS = 8


@dataclass
class _Node:
    """A box: its title, a second line, and where it stands."""

    name: str
    kind: str
    note: str = ""
    title: str = ""
    inputs: list[str] = field(default_factory=list)
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
    nodes = _nodes(structure, docs or {}, values or {})
    _place(nodes)
    width = max(n.depth for n in nodes.values()) * _COLUMN + _WIDTH + 2 * _MARGIN
    height = (max(n.row for n in nodes.values()) + 1) * _ROW + _MARGIN
    edges = [_edge(nodes[s], n) for n in nodes.values() for s in n.inputs]
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
    ".graph path{fill:none;stroke:#a0aec0;stroke-width:1.2}</style>"
)


def _nodes(
    structure: Structure, docs: Mapping[str, str], values: Mapping[str, float]
) -> dict[str, _Node]:
    """Boxes with their inputs, in the program's order."""
    nodes: dict[str, _Node] = {}
    through: dict[str, tuple[list[str], list[str]]] = {}

    def used(expression: Expression) -> tuple[list[str], list[str]]:
        """Inputs (boxes) and weights of an expression, each once."""
        inputs: dict[str, None] = {}
        weights: dict[str, None] = {}
        for part in leaves(expression):
            if isinstance(part, Observation):
                name = f"obs.{part.field}"
                nodes.setdefault(name, _Node(name, "obs", title=docs.get(name, "")))
                inputs[name] = None
            elif isinstance(part, Weight):
                weights[part.name] = None
            elif part.name in through:
                inputs |= dict.fromkeys(through[part.name][0])
                weights |= dict.fromkeys(through[part.name][1])
            else:
                inputs[part.name] = None
        return list(inputs), list(weights)

    for latent in structure.latents:
        inputs, weights = used(latent.expression)
        if not latent.logged:
            through[latent.name] = inputs, weights
            continue
        note = ", ".join(_weight(w, values) for w in weights)
        nodes[latent.name] = _Node(
            latent.name, "latent", note, docs.get(latent.name, ""), inputs
        )
    for head in structure.heads:
        found = [used(argument) for argument in head.arguments]
        inputs = list(dict.fromkeys(name for part, _ in found for name in part))
        weights = [name for _, part in found for name in part]
        note = ", ".join([head.family, *(_weight(w, values) for w in weights)])
        nodes[f"-> {head.action}"] = _Node(
            f"-> {head.action}", "action", note, inputs=inputs
        )
    return nodes


def _weight(name: str, values: Mapping[str, float]) -> str:
    return f"{name} {values[name]:.3g}" if name in values else name


def _place(nodes: dict[str, _Node]) -> None:
    """Depth by the longest path, rows by the mean row of the inputs."""
    for node in nodes.values():
        if node.kind != "obs":
            node.depth = 1 + max((nodes[i].depth for i in node.inputs), default=0)
    last = max(node.depth for node in nodes.values())
    columns: dict[int, list[_Node]] = {}
    for node in nodes.values():
        if node.kind == "action":
            node.depth = last
        columns.setdefault(node.depth, []).append(node)
    outputs: dict[str, list[_Node]] = {name: [] for name in nodes}
    for node in nodes.values():
        for name in node.inputs:
            outputs[name].append(node)
    for sweep in range(_SWEEPS):
        for depth in sorted(columns, reverse=sweep % 2 == 1):
            _order(columns[depth], nodes, outputs, forward=sweep % 2 == 0)


def _order(
    column: list[_Node],
    nodes: dict[str, _Node],
    outputs: dict[str, list[_Node]],
    *,
    forward: bool,
) -> None:
    """Sorts a column by the mean row of its neighbours on one side."""

    def wish(node: _Node) -> float:
        near = [nodes[i] for i in node.inputs] if forward else outputs[node.name]
        return sum(n.row for n in near) / len(near) if near else node.row

    column.sort(key=wish)
    for row, node in enumerate(column):
        node.row = float(row)


def _edge(source: _Node, target: _Node) -> str:
    x1, y1 = source.depth * _COLUMN + _MARGIN + _WIDTH, source.row * _ROW + 40
    x2, y2 = target.depth * _COLUMN + _MARGIN, target.row * _ROW + 40
    bend = (x2 - x1) / 2
    return (
        f'<path d="M{x1} {y1:.0f} C{x1 + bend:.0f} {y1:.0f} {x2 - bend:.0f} {y2:.0f} '
        f'{x2} {y2:.0f}"/>'
    )


def _box(node: _Node) -> str:
    x, y = node.depth * _COLUMN + _MARGIN, node.row * _ROW + _MARGIN
    note = node.note if len(node.note) <= 34 else node.note[:33] + "…"
    title = escape(". ".join(t for t in (node.title, node.note) if t) or node.name)
    return (
        f'<g class="{node.kind}"><title>{title}</title>'
        f'<rect x="{x}" y="{y:.0f}" width="{_WIDTH}" height="40"/>'
        f'<text x="{x + 8}" y="{y + 17:.0f}">{escape(_short(node.name))}</text>'
        f'<text class="note" x="{x + 8}" y="{y + 31:.0f}">{escape(note)}</text></g>'
    )


def _short(name: str, limit: int = 25) -> str:
    return name if len(name) <= limit else name[: limit - 1] + "…"
