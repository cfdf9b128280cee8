"""The observation that every backend shows."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from structjax.tasks.door_open import constants as c
from structjax.tasks.door_open.geometry import (
    Array,
    goal_position,
    handle_position,
    handle_quaternion,
)

SIZE = 39
PART = 18  # values of one moment; the observation holds two and the goal


class Body(NamedTuple):
    """What a backend's state means for the task.

    Attributes:
      hand: `[3]` position of the hand, m.
      opening: `[]` gap between the claws, in [0, 1].
      theta: `[]` hinge angle, 0 closed, negative open, rad.
      target: `[3]` point that the hand is drawn to, which actions move, m.
    """

    hand: Array
    opening: Array
    theta: Array
    target: Array


def opening_of(right: Array, left: Array) -> Array:
    """Opening of the gripper whose fingers have travelled so far from open, m."""
    return ((c.OPENING_UNIT - right - left) / c.OPENING_UNIT).clip(0.0, 1.0)


def present(body: Body, door_xy: Array) -> jax.Array:
    """The 18 values `[18]` of this moment: hand, opening, handle, its quaternion, 0."""
    return jnp.concatenate(
        [
            jnp.asarray(body.hand, jnp.float32),
            jnp.asarray(body.opening, jnp.float32).reshape(1),
            handle_position(door_xy, body.theta).astype(jnp.float32),
            handle_quaternion(body.theta).astype(jnp.float32),
            jnp.zeros(7, jnp.float32),
        ]
    )


def observe(now: Array, before: Array, door_xy: Array) -> jax.Array:
    """The observation `[39]`: now `[18]`, one step before `[18]`, and the goal.

    At a reset the two moments are the same.
    """
    goal = goal_position(door_xy).astype(jnp.float32)
    return jnp.concatenate([jnp.asarray(now), jnp.asarray(before), goal])
