"""Door Opening: control steps per second and compilation of the JAX backends.

    python benchmarks/door_speed.py [--backends analytic] [--batches 1 16 256 4096]

A 500-step scan of the environment (dynamics, observation, reward, info) under smooth
random actions, one episode per door. Rates are per second of wall time with all cores
that JAX may use, and per second of process CPU time. The compilation is that of a fresh
process cache, tracing included.
"""

import argparse
import time
from collections.abc import Callable

import jax
import jax.numpy as jnp
from rows import measure, median, write_rows

from structjax.tasks.base import Task
from structjax.tasks.door_open.task import BACKENDS, door_open

# Above every seed set of the task.
FIRST_SEED = 20_000


def episodes(task: Task) -> Callable[[jax.Array, jax.Array, object], jax.Array]:
    """Doors `[B, 2]` and actions `[T, 4]` -> the returns `[B]`."""

    def one(start: jax.Array, actions: jax.Array, params: object) -> jax.Array:
        _, state = task.reset(start, params)

        def once(state: object, action: jax.Array) -> tuple[object, jax.Array]:
            step = task.step(jax.random.key(0), state, action, params)
            figures = (step.reward, step.obs.sum(), *step.info.values())
            return step.state, jnp.stack(figures)

        return jax.lax.scan(once, state, actions)[1].sum(0)

    return jax.vmap(one, in_axes=(0, None, None))


def smooth_actions(steps: int) -> jax.Array:
    """`[T, 4]`, random walks kept within [-1, 1]."""
    noise = jax.random.normal(jax.random.key(1), (steps, 4))
    return jnp.sin(0.2 * jnp.cumsum(noise, axis=0))


def main() -> None:
    """Measures, prints, writes raw rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--backends", nargs="+", choices=BACKENDS, default=["analytic"])
    parser.add_argument("--batches", nargs="+", type=int, default=[1, 16, 256, 4096])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--name", default="door_speed", help="results file")
    options = parser.parse_args()
    rows = []
    for backend in options.backends:
        task = door_open(backend=backend)
        actions = smooth_actions(task.horizon)
        for batch in options.batches:
            params, starts = task.initial(range(FIRST_SEED, FIRST_SEED + batch))
            began, cpu = time.perf_counter(), time.process_time()
            program = jax.jit(episodes(task)).lower(starts, actions, params).compile()
            compiled = {
                "compile_wall_s": time.perf_counter() - began,
                "compile_cpu_s": time.process_time() - cpu,
            }
            timings = measure(
                lambda p=program, s=starts, a=actions, q=params: jax.block_until_ready(
                    p(s, a, q)
                ),
                options.repeats,
            )
            steps = batch * task.horizon
            shared = {"backend": backend, "batch": batch, "steps": steps, **compiled}
            rows += [{**shared, **t} for t in timings]
            wall = median([steps / t["wall_s"] for t in timings])
            busy = median([steps / t["cpu_s"] for t in timings])
            print(
                f"{backend:10s} batch {batch:5d} {wall:12,.0f} steps/s "
                f"{busy:12,.0f} per CPU second   compiled in "
                f"{compiled['compile_wall_s']:.1f} s, "
                f"{compiled['compile_cpu_s']:.1f} s of it CPU"
            )
    print(write_rows(options.name, rows))


if __name__ == "__main__":
    main()
