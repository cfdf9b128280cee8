"""Actions as the environment takes them, and how the host refuses others."""

from typing import Final, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from structjax.errors import StructjaxError
from structjax.tasks.door_open import constants as c

NAMES: Final = ("dx", "dy", "dz", "grip")
Target = TypeVar("Target", jax.Array, np.ndarray)
_LOW: Final = np.array(c.TARGET_LOW)
_HIGH: Final = np.array(c.TARGET_HIGH)


def clip_action(action: jax.Array) -> jax.Array:
    """The action `[4]`, each value clipped to [-1, 1]."""
    return jnp.clip(jnp.asarray(action, jnp.float32), -1.0, 1.0)


def moved_target(target: Target, action: Target) -> Target:
    """Where an action `[4]` puts the hand's target `[3]`; it stays in its box."""
    return (target + c.ACTION_SCALE * action[:3]).clip(_LOW, _HIGH)


def checked_action(action: np.ndarray, episodes: int | None = None) -> np.ndarray:
    """An action on the host, float32 within [-1, 1]: `[4]`, or `[B, 4]` of B episodes.

    Raises:
      StructjaxError: it has another shape, is not finite, or leaves [-1, 1].
    """
    shape = (len(NAMES),) if episodes is None else (episodes, len(NAMES))
    try:
        array = np.asarray(action, np.float32)
    except (TypeError, ValueError):
        raise _refused(f"the action is {action!r:.60}", shape) from None
    if array.shape != shape:
        raise _refused(f"the action has the shape {array.shape}", shape)
    usable = np.abs(array) <= 1.0  # false for NaN, too
    if not usable.all():
        *_, column = np.argwhere(~usable)[0]
        value = array[~usable][0]
        raise _refused(f"the action {NAMES[column]!r} is {value:g}", shape)
    return array


def _refused(problem: str, shape: tuple[int, ...]) -> StructjaxError:
    return StructjaxError(
        f"door_open: {problem}",
        kind="action",
        hint=f"accepted: shape {shape}; dx, dy, dz and grip, each in [-1, 1]",
    )
