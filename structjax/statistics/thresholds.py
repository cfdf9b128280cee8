"""Time to a threshold, where some runs have not reached it when they end."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from structjax.errors import StructjaxError
from structjax.statistics.aggregates import bootstrap
from structjax.statistics.samples import Values, sample


class Reach(NamedTuple):
    """When one run reached a threshold, or how far it was followed in vain."""

    time: float
    reached: bool


class Survival(NamedTuple):
    """The share `[K]` of runs that have not reached it after each time `[K]`."""

    times: Values
    share: Values
    n: int
    unit: str


class ThresholdTimes(NamedTuple):
    """Times to a threshold of n runs, right-censored.

    Attributes:
      threshold: of the return.
      solved: how many runs reached it, at any time.
      restricted_mean: mean time up to `horizon`, a run that has not reached it by then
        counting as `horizon`: the area under the Kaplan-Meier curve.
      low: of its percentile bootstrap interval; NaN for one run.
      high: likewise.
      median: Kaplan-Meier; NaN when fewer than half of the runs got there.
      horizon: to which all runs were followed.
      unit: what a run is, in words.
    """

    threshold: float
    solved: int
    n: int
    unit: str
    restricted_mean: float
    low: float
    high: float
    confidence: float
    median: float
    horizon: float


def first_reach(x: ArrayLike, y: ArrayLike, threshold: float) -> Reach:
    """The first x at which y is at least the threshold; else the last x, censored.

    Between two evaluations nothing is known, so nothing is interpolated.
    """
    times, values = np.asarray(x, np.float64), np.asarray(y, np.float64)
    above = np.flatnonzero(values >= threshold)
    if len(above):
        return Reach(float(times[above[0]]), True)
    return Reach(float(times[-1]), False)


def kaplan_meier(
    times: ArrayLike, reached: Sequence[bool] | NDArray[np.bool_], *, unit: str
) -> Survival:
    """The product-limit estimate (Kaplan and Meier, 1958), at the times of events.

    A run censored at the time of an event was still at risk then.
    """
    ends = sample(times, unit=unit, least=1)
    events = np.asarray(reached, bool)
    at = np.unique(ends[events])
    risk = (ends[None, :] >= at[:, None]).sum(-1)
    gone = ((ends[None, :] == at[:, None]) & events).sum(-1)
    return Survival(at, np.cumprod(1 - gone / np.maximum(risk, 1)), len(ends), unit)


def time_to_threshold(
    reaches: Sequence[Reach],
    threshold: float,
    *,
    unit: str,
    horizon: float | None = None,
    confidence: float = 0.95,
    seed: int = 0,
) -> ThresholdTimes:
    """The summary of the times of n runs.

    Args:
      reaches: one per run, of `first_reach`.
      threshold: as given there; for the record.
      unit: what a run is, in words.
      horizon: up to which the mean is restricted; by default as far as every run that
        did not reach it was followed, or the last event. To compare arms give all the
        same.
      confidence: of the interval of the restricted mean.
      seed: of the bootstrap.

    Raises:
      StructjaxError: no run, or one was not followed to the horizon.
    """
    times = sample([r.time for r in reaches], unit=unit, least=1)
    reached = np.array([r.reached for r in reaches])
    censored = times[~reached]
    followed = float(censored.min() if len(censored) else times.max())
    horizon = followed if horizon is None else horizon
    if len(censored) and horizon > followed:
        raise StructjaxError(
            f"one of {len(times)} {unit} was followed to {followed:g} only, not to "
            f"the horizon {horizon:g}",
            kind="statistics",
            hint="lower the horizon, or run it longer",
        )
    # No run is censored before the horizon, so this mean is the area under the curve.
    restricted = np.minimum(times, horizon)
    low, high = _interval(restricted, confidence, seed)
    return ThresholdTimes(
        threshold=threshold,
        solved=int(reached.sum()),
        n=len(times),
        unit=unit,
        restricted_mean=float(restricted.mean()),
        low=low,
        high=high,
        confidence=confidence,
        median=_median(kaplan_meier(times, reached, unit=unit)),
        horizon=horizon,
    )


def _interval(restricted: Values, confidence: float, seed: int) -> tuple[float, float]:
    if len(restricted) < 2:
        return np.nan, np.nan
    found = bootstrap(restricted, unit="runs", confidence=confidence, seed=seed)
    return found.low, found.high


def _median(curve: Survival) -> float:
    """The first time at which at most half of the runs are left."""
    half = np.flatnonzero(curve.share <= 0.5 + 1e-12)
    return float(curve.times[half[0]]) if len(half) else np.nan
