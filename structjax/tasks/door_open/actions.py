"""Actions as the environment takes them, and how the host refuses others."""

import jax
import jax.numpy as jnp
import numpy as np

from structjax.errors import StructjaxError

NAMES = ("dx", "dy", "dz", "grip")


def clip_action(action: jax.Array) -> jax.Array:
    """The action `[4]`, each value clipped to [-1, 1]."""
    return jnp.clip(jnp.asarray(action, jnp.float32), -1.0, 1.0)


def checked_action(action: np.ndarray) -> np.ndarray:
    """An action on the host, `[4]` float32 within [-1, 1].

    Raises:
      StructjaxError: it has another shape, is not finite, or leaves [-1, 1].
    """
    array = numbers(action)
    if array.shape != (len(NAMES),):
        raise _refused(f"the action has the shape {array.shape}")
    for name, value in zip(NAMES, array, strict=True):
        if not np.isfinite(value):
            raise _refused(f"the action {name!r} is {value}")
        if abs(value) > 1.0:
            raise _refused(f"the action {name!r} is {value:g}")
    return array


def numbers(actions: np.ndarray) -> np.ndarray:
    """One action or several as float32.

    Raises:
      StructjaxError: they are no numbers, or rows of several lengths.
    """
    try:
        return np.asarray(actions, np.float32)
    except (TypeError, ValueError):
        raise _refused(f"the action is {actions!r:.60}") from None


def _refused(problem: str) -> StructjaxError:
    return StructjaxError(
        f"door_open: {problem}",
        kind="action",
        hint="accepted: dx, dy, dz and grip, each in [-1, 1]",
    )
