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
        """Checks the attributes.

        Raises:
          StructjaxError: one of them cannot be drawn.
        """
        if not (isinstance(self.kind, str) and self.kind in KINDS):
            raise _refused(f"a shape is of kind {self.kind!r:.60}", ", ".join(KINDS))
        self._check_words()
        self._check_places()
        width = _numbers(self.width)
        if width is None or width.ndim or width < 0:
            problem = f"the width of a {self.kind} is {self.width!r:.60}"
            raise _refused(problem, "a number of at least 0")

    def _check_words(self) -> None:
        words = {"colour": self.colour, "label": self.label}
        if self.turn is not None:
            words["turn"] = self.turn
        for name, word in words.items():
            if not isinstance(word, str):
                raise _refused(f"the {name} of a {self.kind} is {word!r:.60}", "a text")

    def _check_places(self) -> None:
        points = _numbers(self.points)
        if points is None:
            raise _refused(
                f"points of a {self.kind} are {self.points!r:.60}", "finite numbers"
            )
        if points.ndim != 2 or len(points) < 1 or points.shape[1] != 3:
            shape = points.shape
            raise _refused(f"points of a {self.kind} have the shape {shape}", "[N, 3]")
        named = isinstance(self.moves, Mapping)
        if not named or not all(isinstance(name, str) for name in self.moves):
            problem = f"the moves of a {self.kind} are {self.moves!r:.60}"
            raise _refused(problem, "a mapping of info value to x, y, z")
        for name, place in {"origin": self.origin, **self.moves}.items():
            vector = _numbers(place)
            if vector is None or vector.shape != (3,):
                raise _refused(f"{name!r} of a {self.kind} is {place!r:.60}", "x, y, z")

    @property
    def values(self) -> frozenset[str]:
        """The info values that it follows."""
        return frozenset(self.moves) | ({self.turn} if self.turn else set())


def _numbers(value: object) -> np.ndarray | None:
    """The value as an array of finite numbers, None if it is none."""
    try:
        array = np.asarray(value, float)
    except (TypeError, ValueError, OverflowError):
        return None
    return array if np.isfinite(array).all() else None


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
        """Checks title and axes.

        Raises:
          StructjaxError: no text, or not two of x, y, z.
        """
        if not isinstance(self.title, str):
            raise _refused(f"the title of a view is {self.title!r:.60}", "a text")
        axes = (self.right, self.up)
        known = all(isinstance(axis, str) and axis in AXES for axis in axes)
        if not known or self.right == self.up:
            raise _refused(f"a view has axes {self.right!r}, {self.up!r}", "x, y, z")


@dataclass(frozen=True, eq=False)
class Scene:
    """Shapes, later ones on top, and the views in which they are drawn."""

    shapes: tuple[Shape, ...]
    views: tuple[View, ...] = (View("from above"),)

    def __post_init__(self) -> None:
        """Checks what it is made of.

        Raises:
          StructjaxError: other things than shapes and views, or no view.
        """
        _check_all("shapes", self.shapes, Shape)
        _check_all("views", self.views, View)
        if not self.views:
            raise _refused("it has no views", "at least one View")

    @property
    def values(self) -> frozenset[str]:
        """The info values that its shapes follow."""
        return frozenset().union(*(shape.values for shape in self.shapes))


def _check_all(name: str, parts: object, kind: type) -> None:
    if not isinstance(parts, tuple | list) or not all(
        isinstance(part, kind) for part in parts
    ):
        raise _refused(f"its {name} are {parts!r:.60}", f"a tuple of {kind.__name__}s")


def _refused(problem: str, accepted: str) -> StructjaxError:
    return StructjaxError(
        f"scene of a task: {problem}", kind="task", hint=f"accepted: {accepted}"
    )
