"""Structured-policy rollouts against the same rollouts with a 2x64 network.

    python benchmarks/policy_overhead.py [--batches 20 1024] [--repeats 5]

Interleaved pairs in one process; target: a ratio of at least 1.0.
"""

import argparse

import jax
from environment import load
from rows import measure, median, write_rows

from structjax.policy import MLPPolicy
from structjax.rollout import play


def main() -> None:
    """Measures, prints the ratio per batch size, writes raw rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batches", type=int, nargs="+", default=[20, 1024])
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    task, structured, variables = load()
    network = MLPPolicy(task.schema)
    weights = network.init(
        jax.random.key(0), jax.numpy.zeros(task.schema.observation_size)
    )
    rows = []
    for batch in options.batches:
        seeds = [task.seeds["training"][i % 512] for i in range(batch)]
        seconds: dict[str, list[float]] = {"structured": [], "mlp": []}
        arms = {"structured": (structured, variables), "mlp": (network, weights)}
        for _ in range(options.repeats):
            for name, arm in arms.items():

                def work(arm=arm, seeds=seeds) -> None:
                    play(*arm, task, seeds, key=jax.random.key(0))

                timing = measure(work, 1)[0]
                seconds[name].append(timing["cpu_s"])
                rows.append({"batch": batch, "arm": name, **timing})
        ratios = [
            m / s for s, m in zip(seconds["structured"], seconds["mlp"], strict=True)
        ]
        print(f"batch {batch:5d}: structured is {median(ratios):.2f} times as fast")
    print(write_rows("policy_overhead", rows))


if __name__ == "__main__":
    main()
