"""Batched rollouts: policy and environment fused in one scan, one reset per episode."""

from collections.abc import Sequence
from functools import partial
from typing import Any, Literal, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from structjax.errors import ProgramFailed
from structjax.ledger import Ledger, Purpose
from structjax.memory import initial_memory, next_memory, respond
from structjax.outcomes import reduce_outcomes
from structjax.schema import Schema
from structjax.tasks.base import Task

Mode = Literal["mean", "sampled"]


class Policy(Protocol):
    """Anything with a Flax-like `apply`, for ONE observation."""

    def apply(self, variables: Any, obs: jax.Array, /) -> Any:
        """Observation `[O]` -> (distribution, latents by name)."""


class Trajectory(NamedTuple):
    """What happened, time-major. T steps, B episodes.

    Attributes:
      obs: `[T, B, O]` what the policy saw.
      action: `[T, B, A]` unclipped action (sampled, or the mean); discrete `[T, B]`.
      environment_action: the same, clipped: what the environment got.
      distribution: pytree of `[T, B, ...]`, e.g. `Normal(mean, std)`.
      log_prob: `[T, B]` of the unclipped action.
      reward, terminated, truncated: `[T, B]`.
      valid: `[T, B]` bool, True for steps that were really taken.
      next_obs: `[T, B, O]` what the step led to.
      latents: name -> `[T, B]` or `[T, B, n]`.
      info: name -> `[T, B]`.
    """

    obs: jax.Array
    action: jax.Array
    environment_action: jax.Array
    distribution: Any
    log_prob: jax.Array
    reward: jax.Array
    terminated: jax.Array
    truncated: jax.Array
    valid: jax.Array
    next_obs: jax.Array
    latents: dict[str, jax.Array]
    info: dict[str, jax.Array]


class Episodes(NamedTuple):
    """Per-episode figures `[B]`, without the steps.

    Attributes:
      returns, steps, terminated: of each episode.
      outcomes: the task's outcomes by name.
    """

    returns: np.ndarray
    steps: np.ndarray
    terminated: np.ndarray
    outcomes: dict[str, np.ndarray]


def clip_action(action: jax.Array, schema: Schema) -> jax.Array:
    """The action as the environment takes it: clipped `[A]`, or the choice itself."""
    if schema.discrete:
        return action
    return jnp.clip(action, schema.action_low, schema.action_high)


def _choose(distribution: Any, key: jax.Array, mode: Mode) -> jax.Array:
    return distribution.mode() if mode == "mean" else distribution.sample(key)


def rollout(
    policy: Policy,
    variables: Any,
    task: Task,
    params: Any,
    starts: Any,
    *,
    key: jax.Array,
    mode: Mode = "mean",
) -> Trajectory:
    """Rolls out one episode per start, `task.horizon` steps each.

    There is no auto-reset: after an episode's end its rows are meaningless, `valid` is
    False and the reward 0. So one start is one reset, and the valid steps are counted.

    Args:
      policy: `apply(variables, obs [O]) -> (distribution, latents)`.
      variables: its parameters.
      task: the task.
      params: environment parameters, from `task.initial(seeds)`.
      starts: `[B, ...]` per-episode starts, from there too.
      key: consumed; only sampled actions and stochastic environments depend on it.
      mode: `"mean"` acts with the distribution's mode, `"sampled"` with a sample.

    Returns:
      The trajectory, `[T, B, ...]`.
    """

    def episode(start: Any, key: jax.Array) -> Trajectory:
        obs, state = task.reset(start, params)

        def body(carry: Any, key: jax.Array) -> tuple[Any, Trajectory]:
            obs, state, alive, memory = carry
            key_action, key_step = jax.random.split(key)
            distribution, latents = respond(policy, variables, obs, memory)
            action = _choose(distribution, key_action, mode)
            environment_action = clip_action(action, task.schema)
            step = task.step(key_step, state, environment_action, params)
            reward = jnp.where(alive, step.reward, 0.0)
            record = Trajectory(
                obs=obs,
                action=action,
                environment_action=environment_action,
                distribution=distribution,
                log_prob=distribution.log_prob(action),
                reward=reward,
                terminated=step.terminated & alive,
                truncated=step.truncated & alive,
                valid=alive,
                next_obs=step.obs,
                latents=latents,
                info=step.info,
            )
            alive = alive & ~(step.terminated | step.truncated)
            # An ended episode runs on behind the mask: cheaper than freezing its state.
            memory = next_memory(memory, latents)
            return (step.obs, step.state, alive, memory), record

        keys = jax.random.split(key, task.horizon)
        begin = (obs, state, jnp.array(True), initial_memory(policy))
        _, trajectory = jax.lax.scan(body, begin, keys)
        return trajectory

    batch = jax.tree.leaves(starts)[0].shape[0]
    keys = jax.random.split(key, batch)
    return jax.vmap(episode, out_axes=1)(starts, keys)


def _broken(run: Trajectory) -> jax.Array:
    """`[T, B]` bool, steps whose action or distribution is not finite."""
    marks = [
        jnp.any(~jnp.isfinite(jnp.asarray(leaf)).reshape(*run.valid.shape, -1), axis=-1)
        for leaf in jax.tree.leaves((run.action, run.distribution))
    ]
    return jnp.asarray(run.valid) & jnp.any(jnp.stack(marks), axis=0)


def broken_steps(run: Trajectory) -> int:
    """Number of steps whose action or distribution is not finite."""
    return int(_broken(run).sum())


@partial(jax.jit, static_argnames=("policy", "task", "mode"))
def _recorded(policy, variables, task, params, starts, key, mode):  # type: ignore[no-untyped-def]
    return rollout(policy, variables, task, params, starts, key=key, mode=mode)


def returns_of(trajectory: Trajectory) -> np.ndarray:
    """The return of each recorded episode `[B]`, the same digits as `play` gives.

    Both are summed by XLA; NumPy would add in another order.
    """
    return np.asarray(jnp.asarray(trajectory.reward).sum(0))


@partial(jax.jit, static_argnames=("policy", "task", "mode"))
def _totals(policy, variables, task, params, starts, key, mode):  # type: ignore[no-untyped-def]
    """The same rollout, summed over time: XLA drops what nobody asks for."""
    run = rollout(policy, variables, task, params, starts, key=key, mode=mode)
    outcomes = reduce_outcomes(task.outcomes, run.info, run.valid)
    totals = run.reward.sum(0), run.valid.sum(0), run.terminated.any(0), outcomes
    return Episodes(*totals), _broken(run).sum()


def collect(
    policy: Policy,
    variables: Any,
    task: Task,
    seeds: Sequence[int],
    *,
    key: jax.Array,
    mode: Mode = "mean",
    ledger: Ledger | None = None,
    purpose: Purpose = "diagnosis",
    check: bool = True,
) -> Trajectory:
    """Rolls out one episode per seed, with every step recorded, and books them.

    Raises:
      ProgramFailed: an action or a reward is not finite, unless `check` is off.
    """
    params, starts = task.initial(seeds)
    trajectory = jax.tree.map(
        np.asarray, _recorded(policy, variables, task, params, starts, key, mode)
    )
    steps = int(trajectory.valid.sum())
    if ledger is not None:
        ledger.book(purpose, resets=len(seeds), env_steps=steps)
    if check:
        check_finite(broken_steps(trajectory), steps)
        check_rewards(trajectory.reward, task)
    return trajectory


def play(
    policy: Policy,
    variables: Any,
    task: Task,
    seeds: Sequence[int],
    *,
    key: jax.Array,
    mode: Mode = "mean",
    ledger: Ledger | None = None,
    purpose: Purpose = "evaluation",
) -> Episodes:
    """Rolls out one episode per seed, keeps its figures only, and books it.

    Raises:
      ProgramFailed: an action or a return is not finite.
    """
    params, starts = task.initial(seeds)
    episodes, broken = jax.tree.map(
        np.asarray, _totals(policy, variables, task, params, starts, key, mode)
    )
    steps = int(episodes.steps.sum())
    if ledger is not None:
        ledger.book(purpose, resets=len(seeds), env_steps=steps)
    check_finite(int(broken), steps)
    check_rewards(episodes.returns, task)
    # Compiled functions return mappings sorted by name.
    outcomes = {name: episodes.outcomes[name] for name in task.outcomes}
    return episodes._replace(outcomes=outcomes)


@partial(jax.jit, static_argnames=("policy", "task"))
def _stacked_totals(policy, stacked, task, params, starts, key):  # type: ignore[no-untyped-def]
    def one(variables):  # type: ignore[no-untyped-def]
        run = rollout(policy, variables, task, params, starts, key=key)
        returns = jnp.where(_broken(run).any(0), jnp.nan, run.reward.sum(0))
        return returns, run.valid.sum(0)

    return jax.vmap(one)(stacked)


def play_stacked(
    policy: Policy,
    stacked: Any,
    task: Task,
    seeds: Sequence[int],
    *,
    ledger: Ledger | None = None,
    purpose: Purpose = "selection",
) -> np.ndarray:
    """Mean-action returns `[S, B]` of S parameter sets on the same episodes, booked.

    A return is NaN where an action was: a candidate that diverges is not chosen.
    """
    params, starts = task.initial(seeds)
    key = jax.random.key(0)
    returns, steps = _stacked_totals(policy, stacked, task, params, starts, key)
    returns = np.asarray(returns)
    if ledger is not None:
        ledger.book(purpose, resets=returns.size, env_steps=int(steps.sum()))
    return returns


def check_finite(broken: int, steps: int) -> None:
    """Refuses a policy that did not know what to do.

    Raises:
      ProgramFailed: in some steps its action or its distribution was not finite.
    """
    if broken:
        raise ProgramFailed(
            f"the policy's action is not finite in {broken} of {steps} steps",
            kind="policy",
            hint="look for divisions, exp and powers of large values in the program",
        )


def check_rewards(reward: np.ndarray, task: Task) -> None:
    """Refuses rewards or returns of a task that are not finite.

    Raises:
      ProgramFailed: some are not.
    """
    if not np.isfinite(reward).all():
        raise ProgramFailed(
            f"task {task.name!r} gave a reward that is not finite "
            f"({int((~np.isfinite(reward)).sum())} values)",
            kind="task",
            hint="check the reward and the action range of the environment",
        )
