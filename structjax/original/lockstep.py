"""Episodes in environments outside JAX, side by side: the policy sees all at once."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from structjax.errors import StructjaxError
from structjax.outcomes import Outcomes, reduce_outcomes
from structjax.ranges import episode_seeds

Act = Callable[[np.ndarray], np.ndarray]
"""Observations `[B, O]` -> actions `[B, A]`."""


class OriginalStep(NamedTuple):
    """What one step of an original simulator returns.

    Attributes:
      obs: `[O]` float32.
      reward: reward of the step.
      terminated: the task ended the episode.
      truncated: the step limit is reached.
      info: named values after the step.
    """

    obs: np.ndarray
    reward: float
    terminated: bool
    truncated: bool
    info: Mapping[str, float]


class OriginalEnvironment(Protocol):
    """One original simulator."""

    def reset(self, seed: int) -> np.ndarray:
        """The first observation `[O]` of the seed's initial condition."""

    def step(self, action: np.ndarray) -> OriginalStep:
        """One step with the action `[A]`."""


class LockstepEpisodes(NamedTuple):
    """Results of B episodes.

    Attributes:
      returns: `[B]` undiscounted sums of rewards.
      steps: `[B]` episode lengths.
      outcomes: the outcomes asked for, name -> `[B]`.
    """

    returns: np.ndarray
    steps: np.ndarray
    outcomes: dict[str, np.ndarray]


def play_in_lockstep(
    environments: Sequence[OriginalEnvironment],
    act: Act,
    seeds: Sequence[int],
    outcomes: Outcomes,
) -> LockstepEpisodes:
    """One episode per environment and seed.

    `act` is called once a step with the whole batch, whose rows repeat their last
    observation when their episode has ended, so that a jitted policy compiles once.

    Raises:
      StructjaxError: no seeds, or no such seed.
    """
    seeds = episode_seeds(seeds)
    pairs = list(zip(environments, seeds, strict=True))
    observations = np.stack([env.reset(seed) for env, seed in pairs])
    rewards: list[np.ndarray] = []
    valid: list[np.ndarray] = []
    info: dict[str, list[np.ndarray]] = {value: [] for value, _ in outcomes.values()}
    running = np.ones(len(pairs), bool)
    while running.any():
        actions = np.asarray(act(observations.copy()))
        rewards.append(np.zeros(len(pairs)))
        valid.append(running.copy())
        for values in info.values():
            values.append(np.zeros(len(pairs)))
        for i in map(int, np.flatnonzero(running)):
            step = environments[i].step(actions[i])
            observations[i] = step.obs
            rewards[-1][i] = step.reward
            for name, values in info.items():
                values[-1][i] = step.info[name]
            running[i] = not (step.terminated or step.truncated)
    return summed_up(rewards, valid, info, outcomes)


def not_reset(task: str) -> StructjaxError:
    """The error for a step of an environment that was never reset."""
    return StructjaxError(
        f"{task}: a step before a reset", kind="horizon", hint="call reset(seed) first"
    )


def check_steps(task: str, steps: int) -> None:
    """Refuses an episode without a step.

    Raises:
      StructjaxError: `steps` is less than 1.
    """
    if steps < 1:
        raise StructjaxError(
            f"{task}: an episode of {steps} steps",
            kind="horizon",
            hint="accepted: 1 on",
        )


def summed_up(
    rewards: Sequence[np.ndarray],
    valid: Sequence[np.ndarray] | np.ndarray,
    info: Mapping[str, Sequence[np.ndarray]],
    outcomes: Outcomes,
) -> LockstepEpisodes:
    """What T steps of B episodes amount to; rewards are 0 after an episode's end.

    Args:
      rewards: `[T, B]`.
      valid: `[T, B]`, the steps that were taken.
      info: name -> `[T, B]`.
      outcomes: what to report beside the return.
    """
    found = reduce_outcomes(outcomes, {k: np.array(v) for k, v in info.items()}, valid)
    return LockstepEpisodes(
        np.sum(rewards, axis=0),
        np.sum(valid, axis=0),
        {name: np.asarray(values) for name, values in found.items()},
    )
