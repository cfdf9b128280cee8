"""What every adapter takes and gives: a job, and an arm that can be run and judged."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import numpy as np


@dataclass(frozen=True)
class Job:
    """One training problem.

    Attributes:
      environment: name of a gymnax environment.
      steps: environment steps of each training seed.
      seeds: training seeds side by side.
      column: `matched`, `full-batch` or `tuned` (settings.py).
      purejaxrl: folder of a purejaxrl checkout, if there is one.
      sb3_python: the interpreter that has stable-baselines3.
    """

    environment: str = "Pendulum-v1"
    steps: int = 400_000
    seeds: int = 1
    column: str = "matched"
    purejaxrl: str | None = None
    sb3_python: str | None = None


class Timed(NamedTuple):
    """What a piece of work gave, and the seconds it took."""

    value: Any
    wall_s: float
    cpu_s: float


class Unavailable(Exception):
    """A peer that is not installed, or that does not do what the job asks."""


@dataclass(frozen=True)
class Arm:
    """A trainer, ready to run.

    Attributes:
      run: number of a run -> what it trained; seeds are the same for every arm.
      returns: what was trained -> returns `[seeds, 16]`, best action, held-out starts.
      env_steps: environment steps of one timed run, all seeds together.
      gradient_steps: optimiser steps of one timed run and seed.
      resets: episodes begun in one timed run and seed, when all have full length.
      temp_bytes: XLA's temporary memory of the run, where one program is the run.
    """

    run: Callable[[int], Timed]
    returns: Callable[[Any], np.ndarray]
    env_steps: int
    gradient_steps: int
    resets: int | None = None
    temp_bytes: int | None = None


def timed(work: Callable[[], Any]) -> Timed:
    """Wall and CPU seconds of `work`, until its arrays are there."""
    wall, cpu = time.perf_counter(), time.process_time()
    value = jax.block_until_ready(work())
    return Timed(value, time.perf_counter() - wall, time.process_time() - cpu)


def keys_of(run: int, seeds: int) -> jax.Array:
    """The keys of the training seeds of one run, `[seeds, 2]`."""
    return jax.vmap(jax.random.PRNGKey)(np.arange(seeds) + 1000 * run)


def compiled(train: Callable[[jax.Array], Any], seeds: int) -> tuple[Any, int | None]:
    """`train` over all seeds as one program, and its temporary memory.

    One seed is not vmapped: a batch axis of one costs time.
    """
    if seeds == 1:

        def program(keys: jax.Array) -> Any:
            return jax.tree.map(lambda leaf: leaf[None], train(keys[0]))
    else:
        program = jax.vmap(train)
    done = jax.jit(program).lower(keys_of(0, seeds)).compile()
    memory = done.memory_analysis()
    return done, None if memory is None else int(memory.temp_size_in_bytes)
