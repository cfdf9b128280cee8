"""Trains every arm of the design: `python experiments/reinforcement/run.py`.

The arms are resumable runs below `runs/reinforcement/`; the rows of all of them go into
`results/`. `--preset paper` is the recipe of arXiv 2610.01652 to the letter.
"""

import argparse
import time
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import jax
from arms import ARMS, Arm, begin, collect, recorded, train

from structjax.compilation import enable_compile_cache
from structjax.files import write_json
from structjax.ledger import Ledger
from structjax.provenance import device, git_commit, versions
from structjax.rl.plan import Plan
from structjax.rl.presets import Config, preset, recipe, resolved
from structjax.rollout import play
from structjax.tasks.base import Task
from structjax.tasks.registry import make_task

HERE = Path(__file__).parent
OVERHEAD = 2.0
"""Seconds of training for a second of playing alone: updates, selection, compiling."""


def main() -> None:
    """Prints an estimate, trains, writes the rows."""
    options = _options()
    enable_compile_cache()
    chosen = {"backend": options.backend} if options.backend else {}
    task = make_task(options.task, **chosen)
    named = {arm.name: arm for arm in ARMS if arm.task == options.task}
    arms = [named[name] for name in options.arms or named]
    _estimate(arms, task, options.resets)
    began = time.monotonic()
    for arm in arms:
        train(
            options.runs / options.preset / arm.name,
            task,
            settings(arm, options.preset, options.resets, chosen),
            partial(prepare, arm, task, options.preset, options.resets),
        )
    print(f"{time.monotonic() - began:.0f} s in all")
    write_results(options.preset, arms, options.runs, options.results)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--preset", default="paper", help="recipe of every arm")
    parser.add_argument("--resets", type=int, default=2000, help="of every run")
    tasks = sorted({arm.task for arm in ARMS})
    parser.add_argument("--task", choices=tasks, default="car_racing")
    parser.add_argument(
        "--backend", help="of door_open; each wants --runs and --results of its own"
    )
    names = sorted({arm.name for arm in ARMS})
    parser.add_argument(
        "--arms", nargs="*", choices=names, default=[], help="only these"
    )
    parser.add_argument("--runs", type=Path, default=Path("runs/reinforcement"))
    parser.add_argument("--results", type=Path, default=HERE / "results")
    return parser.parse_args()


def _estimate(arms: Sequence[Arm], task: Task, resets: int) -> None:
    """Prints how long it will take, from a few seconds of playing."""
    begun = begin(Arm("zero_shot", "none", 1, arms[0].task), task, 0.0, Ledger())
    variables = jax.tree.map(lambda leaf: leaf[0], begun.stacked)
    seeds = list(task.seeds["training"])[:250]
    key = jax.random.key(0)
    play(begun.policy, variables, task, seeds, key=key)
    began = time.perf_counter()
    steps = int(play(begun.policy, variables, task, seeds, key=key).steps.sum())
    speed = steps / (time.perf_counter() - began)
    runs = sum(len(arm.labels()) for arm in arms)
    total = runs * resets * steps / len(seeds)
    minutes = OVERHEAD * total / speed / 60
    print(
        f"{len(arms)} arms, {runs} runs of {resets} resets: about {total / 1e6:.0f} M "
        f"steps, {minutes:.0f} minutes at {speed / 1e3:.0f} k steps/s played"
    )


def _config(arm: Arm, name: str) -> Config:
    return preset(resolved(name, arm.policy == "mlp"))


def settings(
    arm: Arm, name: str, resets: int, chosen: dict[str, str]
) -> dict[str, Any]:
    """What names a run; `chosen` are options of the task, e.g. its backend."""
    config = asdict(_config(arm, name))
    named = {"arm": arm.facts(), "recipe": config, "resets": resets}
    return named | ({"task": chosen} if chosen else {})


def prepare(
    arm: Arm, task: Task, name: str, resets: int, ledger: Ledger
) -> tuple[Plan, Any]:
    """The plan of an arm and its starting variables `[S, ...]`."""
    config = _config(arm, name)
    begun = begin(arm, task, config.std_floor, ledger)
    labels = arm.labels()
    algorithm, scalars = recipe(begun.policy, task, config, resets, len(labels))
    plan = Plan(
        algorithm, begun.policy, task, scalars, labels, resets,
        milestones=(400,) if resets > 400 else (), tracks=task.seeds["training"],
    )  # fmt: skip
    return plan, begun.stacked


def write_results(name: str, arms: Sequence[Arm], runs: Path, folder: Path) -> None:
    """Collects the rows of all arms, with where they come from."""
    collect({arm.name: runs / name / arm.name for arm in arms}, folder, name)
    write_json(
        folder / f"{name}.json",
        {
            "preset": name,
            "arms": [
                {
                    **arm.facts(),
                    "recipe": asdict(_config(arm, name)),
                    **recorded(runs / name / arm.name),
                }
                for arm in arms
            ],
            "device": device(),
            "commit": git_commit(),
            "versions": versions(),
        },
    )
    print(f"wrote {folder}/{name}_*.csv.gz")


if __name__ == "__main__":
    main()
