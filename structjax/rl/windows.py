"""Likelihood ratios over windows of steps, in log space. Arrays are `[T, B]`."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from structjax.rl.config import Ratio, WindowEnds

LOG_RATIO_BOUND = 20.0
"""Ratios are bounded to exp(+-20); beyond there is no gradient."""
STEP_BOUND = 1e4
"""One step's log-ratio: an infinite one would make every later cumulative sum NaN."""


class Windows(NamedTuple):
    """One ratio per step at which a window starts.

    Attributes:
      log_ratio: `[T, B]`; 0 where no window starts.
      starts: `[T, B]` bool.
    """

    log_ratio: jax.Array
    starts: jax.Array


def windows(
    log_ratio: jax.Array,
    valid: jax.Array,
    ratio: Ratio,
    *,
    window: int,
    ends: WindowEnds,
) -> Windows:
    """The log-ratios of the windows that start at each step.

    Args:
      log_ratio: `[T, B]` new minus old log-probability of the action.
      valid: `[T, B]` bool, True up to the episode's end.
      ratio: what a window covers and whether it is averaged.
      window: its length in steps.
      ends: `full` leaves out windows that the episode's end would cut.
    """
    masked = jnp.where(valid, jnp.clip(log_ratio, -STEP_BOUND, STEP_BOUND), 0.0)
    if ratio == "per_step":
        return Windows(masked, valid)
    if ratio == "sequence_geometric":
        length = jnp.maximum(jnp.sum(valid, axis=0, keepdims=True), 1)
        mean = jnp.sum(masked, axis=0, keepdims=True) / length
        return Windows(jnp.where(valid, mean, 0.0), valid)
    total = window_sum(masked, window)
    count = window_sum(valid.astype(jnp.float32), window)
    starts = valid & (count > window - 0.5) if ends == "full" else valid
    if ratio == "window_geometric":
        total = total / jnp.maximum(count, 1.0)
    return Windows(jnp.where(starts, total, 0.0), starts)


def window_sum(values: jax.Array, window: int) -> jax.Array:
    """Sum of the `window` values from each step on, `[T, B]`; 0 beyond the end.

    A difference of cumulative sums: work and memory do not grow with the window.
    """
    before = jnp.pad(jnp.cumsum(values, axis=0), ((1, 0), (0, 0)))
    reach = min(window, values.shape[0])
    # A window that the end cuts holds everything up to the end.
    after = jnp.pad(before[reach:], ((0, reach - 1), (0, 0)), mode="edge")
    return after - before[:-1]


def bounded_ratio(log_ratio: jax.Array) -> jax.Array:
    """The ratio, finite for any log-ratio."""
    return jnp.exp(jnp.clip(log_ratio, -LOG_RATIO_BOUND, LOG_RATIO_BOUND))
