"""Aggregates over runs with stratified bootstrap intervals.

After Agarwal et al., "Deep Reinforcement Learning at the Edge of the Statistical
Precipice" (2021): the training runs are resampled, within each stratum (a demonstration
or a task), and intervals are percentiles.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from structjax.statistics.samples import Values, pairs, sample, strata_of

RESAMPLES = 10_000
_CHUNK = 4_000_000
"""Numbers drawn at once."""

Statistic = Callable[[Values], Values]
"""`[..., n]` -> `[...]`."""


class Interval(NamedTuple):
    """An estimate with its percentile bootstrap interval over n units."""

    estimate: float
    low: float
    high: float
    confidence: float
    n: int
    unit: str
    strata: int


class Band(NamedTuple):
    """Means `[K]` with pointwise percentile bootstrap intervals over n units."""

    estimate: Values
    low: Values
    high: Values
    confidence: float
    n: int
    unit: str
    strata: int


class Profile(NamedTuple):
    """The share of units above each threshold `[K]`, with pointwise intervals."""

    thresholds: Values
    share: Values
    low: Values
    high: Values
    confidence: float
    n: int
    unit: str
    strata: int


class Improvement(NamedTuple):
    """P(a unit of the first sample > one of the second), ties counting half."""

    probability: float
    low: float
    high: float
    confidence: float
    n: tuple[int, int]
    unit: str
    strata: int


def mean(values: Values) -> Values:
    """`[..., n]` -> `[...]`."""
    return np.asarray(values.mean(-1))


def iqm(values: ArrayLike) -> Values:
    """The interquartile mean, `[..., n]` -> `[...]`.

    The mean of what is left when the lowest and the highest n // 4 are set aside.
    """
    ordered = np.sort(np.asarray(values, np.float64), axis=-1)
    n = ordered.shape[-1]
    return np.asarray(ordered[..., n // 4 : n - n // 4].mean(-1))


def bootstrap(
    values: ArrayLike,
    statistic: Statistic = mean,
    *,
    unit: str,
    strata: ArrayLike | None = None,
    confidence: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Interval:
    """A statistic of n units with its stratified bootstrap interval.

    Args:
      values: `[n]`, one per unit.
      statistic: maps `[..., n]` to `[...]`, e.g. `iqm`.
      unit: what a unit is, in words.
      strata: one label per unit; units are resampled among those of their label.
      confidence: of the interval.
      resamples: how many.
      seed: of the resampling.

    Raises:
      StructjaxError: fewer than two units, or values that are not finite.
    """
    array = sample(values, unit=unit)
    groups = strata_of(strata, len(array))
    random = np.random.default_rng(seed)
    size = max(1, min(resamples, _CHUNK // len(array)))
    parts = [
        statistic(array[_drawn(groups, min(size, resamples - done), random)])
        for done in range(0, resamples, size)
    ]
    low, high = _percentiles(np.concatenate(parts), confidence)
    estimate = float(statistic(array))
    return Interval(
        estimate, float(low), float(high), confidence, len(array), unit, len(groups)
    )


def bootstrap_band(
    values: ArrayLike,
    *,
    unit: str,
    strata: ArrayLike | None = None,
    confidence: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Band:
    """The mean over n units at each of K points, values `[n, K]`; as `bootstrap`."""
    table = np.asarray(values, np.float64)
    sample(table.sum(-1), unit=unit)
    groups = strata_of(strata, len(table))
    weights = _weights(groups, resamples, np.random.default_rng(seed)) / len(table)
    low, high = _percentiles(weights @ table, confidence)
    return Band(table.mean(0), low, high, confidence, len(table), unit, len(groups))


def performance_profile(
    values: ArrayLike,
    thresholds: ArrayLike,
    *,
    unit: str,
    strata: ArrayLike | None = None,
    confidence: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Profile:
    """The share of units whose value is above each threshold; as `bootstrap`."""
    array = sample(values, unit=unit)
    levels = np.asarray(thresholds, np.float64)
    above = (array[:, None] > levels).astype(np.float64)
    band = bootstrap_band(
        above,
        unit=unit,
        strata=strata,
        confidence=confidence,
        resamples=resamples,
        seed=seed,
    )
    return Profile(levels, *band)


def probability_of_improvement(
    first: ArrayLike,
    second: ArrayLike,
    *,
    unit: str,
    strata: tuple[ArrayLike, ArrayLike] | None = None,
    confidence: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Improvement:
    """The Mann-Whitney form: the share of pairs (one of each) that the first wins.

    Args:
      first: `[n]`.
      second: `[m]`.
      unit: what a unit is, in words.
      strata: labels of both; then pairs are formed and units resampled within each
        label, and the mean taken over these. If one of them has a single unit, or the
        two samples have different labels, all units form one stratum.
      confidence: of the interval.
      resamples: how many.
      seed: of the resampling.

    Raises:
      StructjaxError: fewer than two units, or values that are not finite.
    """
    a, b = sample(first, unit=unit), sample(second, unit=unit)
    shared = _shared_strata(a, b, strata)
    random = np.random.default_rng(seed)
    estimates, drawn = [], []
    for rows, columns in shared:
        wins = 0.5 * (np.sign(a[rows][:, None] - b[columns]) + 1)
        left = _weights([np.arange(len(rows))], resamples, random) / len(rows)
        right = _weights([np.arange(len(columns))], resamples, random) / len(columns)
        estimates.append(wins.mean())
        drawn.append(((left @ wins) * right).sum(-1))
    low, high = _percentiles(np.mean(drawn, axis=0), confidence)
    return Improvement(
        float(np.mean(estimates)),
        float(low),
        float(high),
        confidence,
        (len(a), len(b)),
        unit,
        len(shared),
    )


def share_improved(
    first: ArrayLike, second: ArrayLike, *, unit: str, confidence: float = 0.95
) -> Improvement:
    """The share of pairs of the same unit that the first wins.

    This is the probability of improvement with each unit, e.g. a track, as a stratum;
    the pairs are resampled.

    Raises:
      StructjaxError: as `pairs`.
    """
    a, b = pairs(first, second, unit=unit)
    found = bootstrap(0.5 * (np.sign(a - b) + 1), unit=unit, confidence=confidence)
    return Improvement(*found[:4], (len(a), len(b)), unit, 1)


def _shared_strata(
    a: Values, b: Values, strata: tuple[ArrayLike, ArrayLike] | None
) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """The indices of both samples within each shared label, or all of them."""
    whole = [(np.arange(len(a)), np.arange(len(b)))]
    if strata is None:
        return whole
    left, right = (np.asarray(labels).astype(str) for labels in strata)
    labels = dict.fromkeys(left.tolist())
    if labels.keys() != set(right.tolist()):  # no unit is dropped silently
        return whole
    found = [(np.where(left == x)[0], np.where(right == x)[0]) for x in labels]
    small = any(len(rows) < 2 or len(columns) < 2 for rows, columns in found)
    return whole if small else found


def _drawn(
    groups: list[NDArray[np.intp]], resamples: int, random: np.random.Generator
) -> NDArray[np.intp]:
    """Indices `[R, n]`, drawn with replacement within each group."""
    parts = [group[random.integers(len(group), size=(resamples, len(group)))]
             for group in groups]  # fmt: skip
    return np.concatenate(parts, axis=1)


def _weights(
    groups: list[NDArray[np.intp]], resamples: int, random: np.random.Generator
) -> Values:
    """How often each unit is drawn, `[R, n]`."""
    counts = np.zeros((resamples, sum(map(len, groups))))
    for group in groups:
        shares = np.full(len(group), 1 / len(group))
        counts[:, group] = random.multinomial(len(group), shares, size=resamples)
    return counts


def _percentiles(drawn: Values, confidence: float) -> tuple[Values, Values]:
    tail = (1 - confidence) / 2
    low, high = np.quantile(drawn, [tail, 1 - tail], axis=0)
    return np.asarray(low), np.asarray(high)
