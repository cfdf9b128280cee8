"""The gate: paired, on means, with its interval."""

import numpy as np
import pytest

from structjax.gate import judge
from structjax.prompting import gate_line


def test_the_first_round_is_accepted():
    result = judge([1.0, 3.0], None)
    assert result.accepted
    assert result.difference is None
    assert (result.mean, result.std, result.worst) == (2.0, 1.0, 1.0)


def test_an_equal_mean_is_accepted_and_a_lower_one_refused():
    assert judge([2.0, 2.0], [1.0, 3.0]).accepted
    assert not judge([2.0, 1.9], [1.0, 3.0]).accepted


def test_without_enforcement_everything_is_accepted():
    result = judge([0.0, 0.0], [1.0, 3.0], enforce=False)
    assert result.accepted
    assert result.difference == -2.0


def test_the_interval_is_the_paired_t_interval():
    # Differences 1, 2, 3: mean 2, standard error 1 / sqrt(3), t(0.975, 2) = 4.30265.
    low, high = judge([2.0, 4.0, 6.0], [1.0, 2.0, 3.0]).interval
    half = 4.302653 / np.sqrt(3)
    assert (low, high) == pytest.approx((2 - half, 2 + half), rel=1e-6)


def test_one_seed_gives_no_interval():
    result = judge([2.0], [1.0])
    assert result.difference == 1.0
    assert result.interval is None


def test_equal_differences_give_a_point():
    assert judge([2.0, 3.0], [1.0, 2.0]).interval == (1.0, 1.0)


def test_the_gate_sentence_tells_mean_and_range():
    gate = judge([1.0, 3.0], None, outcomes={"final": [0.25, 0.75]})
    assert gate_line(gate) == "mean 2, std 1, worst 1"
    told = gate_line(gate, outcomes=True)
    assert told == "mean 2, std 1, worst 1; final 0.5 (from 0.25 to 0.75)"


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_the_gate_sentence_counts_outcomes_that_are_not_finite(value):
    # The smallest of NaN and numbers depends on their order: it is none.
    for values in ([0.25, value, 0.75], [value, 0.25, 0.75]):
        gate = judge([1.0, 3.0, 2.0], None, outcomes={"final": values})
        told = gate_line(gate, outcomes=True).partition("; ")[2]
        assert told == "final not finite in 1 of 3 episodes, in the others 0.5 " + (
            "(from 0.25 to 0.75)"
        )
    gate = judge([1.0, 3.0], None, outcomes={"final": [value, value]})
    told = gate_line(gate, outcomes=True).partition("; ")[2]
    assert told == "final not finite in 2 of 2 episodes"
