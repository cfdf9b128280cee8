"""Car Racing against Gymnasium, per CPU core: environment, observation and policy.

    python benchmarks/environment.py [--batch 1024] [--repeats 5]

The same program (tests/fixtures/programs/car_a.py, as written) drives
- structjax: policy and environment fused, batched;
- Gymnasium's simulator without rendering, the observation in NumPy, the same compiled
  policy called once per step for ten cars;
- the same simulator without observation and policy (state only);
- Gymnasium as shipped (`gymnasium.make`, pixels rendered).

Rates are steps per second of process CPU time, so that a second core counts. Targets:
at least 80 times the second, 2,000 times the last. Needs the extra `original`.
"""

import argparse
import warnings
from pathlib import Path

import jax
import numpy as np
from rows import measure, median, write_rows

from structjax.evaluation import actor
from structjax.language.parse import parse
from structjax.original.car_racing import OriginalCarRacing, evaluate_original
from structjax.policy import StructuredPolicy, initial_values, variables_from
from structjax.rollout import play
from structjax.tasks.registry import make_task

PROGRAMS = Path(__file__).parent.parent / "tests/fixtures/programs"
STEPS = 200
GAS = np.array([0.0, 0.1, 0.0])


def load(name: str = "car_a"):
    """The task, a program's policy and its variables as written."""
    task = make_task("car_racing")
    text = (PROGRAMS / f"{name}.py").read_text()
    structure = parse(text, task.schema).structure
    policy = StructuredPolicy(structure, task.schema)
    return task, policy, variables_from(structure, initial_values(structure))


def state_only() -> None:
    """STEPS steps of the simulator alone."""
    env = OriginalCarRacing()
    env.reset(1000)
    for _ in range(STEPS):
        env.simulator.step(GAS)


def as_shipped() -> None:
    """STEPS steps of `gymnasium.make("CarRacing-v3")`, pixels and all."""
    import gymnasium

    env = gymnasium.make("CarRacing-v3")
    env.reset(seed=1000)
    for _ in range(STEPS):
        env.step(GAS)
    env.close()


def main() -> None:
    """Measures, prints the ratios, writes raw rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batch", type=int, default=1024)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    task, policy, variables = load()
    seeds = [task.seeds["training"][i % 512] for i in range(options.batch)]
    tests = list(task.seeds["test"])
    act = actor(policy, variables, task, mode="mean", key=jax.random.key(0))
    steps = {}

    def fused() -> None:
        # Masked steps are computed too: every episode costs `horizon` steps.
        play(policy, variables, task, seeds, key=jax.random.key(0))
        steps["structjax"] = options.batch * task.horizon

    def original() -> None:
        steps["gymnasium + observation + policy"] = int(
            evaluate_original(act, tests).steps.sum()
        )

    arms = {
        "structjax": fused,
        "gymnasium + observation + policy": original,
        "gymnasium, state only": state_only,
        "gymnasium as shipped": as_shipped,
    }
    rows, rates = [], {}
    for name, work in arms.items():
        timings = measure(work, options.repeats)
        count = steps.get(name, STEPS)
        rates[name] = median([count / t["cpu_s"] for t in timings])
        rows += [{"arm": name, "steps": count, **t} for t in timings]
    for name, rate in rates.items():
        ratio = rates["structjax"] / rate
        print(f"{name:34s} {rate:12,.0f} steps per CPU second   ratio {ratio:8.1f}")
    print(write_rows("environment", rows))


if __name__ == "__main__":
    main()
