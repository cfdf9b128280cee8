"""Where the boxes and the edges of a graph lie: layers, order, routes."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

COLUMN, ROW, WIDTH, HEIGHT, MARGIN = 230, 62, 170, 40, 20
_BEND = 0.3  # share of a row that an edge needs where it passes a column
_LANE = 8
_SWEEPS = 8

Point = tuple[float, float]


@dataclass
class Node:
    """A box: a field, a logged latent or an action; or the bend of a long edge.

    Attributes:
      name: `obs.speed`, a latent's name, or `-> steer`.
      kind: `obs`, `latent`, `action`, or `bend`.
      note: what stands in the second line: weights with values, an action's family.
      title: documentation.
      inputs: names of the boxes it reads in the same step.
      recalled: names of the boxes whose value of the step before it reads.
      depth: column, from the left.
      row: upper end, in rows from the top.
    """

    name: str
    kind: str
    note: str = ""
    title: str = ""
    inputs: list[str] = field(default_factory=list)
    recalled: list[str] = field(default_factory=list)
    depth: int = 0
    row: float = 0.0

    @property
    def rows(self) -> float:
        """Height, in rows."""
        return _BEND if self.kind == "bend" else 1.0

    @property
    def left(self) -> Point:
        """Where edges arrive."""
        middle = _BEND * ROW / 2 if self.kind == "bend" else HEIGHT / 2
        return self.depth * COLUMN + MARGIN, self.row * ROW + MARGIN + middle

    @property
    def right(self) -> Point:
        """Where edges leave."""
        x, y = self.left
        return x + WIDTH, y


@dataclass(frozen=True)
class Layout:
    """Placed boxes and the paths of the edges, as SVG path data.

    Attributes:
      width: of the drawing.
      height: of the drawing.
      edges: within a step.
      memory: from the step before.
    """

    width: float
    height: float
    edges: tuple[str, ...]
    memory: tuple[str, ...]


def place(nodes: Mapping[str, Node]) -> Layout:
    """Sets depth and row of the nodes, and routes the edges around the boxes.

    Depth is the longest path. An edge that skips columns gets a place of its own in
    each of them, shared by the edges of one source (Sugiyama, Tagawa, Toda, 1981).
    """
    _set_depths(nodes)
    chains = _chains(nodes)
    every = [*nodes.values(), *(bend for chain in chains.values() for bend in chain)]
    _set_rows(every, _links(nodes, chains))
    height = max(n.row + n.rows for n in every) * ROW + MARGIN
    memory = [(nodes[s], n) for n in nodes.values() for s in n.recalled]
    return Layout(
        max(n.depth for n in nodes.values()) * COLUMN + WIDTH + 2 * MARGIN,
        height + _LANE * len(memory),
        tuple(
            _route([nodes[s], *chains[s][: n.depth - nodes[s].depth - 1], n])
            for n in nodes.values()
            for s in n.inputs
        ),
        tuple(_loop(*ends, lane, height) for lane, ends in enumerate(memory)),
    )


def _set_depths(nodes: Mapping[str, Node]) -> None:
    for node in nodes.values():
        if node.kind != "obs":
            node.depth = 1 + max((nodes[i].depth for i in node.inputs), default=0)
    last = max(node.depth for node in nodes.values())
    for node in nodes.values():
        if node.kind == "action":
            node.depth = last


def _chains(nodes: Mapping[str, Node]) -> dict[str, list[Node]]:
    """The bends of each node's edges, one for every column that one of them skips."""
    ends = {name: node.depth + 1 for name, node in nodes.items()}
    for node in nodes.values():
        for name in node.inputs:
            ends[name] = max(ends[name], node.depth)
    return {
        name: [
            Node(f"{name} at {depth}", "bend", depth=depth)
            for depth in range(node.depth + 1, ends[name])
        ]
        for name, node in nodes.items()
    }


def _links(
    nodes: Mapping[str, Node], chains: Mapping[str, Sequence[Node]]
) -> list[tuple[Node, Node]]:
    """Neighbours in columns side by side, each pair once."""
    found = [
        pair
        for name, chain in chains.items()
        for pair in pairwise([nodes[name], *chain])
    ]
    for node in nodes.values():
        for name in node.inputs:
            path = [nodes[name], *chains[name]]
            found.append((path[node.depth - nodes[name].depth - 1], node))
    return found


def _set_rows(every: Sequence[Node], links: Sequence[tuple[Node, Node]]) -> None:
    """Orders each column by the mean row of its neighbours, to and fro."""
    columns: dict[int, list[Node]] = {}
    before: dict[str, list[Node]] = {node.name: [] for node in every}
    after: dict[str, list[Node]] = {node.name: [] for node in every}
    for node in every:
        columns.setdefault(node.depth, []).append(node)
    for source, target in links:
        before[target.name].append(source)
        after[source.name].append(target)
    tallest = max(sum(n.rows for n in column) for column in columns.values())
    for sweep in range(_SWEEPS):
        forward = sweep % 2 == 0
        for depth in sorted(columns, reverse=not forward):
            _order(columns[depth], before if forward else after, tallest)


def _order(
    column: list[Node], near: Mapping[str, Sequence[Node]], tallest: float
) -> None:
    def wish(node: Node) -> float:
        rows = [other.row for other in near[node.name]]
        return sum(rows) / len(rows) if rows else node.row

    column.sort(key=wish)
    row = (tallest - sum(node.rows for node in column)) / 2
    for node in column:
        node.row, row = row, row + node.rows


def _route(path: Sequence[Node]) -> str:
    """A curve from column to column, level where it passes one."""
    return f"M{_at(path[0].right)}" + "".join(_pieces(path))


def _pieces(path: Sequence[Node]) -> Iterator[str]:
    for source, target in pairwise(path):
        (x1, y1), (x2, y2) = source.right, target.left
        middle = (x1 + x2) / 2
        yield f" C{_at((middle, y1))} {_at((middle, y2))} {_at((x2, y2))}"
        if target.kind == "bend":
            yield f" H{target.right[0]:.0f}"


def _loop(source: Node, target: Node, lane: int, bottom: float) -> str:
    """Between the columns down below all boxes, back, and up again."""
    (x1, y1), (x2, y2) = source.right, target.left
    aside = 5 + 3 * (lane % 5)
    y = bottom + _LANE * lane
    return (
        f"M{_at((x1, y1))} H{x1 + aside:.0f} V{y:.0f} H{x2 - aside:.0f} V{y2 + 8:.0f} "
        f"H{x2:.0f}"
    )


def _at(point: Point) -> str:
    return f"{point[0]:.0f} {point[1]:.0f}"
