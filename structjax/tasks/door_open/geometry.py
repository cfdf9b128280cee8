"""Where the handle is, how far from its goal, and how it is turned."""

import math
from typing import Final

import jax
import jax.numpy as jnp
import numpy as np

from structjax.tasks.door_open import constants as c

HANDLE_RADIUS: Final = math.hypot(c.HANDLE[0], c.HANDLE[1])
CLOSED_ANGLE: Final = math.atan2(c.HANDLE[1], c.HANDLE[0])
"""Direction of the closed door's handle, seen from the hinge."""
GOAL_ARM: Final = (c.GOAL[0] - c.HINGE[0], c.GOAL[1] - c.HINGE[1])
"""From the hinge to the goal."""
GOAL_RADIUS: Final = math.hypot(*GOAL_ARM)
GOAL_ANGLE: Final = math.atan2(GOAL_ARM[1], GOAL_ARM[0]) - CLOSED_ANGLE
"""Hinge angle, about -1.61, at which the handle is nearest to its goal."""
MIN_DISTANCE: Final = math.hypot(HANDLE_RADIUS - GOAL_RADIUS, c.HANDLE[2] - c.GOAL[2])
"""About 0.0223 m: the goal does not lie on the arc of the handle."""
START_DISTANCE: Final = 0.5475296784522107
"""With the door closed, wherever it stands."""

Array = jax.Array | np.ndarray


def door_point(door_xy: Array, theta: Array, point: tuple[float, float]) -> jax.Array:
    """World position `[2]` of a point of the door, given in the door frame."""
    cosine, sine = jnp.cos(theta), jnp.sin(theta)
    x = door_xy[0] + c.HINGE[0] + cosine * point[0] - sine * point[1]
    y = door_xy[1] + c.HINGE[1] + sine * point[0] + cosine * point[1]
    return jnp.stack([x, y])


def handle_position(door_xy: Array, theta: Array) -> jax.Array:
    """World position `[3]` of the handle of the door at `door_xy` `[2]`."""
    x, y = door_point(door_xy, theta, (c.HANDLE[0], c.HANDLE[1]))
    return jnp.stack([x, y, jnp.full_like(x, c.DOOR_Z + c.HANDLE[2])])


def goal_position(door_xy: Array) -> jax.Array:
    """World position `[3]` of the goal of the handle."""
    x, y = jnp.asarray(door_xy)
    z = jnp.full_like(x, c.DOOR_Z + c.GOAL[2])
    return jnp.stack([x + c.GOAL[0], y + c.GOAL[1], z])


def goal_distance(theta: Array) -> jax.Array:
    """Distance of the handle to its goal: a function of the hinge angle alone.

    Law of cosines on the arcs of radius r (handle) and q (goal) about the hinge,
    d^2 = (r - q)^2 + 4 r q sin^2((theta - theta*) / 2), written without cancellation.
    """
    half = jnp.sin(0.5 * (theta - GOAL_ANGLE))
    chord = 4.0 * HANDLE_RADIUS * GOAL_RADIUS * half * half
    return jnp.sqrt(MIN_DISTANCE**2 + chord)


def handle_quaternion(theta: Array) -> jax.Array:
    """Orientation `[4]` (x, y, z, w) of the handle: turned by theta about z."""
    x, y, z, w = c.QUATERNION
    cosine, sine = jnp.cos(0.5 * theta), jnp.sin(0.5 * theta)
    return jnp.stack(
        [
            cosine * x - sine * y,
            cosine * y + sine * x,
            cosine * z + sine * w,
            cosine * w - sine * z,
        ]
    )


def bar_distance(hand: Array, door_xy: Array, theta: Array) -> jax.Array:
    """Distance of the hand `[3]` to the axis of the bar that it has to pull."""
    x, y = door_xy[0] + c.HINGE[0], door_xy[1] + c.HINGE[1]
    cosine, sine = jnp.cos(theta), jnp.sin(theta)
    along = cosine * (hand[0] - x) + sine * (hand[1] - y) - c.BAR[0]
    across = cosine * (hand[1] - y) - sine * (hand[0] - x) - c.BAR[1]
    beyond = jnp.maximum(jnp.abs(along) - c.BAR_HALF_LENGTH, 0.0)
    above = hand[2] - c.DOOR_Z
    return jnp.sqrt(beyond * beyond + across * across + above * above)
