"""A jitted Car Racing task on two tracks, for tests."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from structjax.tasks.base import Task
from structjax.tasks.car_racing.environment import EnvParams, EnvState
from structjax.tasks.car_racing.task import car_racing

SEEDS = (2005, 2006)


class Simulator(NamedTuple):
    task: Task
    params: EnvParams
    reset: Any
    step: Any

    def run(self, index: int, action: Any, steps: int) -> tuple[np.ndarray, EnvState]:
        """Last observation and state after `steps` equal actions."""
        obs, state = self.reset(index, self.params)
        for _ in range(steps):
            result = self.step(state, jnp.asarray(action, jnp.float32), self.params)
            obs, state = result.obs, result.state
        return np.asarray(obs), state


def make_simulator(cache_dir: str) -> Simulator:
    task = car_racing(cache_dir=cache_dir)
    params, starts = task.initial(SEEDS)
    np.testing.assert_array_equal(starts, [0, 1])
    key = jax.random.key(0)
    step = jax.jit(lambda state, action, p: task.step(key, state, action, p))
    return Simulator(task, params, jax.jit(task.reset), step)
