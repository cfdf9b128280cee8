"""Floating-point operations of one update, from XLA's own count.

XLA counts the body of a loop once, however often it runs. So an update is composed of
parts whose loops run once or do not matter: the resets, one step of the whole batch
times the horizon, the preparation of the lesson, and one gradient step times their
number.

What the figure holds and what it does not:
- operations as XLA counts them: a multiply-add is 2, and random numbers cost their
  integer operations too; exp, log, tanh and the like are counted apart by XLA and left
  out;
- steps behind an episode's end and gradient steps after a KL stop, which the compiled
  program computes and then drops;
- not the selection episodes;
- loops inside an environment's own step once only, as well as the sums along time of
  rewards to go (2 operations a step).
"""

from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from structjax.memory import initial_memory
from structjax.rl.algorithm import Algorithm
from structjax.rl.batch import Batch, play_batch
from structjax.rl.config import scalars
from structjax.rl.gradient import ADAM, PolicyGradient
from structjax.rollout import Policy
from structjax.tasks.base import Task


class PlayFlops(NamedTuple):
    """Operations of B episodes.

    Attributes:
      reset: of all resets.
      step: of one policy and environment step of all episodes.
      horizon: steps.
    """

    reset: float
    step: float
    horizon: int

    @property
    def total(self) -> float:
        """All of it."""
        return self.reset + self.horizon * self.step


class UpdateFlops(NamedTuple):
    """Operations of one update.

    Attributes:
      play: of its episodes.
      prepare: old log-probabilities, advantages, value targets.
      gradient_step: of one, its loss and gradient and Adam's part.
      gradient_steps: how many there are.
    """

    play: PlayFlops
    prepare: float
    gradient_step: float
    gradient_steps: int

    @property
    def learn(self) -> float:
        """All but the episodes."""
        return self.prepare + self.gradient_steps * self.gradient_step

    @property
    def total(self) -> float:
        """All of it."""
        return self.play.total + self.learn


def counted(function: Any, *arguments: Any) -> float:
    """XLA's count for one call; arguments may be shapes. Loop bodies count once."""
    # The count does not depend on how well the code is compiled.
    options: dict[str, str | bool] = {"xla_backend_optimization_level": "0"}
    compiled = jax.jit(function).lower(*arguments).compile(options)
    return float((compiled.cost_analysis() or {}).get("flops", 0.0))


def play_flops(
    policy: Policy, variables: Any, task: Task, params: Any, starts: Any
) -> PlayFlops:
    """Of one sampled episode per start `[B, ...]`."""
    single = replace(task, horizon=1)

    def reset(params: Any, starts: Any) -> Any:
        return jax.vmap(lambda start: task.reset(start, params))(starts)

    def play(variables: Any, params: Any, starts: Any, key: jax.Array) -> Batch:
        return play_batch(policy, variables, single, params, starts, key)

    begin = counted(reset, params, starts)
    both = counted(play, variables, params, starts, jax.random.key(0))
    return PlayFlops(begin, max(both - begin, 0.0), task.horizon)


def update_flops(
    algorithm: PolicyGradient, variables: Any, params: Any, bank: Any
) -> UpdateFlops:
    """Of one update of one training seed.

    Args:
      algorithm: the update rule.
      variables: the policy's; only their shapes matter.
      params: environment parameters.
      bank: initial states, as `task.initial(seeds)` gives them.
    """
    config = algorithm.config
    state = jax.eval_shape(algorithm.init, jax.random.key(0), variables)
    batch = jax.eval_shape(algorithm.collect, state, params, bank)
    shapes = jax.eval_shape(lambda: scalars(config))
    times = 1
    if initial_memory(algorithm.policy):
        # The policy runs along each episode in a loop: one step of it, times the steps.
        times, batch = batch.reward.shape[0], _first_step(batch)
    adam = counted(ADAM.update, state.learned, state.adam)
    prepare = counted(algorithm.prepare, state.learned, batch, shapes)
    learn = counted(algorithm.update_from, state, batch, shapes)
    starts = jax.tree.map(
        lambda leaf: jnp.take(leaf, jnp.zeros(config.resets_per_update, int), axis=0),
        bank,
    )
    return UpdateFlops(
        play=play_flops(algorithm.policy, variables, algorithm.task, params, starts),
        prepare=times * prepare,
        gradient_step=adam + times * max(learn - prepare - adam, 0.0),
        gradient_steps=config.epochs * config.minibatches,
    )


def flops_per_update(
    algorithm: Algorithm, variables: Any, task: Task, bank: Any
) -> float:
    """Of one update of one run, whatever the algorithm.

    Args:
      algorithm: the update rule.
      variables: of one run.
      task: the task.
      bank: `(params, starts)` of the training seeds.
    """
    if isinstance(algorithm, PolicyGradient):
        return update_flops(algorithm, variables, *bank).total
    params, starts = bank
    index = jnp.zeros(algorithm.resets_per_update, int)
    some = jax.tree.map(lambda leaf: jnp.take(leaf, index, axis=0), starts)
    return play_flops(algorithm.policy, variables, task, params, some).total


def _first_step(batch: Batch) -> Any:
    """The shapes of a batch of one step."""

    def first(leaf: jax.Array) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct((1, *leaf.shape[1:]), leaf.dtype)

    return jax.tree.map(first, batch)._replace(last_obs=batch.last_obs)
