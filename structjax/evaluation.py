"""Evaluation: one policy, stated seeds, stated simulator, stated action mode."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np

from structjax.errors import StructjaxError
from structjax.ledger import Ledger, Purpose
from structjax.memory import initial_memory, next_memory, respond
from structjax.outcomes import reduce_outcomes, summarised
from structjax.rollout import (
    Mode,
    Policy,
    Trajectory,
    check_finite,
    check_rewards,
    clip_action,
    play,
    returns_of,
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
      outcomes: the task's outcomes by name, per episode.
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
    outcomes: Mapping[str, tuple[float, ...]] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready: lists for tuples, outcomes, if any, with mean and spread."""
        plain = {
            k: list(v) if isinstance(v, tuple) else v for k, v in asdict(self).items()
        }
        del plain["outcomes"]
        if not self.outcomes:
            return plain
        return {**plain, "outcomes": summarised(self.outcomes)}


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
        played = play(
            policy,
            variables,
            task,
            seeds,
            key=key,
            mode=mode,
            ledger=ledger,
            purpose=purpose,
        )
        figures = _Figures(played.returns, played.steps, played.outcomes)
    else:
        figures = _play_original(policy, variables, task, seeds, simulator, mode, key)
        if ledger is not None:
            steps = int(figures.steps.sum())
            ledger.book(purpose, resets=len(seeds), env_steps=steps)
    return _evaluation(task, simulator, mode, seeds, figures)


def evaluation_of(
    trajectory: Trajectory, task: Task, seeds: Sequence[int], *, mode: Mode = "mean"
) -> Evaluation:
    """The evaluation that recorded episodes amount to, one per seed, JAX simulator."""
    valid = trajectory.valid
    outcomes = reduce_outcomes(task.outcomes, trajectory.info, valid)
    figures = _Figures(returns_of(trajectory), valid.sum(0), outcomes)
    return _evaluation(task, "jax", mode, seeds, figures)


class _Figures(NamedTuple):
    """Of B episodes: returns and lengths `[B]`, outcomes by name `[B]`."""

    returns: Any
    steps: Any
    outcomes: Mapping[str, Any]


def _evaluation(
    task: Task, simulator: str, mode: Mode, seeds: Sequence[int], figures: _Figures
) -> Evaluation:
    values = tuple(float(r) for r in figures.returns)
    return Evaluation(
        task=task.name,
        simulator=simulator,
        mode=mode,
        seeds=tuple(int(s) for s in seeds),
        returns=values,
        metric=task.metric,
        values=values,
        mean=float(np.mean(figures.returns)),
        std_ddof0=float(np.std(figures.returns)),
        resets=len(seeds),
        env_steps=int(np.sum(figures.steps)),
        outcomes={
            name: tuple(float(x) for x in found)
            for name, found in figures.outcomes.items()
        },
    )


@partial(jax.jit, static_argnames=("policy", "task", "mode"))
def _act(
    policy: Policy,
    variables: Any,
    task: Task,
    mode: Mode,
    obs: jax.Array,
    key: jax.Array,
    memory: Any,
) -> tuple[jax.Array, Any]:
    """Clipped actions `[B, A]` and next memories; compiled once for all variables."""

    def one(obs: jax.Array, key: jax.Array, memory: Any) -> Any:
        distribution, latents = respond(policy, variables, obs, memory)
        action = distribution.mode() if mode == "mean" else distribution.sample(key)
        return clip_action(action, task.schema), next_memory(memory, latents)

    return jax.vmap(one)(obs, jax.random.split(key, obs.shape[0]), memory)


def actor(
    policy: Policy, variables: Any, task: Task, *, mode: Mode, key: jax.Array
) -> Callable[[np.ndarray], np.ndarray]:
    """A host-side function: observations `[B, O]` -> clipped actions `[B, A]`.

    For simulators outside JAX: its calls are the steps of B episodes, from the first
    on. Sampled actions consume one subkey per call.
    """
    calls = 0
    memory: Any = None

    def host(obs: np.ndarray) -> np.ndarray:
        nonlocal calls, memory
        calls += 1
        if memory is None:
            start = initial_memory(policy)
            memory = {k: np.full(len(obs), v) for k, v in start.items()}
        subkey = jax.random.fold_in(key, calls)
        seen = np.asarray(obs, np.float32)
        action, memory = _act(policy, variables, task, mode, seen, subkey, memory)
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
) -> _Figures:
    if simulator not in task.simulators:
        known = ", ".join(["jax", *task.simulators])
        raise StructjaxError(
            f"task {task.name!r} has no simulator {simulator!r}",
            kind="simulator",
            hint=f"it has {known}",
        )
    act = actor(policy, variables, task, mode=mode, key=key)
    try:
        played = task.simulators[simulator](act, list(seeds))
    except (StructjaxError, MemoryError):
        raise
    except Exception as error:
        lines = str(error).strip().splitlines() or [""]
        text = f"fails: {type(error).__name__}: {lines[0]:.200}"
        raise _unusable(task, simulator, text, "mend it") from error
    return _figures(played, task, simulator, len(seeds))


def _figures(played: Any, task: Task, simulator: str, episodes: int) -> _Figures:
    """What a simulator gave, checked."""
    if not (isinstance(played, tuple) and len(played) in (2, 3)):
        given = f"a {type(played).__name__}"
        if isinstance(played, tuple):
            given = f"{len(played)} values"
        accepted = "accepted: (returns, steps) or (returns, steps, {outcome: values})"
        raise _unusable(task, simulator, f"gives {given}", accepted)
    outcomes = played[2] if len(played) == 3 else {}
    if not isinstance(outcomes, Mapping):
        text = f"gives outcomes {outcomes!r:.60}"
        raise _unusable(task, simulator, text, "accepted: {outcome: values}")

    def column(name: str, values: Any) -> np.ndarray:
        try:
            array = np.asarray(values, float)
        except (TypeError, ValueError):
            array = np.zeros(0)
        if array.shape != (episodes,):
            accepted = f"accepted: {episodes} numbers, one per seed"
            text = f"gives {name} {values!r:.60}"
            raise _unusable(task, simulator, text, accepted)
        return array

    returns = column("returns", played[0])
    check_rewards(returns, task)
    named = {
        name: column(f"the outcome {name!r} as", outcomes[name])
        for name in task.outcomes
        if name in outcomes
    }
    return _Figures(returns, column("steps", played[1]), named)


def _unusable(task: Task, simulator: str, problem: str, hint: str) -> StructjaxError:
    text = f"simulator {simulator!r} of task {task.name!r} {problem}"
    return StructjaxError(text, kind="simulator", hint=hint)
