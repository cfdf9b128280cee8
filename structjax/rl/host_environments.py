"""Environments outside JAX in lockstep: Gymnasium's, one by one or as a vector."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, NoReturn, Protocol

import numpy as np

from structjax.errors import StructjaxError
from structjax.schema import Schema
from structjax.tasks.base import DEFAULT_SEEDS, Task


class HostStep(NamedTuple):
    """What B environments return from a step; ended ones return anything.

    Attributes:
      obs: `[B, O]` float32 what the step led to, also where it ended the episode.
      reward: `[B]`.
      terminated, truncated: `[B]` bool.
    """

    obs: np.ndarray
    reward: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray


class HostEnvironments(Protocol):
    """B environments that are stepped together."""

    def reset(self, seeds: Sequence[int]) -> np.ndarray:
        """First observations `[B, O]` of B new episodes."""

    def step(self, actions: np.ndarray, running: np.ndarray) -> HostStep:
        """One step with the clipped actions `[B, A]` or the choices `[B]`.

        `running` `[B]` bool says which episodes have not ended yet.
        """


class SeparateEnvironments:
    """A list of environments with Gymnasium's `reset(seed=...)` and `step(action)`.

    Only those whose episode still runs are stepped.
    """

    def __init__(self, environments: Sequence[Any]) -> None:
        self._environments = list(environments)
        self._obs = np.zeros((0, 0), np.float32)

    def reset(self, seeds: Sequence[int]) -> np.ndarray:
        """First observations `[B, O]`.

        Raises:
          StructjaxError: not one seed per environment.
        """
        _check_number(len(self._environments), len(seeds))
        pairs = zip(self._environments, seeds, strict=True)
        found = [env.reset(seed=int(seed)) for env, seed in pairs]
        self._obs = _flat([x[0] if isinstance(x, tuple) else x for x in found])
        return self._obs.copy()

    def step(self, actions: np.ndarray, running: np.ndarray) -> HostStep:
        """Steps the running environments."""
        size = len(self._environments)
        reward, ended = np.zeros(size), np.zeros((2, size), bool)
        for i in np.flatnonzero(running):
            obs, reward[i], ended[0, i], ended[1, i], _ = self._environments[i].step(
                actions[i]
            )
            self._obs[i] = np.asarray(obs, np.float32).ravel()
        return HostStep(self._obs.copy(), reward, *ended)


class VectorEnvironment:
    """A Gymnasium `VectorEnv` that resets ended episodes in the step after their end.

    That is Gymnasium's default. These resets cost time but are no episodes: nothing of
    them is used, and they are not counted.
    """

    def __init__(self, environment: Any) -> None:
        """Takes the environment.

        Raises:
          StructjaxError: it resets ended episodes at another time.
        """
        self._environment = environment
        mode = environment.metadata.get("autoreset_mode")
        if getattr(mode, "value", mode) != "NextStep":
            raise StructjaxError(
                f"the vector environment has autoreset_mode {mode!r:.60}",
                kind="task",
                hint="AutoresetMode.NEXT_STEP is needed: it alone shows what the last "
                "step of an episode led to, and can be stepped on",
            )

    def reset(self, seeds: Sequence[int]) -> np.ndarray:
        """First observations `[B, O]`.

        Raises:
          StructjaxError: not one seed per environment, or seeds are not taken.
        """
        _check_number(self._environment.num_envs, len(seeds))
        try:
            obs, _ = self._environment.reset(seed=[int(seed) for seed in seeds])
        except Exception as error:
            # Vector environments of their own kind take one seed for all of them.
            raise StructjaxError(
                f"the vector environment cannot be reset by one seed per episode "
                f"({error})",
                kind="task",
                hint='gymnasium.make_vec(..., vectorization_mode="sync") can',
            ) from error
        return _flat(obs)

    def step(self, actions: np.ndarray, running: np.ndarray) -> HostStep:
        """Steps all environments."""
        obs, reward, terminated, truncated, _ = self._environment.step(actions)
        return HostStep(_flat(obs), reward, terminated, truncated)


def host_task(
    name: str,
    *,
    schema: Schema,
    description: str,
    horizon: int,
    seeds: Mapping[str, range] | None = None,
) -> Task:
    """A Task for an environment that exists outside JAX only: it cannot be stepped."""

    def absent(*arguments: Any) -> NoReturn:
        raise StructjaxError(
            f"task {name!r} has no JAX environment",
            kind="task",
            hint="play it with structjax.rl.host",
        )

    return Task(
        name=name,
        description=description,
        schema=schema,
        horizon=horizon,
        seeds=dict(DEFAULT_SEEDS if seeds is None else seeds),
        initial=absent,
        reset=absent,
        step=absent,
    )


def _check_number(environments: int, seeds: int) -> None:
    if environments != seeds:
        raise StructjaxError(
            f"{environments} environments for {seeds} episodes",
            kind="task",
            hint="one environment per episode: groups * episodes of them",
        )


def _flat(observations: Any) -> np.ndarray:
    """`[B, O]` float32, always a copy."""
    stacked = np.array(observations, np.float32)
    return stacked.reshape(len(stacked), -1)
