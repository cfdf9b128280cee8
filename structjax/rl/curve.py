"""The rows of a training curve."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from structjax.errors import ProgramFailed
from structjax.rl.plan import Plan
from structjax.rl.trainer import COUNTED, Appraisal


def rows_of(
    metrics: dict[str, np.ndarray],
    appraisal: Appraisal,
    before: dict[str, np.ndarray],
    flags: np.ndarray,
    first: int,
    seconds: float,
    failed: Mapping[int, int],
) -> list[dict[str, Any]]:
    """Rows of a chunk: one per appraised update and run.

    Args:
      metrics: `[U, S]` by name.
      appraisal: `[U, S, E]`.
      before: counters `[S]` before the chunk.
      flags: `[U]`, which updates were appraised.
      first: updates done before the chunk.
      seconds: of one update of one run.
      failed: run -> update from which on its figures are NaN.
    """
    counts = {name: before[name] + np.cumsum(metrics[name], 0) for name in COUNTED}
    rows, told = [], 0
    for index in np.flatnonzero(flags):
        for run in range(len(before["resets"])):
            trained = {k: v[index, run] for k, v in metrics.items() if k not in COUNTED}
            update = first + int(index) + 1
            lost = run in failed and update >= failed[run]
            returns = appraisal.returns[index, run]
            rows.append(
                {
                    "run": run,
                    "update": update,
                    "failed": failed[run] if lost else None,
                    **{name: counts[name][index, run] for name in COUNTED},
                    "seconds": seconds * (index + 1 - told),
                    **summary(np.full_like(returns, np.nan) if lost else returns),
                    **trained,
                }
            )
        told = int(index) + 1
    return rows


def summary(returns: Any) -> dict[str, float]:
    """Mean, population std and least of the returns `[E]`."""
    return {"mean": returns.mean(), "std_ddof0": returns.std(), "worst": returns.min()}


def failures(returns: np.ndarray, first: int) -> dict[int, int]:
    """Run -> first update whose return, of `[U, S]` after `first`, is not finite."""
    bad = ~np.isfinite(returns)
    runs = np.flatnonzero(bad.any(axis=0))
    return {int(run): first + int(bad[:, run].argmax()) + 1 for run in runs}


def told_failures(rows: Sequence[Mapping[str, Any]]) -> dict[int, int]:
    """The same as rows of a curve have it; rows of older runs do not tell."""
    return {r["run"]: r["failed"] for r in rows if r.get("failed") is not None}


def check_any(failed: Mapping[int, int], plan: Plan) -> None:
    """Refuses to go on where no run has returns that are finite.

    Raises:
      ProgramFailed: naming the training seed that failed first.
    """
    if len(failed) < plan.runs:
        return
    first = min(failed, key=lambda run: failed[run])
    seed = plan.labels[first]["training_seed"]
    raise ProgramFailed(
        f"task {plan.task.name!r} gave a return that is not finite in training seed "
        f"{seed}{', and by now in all others' if plan.runs > 1 else ''}",
        kind="task",
        hint="check the reward of the environment for the actions of the policy",
    )
