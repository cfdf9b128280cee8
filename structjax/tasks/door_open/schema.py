"""Names, units, ranges and meanings of Door Opening's observation and actions."""

import math
from dataclasses import replace
from typing import Final

from structjax.schema import ActionField, Field, Schema
from structjax.tasks.door_open import constants as c
from structjax.tasks.door_open.geometry import CLOSED_ANGLE, HANDLE_RADIUS

_AXES = ("x", "y", "z")
_HAND = (-0.52, 1.02)  # its target's box, and 0.02 m that it may lie beyond
_HANDLE_X = (
    c.DOOR_LOW[0] + c.HINGE[0] + HANDLE_RADIUS * math.cos(c.THETA_LOW + CLOSED_ANGLE)
)
_HANDLE_Y = c.DOOR_HIGH[1] + c.HINGE[1] + c.HANDLE[1]
_HANDLE_NEAR = c.DOOR_LOW[1] + c.HINGE[1] - HANDLE_RADIUS
_GOAL = (c.DOOR_LOW[0] + c.GOAL[0], c.DOOR_HIGH[1] + c.GOAL[1])
_START = ", ".join(f"{value:.2f}" for value in c.HAND_START)


_NOW = (
    Field(
        "hand", 3, "m", _HAND[0], _HAND[1],
        "position of the hand in the world: x to the right and y away from the robot, "
        f"z up; it starts at ({_START}); its target stays within "
        f"x [{c.TARGET_LOW[0]:g}, {c.TARGET_HIGH[0]:g}], y [{c.TARGET_LOW[1]:g}, "
        f"{c.TARGET_HIGH[1]:g}], z [{c.TARGET_LOW[2]:g}, {c.TARGET_HIGH[2]:g}]; the "
        "fingers stand upright, 0.09 m tall, centred on this point; they tilt a little "
        "when pushed hard",
        elements=_AXES,
    ),
    Field(
        "grip", None, "", 0.0, 1.0,
        f"opening of the gripper: 1 is open (claws {c.OPENING_UNIT:g} m apart along "
        f"y), {c.OPENING_CLOSED:g} is closed on nothing; closing takes about 18 steps",
    ),
    Field(
        "handle", 3, "m", _HANDLE_X, _HANDLE_Y,
        "position of the door handle in the world: y within "
        f"[{_HANDLE_NEAR:.2f}, {_HANDLE_Y:.2f}], z constant at {c.DOOR_Z:g}; the door "
        "stands elsewhere in every episode; the handle moves on a circle of "
        f"{HANDLE_RADIUS:.3f} m about the hinge, which lies {c.HANDLE[0]:.3f} m to the "
        f"left of and {-c.HANDLE[1]:.3f} m behind the handle of the closed door",
        elements=_AXES,
    ),
    Field(
        "handle_quat", 4, "", -1.0, 1.0,
        "orientation of the handle as a quaternion (x, y, z, w); it starts at "
        "(0.691, -0.151, 0.691, 0.151) in every episode, which are axes of the "
        "handle's shape and not a door angle, and turns about z with the door",
        elements=("x", "y", "z", "w"),
    ),
    Field("unused", 7, "", 0.0, 0.0, "always 0: there is no second object"),
)  # fmt: skip


def _earlier(field: Field) -> Field:
    """The same field one step earlier."""
    meaning = f"{field.name} one step earlier; at the start the same as {field.name}"
    if field.name == "unused":
        meaning = field.meaning
    return replace(field, name=f"prev_{field.name}", meaning=meaning)


DOOR_OPEN_SCHEMA: Final = Schema(
    observations=(
        *_NOW,
        *map(_earlier, _NOW),
        Field(
            "goal", 3, "m", _GOAL[0], _GOAL[1],
            "position where the handle should be, constant during an episode: the "
            f"handle's start + ({c.GOAL[0] - c.HINGE[0] - c.HANDLE[0]:.3f}, "
            f"{c.GOAL[1] - c.HINGE[1] - c.HANDLE[1]:.3f}, 0), to the left of the hinge "
            "and nearer to the robot",
            elements=_AXES,
        ),
    ),
    actions=(
        ActionField(
            "dx",
            f"moves the hand's target by {c.ACTION_SCALE:g} m per unit along x, + to "
            "the right; the hand follows the target, 0.04 m behind it at full speed, "
            "and when something blocks the hand the target runs ahead and has to come "
            "back before the hand does",
        ),
        ActionField("dy", "the same along y, + away from the robot"),
        ActionField("dz", "the same along z, + up"),
        ActionField(
            "grip",
            "force of the gripper: +1 closes it, -1 opens it (the observed opening is "
            "the other way round, 1 is open)",
        ),
    ),
)  # fmt: skip
