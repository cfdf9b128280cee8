"""Tests of a difference of two means, Holm's adjustment, and effect sizes."""

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats
from scipy.special import gammaln

from structjax.errors import StructjaxError
from structjax.statistics.samples import Values, pairs, sample

_NO_SPREAD = 1e-12
"""Spread relative to the values below which it is rounding."""


class Summary(NamedTuple):
    """A sample by its mean, its sample variance (ddof 1) and its number of units."""

    mean: float
    variance: float
    n: int


class Difference(NamedTuple):
    """A test of mean(first) - mean(second) against 0, two-sided.

    Attributes:
      difference: in the unit of the values.
      t: Student's; NaN where no unit varies.
      df: degrees of freedom.
      p: unadjusted; NaN where no unit varies and the means differ.
      low: of the confidence interval of the difference.
      high: likewise.
      confidence: of that interval.
      n: units of the first and of the second sample.
      unit: what was counted.
      paired: whether the test is of differences per unit.
    """

    difference: float
    t: float
    df: float
    p: float
    low: float
    high: float
    confidence: float
    n: tuple[int, int]
    unit: str
    paired: bool


class Effect(NamedTuple):
    """A standardised difference: of means, in standard deviations."""

    kind: Literal["d", "g", "d_z"]
    value: float
    n: tuple[int, int]
    unit: str


class Permutation(NamedTuple):
    """A permutation test of a difference of means, two-sided.

    Attributes:
      p: twice the smaller tail, at most 1; the observed assignment counts.
      smallest: the least p that these numbers of units can give.
      exact: whether all assignments were counted rather than drawn.
      resamples: how many were counted.
    """

    difference: float
    p: float
    smallest: float
    exact: bool
    resamples: int
    n: tuple[int, int]
    unit: str
    paired: bool


def summary(values: ArrayLike, *, unit: str = "values") -> Summary:
    """The summary of a sample of at least two units."""
    array = sample(values, unit=unit)
    return Summary(float(array.mean()), float(array.var(ddof=1)), len(array))


def summary_of_ddof0(mean: float, std: float, n: int) -> Summary:
    """The summary behind a printed mean and POPULATION standard deviation of n units.

    Raises:
      StructjaxError: fewer than two units, or a negative deviation.
    """
    if n < 2 or not std >= 0:
        raise StructjaxError(
            f"a summary of n={n} and standard deviation {std}",
            kind="statistics",
            hint="n is at least 2, a standard deviation at least 0",
        )
    return Summary(mean, std**2 * n / (n - 1), n)


def welch(
    first: ArrayLike, second: ArrayLike, *, unit: str, confidence: float = 0.95
) -> Difference:
    """Welch's test: two independent samples whose variances may differ."""
    a, b = summary(first, unit=unit), summary(second, unit=unit)
    return welch_from_summaries(a, b, unit=unit, confidence=confidence)


def welch_from_summaries(
    first: Summary, second: Summary, *, unit: str, confidence: float = 0.95
) -> Difference:
    """Welch's test, degrees of freedom by Welch-Satterthwaite."""
    a, b = first.variance / first.n, second.variance / second.n
    scale = max(abs(first.mean), abs(second.mean))
    if math.sqrt(a + b) <= _NO_SPREAD * scale or a + b == 0:
        a, b, df = 0.0, 0.0, float(first.n + second.n - 2)
    else:
        df = (a + b) ** 2 / (a**2 / (first.n - 1) + b**2 / (second.n - 1))
    return _difference(
        first.mean - second.mean,
        math.sqrt(a + b),
        df,
        confidence=confidence,
        n=(first.n, second.n),
        unit=unit,
        paired=False,
    )


def paired(
    first: ArrayLike, second: ArrayLike, *, unit: str, confidence: float = 0.95
) -> Difference:
    """The paired t test: both samples are of the same units, in the same order."""
    a, b = pairs(first, second, unit=unit)
    differences = summary(a - b, unit=unit)
    if _flat(a - b, a):
        differences = differences._replace(variance=0.0)
    return paired_from_summary(differences, unit=unit, confidence=confidence)


def paired_from_summary(
    differences: Summary, *, unit: str, confidence: float = 0.95
) -> Difference:
    """The paired t test from the summary of the differences per unit."""
    mean, variance, n = differences
    return _difference(
        mean,
        math.sqrt(variance / n),
        n - 1.0,
        confidence=confidence,
        n=(n, n),
        unit=unit,
        paired=True,
    )


def _flat(values: Values, scale: Values) -> bool:
    """Whether values differ by no more than rounding."""
    return bool(np.ptp(values) <= _NO_SPREAD * np.abs(scale).max())


def _difference(
    difference: float,
    error: float,
    df: float,
    *,
    confidence: float,
    n: tuple[int, int],
    unit: str,
    paired: bool,
) -> Difference:
    """The test from a difference and its standard error."""
    if error == 0:  # nothing varies: equal, or different in a way no t can weigh
        t, p = math.nan, 1.0 if difference == 0 else math.nan
    else:
        t = difference / error
        p = float(2 * stats.t.sf(abs(t), df))
    half = float(stats.t.ppf((1 + confidence) / 2, df)) * error
    low, high = difference - half, difference + half
    return Difference(difference, t, df, p, low, high, confidence, n, unit, paired)


def holm(p: Sequence[float]) -> list[float]:
    """Holm's adjusted p values of one family, in the given order (Holm, 1979).

    A test without a p value (NaN) stays one and still counts in the family.
    """
    values = np.asarray(p, np.float64)
    ranked = np.where(np.isnan(values), 1.0, values)
    order = np.argsort(ranked, kind="stable")
    steps = ranked[order] * (len(values) - np.arange(len(values)))
    adjusted = np.empty_like(values)
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return [float(v) for v in np.where(np.isnan(values), np.nan, adjusted)]


def cohens_d(first: Summary, second: Summary, *, unit: str) -> Effect:
    """Cohen's d: the difference in pooled standard deviations."""
    df = first.n + second.n - 2
    pooled = (first.n - 1) * first.variance + (second.n - 1) * second.variance
    value = _ratio(first.mean - second.mean, math.sqrt(pooled / df))
    return Effect("d", value, (first.n, second.n), unit)


def hedges_g(first: Summary, second: Summary, *, unit: str) -> Effect:
    """Hedges' g: Cohen's d without its bias, with the exact factor (Hedges, 1981)."""
    df = first.n + second.n - 2
    log_factor = gammaln(df / 2) - gammaln((df - 1) / 2) - math.log(df / 2) / 2
    d = cohens_d(first, second, unit=unit)
    return d._replace(kind="g", value=d.value * math.exp(log_factor))


def paired_dz(first: ArrayLike, second: ArrayLike, *, unit: str) -> Effect:
    """d_z: the mean difference in standard deviations of the differences."""
    a, b = pairs(first, second, unit=unit)
    spread = 0.0 if _flat(a - b, a) else float(np.std(a - b, ddof=1))
    return Effect("d_z", _ratio(float(np.mean(a - b)), spread), (len(a), len(b)), unit)


def _ratio(difference: float, spread: float) -> float:
    """Their quotient; 0 for no difference, NaN for one without spread."""
    if spread == 0:
        return 0.0 if difference == 0 else math.nan
    return difference / spread


def permutation_test(
    first: ArrayLike,
    second: ArrayLike,
    *,
    unit: str,
    paired: bool,
    resamples: int = 20_000,
    seed: int = 0,
) -> Permutation:
    """Assigns the units to the samples anew; for pairs, swaps within pairs.

    All assignments are counted when there are at most `resamples`, e.g. up to 14 pairs
    or two samples of 8; otherwise so many are drawn.
    """
    if paired:
        a, b = pairs(first, second, unit=unit)
        count = 2 ** len(a)
    else:
        a, b = sample(first, unit=unit), sample(second, unit=unit)
        count = math.comb(len(a) + len(b), len(a))
    exact = count <= resamples
    found = stats.permutation_test(
        (a, b),
        _mean_difference,
        permutation_type="samples" if paired else "independent",
        vectorized=True,
        n_resamples=resamples,
        batch=1024,  # bounds the memory
        rng=np.random.default_rng(seed),
    )
    # Drawn assignments do not include the observed one, which scipy adds.
    total = count if exact else resamples + 1
    return Permutation(
        difference=float(found.statistic),
        p=float(found.pvalue),
        smallest=min(1.0, 2 / total),
        exact=exact,
        resamples=count if exact else resamples,
        n=(len(a), len(b)),
        unit=unit,
        paired=paired,
    )


def _mean_difference(a: Values, b: Values, axis: int) -> Values:
    return np.asarray(a.mean(axis) - b.mean(axis))
