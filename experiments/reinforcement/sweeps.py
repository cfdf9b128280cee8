"""Window lengths and objectives: `python experiments/reinforcement/sweeps.py`.

Each recipe trains the refined program, fitted to demonstration `human_1`, with 400
resets and five training seeds; rows of all of them go into `results/`.
"""

import argparse
import time
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path

import jax
import numpy as np
from arms import Arm, begin, collect, opened
from tqdm import tqdm

from structjax.compilation import enable_compile_cache
from structjax.files import write_json
from structjax.ledger import Ledger
from structjax.provenance import device, git_commit, versions
from structjax.rl.config import PAPER, PRESETS, RLConfig
from structjax.rl.plan import Plan
from structjax.rl.presets import recipe
from structjax.rl.training import Training
from structjax.tasks.base import Task
from structjax.tasks.registry import make_task

HERE = Path(__file__).parent
WINDOWS = (1, 5, 10, 25, 50, 100, 150, 300)
SEEDS = 5
RESETS = 400
DEMONSTRATION = "car_racing/human_1"


def window_recipes() -> dict[str, RLConfig]:
    """The paper's recipe with other windows, as products and as geometric means."""
    return {
        f"{kind}_{window}": replace(PAPER, ratio=f"window_{kind}", window=window)
        for kind in ("product", "geometric")
        for window in WINDOWS
    }


def objective_recipes() -> dict[str, RLConfig]:
    """The paper's recipe with other objectives, and the recommended one as it is."""
    step = replace(PAPER, ratio="per_step", window_ends="truncated")
    critic = replace(step, advantage="gae", reward_scale=0.1)
    return {
        "window_product": PAPER,
        "window_geometric": replace(PAPER, ratio="window_geometric"),
        "per_step": step,
        "grpo": replace(step, advantage="group_return"),
        "gspo": replace(
            step, ratio="sequence_geometric", advantage="group_return",
            clip_low=3e-4, clip_high=4e-4,
        ),
        "rloo": replace(step, advantage="rloo"),
        "reinforce": replace(step, advantage="rloo", epochs=1),
        "ppo": replace(critic, minibatches=4),
        "absorbing": replace(PAPER, grouping="absorbing"),
        "four_tracks": replace(PAPER, groups=4, episodes=5),
        "ours": PRESETS["group"],
    }  # fmt: skip


SWEEPS = {"windows": window_recipes, "objectives": objective_recipes}


def main() -> None:
    """Runs the sweeps that are named, all by default."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sweeps", nargs="*", default=list(SWEEPS), help="which")
    parser.add_argument("--runs", type=Path, default=Path("runs/reinforcement"))
    options = parser.parse_args()
    if unknown := set(options.sweeps) - set(SWEEPS):
        parser.error(f"no sweep {', '.join(unknown)}; they are {', '.join(SWEEPS)}")
    enable_compile_cache()
    task = make_task("car_racing")
    for name in options.sweeps:
        sweep(name, SWEEPS[name](), task, options.runs / name)


def sweep(name: str, recipes: Mapping[str, RLConfig], task: Task, runs: Path) -> None:
    """Trains one arm per recipe and writes the rows of all of them."""
    began = time.monotonic()
    labels = tuple(
        {"demonstration": DEMONSTRATION, "training_seed": seed} for seed in range(SEEDS)
    )
    for arm, config in tqdm(recipes.items(), desc=name, unit="recipe"):
        path = runs / arm
        if (path / "evaluations.csv").exists():
            continue
        begun = begin(Arm("refined", "imitation", 1), task, config.std_floor, Ledger())
        stacked = jax.tree.map(
            lambda leaf: np.repeat(leaf[:1], SEEDS, 0), begun.stacked
        )
        algorithm, scalars = recipe(begun.policy, task, config, RESETS, SEEDS)
        plan = Plan(
            algorithm, begun.policy, task, scalars, labels, RESETS,
            tracks=task.seeds["training"],
        )  # fmt: skip
        options = {"recipe": asdict(config), "resets": RESETS}
        with opened(path, task, options) as directory:
            Training(directory, plan, stacked).run()
            directory.manifest["status"] = "done"
    _write(name, recipes, runs, time.monotonic() - began)


def _write(
    name: str, recipes: Mapping[str, RLConfig], runs: Path, seconds: float
) -> None:
    collect({arm: runs / arm for arm in recipes}, HERE / "results", name)
    write_json(
        HERE / "results" / f"{name}.json",
        {
            "recipes": {arm: asdict(config) for arm, config in recipes.items()},
            "seconds": seconds,
            "device": device(),
            "commit": git_commit(),
            "versions": versions(),
        },
    )


if __name__ == "__main__":
    main()
