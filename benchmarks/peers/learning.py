"""What a budget buys: held-out returns after whole runs of growing length.

Every budget is a run of its own, planned for that length, so that a schedule of an arm
ends where its run does. Judged outside the timed part: 16 held-out starts, best action.
"""

import os
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from peers.arm import Job

THRESHOLD = {"Pendulum-v1": -200.0, "CartPole-v1": 475.0}


def learning_rows(
    arms: list[str], job: Job, budgets: list[int], slow: int
) -> Iterator[dict[str, Any]]:
    """One row per arm, budget and training seed; SB3 up to `slow` steps only."""
    for name in arms:
        for budget in budgets:
            if name == "sb3" and budget > slow:
                continue
            try:
                yield from _rows(name, replace(job, steps=budget))
            except Exception as problem:  # a peer's failure is a result, not the end
                print(f"{name}, {budget} steps: {type(problem).__name__}: {problem}")
                break


def _rows(name: str, job: Job) -> list[dict[str, Any]]:
    """One row per training seed of one run."""
    from peers.gymnax_env import HORIZONS
    from peers.pairs import prepare

    arm = prepare(name, job)
    each = arm.env_steps // job.seeds
    if each > job.steps:
        print(f"{name}: one update takes {each} steps, the budget is {job.steps}")
        return []
    done = arm.run(0)
    # Pendulum's episodes all have full length; peers do not count CartPole's.
    counted = job.environment == "Pendulum-v1"
    same = {
        "row": "learning",
        "arm": name,
        "column": job.column,
        "budget": job.steps,
        "env_steps": each,
        "resets": each // HORIZONS[job.environment] if counted else None,
        "gradient_steps": arm.gradient_steps,
        "wall_s_per_seed": done.wall_s / job.seeds,
        "load": os.getloadavg()[0],
    }
    return [
        {
            **same,
            "training_seed": seed,
            "mean": float(np.mean(returns)),
            "worst": float(np.min(returns)),
        }
        for seed, returns in enumerate(arm.returns(done.value))
    ]


def learning_table(rows: list[dict[str, Any]], environment: str) -> list[str]:
    """Lines of Markdown: median over seeds and how many pass the threshold."""
    threshold = THRESHOLD[environment]
    budgets = sorted({row["budget"] for row in rows})
    lines = [
        f"| arm | {' | '.join(f'{b:,} steps' for b in budgets)} |",
        f"|---|{'---|' * len(budgets)}",
    ]
    for name in dict.fromkeys(row["arm"] for row in rows):
        cells = []
        for budget in budgets:
            means = [
                row["mean"]
                for row in rows
                if row["arm"] == name and row["budget"] == budget
            ]
            solved = sum(mean >= threshold for mean in means)
            text = f"{np.median(means):.0f} ({solved}/{len(means)})" if means else "-"
            cells.append(text)
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return lines
