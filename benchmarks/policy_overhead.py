"""Structured-policy rollouts against the same rollouts with a 2x64 network.

    python benchmarks/policy_overhead.py [--batches 20 1024 8192] [--repeats 31]

Rounds of all arms in one process; the ratio is taken within each round, and its median
printed with the middle half. Target: at least 1.0 (the structured policy is no slower).
All batches take the same number of environment steps, so large ones take fewer steps
per episode: a step costs the same wherever the car is.
"""

import argparse
import dataclasses

import jax
from environment import load
from rows import measure, write_rows

from structjax.policy import MLPPolicy
from structjax.rollout import rollout

PROGRAMS = ("r0", "r3", "car_a", "car_b")
STEPS = 200_000
"""Environment steps of one measurement, as far as the horizon of 1,000 allows."""
TRACKS = 256


def arms_of(task):  # type: ignore[no-untyped-def]
    """Name -> policy and variables."""
    network = MLPPolicy(task.schema)
    obs = jax.numpy.zeros(task.schema.observation_size)
    weights = network.init(jax.random.key(0), obs)
    return {"mlp": (network, weights)} | {name: load(name)[1:] for name in PROGRAMS}


def compiled(arm, task, params, starts):  # type: ignore[no-untyped-def]
    """A function that plays the batch and waits for the returns."""
    policy, variables = arm

    def returns(variables, params, starts):  # type: ignore[no-untyped-def]
        key = jax.random.key(0)
        return rollout(policy, variables, task, params, starts, key=key).reward.sum(0)

    function = jax.jit(returns).lower(variables, params, starts).compile()
    return lambda: jax.block_until_ready(function(variables, params, starts))


def quartiles(values: list[float]) -> tuple[float, float, float]:
    """Lower quartile, median, upper quartile."""
    ordered = sorted(values)
    return tuple(ordered[i * (len(ordered) - 1) // 4] for i in (1, 2, 3))


def main() -> None:
    """Measures, prints the ratio per program and batch size, writes raw rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batches", type=int, nargs="+", default=[20, 1024, 8192])
    parser.add_argument("--repeats", type=int, default=31)
    options = parser.parse_args()
    task = load()[0]
    arms = arms_of(task)
    params, tracks = task.initial(task.seeds["training"][:TRACKS])
    rows = []
    for batch in options.batches:
        index = jax.numpy.arange(batch) % TRACKS
        starts = jax.tree.map(lambda leaf, index=index: leaf[index], tracks)
        short = dataclasses.replace(task, horizon=min(task.horizon, STEPS // batch))
        works = {
            name: compiled(arm, short, params, starts) for name, arm in arms.items()
        }
        ratios: dict[str, list[float]] = {name: [] for name in PROGRAMS}
        for turn in range(options.repeats + 1):
            timings = {n: measure(w, 1, warm=turn == 0)[0] for n, w in works.items()}
            if turn == 0:
                continue
            for name, timing in timings.items():
                row = {"batch": batch, "steps": short.horizon, "arm": name, **timing}
                rows.append(row)
                if name in ratios:
                    ratios[name].append(timings["mlp"]["cpu_s"] / timing["cpu_s"])
        for name in PROGRAMS:
            low, middle, high = quartiles(ratios[name])
            spread = f"{middle:.2f} ({low:.2f} to {high:.2f})"
            text = f"batch {batch:5d}: {name:6s} is {spread} times as fast as 2x64"
            print(text, flush=True)
    print(write_rows("policy_overhead", rows))


if __name__ == "__main__":
    main()
