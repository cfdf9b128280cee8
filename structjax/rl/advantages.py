"""Advantages of the steps of a batch of episodes. Arrays are `[T, B]`.

Episodes of one group are neighbours: `B = groups * episodes`.
"""

import jax
import jax.numpy as jnp
from jax import lax

from structjax.rl.config import Advantage, Grouping

EPSILON = 1e-8


def reward_to_go(reward: jax.Array, gamma: jax.Array) -> jax.Array:
    """Discounted sum of the rewards from each step on, `[T, B]`."""

    def step(later: jax.Array, now: jax.Array) -> tuple[jax.Array, jax.Array]:
        total = now + gamma * later
        return total, total

    return lax.scan(step, jnp.zeros_like(reward[0]), reward, reverse=True)[1]


def group_advantages(
    reward: jax.Array,
    valid: jax.Array,
    terminated: jax.Array,
    kind: Advantage,
    *,
    episodes: int,
    grouping: Grouping,
    gamma: jax.Array,
    floor: jax.Array,
) -> jax.Array:
    """Advantages without a critic, 0 where `valid` is False.

    Args:
      reward: `[T, B]`, 0 after an episode's end.
      valid: `[T, B]` bool.
      terminated: `[T, B]` bool, True in the step that ended an episode by itself.
      kind: `group_time`, `group_return` or `rloo`.
      episodes: K, episodes per group.
      grouping: whether terminated episodes are still compared.
      gamma: discount.
      floor: groups whose std is below this share of the batch's std get 0.
    """
    compared = valid
    if grouping == "absorbing":
        compared = valid | (jnp.cumsum(terminated, axis=0) > 0)
    if kind == "group_return":
        value = jnp.broadcast_to(jnp.sum(reward, axis=0), reward.shape)
        compared = jnp.ones_like(valid)
    else:
        value = reward_to_go(reward, gamma)
    deviation, std, count = _within_groups(value, compared, episodes)
    spread = _spread(deviation, compared)
    if kind == "rloo":
        advantage = deviation * count / jnp.maximum(count - 1, 1.0)
        advantage = advantage / (spread + EPSILON)
    else:
        advantage = deviation / (std + EPSILON)
    known = valid & (count > 1.5) & (std >= floor * spread) & (std > 0)
    return jnp.where(known, advantage, 0.0)


def _within_groups(
    value: jax.Array, compared: jax.Array, episodes: int
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Deviation from the group's mean, its population std, and its size, `[T, B]`."""
    grouped = value.reshape(value.shape[0], -1, episodes)
    mask = compared.reshape(grouped.shape)
    count = jnp.sum(mask, axis=-1, keepdims=True).astype(jnp.float32)
    size = jnp.maximum(count, 1.0)
    # Counted from the best one, equal values are exactly equal to their mean: with
    # nothing but rounding for a std, they would be standardised to +-1.
    best = jnp.max(jnp.where(mask, grouped, -jnp.inf), axis=-1, keepdims=True)
    behind = jnp.where(mask, grouped - best, 0.0)
    mean = jnp.sum(behind, axis=-1, keepdims=True) / size
    deviation = jnp.where(mask, behind - mean, 0.0)
    std = jnp.sqrt(jnp.sum(deviation**2, axis=-1, keepdims=True) / size)
    std, count = (jnp.broadcast_to(x, grouped.shape) for x in (std, count))
    shape = value.shape
    return deviation.reshape(shape), std.reshape(shape), count.reshape(shape)


def _spread(deviation: jax.Array, compared: jax.Array) -> jax.Array:
    """Root mean square deviation over the whole batch."""
    count = jnp.maximum(jnp.sum(compared), 1)
    return jnp.sqrt(jnp.sum(deviation**2) / count)


def gae(
    reward: jax.Array,
    value: jax.Array,
    next_value: jax.Array,
    valid: jax.Array,
    terminated: jax.Array,
    *,
    gamma: jax.Array,
    decay: jax.Array,
) -> jax.Array:
    """Generalised advantage estimates (Schulman et al. 2016), `[T, B]`.

    A terminated episode has no value beyond its end, a truncated one has: the two are
    not mixed up.

    Args:
      reward: `[T, B]`.
      value: `[T, B]` the critic's, of the observation before each step.
      next_value: `[T, B]` the critic's, of the observation after it.
      valid: `[T, B]` bool.
      terminated: `[T, B]` bool.
      gamma: discount.
      decay: lambda.
    """
    error = reward + gamma * jnp.where(terminated, 0.0, next_value) - value
    error = jnp.where(valid, error, 0.0)

    def step(later: jax.Array, now: jax.Array) -> tuple[jax.Array, jax.Array]:
        total = now + gamma * decay * later
        return total, total

    advantage = lax.scan(step, jnp.zeros_like(error[0]), error, reverse=True)[1]
    return jnp.where(valid, advantage, 0.0)


def standardised(advantage: jax.Array, valid: jax.Array) -> jax.Array:
    """Zero mean and unit std over the valid steps."""
    count = jnp.maximum(jnp.sum(valid), 1)
    mean = jnp.sum(jnp.where(valid, advantage, 0.0)) / count
    centred = jnp.where(valid, advantage - mean, 0.0)
    return centred / (jnp.sqrt(jnp.sum(centred**2) / count) + EPSILON)
