"""The episodes of one update, and what a policy makes of them again."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from structjax.memory import along, initial_memory
from structjax.rl.config import RLConfig
from structjax.rollout import Policy, rollout
from structjax.tasks.base import Task


class Batch(NamedTuple):
    """Episodes played with sampled actions; T steps, B episodes, groups together.

    Attributes:
      obs: `[T, B, O]`.
      action: `[T, B, A]` unclipped, or discrete `[T, B]`.
      reward: `[T, B]`.
      valid, terminated: `[T, B]` bool.
      last_obs: `[B, O]` the observation after the last step.
    """

    obs: jax.Array
    action: jax.Array
    reward: jax.Array
    valid: jax.Array
    terminated: jax.Array
    last_obs: jax.Array

    @property
    def seen(self) -> jax.Array:
        """The observations `[T, B, O]`, an episode's first one behind its end.

        What an ended episode runs on to may be NaN, and 0 times NaN spreads in a
        gradient.
        """
        return jnp.where(self.valid[..., None], self.obs, self.obs[:1])


class Steps(NamedTuple):
    """What a policy says of recorded steps, `[T, B]` each.

    Attributes:
      log_prob: of the recorded action; 0 where not valid.
      entropy: of the action's distribution; 0 where not valid.
    """

    log_prob: jax.Array
    entropy: jax.Array


class UpdateKeys(NamedTuple):
    """What the key of an update is split into, in this order."""

    state: jax.Array
    starts: jax.Array
    play: jax.Array
    order: jax.Array


def update_keys(key: jax.Array) -> UpdateKeys:
    """Keys of the next state, the starts, the actions and the minibatches."""
    return UpdateKeys(*jax.random.split(key, 4))


def draw_starts(key: jax.Array, bank: Any, config: RLConfig) -> Any:
    """`groups` initial states of the bank, different ones where it has as many.

    Each is repeated `episodes` times, `[groups * episodes, ...]`.
    """
    index = jnp.repeat(choose(key, bank, config.groups), config.episodes)
    return jax.tree.map(lambda leaf: leaf[index], bank)


def choose(key: jax.Array, bank: Any, count: int) -> jax.Array:
    """Positions `[count]` in the bank, different ones where it has as many."""
    size = jax.tree.leaves(bank)[0].shape[0]
    return jax.random.choice(key, size, (count,), replace=size < count)


def play_batch(
    policy: Policy, variables: Any, task: Task, params: Any, starts: Any, key: jax.Array
) -> Batch:
    """Plays one episode per start with sampled actions."""
    run = rollout(policy, variables, task, params, starts, key=key, mode="sampled")
    return Batch(
        run.obs, run.action, run.reward, run.valid, run.terminated, run.next_obs[-1]
    )


def judge(policy: Policy, variables: Any, batch: Batch) -> Steps:
    """Log-probability and entropy of the recorded steps under these variables.

    The one function for old and new likelihoods, so that equal variables give equal
    ones: their ratio is 1.
    """
    distribution = _distributions(policy, variables, batch.seen)
    log_prob = distribution.log_prob(batch.action)
    entropy = distribution.entropy()
    return Steps(
        jnp.where(batch.valid, log_prob, 0.0), jnp.where(batch.valid, entropy, 0.0)
    )


def _distributions(policy: Policy, variables: Any, obs: jax.Array) -> Any:
    """The distributions `[T, B, ...]` at the observations `[T, B, O]`."""
    if initial_memory(policy):
        axes = (None, None, 1)
        each = jax.vmap(along, in_axes=axes, out_axes=1)
        return each(policy, variables, obs)[0]
    return jax.vmap(jax.vmap(lambda o: policy.apply(variables, o)[0]))(obs)
