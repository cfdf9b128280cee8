"""Curves over compute and times to a threshold, against values worked by hand."""

import math

import numpy as np
import pytest
from rl_runs import CURVE, write_curve, write_manifest

from structjax.comparison.curves import curve, read_curves, threshold_times
from structjax.errors import StructjaxError


def read(*runs, x="resets", y="mean", labels=()):
    return read_curves([str(run) for run in runs], x, y, labels)


def test_the_mean_over_runs_at_their_evaluations(tmp_path):
    run = write_curve(tmp_path / "run", [[0, 10, 20], [4, 10, 30], [8, 10, 40]])
    found = curve(read(run)[0])
    np.testing.assert_allclose(found.x, [0, 20, 40])
    np.testing.assert_allclose(found.mean, [4, 10, 30])
    assert (found.low[1], found.high[1]) == (10, 10)
    assert 20 <= found.low[2] < 30 < found.high[2] <= 40
    assert (found.n, found.unit, found.interpolated) == (3, "training runs", False)
    assert found.end.estimate == 30
    # Trapezes over 0, 20, 40: (a + 2 b + c) / 4, so 10, 13.5 and 17.
    assert found.area.estimate == pytest.approx(13.5)


@pytest.mark.parametrize(
    ("x", "last"),
    [("env_steps", 40_000), ("gradient_steps", 6), ("seconds", 1), ("flops", 2e6)],
)
def test_every_kind_of_compute(tmp_path, x, last):
    run = write_curve(tmp_path / "run", [[0, 10, 20], [4, 10, 30]])
    assert curve(read(run, x=x)[0]).x[-1] == last


def test_other_heights(tmp_path):
    run = write_curve(tmp_path / "run", [[0, 10], [4, 20]])
    np.testing.assert_allclose(curve(read(run, y="worst")[0]).mean, [-3, 10])
    np.testing.assert_allclose(curve(read(run, y="return")[0]).mean, [-298, -285])


def test_one_run_is_a_line_without_a_band(tmp_path):
    found = curve(read(write_curve(tmp_path / "run", [[1, 2]]))[0])
    np.testing.assert_allclose(found.mean, [1, 2])
    assert np.isnan(found.low).all()
    assert found.end is None


def test_the_start_has_used_nothing_and_played_nothing(tmp_path):
    head = "training_seed,update,resets,flops,mean,return"
    path = tmp_path / "run" / "curve.csv"
    write_manifest(path.parent)
    path.write_text(f"{head}\n3,0,0,,5,\n3,1,20,1e6,6,2\n3,2,40,2e6,7,3\n")
    np.testing.assert_allclose(curve(read(path.parent, x="flops")[0]).x, [0, 1e6, 2e6])
    played = curve(read(path.parent, y="return")[0])
    np.testing.assert_allclose((played.x, played.mean), ([20, 40], [2, 3]))
    path.write_text(f"{head}\n3,0,0,,5,\n")
    with pytest.raises(StructjaxError, match="has no update with a return"):
        read(path.parent, y="return")
    path.write_text("training_seed,update,resets,mean\n3,0,0,5\n")
    with pytest.raises(StructjaxError, match=r"curve.csv has no column flops"):
        read(path.parent, x="flops")


def curve_file(run, rows):
    """Rows (training seed, update, seconds, mean)."""
    write_manifest(run)
    lines = [f"{s},{u},{u},{u},{u},{u},{t},{m},0,{m},{m},0" for s, u, t, m in rows]
    (run / "curve.csv").write_text("\n".join([CURVE, *lines]) + "\n")
    return run


def test_runs_evaluated_at_different_times_are_interpolated(tmp_path):
    rows = [(0, 0, 0, 0), (0, 1, 4, 8), (1, 0, 0, 2), (1, 1, 2, 4), (1, 2, 6, 8)]
    found = curve(read(curve_file(tmp_path / "run", rows), x="seconds")[0])
    # At 2 s the first is at 4, the second at 4; at 4 s they are at 8 and at 6.
    np.testing.assert_allclose(found.x, [0, 2, 4])
    np.testing.assert_allclose(found.mean, [1, 4, 7])
    assert (found.interpolated, found.cut) == (True, True)


def test_times_to_a_threshold_share_one_horizon(tmp_path):
    # Evaluations after 0, 20, 40, 60 resets.
    fast = write_curve(tmp_path / "fast", [[0, 9, 9, 9], [0, 0, 9, 9]])
    slow = write_curve(tmp_path / "slow", [[0, 0, 0, 9], [0, 0, 0, 0]])
    short = write_curve(tmp_path / "short", [[0, 0, 0], [9, 9, 9]])
    first, second, third = threshold_times(read(fast, slow, short), 9)
    assert [t.horizon for t in (first, second, third)] == [40, 40, 40]
    assert (first.solved, first.n, first.median) == (2, 2, 20)
    assert first.restricted_mean == 30
    assert (second.solved, second.restricted_mean, second.median) == (1, 40, 60)
    assert (third.solved, third.restricted_mean, third.median) == (1, 20, 0)
    (alone,) = threshold_times(read(fast), 9)
    assert (alone.restricted_mean, alone.horizon) == (30, 60)
    never = threshold_times(read(slow), 10)[0]
    assert never.solved == 0
    assert math.isnan(never.median)


def test_a_csv_file_gives_its_arms(tmp_path):
    path = tmp_path / "curves.csv"
    rows = ["a,0,0,0,1", "a,0,1,20,2", "b,0,0,0,3", "b,0,1,20,4"]
    path.write_text("\n".join(["arm,training_seed,update,resets,mean", *rows]))
    assert [arm.label for arm in read(path)] == ["a", "b"]
    assert [arm.label for arm in read(f"{path}:b", labels=["c"])] == ["c"]


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([(0, 0, 0, 1), (0, 0, 1, 1)], "training seed 0 has an update twice"),
        ([(0, 0, 5, 1), (0, 1, 4, 1)], "or its seconds decrease"),
        ([(0, 0, 0, "nan")], "1 of 1 values of mean are not finite"),
        ([(0, 0, 0, 1), (0, 1, 1, 1), (1, 0, 2, 1)], "no range in common"),
    ],
)
def test_what_is_no_curve(tmp_path, rows, words):
    run = curve_file(tmp_path / "run", rows)
    with pytest.raises(StructjaxError) as error:
        curve(read(run, x="seconds")[0])
    assert words in str(error.value)


def test_a_run_without_a_curve(tmp_path):
    write_manifest(tmp_path / "run", status="running")
    with pytest.raises(StructjaxError, match=r"has no curve.csv \(status running\)"):
        read(tmp_path / "run")
    run = write_curve(tmp_path / "done", [[1, 2]])
    with pytest.raises(StructjaxError, match="a curve has no checkpoint, 'best'"):
        read(f"{run}@best")


def test_curves_of_different_tasks_are_not_drawn_together(tmp_path):
    first = write_curve(tmp_path / "first", [[1, 2], [3, 4]])
    second = write_curve(tmp_path / "second", [[1, 2], [3, 4]])
    write_manifest(second, task="pendulum")
    names = [str(first), str(second)]
    with pytest.raises(StructjaxError, match="in their task: car_racing, pendulum"):
        read_curves(names, "resets", "mean")
