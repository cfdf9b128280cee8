"""Reward, success and distance, as Meta-World's door-open-v3 computes them.

Its reward is 2 * (hand in place, gripper closing) + 8 * (door opened), and 10 while the
task counts as solved. Two ratings are joined by the Hamacher product, so both have to
be high.
"""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp

from structjax.tasks.door_open import constants as c
from structjax.tasks.door_open.geometry import (
    Array,
    goal_distance,
    goal_position,
    handle_position,
)
from structjax.tasks.door_open.observation import Body

FUNNEL_RADIUS = 0.12  # m: nearer to the handle, seen from above, the hand may go low
OPEN_ANGLE = math.pi / 2 + math.pi / 6  # the door's opening is rated against it


class Rating(NamedTuple):
    """What one state and action are worth.

    Attributes:
      reward: `[]` Meta-World's reward, in [0, 10].
      success: `[]` 1.0 while the handle is within 0.08 m of its goal along x, else 0.0.
      distance: `[]` of the handle to its goal, m; the paper reports its minimum.
      ready: `[]` in [0, 1], the hand is over or behind the handle.
      opened: `[]` in [0, 1], the door is open.
    """

    reward: jax.Array
    success: jax.Array
    distance: jax.Array
    ready: jax.Array
    opened: jax.Array


def long_tail(value: Array, upper: float, margin: Array | float) -> jax.Array:
    """1 in [0, upper], falling outside to 0.1 at `margin` beyond: 1 / (9 x^2 + 1)."""
    value = jnp.asarray(value)
    beyond = jnp.maximum(value - upper, jnp.maximum(-value, 0.0)) / margin
    return 1.0 / (9.0 * beyond * beyond + 1.0)


def hamacher(a: Array, b: Array) -> jax.Array:
    """The Hamacher product a b / (a + b - a b) of two ratings, 0 when both are 0."""
    below = jnp.asarray(a + b - a * b)
    return jnp.where(below > 0.0, a * b / jnp.where(below > 0.0, below, 1.0), 0.0)


def above_floor(hand: Array, handle: Array) -> jax.Array:
    """Rates the height of the hand `[3]`: a funnel around the handle, low in it.

    The funnel's axis is 0.05 m to the left of the handle, its wall
    0.4 + 0.04 log(radius - 0.12).
    """
    radius = jnp.hypot(hand[0] - (handle[0] - 0.05), hand[1] - handle[1])
    outside = jnp.maximum(radius - FUNNEL_RADIUS, 1e-20)
    floor = jnp.where(radius > FUNNEL_RADIUS, 0.04 * jnp.log(outside) + 0.4, 0.0)
    low = hand[2] < floor
    margin = jnp.where(low, 0.5 * floor, 1.0)
    return jnp.where(low, long_tail(floor - hand[2], 0.01, margin), 1.0)


def in_place(hand: Array, handle: Array) -> jax.Array:
    """Rates the hand's distance to the place between the handle and the panel."""
    x, y = hand[0] - handle[0], hand[1] - (handle[1] + 0.03)
    z = hand[2] - (handle[2] - 0.01)
    return long_tail(jnp.sqrt(x * x + y * y + z * z), 0.5 * FUNNEL_RADIUS, 0.5)


def opened(theta: Array) -> jax.Array:
    """Rates the hinge angle: 0.2 from 2 degrees on, up to 0.8 for a wide opening."""
    tried = jnp.where(theta < -math.pi / 90.0, 0.2, 0.0)
    return tried + 0.8 * long_tail(OPEN_ANGLE + theta, 0.5, math.pi / 3.0)


def rate(body: Body, door_xy: Array, action: Array) -> Rating:
    """The rating of a state after `action` `[4]`, in [-1, 1], led to it."""
    handle = handle_position(door_xy, body.theta)
    offset = handle[0] - goal_position(door_xy)[0]
    solved = jnp.abs(offset) <= c.SUCCESS_DISTANCE
    ready = hamacher(above_floor(body.hand, handle), in_place(body.hand, handle))
    effort = 0.5 * (jnp.clip(action[3], -1.0, 1.0) + 1.0)
    open_rating = opened(body.theta)
    reward = 2.0 * hamacher(ready, effort) + 8.0 * open_rating
    return Rating(
        reward=jnp.where(solved, c.SUCCESS_REWARD, reward),
        success=solved.astype(jnp.float32),
        distance=goal_distance(body.theta),
        ready=ready,
        opened=open_rating,
    )
