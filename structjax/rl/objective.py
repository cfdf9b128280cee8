"""The clipped surrogate objective and what it says of itself."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from structjax.rl.batch import Steps
from structjax.rl.config import RLConfig, Scalars
from structjax.rl.windows import LOG_RATIO_BOUND, bounded_ratio, windows

UNBOUNDED = 1e9
"""More than any bounded ratio."""


class Surrogate(NamedTuple):
    """The objective and its diagnostics, scalars.

    Attributes:
      objective: to be maximised, with the entropy bonus.
      clip_share: share of windows whose clipping removes the gradient.
      ess: effective sample size of the ratios, as a share of the windows (1: equal).
      kl: mean KL divergence per step from the policy that played, estimated without
        bias and never negative as exp(d) - 1 - d (Schulman 2020), d = log-ratio.
      entropy: mean per step, nats.
      max_log_ratio: largest absolute log-ratio of a window.
    """

    objective: jax.Array
    clip_share: jax.Array
    ess: jax.Array
    kl: jax.Array
    entropy: jax.Array
    max_log_ratio: jax.Array


def surrogate(
    steps: Steps,
    old_log_prob: jax.Array,
    advantage: jax.Array,
    valid: jax.Array,
    *,
    config: RLConfig,
    scalars: Scalars,
    entropy: jax.Array,
) -> Surrogate:
    """min(rho A, clip(rho) A), averaged over the windows that start.

    With `dual_clip` c > 0, negative advantages count at least c A (Ye et al. 2020):
    without it one window with a huge ratio owns the gradient.

    Args:
      steps: log-probabilities and entropies under the present variables, `[T, B]`.
      old_log_prob: `[T, B]` under the variables that played.
      advantage: `[T, B]`.
      valid: `[T, B]` bool.
      config: which ratio, which windows.
      scalars: clipping.
      entropy: coefficient of the entropy bonus.
    """
    log_ratio = steps.log_prob - old_log_prob
    found = windows(
        log_ratio,
        valid,
        config.ratio,
        window=config.window,
        ends=config.window_ends,
    )
    rho = bounded_ratio(found.log_ratio)
    low, high = 1 - scalars.clip_low, 1 + scalars.clip_high
    value = jnp.minimum(rho * advantage, jnp.clip(rho, low, high) * advantage)
    bound = jnp.where(scalars.dual_clip > 0, scalars.dual_clip, UNBOUNDED)
    bounded = jnp.where(advantage < 0, jnp.maximum(value, bound * advantage), value)
    count = jnp.maximum(jnp.sum(found.starts), 1)
    taken = jnp.maximum(jnp.sum(valid), 1)
    mean_entropy = jnp.sum(steps.entropy) / taken
    gain = jnp.sum(jnp.where(found.starts, bounded, 0.0)) / count
    outside = (rho < low) | (rho > bound)
    clipped = ((advantage > 0) & (rho > high)) | ((advantage < 0) & outside)
    return Surrogate(
        objective=gain + entropy * mean_entropy,
        clip_share=jnp.sum(clipped & found.starts) / count,
        ess=_effective_share(rho, found.starts, count),
        kl=jnp.sum(_divergence(jnp.where(valid, log_ratio, 0.0))) / taken,
        entropy=mean_entropy,
        max_log_ratio=jnp.max(jnp.abs(found.log_ratio)),
    )


def _effective_share(rho: jax.Array, starts: jax.Array, count: jax.Array) -> jax.Array:
    """(sum rho)^2 / (n sum rho^2), from ratios scaled to at most 1."""
    taken = jnp.where(starts, rho, 0.0)
    scaled = taken / jnp.max(taken, initial=1e-30)
    squares = jnp.maximum(jnp.sum(scaled**2), 1e-30)
    return jnp.sum(scaled) ** 2 / (count * squares)


def _divergence(log_ratio: jax.Array) -> jax.Array:
    """exp(d) - 1 - d, with its digits where d is small."""
    bounded = jnp.clip(log_ratio, -LOG_RATIO_BOUND, LOG_RATIO_BOUND)
    return jnp.maximum(jnp.expm1(bounded) - bounded, 0.0)
