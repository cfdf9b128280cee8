"""The tests of arXiv 2610.01652, recomputed from its summaries and tables."""

import numpy as np
import pytest

from structjax.statistics import (
    cohens_d,
    holm,
    paired,
    summary_of_ddof0,
    welch_from_summaries,
)

# arXiv 2610.01652: mean and POPULATION standard deviation over ten test tracks.
CAR = {
    "human": (871.0, 12.8),
    "mlp il": (636.6, 258.6),
    "mlp low": (591.8, 330.5),
    "mlp high": (850.2, 101.4),
    "initial il": (766.5, 100.4),
    "initial low": (657.0, 37.3),
    "initial high": (901.1, 14.0),
    "mles": (847.1, 132.5),
    "refined il": (882.0, 29.33),
    "refined low": (900.5, 14.2),
    "refined high": (906.5, 24.0),
}
DOOR_START = 0.5475296784522107
DOOR_ROUND_3 = """.079625 .061341 .199926 .231325 .145260
                  .043756 .056987 .100189 .091914 .090199"""

# first, second: difference, t, df, p, Holm p, interval
WELCH = {
    ("refined il", "initial il"): (115.5, 3.313, 10.53, 0.00733, 0.0293, 38.3, 192.7),
    ("refined low", "initial low"): (
        *(243.5, 18.30, 11.56, 6.82e-10, 4.09e-9, 214.4, 272.6),
    ),
    ("refined il", "mlp il"): (245.4, 2.829, 9.23, 0.0193, 0.0579, 49.9, 440.9),
    ("refined low", "mlp low"): (308.7, 2.800, 9.03, 0.0207, 0.0579, 59.4, 558.0),
    ("refined high", "mlp high"): (56.3, 1.621, 10.0, 0.1361, 0.1361, -21.1, 133.7),
}
DOOR = (0.43748, 22.07, 9, 3.80e-9, 1.90e-8, 0.3926, 0.4823)

# Per track 1000 ... 1009.
NOVEMBER_0 = """801.024 755.769 834.545 780.000 702.013
                682.209 810.714 715.534 706.962 837.037"""
NOVEMBER_3 = """904.000 887.179 908.500 902.100 902.400
                835.583 907.600 893.528 871.519 911.500"""
NOVEMBER_4 = """903.600 880.769 908.200 901.800 902.100
                835.583 907.200 887.055 871.519 911.300"""
NOVEMBER_5 = """756.655 784.615 852.727 803.333 802.685
                715.951 867.857 780.259 754.430 885.185"""
JANUARY_4 = """903.600 848.718 902.800 900.600 901.900
               835.583 907.700 870.874 836.709 911.400"""


def numbers(text):
    return np.array([float(word) for word in text.split()])


def car(name):
    return summary_of_ddof0(*CAR[name], 10)


def door():
    return paired(np.full(10, DOOR_START), numbers(DOOR_ROUND_3), unit="configurations")


def as_printed(value, printed):
    """Whether a value rounds to what was printed, of which the last digit may be off
    by one, as the inputs were rounded too."""
    text = f"{printed:.10g}"
    mantissa, _, exponent = text.partition("e")
    digits = len(mantissa.partition(".")[2])
    return abs(value - printed) <= 1.01 * 10.0 ** (int(exponent or 0) - digits)


@pytest.mark.parametrize("names", WELCH)
def test_welch_from_the_summary_table_of_the_paper(names):
    found = welch_from_summaries(car(names[0]), car(names[1]), unit="tracks")
    difference, t, df, p, _, low, high = WELCH[names]
    assert as_printed(found.difference, difference)
    assert as_printed(found.t, t)
    assert as_printed(found.df, df)
    assert as_printed(found.p, p)
    assert as_printed(found.low, low)
    assert as_printed(found.high, high)
    assert (found.n, found.unit, found.paired) == ((10, 10), "tracks", False)


def test_the_paired_door_test_of_the_paper():
    found = door()
    values = (found.difference, found.t, found.df, found.p, found.low, found.high)
    for value, printed in zip(values, (*DOOR[:4], *DOOR[5:]), strict=True):
        assert as_printed(value, printed)
    assert found.paired


def test_holm_over_the_six_tests_of_the_paper():
    tests = [welch_from_summaries(car(a), car(b), unit="tracks") for a, b in WELCH]
    adjusted = holm([*(test.p for test in tests), door().p])
    printed = [*(row[4] for row in WELCH.values()), DOOR[4]]
    for value, expected in zip(adjusted, printed, strict=True):
        assert as_printed(value, expected)


@pytest.mark.parametrize(
    ("first", "second", "p"),
    [
        ("initial il", "initial low", 0.010),
        ("refined high", "human", 0.0016),
        ("refined low", "human", 0.0002),
        ("refined high", "initial high", 0.569),
        ("refined low", "initial high", 0.929),
        ("refined low", "refined il", 0.112),
        ("refined il", "human", 0.32),
        ("refined il", "mles", 0.46),
        ("refined high", "mles", 0.22),
    ],
)
def test_tests_that_the_paper_quotes_or_leaves_out(first, second, p):
    found = welch_from_summaries(car(first), car(second), unit="tracks")
    assert as_printed(found.p, p)


@pytest.mark.parametrize(
    ("first", "second", "difference", "p"),
    [
        (JANUARY_4, NOVEMBER_0, 119.4, 7e-6),
        (NOVEMBER_3, NOVEMBER_0, 129.8, 6e-6),
        (NOVEMBER_3, JANUARY_4, 10.4, 0.063),
        (NOVEMBER_5, NOVEMBER_4, -90.5, 4e-5),
    ],
)
def test_paired_tests_from_the_per_track_table(first, second, difference, p):
    found = paired(numbers(first), numbers(second), unit="tracks")
    assert as_printed(found.difference, difference)
    assert as_printed(found.p, p)
    assert found.df == 9


def test_january_4_against_november_0_has_the_quoted_t():
    found = paired(numbers(JANUARY_4), numbers(NOVEMBER_0), unit="tracks")
    assert as_printed(found.t, 9.2)


def test_the_effects_behind_the_power_quoted_for_the_paper():
    # d = 0.76 and 0.27, with the printed deviations taken as sample deviations.
    def d(first, second):
        a, b = (summary_of_ddof0(*CAR[n], 10) for n in (first, second))
        a, b = (s._replace(variance=s.variance * 0.9) for s in (a, b))
        return cohens_d(a, b, unit="tracks").value

    assert d("refined high", "mlp high") == pytest.approx(0.76, abs=0.006)
    assert d("refined high", "initial high") == pytest.approx(0.27, abs=0.006)
