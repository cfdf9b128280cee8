"""What arms are compared by: the seeds of evaluations, outcomes instead of returns."""

import json

import numpy as np
import pytest
from rl_runs import write_evaluation

from structjax.comparison import Selection, compare, read_arms
from structjax.comparison.tables import arm_table
from structjax.errors import StructjaxError


def arms_of(*paths, **selection):
    return read_arms([str(path) for path in paths], Selection(**selection))


def refusal(*paths, **selection):
    with pytest.raises(StructjaxError) as refused:
        arms_of(*paths, **selection)
    return str(refused.value)


def test_evaluations_are_labelled_with_the_seeds_they_have(tmp_path):
    values = [1.0, 2.0, 4.0]
    for first, expected in ((2000, "2000:2003"), (5, "5:8")):
        one = write_evaluation(tmp_path / "one.json", values, first=first)
        two = write_evaluation(tmp_path / "two.json", values[::-1], first=first)
        assert [arm.seeds for arm in arms_of(one, two)] == [expected] * 2
    one = write_evaluation(tmp_path / "one.json", [*range(10)], first=2000)
    two = write_evaluation(tmp_path / "two.json", [*range(1, 11)], first=2000)
    assert [arm.seeds for arm in arms_of(one, two)] == ["gate"] * 2


def test_an_outcome_instead_of_the_return(tmp_path):
    paths = []
    for name, distances in (("near", [0.1, 0.2, 0.1]), ("far", [0.4, 0.5, 0.6])):
        outcome = {"values": distances, "mean": 0.0, "std_ddof0": 0.0}
        path = write_evaluation(tmp_path / f"{name}.json", [1.0, 2.0, 3.0])
        written = json.loads(path.read_text()) | {"outcomes": {"distance": outcome}}
        path.write_text(json.dumps(written))
        paths.append(path)
    arms = arms_of(*paths, metric="distance")
    (pair,) = compare(arms).pairs
    assert pair.test.difference == pytest.approx((0.4 - 1.5) / 3)
    assert arms[0].metric == "distance"
    assert "lowest" in arm_table(compare(arms)).header
    words = refusal(*paths, metric="distnce")
    assert "no metric 'distnce'" in words
    assert "it has return, distance" in words


def test_an_outcome_of_training_runs(tmp_path):
    rows = ["training_seed,checkpoint,mode,episode_seed,return,outcome_distance,arm"]
    rows += [
        f"{seed},final,mean,{track},900,{distance + seed / 10},{arm}"
        for arm, distance in (("a", 0.1), ("b", 0.5))
        for seed in range(2)
        for track in (1000, 1001)
    ]
    path = tmp_path / "table.csv"
    path.write_text("\n".join(rows) + "\n")
    first, second = arms_of(path, metric="distance")
    np.testing.assert_allclose(first.returns, [[0.1, 0.1], [0.2, 0.2]])
    np.testing.assert_allclose(second.returns, [[0.5, 0.5], [0.6, 0.6]])
    words = refusal(path, metric="success")
    assert "has no column outcome_success" in words
