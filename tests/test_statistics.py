"""Tests, effects and intervals: against the paper, scipy, statsmodels and by hand."""

import math

import numpy as np
import pytest
from scipy import stats
from statsmodels.duration.survfunc import SurvfuncRight
from statsmodels.stats.multitest import multipletests

from structjax.errors import StructjaxError
from structjax.statistics import (
    bootstrap,
    bootstrap_band,
    cohens_d,
    first_reach,
    hedges_g,
    holm,
    iqm,
    kaplan_meier,
    paired,
    paired_dz,
    paired_from_summary,
    performance_profile,
    permutation_test,
    probability_of_improvement,
    share_improved,
    summary,
    summary_of_ddof0,
    time_to_threshold,
    welch,
)
from structjax.statistics.thresholds import Reach


@pytest.mark.parametrize("sizes", [(2, 2), (5, 10), (25, 7)])
def test_welch_equals_scipy(sizes):
    random = np.random.default_rng(sizes[0])
    a, b = random.normal(3, 1, sizes[0]), random.normal(2, 4, sizes[1])
    found, theirs = welch(a, b, unit="runs"), stats.ttest_ind(a, b, equal_var=False)
    interval = theirs.confidence_interval(0.95)
    np.testing.assert_allclose(
        (found.t, found.df, found.p, found.low, found.high),
        (theirs.statistic, theirs.df, theirs.pvalue, interval.low, interval.high),
        rtol=1e-10,
    )
    assert found.n == sizes


def test_paired_equals_scipy_at_another_confidence():
    random = np.random.default_rng(3)
    a, b = random.normal(size=(2, 9))
    theirs = stats.ttest_rel(a, b)
    interval = theirs.confidence_interval(0.9)
    found = paired(a, b, unit="runs", confidence=0.9)
    np.testing.assert_allclose(
        (found.t, found.p, found.low, found.high),
        (theirs.statistic, theirs.pvalue, interval.low, interval.high),
        rtol=1e-10,
    )
    from_summary = paired_from_summary(summary(a - b), unit="runs", confidence=0.9)
    assert from_summary == found


def test_without_spread_there_is_no_p_value_unless_nothing_differs():
    same = welch([2.0, 2.0], [2.0, 2.0, 2.0], unit="runs")
    assert (same.difference, same.p, same.low, same.high) == (0, 1, 0, 0)
    shifted = paired([0.1, 0.2, 0.3], [1.1, 1.2, 1.3], unit="runs")
    assert math.isnan(shifted.p)  # 1.1 - 0.1 is not 1 to the last bit
    assert math.isnan(shifted.t)
    assert paired_dz([1.0, 2.0], [1.0, 2.0], unit="runs").value == 0
    assert math.isnan(paired_dz([0.1, 0.2, 0.3], [1.1, 1.2, 1.3], unit="runs").value)


@pytest.mark.parametrize("p", [[0.01, 0.04, 0.03, 0.005], [0.5, 0.9, 0.9], [0.2]])
def test_holm_equals_statsmodels(p):
    np.testing.assert_allclose(holm(p), multipletests(p, method="holm")[1])


def test_holm_keeps_a_test_without_p_in_the_family():
    # 0.01 x 3, 0.02 x 2, and the third not at all.
    first, missing, second = holm([0.01, math.nan, 0.02])
    assert (first, second) == pytest.approx((0.03, 0.04))
    assert math.isnan(missing)
    assert holm([]) == []


def test_effects_by_hand():
    # Means 3 and 1, both sample variances 1: d = 2. With 4 degrees of freedom the
    # factor is gamma(2) / (sqrt(2) gamma(1.5)) = 1 / (sqrt(2) sqrt(pi) / 2).
    a, b = summary([2.0, 3.0, 4.0]), summary([0.0, 1.0, 2.0])
    assert cohens_d(a, b, unit="runs").value == pytest.approx(2)
    factor = 2 / math.sqrt(2 * math.pi)
    assert hedges_g(a, b, unit="runs").value == pytest.approx(2 * factor)
    # Differences 1, 2, 3: mean 2, standard deviation 1.
    found = paired_dz([2.0, 4.0, 6.0], [1.0, 2.0, 3.0], unit="runs")
    assert found == ("d_z", pytest.approx(2), (3, 3), "runs")


def test_the_interquartile_mean_by_hand():
    # Of eight, two are set aside at each end; of seven, one; of three, none.
    assert iqm([0, 1, 2, 3, 4, 5, 6, 100]) == pytest.approx(3.5)
    assert iqm([-50, 1, 2, 3, 4, 5, 900]) == pytest.approx(3)
    assert iqm([1, 2, 6]) == pytest.approx(3)


@pytest.mark.parametrize("n", range(1, 14))
def test_the_interquartile_mean_equals_scipys_trimmed_mean(n):
    values = np.random.default_rng(n).normal(size=(3, n))
    np.testing.assert_allclose(iqm(values), stats.trim_mean(values, 0.25, axis=1))


def test_the_bootstrap_of_a_mean_equals_scipys_percentiles():
    values = np.random.default_rng(1).exponential(size=30)
    theirs = stats.bootstrap(
        (values,), np.mean, n_resamples=20_000, method="percentile", rng=5
    ).confidence_interval
    found = bootstrap(values, unit="runs")
    assert found.estimate == pytest.approx(values.mean())
    # The means deviate by 0.3; of such a normal the 97.5 % quantile from 10,000 draws
    # deviates by 0.008, from 20,000 by 0.006: together by 0.01, a quarter of the bound.
    assert (found.low, found.high) == pytest.approx((theirs.low, theirs.high), abs=0.04)
    assert (found.n, found.unit, found.strata) == (30, "runs", 1)


def test_the_bootstrap_of_two_values_by_hand():
    # The resampled mean is 0, 1 or 2 with probability 1/4, 1/2, 1/4.
    found = bootstrap([0.0, 2.0], unit="runs", confidence=0.4)
    assert (found.low, found.high) == (1, 1)
    found = bootstrap([0.0, 2.0], unit="runs", confidence=0.6)
    assert (found.low, found.high) == (0, 2)


def test_intervals_of_five_units_cover_as_little_as_they_must():
    # The resampled mean has the population variance: about mean -+ 1.96 sqrt(4/5) s /
    # sqrt(5), which covers when |t| with 4 degrees of freedom is below 1.753: 84.6 %.
    random = np.random.default_rng(0)
    intervals = [
        bootstrap(random.normal(size=5), unit="runs", resamples=1000, seed=i)
        for i in range(800)
    ]
    share = np.mean([i.low <= 0 <= i.high for i in intervals])
    expected = 1 - 2 * stats.t.sf(1.96 * math.sqrt(4 / 5), 4)
    assert expected == pytest.approx(0.846, abs=0.001)
    assert share == pytest.approx(expected, abs=4 * 0.0128)  # sqrt(p (1 - p) / 800)


def test_strata_are_resampled_apart():
    # Within the strata nothing varies, so neither does the mean; across them it does.
    values, strata = [1.0, 1.0, 5.0, 5.0], ["a", "a", "b", "b"]
    within = bootstrap(values, unit="runs", strata=strata)
    assert (within.low, within.high, within.strata) == (3, 3, 2)
    across = bootstrap(values, unit="runs")
    assert across.low < 2 < 4 < across.high


def test_a_stratum_of_one_unit_joins_all_into_one():
    found = bootstrap([1.0, 2.0, 3.0], unit="runs", strata=["a", "a", "b"])
    assert found.strata == 1
    assert found == bootstrap([1.0, 2.0, 3.0], unit="runs")


def test_a_band_has_the_intervals_of_its_points():
    values = np.random.default_rng(2).normal(size=(12, 3))
    strata = ["a"] * 6 + ["b"] * 6
    band = bootstrap_band(values, unit="runs", strata=strata)
    points = [bootstrap(column, unit="runs", strata=strata) for column in values.T]
    np.testing.assert_allclose(band.estimate, [p.estimate for p in points])
    np.testing.assert_allclose(band.low, [p.low for p in points], atol=0.03)
    np.testing.assert_allclose(band.high, [p.high for p in points], atol=0.03)
    assert (band.n, band.strata) == (12, 2)


def test_the_probability_of_improvement_by_hand_and_against_scipy():
    # Of six pairs three are won, one is a tie: 3.5 / 6.
    found = probability_of_improvement([1, 2, 3], [2, 1.5], unit="runs")
    assert found.probability == pytest.approx(3.5 / 6)
    u = stats.mannwhitneyu([1, 2, 3], [2, 1.5]).statistic
    assert found.probability == pytest.approx(u / 6)
    assert 0 <= found.low < found.probability < found.high <= 1
    assert found.n == (3, 2)


def test_no_unit_is_dropped_where_the_samples_have_other_strata():
    # All pairs of "a" are won; with the units of "b", that only one has, half of them.
    found = probability_of_improvement(
        [3, 3, 0, 0], [1, 1], unit="runs", strata=(["a", "a", "b", "b"], ["a", "a"])
    )
    assert (found.probability, found.strata, found.n) == (0.5, 1, (4, 2))


def test_the_probability_of_improvement_is_averaged_over_strata():
    # In "easy" the first wins nothing, in "hard" everything; pooled it is 1/4 + 1/2.
    a, b = [1.0, 1.0, 9.0, 9.0], [2.0, 2.0, 8.0, 8.0]
    labels = ["easy", "easy", "hard", "hard"]
    apart = probability_of_improvement(a, b, unit="runs", strata=(labels, labels))
    assert (apart.probability, apart.strata) == (0.5, 2)
    assert probability_of_improvement(a, b, unit="runs").probability == 0.5
    b = [2.0, 2.0, 0.0, 0.0]
    apart = probability_of_improvement(a, b, unit="runs", strata=(labels, labels))
    assert apart.probability == 0.5
    assert probability_of_improvement(a, b, unit="runs").probability == 0.75


def test_the_share_of_pairs_that_improve():
    found = share_improved([3, 1, 2, 2], [1, 2, 2, 1], unit="tracks")
    assert found.probability == pytest.approx((1 + 0 + 0.5 + 1) / 4)
    assert found.n == (4, 4)


def test_a_performance_profile_by_hand():
    found = performance_profile([1.0, 2.0, 3.0, 4.0], [0, 2, 3.5, 4], unit="runs")
    np.testing.assert_allclose(found.share, [1, 0.5, 0.25, 0])
    # At 0 and at 4 no resample can differ.
    np.testing.assert_allclose(found.low[[0, 3]], [1, 0])
    np.testing.assert_allclose(found.high[[0, 3]], [1, 0])
    # Four draws with chance 1/2: 0 ... 4 of 4 with 1, 4, 6, 4, 1 of 16. So the 2.5 %
    # quantile is 0 (its chance is 6.25 %), the 97.5 % quantile 1.
    assert (found.low[1], found.high[1]) == (0, 1)


def test_permutations_of_pairs_by_hand():
    # All five differences are positive: of 2^5 sign patterns only one is as large, and
    # one as small: p = 2 / 32.
    found = permutation_test([2, 3, 4, 5, 6], [1, 1, 1, 1, 1], unit="runs", paired=True)
    assert found.p == pytest.approx(2 / 32)
    assert found.smallest == pytest.approx(2 / 32)
    assert (found.exact, found.resamples) == (True, 32)


def test_permutations_of_two_samples_by_hand():
    # {3, 4} against {1, 2}: one of 4 choose 2 = 6 splits is as large: p = 2 / 6.
    found = permutation_test([3, 4], [1, 2], unit="runs", paired=False)
    assert found.p == pytest.approx(2 / 6)
    assert (found.difference, found.exact, found.resamples) == (2, True, 6)


def test_many_permutations_are_drawn_and_agree_with_the_t_test():
    random = np.random.default_rng(0)
    a, b = random.normal(0.7, 1, 30), random.normal(0, 1, 30)
    found = permutation_test(a, b, unit="runs", paired=False)
    assert not found.exact
    assert found.p == pytest.approx(stats.ttest_ind(a, b).pvalue, abs=0.005)
    assert found == permutation_test(a, b, unit="runs", paired=False)


def test_kaplan_meier_by_hand_and_against_statsmodels():
    # At 2 one of five goes: 4/5. At 4 one of three left (one censored at 3): 2/3. At 6
    # one of two (censored at 6 is still at risk): 1/2.
    times, reached = [2, 3, 4, 6, 6], [True, False, True, True, False]
    found = kaplan_meier(times, reached, unit="runs")
    np.testing.assert_allclose(found.times, [2, 4, 6])
    np.testing.assert_allclose(found.share, [0.8, 0.8 * 2 / 3, 0.8 * 2 / 3 / 2])
    theirs = SurvfuncRight(times, reached)
    np.testing.assert_allclose(found.share, theirs.surv_prob)


def test_the_first_reach_is_an_evaluation_not_a_point_between():
    assert first_reach([0, 20, 40], [1, 5, 3], 4) == (20, True)
    assert first_reach([0, 20, 40], [4, 5, 3], 4) == (0, True)
    assert first_reach([0, 20, 40], [1, 2, 3], 4) == (40, False)


def test_times_to_a_threshold_by_hand():
    reaches = [Reach(10, True), Reach(30, True), Reach(100, False), Reach(100, False)]
    found = time_to_threshold(reaches, 900, unit="runs")
    assert (found.solved, found.n, found.horizon) == (2, 4, 100)
    assert found.restricted_mean == 60
    assert found.median == 30  # half are left
    assert 10 <= found.low < 60 < found.high <= 100
    shorter = time_to_threshold(reaches, 900, unit="runs", horizon=50)
    assert shorter.restricted_mean == (10 + 30 + 50 + 50) / 4


def test_the_median_is_unknown_when_fewer_than_half_get_there():
    reaches = [Reach(10, True), Reach(100, False), Reach(100, False)]
    assert math.isnan(time_to_threshold(reaches, 900, unit="runs").median)


def test_one_run_has_a_time_and_no_interval():
    found = time_to_threshold([Reach(10, True)], 900, unit="runs")
    assert (found.restricted_mean, found.median, found.n) == (10, 10, 1)
    assert math.isnan(found.low)


def test_the_restricted_mean_is_the_area_under_the_curve():
    reaches = [Reach(t, True) for t in (5, 7, 20)] + [Reach(40, False)]
    found = time_to_threshold(reaches, 900, unit="runs")
    curve = kaplan_meier([r.time for r in reaches], [1, 1, 1, 0], unit="runs")
    edges, heights = [0, *curve.times, 40], [1, *curve.share]
    assert found.restricted_mean == pytest.approx(np.dot(np.diff(edges), heights))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: welch([1.0], [1.0, 2.0], unit="runs"), "1 runs: no interval"),
        (lambda: bootstrap([1.0, math.nan], unit="runs"), "1 of 2 values are not fin"),
        (lambda: bootstrap([[1.0], [2.0]], unit="runs"), "shape [2, 1]"),
        (lambda: bootstrap([1.0, 2.0], unit="runs", strata=["a"]), "1 strata for 2"),
        (lambda: paired([1, 2], [1, 2, 3], unit="runs"), "2 and 3 values are not"),
        (lambda: summary_of_ddof0(1, 1, 1), "n=1"),
        (lambda: summary_of_ddof0(1, -1, 9), "deviation -1"),
        (
            lambda: time_to_threshold([Reach(9, False)], 1, unit="runs", horizon=10),
            "followed to 9 only",
        ),
    ],
)
def test_what_is_refused(call, words):
    with pytest.raises(StructjaxError) as error:
        call()
    assert words in str(error.value)
