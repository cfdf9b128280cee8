"""Structured-policy rollouts against the same rollouts with a 2x64 network.

    python benchmarks/policy_overhead.py [--batches 20 1024 8192] [--repeats 9]

Rounds of all arms in one process; the ratio is taken within each round, and its median
printed. Target: at least 1.0 (the structured policy is no slower).
"""

import argparse

import jax
from environment import load
from rows import measure, median, write_rows

from structjax.policy import MLPPolicy
from structjax.rollout import play

PROGRAMS = ("r0", "r3", "car_a", "car_b")


def main() -> None:
    """Measures, prints the ratio per program and batch size, writes raw rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batches", type=int, nargs="+", default=[20, 1024, 8192])
    parser.add_argument("--repeats", type=int, default=9)
    options = parser.parse_args()
    task = load()[0]
    network = MLPPolicy(task.schema)
    weights = network.init(
        jax.random.key(0), jax.numpy.zeros(task.schema.observation_size)
    )
    arms = {"mlp": (network, weights)} | {name: load(name)[1:] for name in PROGRAMS}
    rows = []
    for batch in options.batches:
        seeds = [task.seeds["training"][i % 512] for i in range(batch)]
        seconds: dict[str, list[float]] = {name: [] for name in arms}
        for turn in range(options.repeats + 1):
            for name, arm in arms.items():

                def work(arm=arm, seeds=seeds) -> None:
                    play(*arm, task, seeds, key=jax.random.key(0))

                timing = measure(work, 1, warm=turn == 0)[0]
                if turn > 0:  # the first round compiles
                    seconds[name].append(timing["cpu_s"])
                    rows.append({"batch": batch, "arm": name, **timing})
        for name in PROGRAMS:
            pairs = zip(seconds["mlp"], seconds[name], strict=True)
            ratio = median([m / s for m, s in pairs])
            print(f"batch {batch:5d}: {name:6s} is {ratio:.2f} times as fast as 2x64")
    print(write_rows("policy_overhead", rows))


if __name__ == "__main__":
    main()
