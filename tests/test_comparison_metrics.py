"""What arms are compared by: the seeds of evaluations, outcomes instead of returns."""

import json

import numpy as np
import pytest
from rl_runs import write_evaluation, write_manifest

from structjax.comparison import Selection, compare, read_arms
from structjax.comparison.tables import arm_table
from structjax.errors import StructjaxError


def arms_of(*paths, labels=(), **selection):
    return read_arms([str(path) for path in paths], Selection(**selection), labels)


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


@pytest.mark.parametrize("asked", ["gate", "1000:1003", "2000:2010", "1000"])
def test_an_evaluation_on_other_seeds_than_asked_is_refused(tmp_path, asked):
    path = write_evaluation(tmp_path / "one.json", [float(i) for i in range(10)])
    with pytest.raises(StructjaxError) as refused:
        arms_of(path, path, seeds=asked)
    assert str(refused.value) == f"{path} has no seeds {asked!r}; it has test"


@pytest.mark.parametrize("asked", ["test", "1000:1010", None])
def test_an_evaluation_on_the_seeds_that_are_asked_is_taken(tmp_path, asked):
    path = write_evaluation(tmp_path / "one.json", [float(i) for i in range(10)])
    assert [arm.seeds for arm in arms_of(path, path, seeds=asked, labels="ab")] == [
        "test",
        "test",
    ]


def test_an_evaluation_on_seeds_of_its_own_needs_no_option(tmp_path):
    path = write_evaluation(tmp_path / "one.json", [1.0, 2.0], first=50)
    assert arms_of(path, path, labels="ab")[0].seeds == "50:52"
    with pytest.raises(StructjaxError, match="no seeds 'test'; it has 50:52"):
        arms_of(path, path, seeds="test")


def test_seeds_with_gaps_are_asked_for_as_they_are_told(tmp_path):
    path = write_evaluation(tmp_path / "one.json", [1.0, 2.0], first=50)
    path.write_text(json.dumps(json.loads(path.read_text()) | {"seeds": [50, 52]}))
    assert arms_of(path, path, seeds="50:53", labels="ab")[0].seeds == "50:53"
    with pytest.raises(StructjaxError, match="no seeds '50:52'; it has 50:53"):
        arms_of(path, path, seeds="50:52")


def test_a_finished_run_of_refinement_was_evaluated_on_its_tests(tmp_path):
    path = write_evaluation(tmp_path / "one.json", [1.0, 2.0], first=50)
    evaluation = json.loads(path.read_text())
    write_manifest(tmp_path / "run", evaluation=evaluation)
    run = tmp_path / "run"
    assert arms_of(run, run, seeds="test", labels="ab")[0].seeds == "50:52"
    with pytest.raises(StructjaxError, match="no seeds 'gate'; it has 50:52"):
        arms_of(run, run, seeds="gate")


@pytest.mark.parametrize("column", ["seeds", "simulator"])
def test_a_table_that_does_not_say_what_is_asked_is_refused(tmp_path, column):
    path = tmp_path / "x.csv"
    head = "arm,training_seed,checkpoint,mode,episode_seed,return"
    rows = [f"{arm},0,final,mean,{e},{e}" for arm in "ab" for e in (1000, 1001)]
    path.write_text("\n".join([head, *rows]))
    assert [arm.seeds for arm in arms_of(path)] == ["test", "test"]
    with pytest.raises(StructjaxError) as refused:
        arms_of(path, **{column: "test"})
    assert str(refused.value) == (
        f"arm a ({path}) does not say its {column}; add a column {column}, or leave "
        f"out --{column}"
    )
