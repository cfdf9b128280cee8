"""What reports draw of an episode: shapes that follow info values, in views."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

import numpy as np

from structjax.errors import StructjaxError

Axis = Literal["x", "y", "z"]
Kind = Literal["line", "loop", "area", "ring", "trace"]
Point = tuple[float, float, float]

KINDS: tuple[str, ...] = get_args(Kind)
AXES: tuple[str, ...] = get_args(Axis)


@dataclass(frozen=True, eq=False)
class Shape:
    """One thing in a scene. Lengths in metres.

    A point p of it is drawn at origin + Rz(angle) p + sum of value * vector, where the
    angle (rad) and the values are those of the step that is shown.

    Attributes:
      kind: a `"line"` through its points with round ends, of a single point a dot; a
        `"loop"`, a closed line; an `"area"`, filled; a `"ring"` about each point,
        of which `width` is the diameter; or the `"trace"` of its first point over the
        episode.
      points: `[N, 3]` x, y, z.
      colour: as CSS has it.
      width: of lines, which are never too thin to be seen.
      dashed: whether lines are.
      origin: where the shape stands, and what it turns about.
      turn: the info value that turns it about z, if any.
      moves: info value -> the vector that it moves the shape along.
      label: its name in the legend; none if empty.
    """

    kind: Kind
    points: Sequence[Sequence[float]] | np.ndarray
    colour: str
    width: float = 0.0
    dashed: bool = False
    origin: Point = (0.0, 0.0, 0.0)
    turn: str | None = None
    moves: Mapping[str, Point] = field(default_factory=dict)
    label: str = ""

    def __post_init__(self) -> None:
        """Checks kind and points.

        Raises:
          StructjaxError: one of them cannot be drawn.
        """
        if self.kind not in KINDS:
            raise _refused(f"a shape is of kind {self.kind!r:.60}", ", ".join(KINDS))
        shape = np.shape(self.points)
        if len(shape) != 2 or shape[0] < 1 or shape[1] != 3:
            raise _refused(f"points of a {self.kind} have the shape {shape}", "[N, 3]")
        for name, place in {"origin": self.origin, **self.moves}.items():
            if np.shape(place) != (3,):
                raise _refused(f"{name!r} of a {self.kind} is {place!r:.60}", "x, y, z")

    @property
    def values(self) -> frozenset[str]:
        """The info values that it follows."""
        return frozenset(self.moves) | ({self.turn} if self.turn else set())


@dataclass(frozen=True)
class View:
    """The scene seen along one axis.

    Attributes:
      title: e.g. `"from above"`.
      right, up: the axes that point there.
    """

    title: str
    right: Axis = "x"
    up: Axis = "y"

    def __post_init__(self) -> None:
        """Checks the axes.

        Raises:
          StructjaxError: they are not two of x, y, z.
        """
        if not {self.right, self.up} <= set(AXES) or self.right == self.up:
            raise _refused(f"a view has axes {self.right!r}, {self.up!r}", "x, y, z")


@dataclass(frozen=True, eq=False)
class Scene:
    """Shapes, later ones on top, and the views in which they are drawn."""

    shapes: tuple[Shape, ...]
    views: tuple[View, ...] = (View("from above"),)

    @property
    def values(self) -> frozenset[str]:
        """The info values that its shapes follow."""
        return frozenset().union(*(shape.values for shape in self.shapes))


def _refused(problem: str, accepted: str) -> StructjaxError:
    return StructjaxError(
        f"scene of a task: {problem}", kind="task", hint=f"accepted: {accepted}"
    )
