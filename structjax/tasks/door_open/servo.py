"""A feedback law that opens the door: from the observation alone, without memory.

The goal gives the hinge, and the handle the hinge angle. A hook point is fixed to the
door, behind the bar and right of its stem. The hand flies above it, comes down there,
and then leads it along its arc to the angle at which the handle is at its goal, where
it holds the door.
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from structjax.tasks.door_open import constants as c
from structjax.tasks.door_open.geometry import CLOSED_ANGLE, GOAL_ARM


@dataclass(frozen=True)
class ServoConfig:
    """Where it hooks the door and how fast it pulls.

    Attributes:
      hook: of the hook point from the handle, in the door frame: to the right, and
        behind the bar, m.
      hover: height above the handle of the approach, m.
      near: horizontal distance to the hook point within which the hand comes down, m.
      level: height error within which it pulls, m.
      grip: how far the hand is led beyond the hook point, to press on the bar, m.
      lead: how far ahead of the door's the wanted angle is, rad.
      stop: wanted angle at the end, rad.
      gain: action per metre to the place where the hand should be.
      noise: standard deviation of the smooth noise that a recording adds to the three
        motions; the law itself has none.
    """

    hook: tuple[float, float] = (0.03, 0.02)
    hover: float = 0.2
    near: float = 0.06
    level: float = 0.04
    grip: float = 0.02
    lead: float = 0.3
    stop: float = -1.55
    gain: float = 25.0
    noise: float = 0.0


def servo(obs: jax.Array, config: ServoConfig) -> jax.Array:
    """The action `[4]` for an observation `[39]`; the gripper stays closed."""
    hand, handle, goal = obs[:3], obs[4:7], obs[36:39]
    hinge = goal[:2] - jnp.array(GOAL_ARM)
    arm = handle[:2] - hinge
    theta = jnp.arctan2(arm[1], arm[0]) - CLOSED_ANGLE  # never near a half turn
    # The hand in the door frame, from the hook point: to the right, and behind.
    hook = jnp.array([c.HANDLE[0] + config.hook[0], c.HANDLE[1] + config.hook[1]])
    right, behind = _turned(-theta, hand[:2] - hinge) - hook
    level = jnp.abs(hand[2] - handle[2]) < config.level
    between = (jnp.abs(right) < config.near) & (behind > -0.05) & (behind < 0.04)
    hooked = level & between
    down = hooked | (jnp.hypot(right, behind) < config.near)
    ahead = jnp.clip(theta - config.lead, config.stop, 0.0)
    pulled = hinge + _turned(ahead, hook - jnp.array([0.0, config.grip]))
    place = jnp.where(hooked, pulled, hinge + _turned(theta, hook))
    height = handle[2] + jnp.where(down, 0.0, config.hover)
    motion = config.gain * (jnp.append(place, height) - hand)
    return jnp.append(jnp.clip(motion, -1.0, 1.0), 1.0)


def _turned(angle: jax.Array, point: jax.Array) -> jax.Array:
    """A point `[2]` turned about the origin."""
    cosine, sine = jnp.cos(angle), jnp.sin(angle)
    x, y = point
    return jnp.stack([cosine * x - sine * y, sine * x + cosine * y])
