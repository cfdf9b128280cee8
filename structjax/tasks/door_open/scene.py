"""Door, hand and goal as reports draw them, from above and from the side."""

from collections.abc import Mapping
from functools import partial
from typing import Final

from structjax.tasks.door_open import constants as c
from structjax.tasks.door_open.configurations import door_position
from structjax.tasks.door_open.geometry import MIN_DISTANCE
from structjax.tasks.scene import Point, Scene, Shape, View

VIEWS: Final = (View("from above", "x", "y"), View("from the side", "y", "z"))
_HERE: Final = ((0.0, 0.0, 0.0),)
_WOOD, _METAL, _HAND = "#b7791f", "#4a5568", "#c53030"
_GOAL, _WAY, _CABINET, _TARGET = "#2f855a", "#3182ce", "#cbd5e0", "#805ad5"
_STEM: Final = tuple((c.STEM_X, y, 0.0) for y in c.STEM_Y)


def door_scene(seed: int) -> Scene:
    """The scene of the door of a seed."""
    x, y = map(float, door_position(seed))
    return Scene(shapes=(*_goal(x, y), *_door(x, y), *_hand()), views=VIEWS)


def _following(name: str) -> Mapping[str, Point]:
    """The motion of a point with the info values `name_x`, `name_y`, `name_z`."""
    return {
        f"{name}_x": (1.0, 0.0, 0.0),
        f"{name}_y": (0.0, 1.0, 0.0),
        f"{name}_z": (0.0, 0.0, 1.0),
    }


def _goal(x: float, y: float) -> tuple[Shape, ...]:
    """Where the handle counts as a success, and the goal itself.

    The ring is as wide as the handle comes near: its way touches it.
    """
    goal = (x + c.GOAL[0], y + c.GOAL[1], c.DOOR_Z + c.GOAL[2])
    half = c.SUCCESS_DISTANCE
    near, far = -half, c.HINGE[1] - c.GOAL[1]
    told = f"success: handle within {half} m of the goal along x"
    band = ((-half, near, 0.0), (half, near, 0.0), (half, far, 0.0), (-half, far, 0.0))
    return (
        Shape("area", band, "#c6f6d5", origin=goal, label=told),
        Shape("ring", _HERE, _GOAL, 2 * MIN_DISTANCE, origin=goal),
        Shape("line", _HERE, _GOAL, 0.008, origin=goal, label="goal, handle's way"),
    )


def _door(x: float, y: float) -> tuple[Shape, ...]:
    """Cabinet, panel, stem and bar; the point that is observed, and its way."""
    hinge = (x + c.HINGE[0], y + c.HINGE[1], c.DOOR_Z)
    hung = partial(Shape, origin=hinge, turn="theta")
    edge = c.PANEL_HALF_THICKNESS  # the line that draws the panel is as thick as it
    long, high = c.PANEL_HALF_LENGTH - edge, c.PANEL_HALF_HEIGHT - edge
    start, end = c.PANEL_X - long, c.PANEL_X + long
    panel = ((start, 0, -high), (end, 0, -high), (end, 0, high), (start, 0, high))
    along, across = c.BAR
    reach = c.BAR_HALF_LENGTH - c.BAR_RADIUS  # the round ends are part of the bar
    bar = ((along - reach, across, 0), (along + reach, across, 0))
    handle = _following("handle")
    return (
        Shape("loop", _cabinet(x, y), _CABINET, 0.01),
        Shape("trace", _HERE, _GOAL, moves=handle),
        hung("loop", panel, _WOOD, 2 * edge, label="panel"),
        hung("line", _STEM, _METAL, 2 * c.STEM_RADIUS),
        hung("line", bar, _METAL, 2 * c.BAR_RADIUS, label="bar"),
        Shape("line", _HERE, "#ecc94b", 0.012, moves=handle, label="handle"),
    )


def _cabinet(x: float, y: float) -> tuple[Point, ...]:
    """A block's edges; only its front matters to the task, the rest is a sketch."""
    left, right, front, back = x - 0.2, x + 0.2, y + c.HINGE[1], y + 0.1
    around = ((left, front), (right, front), (right, back), (left, back))
    low, high = (
        [(east, north, c.DOOR_Z + height) for east, north in around]
        for height in (-c.PANEL_HALF_HEIGHT, c.PANEL_HALF_HEIGHT)
    )
    return (*low, low[0], *high[:3], low[2], *high[2:], high[0])


def _hand() -> tuple[Shape, ...]:
    """The hand's way, its point, two claws that open along y, and its target."""
    place = _following("hand")
    half = c.FINGER_HALF_HEIGHT
    claw = ((0.0, 0.0, -half), (0.0, 0.0, half))
    apart = 0.5 * c.OPENING_UNIT
    return (
        Shape("trace", _HERE, _WAY, moves=place, label="hand's way"),
        *(
            Shape(
                "line",
                claw,
                _HAND,
                2 * c.FINGER_RADIUS,
                moves={**place, "opening": (0, side, 0)},
            )
            for side in (-apart, apart)
        ),
        Shape("line", _HERE, _HAND, 0.014, moves=place, label="hand and claws"),
        Shape(
            "ring",
            _HERE,
            _TARGET,
            0.03,
            moves=_following("target"),
            label="target that the hand follows",
        ),
    )
