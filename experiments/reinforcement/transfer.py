"""Plays trained arms in a simulator outside JAX: `... transfer.py --task door_open`.

Reads the finished runs of `run.py` (same options; each task and backend has `--runs`
and `--results` of its own) and writes one row per training run, checkpoint, mode and
test episode into `results/PRESET_SIMULATOR.csv.gz`.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import pandas as pd
from arms import ARMS, Arm
from run import HERE, prepare, settings
from tqdm import tqdm

from structjax.compilation import enable_compile_cache
from structjax.evaluation import evaluate
from structjax.ledger import Ledger
from structjax.outcomes import OUTCOME
from structjax.rl.training import Training
from structjax.rollout import Mode
from structjax.runs import RunDirectory
from structjax.tasks.base import Task
from structjax.tasks.registry import make_task

PLAYED: tuple[tuple[str, Mode], ...] = (
    ("resets400", "mean"),
    ("final", "mean"),
    ("best", "mean"),
    ("best", "sampled"),
)


def main() -> None:
    """Plays and writes every chosen arm."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--task", default="door_open")
    parser.add_argument("--backend", help="that the arms were trained in")
    parser.add_argument("--simulator", default="metaworld")
    parser.add_argument("--preset", default="recommended")
    parser.add_argument("--resets", type=int, default=2000)
    parser.add_argument("--arms", nargs="*", default=[])
    parser.add_argument("--runs", type=Path, default=Path("runs/reinforcement"))
    parser.add_argument("--results", type=Path, default=HERE / "results")
    options = parser.parse_args()
    enable_compile_cache()
    chosen = {"backend": options.backend} if options.backend else {}
    task = make_task(options.task, **chosen)
    arms = [arm for arm in ARMS if arm.task == options.task]
    rows: list[dict[str, Any]] = []
    for arm in arms:
        if not options.arms or arm.name in options.arms:
            rows += _rows(arm, task, options, chosen)
    options.results.mkdir(parents=True, exist_ok=True)
    path = options.results / f"{options.preset}_{options.simulator}.csv.gz"
    pd.DataFrame(rows).to_csv(path, index=False)
    print(f"wrote {path}")


def _rows(
    arm: Arm, task: Task, options: argparse.Namespace, chosen: dict[str, str]
) -> Iterator[dict[str, Any]]:
    """The episodes of one arm; what it learned is read from its run."""
    path = options.runs / options.preset / arm.name
    config = settings(arm, options.preset, options.resets, chosen)
    with RunDirectory.resume(path, config=config, task=task.name) as directory:
        # What the fits cost was booked when the arm was trained.
        plan, stacked = prepare(arm, task, options.preset, options.resets, Ledger())
        checkpoints = Training(directory, plan, stacked).run().checkpoints
        directory.manifest["status"] = "done"
    runs = list(enumerate(plan.labels))
    for run, label in tqdm(runs, desc=arm.name, unit="run"):
        # Runs of one demonstration have the same start.
        first = label["training_seed"] == 0
        for checkpoint, mode in ((("start", "mean"),) if first else ()) + PLAYED:
            variables = jax.tree.map(lambda x, i=run: x[i], checkpoints[checkpoint])
            seeds = task.seeds["test"]
            found = evaluate(
                plan.policy, variables, task, seeds,
                simulator=options.simulator, mode=mode,
            )  # fmt: skip
            for i, seed in enumerate(seeds):
                outcomes = {f"{OUTCOME}{k}": v[i] for k, v in found.outcomes.items()}
                yield {
                    "arm": arm.name, **label, "checkpoint": checkpoint, "mode": mode,
                    "simulator": options.simulator, "episode_seed": seed,
                    "return": found.returns[i], **outcomes,
                }  # fmt: skip


if __name__ == "__main__":
    main()
