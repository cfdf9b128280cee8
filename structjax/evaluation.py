"""Evaluation: one policy, stated seeds, stated simulator, stated action mode."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import jax
import numpy as np

from structjax.errors import StructjaxError
from structjax.ledger import Ledger, Purpose
from structjax.memory import initial_memory, next_memory, respond
from structjax.rollout import (
    Mode,
    Policy,
    Trajectory,
    check_finite,
    clip_action,
    play,
)
from structjax.tasks.base import Task


@dataclass(frozen=True)
class Evaluation:
    """The result of an evaluation; never a number without its conditions.

    Attributes:
      returns: undiscounted return per episode, in the order of `seeds`.
      values: what `metric` names, per episode; so far the return is the only metric.
      mean: of the values.
      std_ddof0: population standard deviation of the values over the episodes.
    """

    task: str
    simulator: str
    mode: Mode
    seeds: tuple[int, ...]
    returns: tuple[float, ...]
    metric: str
    values: tuple[float, ...]
    mean: float
    std_ddof0: float
    resets: int
    env_steps: int

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready, with lists for tuples."""
        return {
            k: list(v) if isinstance(v, tuple) else v for k, v in asdict(self).items()
        }


def evaluate(
    policy: Policy,
    variables: Any,
    task: Task,
    seeds: Sequence[int],
    *,
    simulator: str = "jax",
    mode: Mode = "mean",
    key: jax.Array | None = None,
    ledger: Ledger | None = None,
    purpose: Purpose = "evaluation",
) -> Evaluation:
    """Plays one episode per seed.

    Args:
      policy: the policy.
      variables: its parameters.
      task: the task.
      seeds: initial conditions, in the task's own numbering.
      simulator: `"jax"`, or an original simulator of the task, e.g. `"gymnasium"`.
      mode: mean or sampled actions.
      key: for sampled actions; `jax.random.key(0)` when omitted.
      ledger: where resets and steps are booked, if anywhere.
      purpose: under what.

    Raises:
      StructjaxError: no such simulator, or no seeds.
      ProgramFailed: an action or a return is not finite.
    """
    if len(seeds) == 0:
        raise StructjaxError(
            "no seeds to evaluate on", kind="seeds", hint="a range A:B needs A < B"
        )
    key = jax.random.key(0) if key is None else key
    if simulator == "jax":
        episodes = play(
            policy,
            variables,
            task,
            seeds,
            key=key,
            mode=mode,
            ledger=ledger,
            purpose=purpose,
        )
        returns, steps = episodes.returns, episodes.steps
    else:
        returns, steps = _play_original(
            policy, variables, task, seeds, simulator, mode, key
        )
        if ledger is not None:
            ledger.book(purpose, resets=len(seeds), env_steps=int(steps.sum()))
    return _evaluation(task, simulator, mode, seeds, returns, steps)


def evaluation_of(
    trajectory: Trajectory, task: Task, seeds: Sequence[int], *, mode: Mode = "mean"
) -> Evaluation:
    """The evaluation that recorded episodes amount to, one per seed, JAX simulator."""
    steps = trajectory.valid.sum(0)
    return _evaluation(task, "jax", mode, seeds, trajectory.reward.sum(0), steps)


def _evaluation(
    task: Task,
    simulator: str,
    mode: Mode,
    seeds: Sequence[int],
    returns: Any,
    steps: Any,
) -> Evaluation:
    values = tuple(float(r) for r in returns)
    return Evaluation(
        task=task.name,
        simulator=simulator,
        mode=mode,
        seeds=tuple(int(s) for s in seeds),
        returns=values,
        metric=task.metric,
        values=values,
        mean=float(np.mean(returns)),
        std_ddof0=float(np.std(returns)),
        resets=len(seeds),
        env_steps=int(np.sum(steps)),
    )


def actor(
    policy: Policy, variables: Any, task: Task, *, mode: Mode, key: jax.Array
) -> Callable[[np.ndarray], np.ndarray]:
    """A host-side function: observations `[B, O]` -> clipped actions `[B, A]`.

    For simulators outside JAX: its calls are the steps of B episodes, from the first
    on. Sampled actions consume one subkey per call.
    """

    @jax.jit
    def act(obs: jax.Array, key: jax.Array, memory: Any) -> Any:
        def one(obs: jax.Array, key: jax.Array, memory: Any) -> Any:
            distribution, latents = respond(policy, variables, obs, memory)
            action = distribution.mode() if mode == "mean" else distribution.sample(key)
            return clip_action(action, task.schema), next_memory(memory, latents)

        return jax.vmap(one)(obs, jax.random.split(key, obs.shape[0]), memory)

    calls = 0
    memory: Any = None

    def host(obs: np.ndarray) -> np.ndarray:
        nonlocal calls, memory
        calls += 1
        if memory is None:
            start = initial_memory(policy)
            memory = {k: np.full(len(obs), v) for k, v in start.items()}
        subkey = jax.random.fold_in(key, calls)
        action, memory = act(np.asarray(obs, np.float32), subkey, memory)
        action = np.asarray(action)
        finite = np.isfinite(action.reshape(len(obs), -1)).all(axis=1)
        check_finite(int((~finite).sum()), len(obs))
        return action

    return host


def _play_original(
    policy: Policy,
    variables: Any,
    task: Task,
    seeds: Sequence[int],
    simulator: str,
    mode: Mode,
    key: jax.Array,
) -> tuple[np.ndarray, np.ndarray]:
    if simulator not in task.simulators:
        known = ", ".join(["jax", *task.simulators])
        raise StructjaxError(
            f"task {task.name!r} has no simulator {simulator!r}",
            kind="simulator",
            hint=f"it has {known}",
        )
    act = actor(policy, variables, task, mode=mode, key=key)
    returns, steps = task.simulators[simulator](act, list(seeds))
    return np.asarray(returns), np.asarray(steps)
