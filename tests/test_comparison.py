"""Arms as they are read, units, pairs and families, against values worked by hand."""

import gzip
import json

import numpy as np
import pytest
from rl_runs import write_evaluation, write_evaluations, write_manifest
from scipy import stats

from structjax.comparison import Selection, compare, read_arms
from structjax.comparison.charts import profiles
from structjax.comparison.sources import parse_name, read_sources
from structjax.comparison.tables import escaped, verdicts
from structjax.errors import StructjaxError

# Two training seeds on three tracks: means 2 and 6 per run, 2, 4 and 6 per track; 1 and
# 1 per run, 1, 0.5 and 1.5 per track.
A = [[1.0, 2.0, 3.0], [3.0, 6.0, 9.0]]
B = [
    [0.0, 0.0, 3.0],
    [2.0, 1.0, 0.0],
]


def arms_of(*names, labels=(), **selection):
    return read_arms([str(n) for n in names], Selection(**selection), labels)


def table(
    path,
    rows,
    columns="arm,demonstration,training_seed,checkpoint,mode,episode_seed,return",
):
    path.write_text("\n".join([columns, *rows]) + "\n")
    return path


def grid(arm, values, *, checkpoint="final"):
    """Rows: values[demonstration][seed] is the return on tracks 7 and 8."""
    return [
        f"{arm},d{d},{s},{checkpoint},mean,{track},{value}"
        for d, seeds in enumerate(values)
        for s, value in enumerate(seeds)
        for track in (7, 8)
    ]


def test_training_runs_are_the_units_and_are_paired_by_their_seeds(tmp_path):
    first = write_evaluations(tmp_path / "first", A)
    second = write_evaluations(tmp_path / "second", B)
    found = compare(arms_of(first, second))
    row, pair = found.arms[0], found.pairs[0]
    assert (row.label, row.mean, row.n, row.unit) == ("first", 4, 2, "training runs")
    assert (row.runs, row.tracks, row.episodes, row.resets) == (2, 3, 6, 2000)
    # Runs 2 and 6: standard deviation sqrt(8), the worst is seed 0.
    assert row.std == pytest.approx(8**0.5)
    assert (row.worst, row.worst_unit, row.worst_episode) == (2, "0", 1)
    # Differences 1 and 5.
    theirs = stats.ttest_rel([2, 6], [1, 1])
    assert (pair.test.difference, pair.test.paired) == (3, True)
    assert pair.test.p == pytest.approx(theirs.pvalue)
    assert pair.holm_p == pair.test.p
    assert pair.effect == ("d_z", pytest.approx(3 / 8**0.5), (2, 2), "training runs")
    assert pair.improvement.probability == 1
    assert found.tracks == (1000, 1001, 1002)


def test_pairs_follow_the_seeds_not_the_order_of_rows(tmp_path):
    first = write_evaluations(tmp_path / "first", A)
    second = write_evaluations(tmp_path / "second", B)
    lines = (second / "evaluations.csv").read_text().splitlines()
    forward = compare(arms_of(first, second)).pairs[0].test
    (second / "evaluations.csv").write_text("\n".join([lines[0], *lines[:0:-1]]))
    assert compare(arms_of(first, second)).pairs[0].test == forward


def test_a_fixed_policy_is_paired_by_track(tmp_path):
    first = write_evaluations(tmp_path / "first", A)
    policy = write_evaluation(tmp_path / "policy.json", [1.0, 1.0, 5.0])
    found = compare(arms_of(first, policy))
    pair, row = found.pairs[0], found.arms[1]
    # Per track 2, 4, 6 against 1, 1, 5: differences 1, 3, 1.
    theirs = stats.ttest_rel([2, 4, 6], [1, 1, 5])
    assert pair.test.p == pytest.approx(theirs.pvalue)
    assert (pair.test.n, pair.test.unit) == ((3, 3), "tracks")
    assert (row.label, row.n, row.unit, row.resets) == ("policy", 3, "tracks", None)
    assert "policy: one fixed policy. " in found.notes[0]
    assert "not independent training runs" in found.notes[0]


def test_a_run_of_refinement_is_one_policy_in_either_mode(tmp_path):
    said = {}
    for key, mode, values in (
        ("evaluation", "mean", [5.0, 6.0, 7.0]),
        ("sampled_evaluation", "sampled", [1.0, 2.0, 3.0]),
    ):
        path = write_evaluation(tmp_path / "one.json", values, mode=mode)
        said[key] = json.loads(path.read_text())
    write_manifest(tmp_path / "refined", **said)
    run = write_evaluations(tmp_path / "run", A)
    arm = arms_of(tmp_path / "refined", run)[0]
    assert (arm.label, arm.fixed) == ("refined", True)
    assert arm.returns.tolist() == [[5, 6, 7]]
    write_evaluations(tmp_path / "run", A, mode="sampled")
    arm = arms_of(tmp_path / "refined", run, mode="sampled")[0]
    assert arm.returns.tolist() == [[1, 2, 3]]
    words = refusal(lambda: arms_of(f"{tmp_path / 'refined'}@best", run))
    assert "holds one policy, no checkpoint 'best'" in words


def test_training_runs_against_the_constant_of_a_fixed_policy(tmp_path):
    first = write_evaluations(tmp_path / "first", A)
    policy = write_evaluation(tmp_path / "policy.json", [1.0, 1.0, 4.0])
    found = compare(arms_of(policy, first), unit="run")
    theirs = stats.ttest_1samp([2, 6], 2)
    assert found.pairs[0].test.p == pytest.approx(theirs.pvalue)
    assert found.pairs[0].test.difference == -2
    assert [row.n for row in found.arms] == [3, 2]
    assert "Its mean counts as a constant" in found.notes[0]
    drawn = profiles(arms_of(policy, first), "run")
    assert [(p.n, p.unit) for _, p in drawn] == [(3, "tracks"), (2, "training runs")]


def test_other_training_seeds_are_compared_by_welch(tmp_path):
    first = write_evaluations(tmp_path / "first", A)
    second = write_evaluations(tmp_path / "second", [*B, [9.0, 9.0, 9.0]])
    pair = compare(arms_of(first, second)).pairs[0]
    theirs = stats.ttest_ind([2, 6], [1, 1, 9], equal_var=False)
    assert pair.test.p == pytest.approx(theirs.pvalue)
    assert (pair.test.n, pair.test.paired) == ((2, 3), False)
    assert pair.effect.kind == "g"
    # 2 and 6 beat 1 and 1, not 9.
    assert pair.improvement.probability == pytest.approx(4 / 6)


def test_a_csv_file_gives_its_arms_and_holm_covers_all_pairs(tmp_path):
    rows = [
        *grid("a", [[1, 2], [3, 5]]),
        *grid("b", [[2, 4], [3, 8]]),
        *grid("c", [[9, 8], [7, 9]]),
    ]
    found = compare(arms_of(table(tmp_path / "x.csv", rows)))
    assert [row.label for row in found.arms] == ["a", "b", "c"]
    assert found.arms[0].iqm.strata == 2
    names = [(pair.first, pair.second) for pair in found.pairs]
    assert names == [("a", "b"), ("a", "c"), ("b", "c")]
    p = np.array([pair.test.p for pair in found.pairs])
    smallest = int(p.argmin())
    assert found.pairs[smallest].holm_p == pytest.approx(min(1, 3 * p[smallest]))
    # Within d0: {1, 2} against {2, 4}, one tie of four; within d1: {3, 5} against
    # {3, 8}, a tie and a win. So (1/8 + 3/8) / 2.
    assert found.pairs[0].improvement.probability == pytest.approx(0.25)


def test_a_declared_family_is_smaller(tmp_path):
    rows = [*grid("a", [[1, 2]]), *grid("b", [[2, 4]]), *grid("c", [[9, 8]])]
    path = table(tmp_path / "x.csv", rows)
    found = compare(arms_of(path), against="a")
    assert [(p.first, p.second) for p in found.pairs] == [("b", "a"), ("c", "a")]
    lowest = min(pair.test.p for pair in found.pairs)
    assert min(p.holm_p for p in found.pairs) == pytest.approx(2 * lowest)
    with pytest.raises(StructjaxError, match="'d' is none of the arms; they are a, b"):
        compare(arms_of(path), against="d")


def test_fits_and_training_runs_meet_in_their_demonstrations(tmp_path):
    # Fits have no training seed; runs have two per demonstration: 2, 4, 6 after means.
    fitted = [f"fit,d{d},,final,mean,{t},{d + 1}" for d in range(3) for t in (7, 8)]
    rows = [*fitted, *grid("rl", [[1, 3], [4, 4], [5, 7]])]
    found = compare(arms_of(table(tmp_path / "x.csv", rows)))
    test = found.pairs[0].test
    assert (test.unit, test.n, test.paired) == ("demonstrations", (3, 3), True)
    theirs = stats.ttest_rel([1, 2, 3], [2, 4, 6])
    assert test.p == pytest.approx(theirs.pvalue)


def test_demonstrations_can_be_made_the_unit(tmp_path):
    rows = [*grid("a", [[1, 3], [4, 6]]), *grid("b", [[0, 2], [1, 3]])]
    arms = arms_of(table(tmp_path / "x.csv", rows))
    found = compare(arms)
    assert found.pairs[0].test.n == (4, 4)
    assert any("--unit demonstration" in note for note in found.notes)
    by_demonstration = compare(arms, unit="demonstration").pairs[0].test
    assert by_demonstration.n == (2, 2)
    assert by_demonstration.p == pytest.approx(stats.ttest_rel([2, 5], [1, 2]).pvalue)


def test_an_arm_at_another_checkpoint(tmp_path):
    more = [f"{i},resets400,400,mean,jax,test,{1000 + j},5" for i in (0, 1)
            for j in range(3)]  # fmt: skip
    run = write_evaluations(tmp_path / "run", A, more=more)
    arms = arms_of(run, f"{run}@resets400")
    assert [arm.label for arm in arms] == ["run", "run@resets400"]
    assert [arm.resets for arm in arms] == [2000, 400]
    assert arms[1].returns.tolist() == [[5, 5, 5], [5, 5, 5]]


def test_the_start_that_training_runs_share_is_one_policy(tmp_path):
    start = {"checkpoint": "start", "resets": 0}
    run = write_evaluations(tmp_path / "run", [A[0], A[0], A[0]], **start)
    networks = write_evaluations(tmp_path / "networks", A, **start)
    one, several = arms_of(run, networks, checkpoint="start")
    assert (one.fixed, one.returns.tolist()) == (True, [A[0]])
    assert len(several.runs) == 2
    # Trained runs may all do equally well.
    write_evaluations(tmp_path / "run", [A[0], A[0], A[0]])
    assert len(arms_of(run, run, labels="ab")[0].runs) == 3


def test_runs_joined_by_commas_are_demonstrations_of_one_arm(tmp_path):
    for name, values in (("a1", A), ("a2", B), ("b1", B), ("b2", A)):
        write_evaluations(tmp_path / name, values)
    names = [f"{tmp_path / x}1,{tmp_path / x}2" for x in "ab"]
    arms = arms_of(*names, labels=["a", "b"])
    assert arms[0].runs == (("1", "0"), ("1", "1"), ("2", "0"), ("2", "1"))
    assert arms[0].returns.mean(1).tolist() == [2, 6, 1, 1]
    assert compare(arms).pairs[0].test.paired


def test_a_run_directory_may_hold_several_arms(tmp_path):
    write_manifest(tmp_path / "sweep")
    rows = [*grid("w1", [[1, 2]]), *grid("w10", [[3, 5]])]
    table(tmp_path / "sweep" / "evaluations.csv", rows)
    arms = arms_of(tmp_path / "sweep")
    assert [(arm.label, arm.task) for arm in arms] == [
        *(("w1", "car_racing"), ("w10", "car_racing")),
    ]
    chosen = arms_of(f"{tmp_path / 'sweep'}:w10", f"{tmp_path / 'sweep'}:w1")
    assert [arm.label for arm in chosen] == ["w10", "w1"]


def test_names_on_the_command_line(tmp_path):
    odd = tmp_path / "a:b@c,d.csv"
    odd.write_text("")
    assert parse_name(str(odd)).paths == (odd,)
    name = parse_name("x.csv:low@best400")
    assert (str(name.paths[0]), name.arm, name.checkpoint) == (
        *("x.csv", "low", "best400"),
    )
    assert name.label == "low@best400"


def test_equal_arms_and_constant_differences_are_worded(tmp_path):
    one = write_evaluations(tmp_path / "one", A)
    shifted = [[value + 1 for value in row] for row in A]
    same = write_evaluations(tmp_path / "same", A)
    higher = write_evaluations(tmp_path / "higher", shifted)
    words = verdicts(compare(arms_of(one, same, higher)))
    assert words[0] == "one and same are equal on every unit."
    assert "no test is possible" in words[1]


@pytest.mark.parametrize(
    ("more", "selection", "words"),
    [
        (
            (),
            {"checkpoint": "best"},
            "no checkpoint 'best'; it has final; --checkpoint",
        ),
        ((), {"mode": "sampled"}, "no mode 'sampled'; it has mean"),
        ((), {"seeds": "gate"}, "no seeds 'gate'; it has test"),
        ((), {"simulator": "mujoco"}, "no simulator 'mujoco'; it has jax"),
        (
            ["0,final,9,mean,gymnasium,test,1000,1"],
            {},
            "several values of simulator: jax, gymnasium; choose one with --simulator",
        ),
        (
            ["1,final,9,mean,jax,test,1002,nan"],
            {},
            "1 of 7 values of return are not finite, the first at training_seed 1, "
            "episode_seed 1002: 'nan'",
        ),
        (["1,final,9,mean"], {}, "evaluations.csv: row 7 has 4 fields, not 8"),
        (
            ["1,final,9,mean,jax,test,1002,5"],
            {},
            "two returns of training seed 1 on track 1002",
        ),
        (
            ["2,final,9,mean,jax,test,1002,5"],
            {},
            "training seed 2 was not played on track 1000 as others were (2 lacking)",
        ),
    ],
)
def test_a_table_that_does_not_hold_what_is_asked(tmp_path, more, selection, words):
    run = write_evaluations(tmp_path / "run", A, more=more)
    other = write_evaluations(tmp_path / "other", B)
    with pytest.raises(StructjaxError) as error:
        arms_of(run, other, **selection)
    assert words in str(error.value)


def refusal(call):
    with pytest.raises(StructjaxError) as error:
        call()
    return str(error.value)


def test_arms_under_different_conditions_are_refused(tmp_path):
    run = write_evaluations(tmp_path / "run", A)
    policy = write_evaluation(tmp_path / "p.json", [1.0, 2.0, 3.0], first=2000)
    words = refusal(lambda: compare(arms_of(run, policy)))
    assert "different tracks: 1000, 1001, 1002 and 2000, 2001, 2002" in words
    other = write_evaluation(
        tmp_path / "o.json", [1.0, 2.0, 3.0], simulator="gymnasium"
    )
    words = refusal(lambda: compare(arms_of(run, other)))
    assert "differ in their simulator: jax and gymnasium" in words
    other = write_evaluation(tmp_path / "t.json", [1.0, 2.0, 3.0], task="pendulum")
    assert "differ in their task" in refusal(lambda: compare(arms_of(run, other)))
    other = write_evaluation(tmp_path / "m.json", [1.0, 2.0, 3.0], mode="sampled")
    assert "no mode 'mean'; it has sampled" in refusal(lambda: arms_of(run, other))


def test_one_unit_is_refused(tmp_path):
    one = write_evaluation(tmp_path / "one.json", [1.0])
    two = write_evaluation(tmp_path / "two.json", [2.0])
    words = refusal(lambda: compare(arms_of(one, two)))
    assert "arm one has one unit only (track): no interval" in words
    run = write_evaluations(tmp_path / "run", A)
    words = refusal(
        lambda: compare(arms_of(run, run, labels="ab"), unit="demonstration")
    )
    assert "arm a has one unit only (demonstration)" in words


def test_what_is_no_arm(tmp_path):
    assert "cannot read" in refusal(lambda: arms_of(tmp_path / "none.csv", "x"))
    (tmp_path / "empty.csv").write_text("")
    assert "no column training_seed" in refusal(lambda: arms_of(tmp_path / "empty.csv"))
    (tmp_path / "open.csv").write_text('"' + "x" * 200_000)
    assert "is not a CSV table: field larger" in refusal(
        lambda: arms_of(tmp_path / "open.csv")
    )
    table(tmp_path / "twice.csv", ["1,1"], "arm,arm")
    words = refusal(
        lambda: read_sources(parse_name(str(tmp_path / "twice.csv")), "", [])
    )
    assert "two columns of one name" in words
    table(tmp_path / "head.csv", [])
    assert "has no rows" in refusal(lambda: arms_of(tmp_path / "head.csv"))
    table(tmp_path / "lacks.csv", ["a,1"], "arm,return")
    words = refusal(lambda: arms_of(tmp_path / "lacks.csv"))
    assert "has no column training_seed, checkpoint, mode, episode_seed;" in words
    path = table(tmp_path / "x.csv", grid("a", [[1, 2]]))
    assert "has no arm 'z'; it has a" in refusal(lambda: arms_of(f"{path}:z"))
    assert "needs two arms, given: a" in refusal(lambda: arms_of(path))
    assert "two arms are called 'a'" in refusal(lambda: arms_of(path, path))
    words = refusal(lambda: arms_of(path, path, labels=["a"]))
    assert "1 labels for 2 arms (a, a)" in words
    (tmp_path / "bad.json").write_text('{"task": "car_racing"}')
    words = refusal(lambda: arms_of(tmp_path / "bad.json", path))
    assert "bad.json is not an evaluation: simulator is missing" in words
    empty = write_evaluation(tmp_path / "empty.json", [1.0])
    text = empty.read_text().replace("[1000]", "[]").replace("[1.0]", "[]")
    empty.write_text(text)
    words = refusal(lambda: arms_of(empty, path))
    assert "empty.json is not an evaluation: it has 0 seeds and 0 values" in words


def test_latex_is_escaped():
    assert escaped("a_b & 50 %") == r"a\_b \& 50 \%"
    assert escaped("-3.0 [-5.0, -1.0]") == "$-$3.0 [$-$5.0, $-$1.0]"
    assert escaped("d_z -0.5") == "$d_z$ $-$0.5"
    assert escaped("x\\y > z") == r"x\textbackslash{}y $>$ z"


def test_a_packed_table_is_the_table(tmp_path):
    plain = table(tmp_path / "rows.csv", [*grid("a", [[1, 2]]), *grid("b", [[3, 5]])])
    packed = tmp_path / "packed.csv.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    for path in (plain, packed):
        arms = arms_of(f"{path}:a", f"{path}:b")
        assert [row.label for row in compare(arms).arms] == ["a", "b"]
    assert compare(arms).pairs[0].test.difference == pytest.approx(-2.5)
    packed.write_bytes(packed.read_bytes()[:-9])
    with pytest.raises(StructjaxError, match="cannot read"):
        arms_of(f"{packed}:a", f"{packed}:b")
