"""Window lengths and objectives: `python experiments/reinforcement/sweeps.py`.

Each recipe trains the refined program, fitted to demonstration `human_1`, with 400
resets and five training seeds; rows of all of them go into `results/`.
"""

import argparse
from collections.abc import Mapping
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

from arms import Arm, begin, collect, recorded, train

from structjax.compilation import enable_compile_cache
from structjax.files import write_json
from structjax.ledger import Ledger
from structjax.provenance import device, git_commit, versions
from structjax.rl.config import PAPER, PRESETS, RLConfig
from structjax.rl.evolution import EVOLUTION_PRESETS
from structjax.rl.plan import Plan
from structjax.rl.presets import Config, recipe
from structjax.tasks.base import Task
from structjax.tasks.registry import make_task

HERE = Path(__file__).parent
WINDOWS = (1, 5, 10, 25, 50, 100, 150, 300)
SEEDS = 5
RESETS = 400


def window_recipes() -> dict[str, RLConfig]:
    """The paper's recipe with other windows, as products and as geometric means."""
    return {
        f"{kind}_{window}": replace(PAPER, ratio=f"window_{kind}", window=window)
        for kind in ("product", "geometric")
        for window in WINDOWS
    }


def objective_recipes() -> dict[str, Config]:
    """The paper's recipe with other objectives, and two recipes of ours as they are."""
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
        "group": PRESETS["group"],
        "es_small": EVOLUTION_PRESETS["es_small"],
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


def sweep(name: str, recipes: Mapping[str, Config], task: Task, runs: Path) -> None:
    """Trains one arm per recipe and writes the rows of all of them."""
    arm = Arm("refined", "imitation", SEEDS, shown=("car_racing/human_1",))
    for label, config in recipes.items():
        options = {"recipe": asdict(config), "resets": RESETS}
        train(runs / label, task, options, partial(_prepare, arm, config, task))
    collect({label: runs / label for label in recipes}, HERE / "results", name)
    facts = {
        label: {"recipe": asdict(config), **recorded(runs / label)}
        for label, config in recipes.items()
    }
    origin = {"device": device(), "commit": git_commit(), "versions": versions()}
    write_json(HERE / "results" / f"{name}.json", {"recipes": facts, **origin})


def _prepare(arm: Arm, config: Config, task: Task, ledger: Ledger) -> tuple[Plan, Any]:
    begun = begin(arm, task, config.std_floor, ledger)
    algorithm, scalars = recipe(begun.policy, task, config, RESETS, SEEDS)
    plan = Plan(
        algorithm, begun.policy, task, scalars, arm.labels(), RESETS,
        tracks=task.seeds["training"],
    )  # fmt: skip
    return plan, begun.stacked


if __name__ == "__main__":
    main()
