"""The rows of a training curve."""

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
) -> list[dict[str, Any]]:
    """Rows of a chunk: one per appraised update and run.

    Args:
      metrics: `[U, S]` by name.
      appraisal: `[U, S, E]`.
      before: counters `[S]` before the chunk.
      flags: `[U]`, which updates were appraised.
      first: updates done before the chunk.
      seconds: of one update of one run.
    """
    counts = {name: before[name] + np.cumsum(metrics[name], 0) for name in COUNTED}
    rows, told = [], 0
    for index in np.flatnonzero(flags):
        for run in range(len(before["resets"])):
            trained = {k: v[index, run] for k, v in metrics.items() if k not in COUNTED}
            rows.append(
                {
                    "run": run,
                    "update": first + int(index) + 1,
                    **{name: counts[name][index, run] for name in COUNTED},
                    "seconds": seconds * (index + 1 - told),
                    **summary(appraisal.returns[index, run]),
                    **trained,
                }
            )
        told = int(index) + 1
    return rows


def summary(returns: Any) -> dict[str, float]:
    """Mean, population std and least of the returns `[E]`."""
    return {"mean": returns.mean(), "std_ddof0": returns.std(), "worst": returns.min()}


def check_returns(returns: np.ndarray, plan: Plan) -> None:
    """Refuses a task whose returns `[U, S]` are not finite.

    Raises:
      ProgramFailed: naming the training seed.
    """
    bad = np.argwhere(~np.isfinite(returns))
    if len(bad):
        seed = plan.labels[int(bad[0][1])]["training_seed"]
        raise ProgramFailed(
            f"task {plan.task.name!r} gave a return that is not finite in training "
            f"seed {seed}",
            kind="task",
            hint="check the reward of the environment for the actions of the policy",
        )
