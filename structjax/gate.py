"""The gate: a round is accepted when its mean gate metric does not fall."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy import stats


@dataclass(frozen=True)
class GateResult:
    """Mean actions on the gate seeds, paired with the best accepted round.

    Attributes:
      values: metric per gate episode; never shown to a model, which sees mean, std
        (population) and worst.
      difference: mean paired difference to the best accepted round, None at round 0.
      interval: its 95 % t-interval; None at round 0 and for a single gate seed.
      outcomes: the task's outcomes per gate episode; they decide nothing.
    """

    values: tuple[float, ...]
    accepted: bool
    difference: float | None = None
    interval: tuple[float, float] | None = None
    outcomes: Mapping[str, Sequence[float]] = field(default_factory=dict)

    @property
    def mean(self) -> float:
        """Mean over the gate episodes."""
        return float(np.mean(self.values))

    @property
    def std(self) -> float:
        """Population standard deviation over the gate episodes."""
        return float(np.std(self.values))

    @property
    def worst(self) -> float:
        """The lowest gate episode."""
        return float(np.min(self.values))


def worse(gate: GateResult) -> bool:
    """Whether the candidate's mean is below the best accepted round's."""
    return gate.difference is not None and gate.difference < 0


def judge(
    values: Sequence[float],
    best: Sequence[float] | None,
    *,
    enforce: bool = True,
    outcomes: Mapping[str, Sequence[float]] | None = None,
) -> GateResult:
    """Accepts or refuses a candidate.

    Args:
      values: the candidate's metric per gate seed (higher is better).
      best: the best accepted round's, on the same seeds; None at round 0.
      enforce: False accepts everything (the paper's behaviour, `--gate off`).
      outcomes: the candidate's, to be told beside the metric.
    """
    outcomes = outcomes or {}
    if best is None:
        return GateResult(tuple(map(float, values)), True, outcomes=outcomes)
    difference = np.asarray(values, float) - np.asarray(best, float)
    mean = float(difference.mean())
    return GateResult(
        values=tuple(map(float, values)),
        accepted=(mean >= 0) or not enforce,
        difference=mean,
        interval=_interval(difference),
        outcomes=outcomes,
    )


def _interval(difference: np.ndarray) -> tuple[float, float] | None:
    """95 % t-interval of a mean; a point when all differences are equal."""
    if len(difference) < 2:
        return None
    mean, sem = float(difference.mean()), float(stats.sem(difference))
    if sem == 0:
        return mean, mean
    half = float(stats.t.ppf(0.975, len(difference) - 1)) * sem
    return mean - half, mean + half


def difference_text(difference: float | None, interval: Sequence[float] | None) -> str:
    """`+1.2 [-0.3, +2.7]`, for tables; empty at round 0."""
    if difference is None:
        return ""
    if interval is None:
        return f"{difference:+.1f}"
    low, high = interval
    return f"{difference:+.1f} [{low:+.1f}, {high:+.1f}]"
