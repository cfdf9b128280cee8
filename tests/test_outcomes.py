"""Outcomes beside the return: on episodes of the toy task, computed by hand."""

import json
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from cli.commands import run
from test_refine import REPLIES, STOP, fenced, program
from toy import PROGRAM, SCHEMA, toy_task

from structjax.errors import StructjaxError
from structjax.evaluation import evaluate, evaluation_of
from structjax.language.parse import parse
from structjax.llm.scripted import ScriptedModel
from structjax.outcomes import summarised, table_rows
from structjax.policy import StructuredPolicy, initial_values, variables_from
from structjax.refinement import RefinementConfig
from structjax.report import write_report
from structjax.report.page import _gate_outcomes
from structjax.rl.config import RLConfig
from structjax.rl.plan import Plan
from structjax.rl.presets import recipe
from structjax.rl.trainer import repeat
from structjax.rl.training import Training
from structjax.rollout import collect
from structjax.runs import RunDirectory, read_json
from structjax.session import refine

OUTCOMES = {
    "nearest": ("distance", "min"),
    "farthest": ("distance", "max"),
    "final": ("distance", "last"),
    "average": ("distance", "mean"),
}
STARTS = {1: -1.7, 4: 0.4}


def outcome_task(**changes):
    """Seed 1 starts at -1.7, seed 4 at 0.4."""

    def initial(seeds):
        return {}, jnp.asarray([STARTS.get(s, 0.4) for s in seeds], jnp.float32)

    return replace(toy_task(), outcomes=OUTCOMES, initial=initial, **changes)


@pytest.fixture(scope="module")
def leftwards():
    """Always pushes to the left with all its force: x falls by 0.5 a step."""
    source = PROGRAM.replace("demand = -gain * obs.x", "demand = -gain")
    structure = parse(source, SCHEMA).structure
    policy = StructuredPolicy(structure, SCHEMA)
    return policy, variables_from(structure, initial_values(structure))


# From -1.7 the first step leads to -2.2, which ends the episode. From 0.4 the distances
# are 0.1, 0.6, 1.1, 1.6, 2.1: the last ends it, too.
BY_HAND = {
    "nearest": (2.2, 0.1),
    "farthest": (2.2, 2.1),
    "final": (2.2, 2.1),
    "average": (2.2, 1.1),
}


def check(found, expected=BY_HAND):
    assert list(found) == list(expected)
    for name, values in expected.items():
        np.testing.assert_allclose(found[name], values, rtol=1e-5)


def test_each_reduction_counts_the_steps_taken_and_no_others(leftwards):
    result = evaluate(*leftwards, outcome_task(), [1, 4])
    check(result.outcomes)
    summary = result.as_dict()["outcomes"]["average"]
    # Mean and population std of 2.2 and 1.1.
    assert summary["mean"] == pytest.approx(1.65)
    assert summary["std_ddof0"] == pytest.approx(0.55)


def test_recorded_episodes_have_the_same_outcomes(leftwards):
    task = outcome_task()
    trajectory = collect(*leftwards, task, [1, 4], key=jax.random.key(0))
    check(evaluation_of(trajectory, task, [1, 4]).outcomes)


def test_a_simulator_may_give_outcomes_of_its_own(leftwards):
    def pencil(act, seeds):
        act(np.zeros((len(seeds), 2)))
        outcomes = {"final": np.array([3.0, 4.0]), "unknown": np.zeros(2)}
        return np.array([1.0, 2.0]), np.array([5, 5]), outcomes

    task = outcome_task(simulators={"pencil": pencil})
    result = evaluate(*leftwards, task, [1, 4], simulator="pencil")
    assert result.returns == (1.0, 2.0)
    assert result.outcomes == {"final": (3.0, 4.0)}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (None, "gives a NoneType; accepted: (returns, steps) or"),
        ((np.zeros(2),), "gives 1 values; accepted: (returns, steps) or"),
        ((np.zeros(3), np.zeros(2)), "gives returns array([0., 0., 0.]); accepted: 2"),
        ((np.zeros(2), 5), "gives steps 5; accepted: 2 numbers"),
        ((np.zeros(2), np.zeros(2), [1.0]), "gives outcomes [1.0]; accepted: {outcome"),
        (
            (np.zeros(2), np.zeros(2), {"final": 3.0}),
            "gives the outcome 'final' as 3.0; accepted: 2 numbers",
        ),
        (
            (np.zeros(2), np.zeros(2), {"final": ["a", "b"]}),
            "gives the outcome 'final' as ['a', 'b']; accepted: 2 numbers",
        ),
        ((np.full(2, np.nan), np.zeros(2)), "a reward that is not finite (2 values)"),
    ],
)
def test_a_simulator_that_gives_something_else_is_refused(leftwards, given, message):
    task = outcome_task(simulators={"pencil": lambda act, seeds: given})
    with pytest.raises(StructjaxError) as refused:
        evaluate(*leftwards, task, [1, 4], simulator="pencil")
    assert message in str(refused.value)


def test_a_simulator_that_fails_is_one_line(leftwards):
    def broken(act, seeds):
        raise ZeroDivisionError("by hand\nand more")

    task = outcome_task(simulators={"pencil": broken})
    with pytest.raises(StructjaxError) as refused:
        evaluate(*leftwards, task, [1, 4], simulator="pencil")
    expected = "simulator 'pencil' of task 'toy' fails: ZeroDivisionError: by hand;"
    assert str(refused.value).startswith(expected)


@pytest.mark.parametrize(
    ("simulators", "message"),
    [
        (["pencil"], "its simulators are ['pencil']; accepted: name -> function"),
        ({"pencil": 3}, "its simulator 'pencil' is 3; accepted: functions"),
        ({"jax": print}, "its simulator 'jax' is"),
    ],
)
def test_simulators_that_cannot_be_called_are_refused(simulators, message):
    with pytest.raises(StructjaxError) as refused:
        outcome_task(simulators=simulators)
    assert message in str(refused.value)


def test_info_that_is_no_mapping_is_refused():
    with pytest.raises(StructjaxError, match=r"its info is .'distance'.; accepted"):
        outcome_task(info=["distance"])


def test_a_simulator_without_outcomes_has_none(leftwards):
    result = evaluate(*leftwards, outcome_task(), [1, 4], simulator="pencil")
    assert "outcomes" not in result.as_dict()


@pytest.mark.parametrize(
    ("outcomes", "message"),
    [
        ({"far": ("height", "max")}, "of info value 'height'; accepted: distance"),
        (
            {"far": ("distance", "sum")},
            "has the reduction 'sum'; accepted: min, max, last, mean",
        ),
        ({"far": (["distance"], "max")}, "of info value ['distance']; accepted: dist"),
        ({"far": ("distance", np.zeros(2))}, "has the reduction array([0., 0.])"),
        ({"far": "distance"}, "is 'distance'; accepted: (info value, reduction)"),
        ({"too far": ("distance", "max")}, "is called 'too far'; accepted: letters"),
        ([], r"its outcomes are []; accepted: a mapping"),
    ],
)
def test_a_rule_that_cannot_be_followed_is_refused(outcomes, message):
    with pytest.raises(StructjaxError) as refused:
        replace(toy_task(), outcomes=outcomes)
    assert message in str(refused.value)


def test_the_command_prints_and_documents_them(capsys, tmp_path):
    task = tmp_path / "task.py"
    task.write_text(
        "from dataclasses import replace\n"
        "from toy import toy_task\n"
        "def near():\n"
        "    return replace(toy_task(), outcomes={'nearest': ('distance', 'min')})\n"
    )
    file = tmp_path / "program.py"
    file.write_text(PROGRAM)
    arguments = ("evaluate", file, "--task", f"{task}:near", "--seeds", "1004:1006")
    code, out, _ = run(capsys, *arguments)
    # Five steps that halve 0.4 and 0.5: 0.0125 and 0.015625.
    assert code == 0
    assert [line.split() for line in out.splitlines()[:4]] == [
        ["seed", "return", "nearest"],
        ["----", "------", "-------"],
        ["1004", "-0.4", "0.0125"],
        ["1005", "-0.5", "0.01562"],
    ]
    assert out.splitlines()[-1] == "nearest 0.01406 +- 0.001562"
    code, out, _ = run(capsys, "evaluate", "--help")
    assert '"outcomes": {name: {"values"' in " ".join(out.split()).replace("│ ", "")


@pytest.mark.parametrize("feedback", ["analysis", "reward"])
def test_a_run_tells_and_keeps_the_outcomes_of_gate_and_test(tmp_path, feedback):
    """All episodes start at 0.4 and gain 0.5 leaves 3/4 of it per step."""
    prompts = {}

    def reply(request):
        prompts[request.slot] = "\n".join(m.content for m in request.messages)
        replies = {**REPLIES, "generate": fenced(program(0.5)), "round0/revise": STOP}
        return replies[request.slot]

    outcome = refine(
        outcome_task(),
        ScriptedModel(reply),
        config=RefinementConfig(rounds=1, feedback=feedback),
        directory=tmp_path / "run",
    )
    final = 0.4 * 0.75**5
    told = f"; nearest {final:.4g} (from {final:.4g} to {final:.4g}), farthest 0.3 "
    # Once for the round's own result and once in the history of rounds.
    expected = 2 if feedback == "analysis" else 0
    assert prompts["round0/revise"].count(told) == expected
    kept = read_json(outcome.run / "manifest.json", kind="run", hint="")
    check(kept["rounds"][0]["outcomes"], gate_by_hand())
    assert outcome.evaluation["outcomes"]["farthest"]["mean"] == pytest.approx(0.3)
    page = write_report(outcome.run, outcome_task()).read_text()
    assert "<th>gate nearest<th>gate farthest<th>gate final<th>gate average" in page
    assert "<td>farthest<td>0.3 ± 0" in page


def gate_by_hand():
    steps = [0.4 * 0.75**k for k in range(1, 6)]
    found = {
        "nearest": steps[-1],
        "farthest": steps[0],
        "final": steps[-1],
        "average": sum(steps) / 5,
    }
    return {name: [value] * 10 for name, value in found.items()}


def test_training_writes_a_column_for_each(tmp_path):
    task = outcome_task()
    structure = parse(PROGRAM, SCHEMA).structure
    policy = StructuredPolicy(structure, SCHEMA, 0.05)
    config = RLConfig(groups=1, episodes=2, epochs=1)
    algorithm, scalars = recipe(policy, task, config, 2, 1)
    labels = ({"training_seed": 3},)
    tracks = task.seeds["training"]
    plan = Plan(algorithm, policy, task, scalars, labels, 2, tracks=tracks)
    start = repeat(variables_from(structure, {"gain": 1.0}), 1)
    path = tmp_path / "run"
    with RunDirectory.create(path, kind="rl", task="toy", config={}) as directory:
        Training(directory, plan, start).run()
    table = pd.read_csv(path / "evaluations.csv")
    assert list(table.columns[-5:]) == ["return", *(f"outcome_{k}" for k in OUTCOMES)]
    begun = table[(table["checkpoint"] == "start") & (table["mode"] == "mean")]
    # Gain 1 halves 0.4 five times.
    np.testing.assert_allclose(begun["outcome_final"], 0.0125, rtol=1e-5)
    np.testing.assert_allclose(begun["outcome_farthest"], 0.2, rtol=1e-5)
    # Damaged, it is refused; 3 checkpoints in 2 modes on 10 seeds are 60 rows.
    for change, message in (
        (lambda r: r[0].update(outcome_final="far"), r"outcome_final is 'far'"),
        (lambda r: r.clear(), "result has 0 items, 60 are accepted"),
    ):
        file = path / "checkpoints" / "evaluation.json"
        kept = file.read_text()
        damaged(file, change)
        with (
            pytest.raises(StructjaxError, match=message),
            RunDirectory.resume(path, config={}, task="toy") as directory,
        ):
            Training(directory, plan, start).run()
        file.write_text(kept)


def test_a_resumed_run_tells_the_same(tmp_path):
    """NaN is null in a run's files and comes back as NaN."""
    told = []

    def reply(request):
        told.append("\n".join(m.content for m in request.messages))
        if request.slot == "round0/revise" and len(told) == 3:
            raise KeyboardInterrupt
        replies = {**REPLIES, "generate": fenced(program(0.5)), "round0/revise": STOP}
        return replies[request.slot]

    def play(resume):
        return refine(
            outcome_task(),
            ScriptedModel(reply),
            config=RefinementConfig(rounds=1),
            directory=tmp_path / "run",
            resume=resume,
        )

    with pytest.raises(KeyboardInterrupt):
        play(resume=False)
    marker = tmp_path / "run" / "checkpoints" / "r0_gate.json"
    kept = json.loads(marker.read_text())
    kept["result"]["outcomes"]["final"][3] = None
    marker.write_text(json.dumps(kept))
    outcome = play(resume=True)
    gate = outcome.rounds[0].gate
    check({"nearest": gate.outcomes["nearest"]}, {"nearest": [0.4 * 0.75**5] * 10})
    assert np.isnan(gate.outcomes["final"]).tolist() == [i == 3 for i in range(10)]
    assert list(gate.outcomes) == list(OUTCOMES)


def summary(values, mean, std):
    return {"values": values, "mean": mean, "std_ddof0": std}


def test_evaluations_with_other_outcomes_share_a_table():
    """As when a run was damaged, or went on after its task was changed."""
    whole = {"outcomes": {"near": summary([1.0], 1.0, 0.0)}}
    broken = {"outcomes": {"far": summary([None], 2.0, None)}}
    rows = table_rows([whole, broken, {}, {"outcomes": None}])
    assert rows == [
        ("near", "1 +- 0", "-", "-", "-"),
        ("far", "-", "not finite", "-", "-"),
    ]


def test_infinite_and_missing_values_have_no_mean_and_no_warning():
    told = summarised({"far": [np.inf, 1.0], "near": [np.nan, 1.0]})
    rows = table_rows([{"outcomes": told}])
    assert rows == [("far", "not finite"), ("near", "not finite")]


def test_a_report_keeps_outcomes_of_rounds_in_their_columns():
    first = {"outcomes": {"near": [1.0, 2.0], "far": [4.0, None]}}
    assert _gate_outcomes(first, ["near", "far"]) == ("<td>1.5</td><td>not finite</td>")
    assert _gate_outcomes({"outcomes": {"far": [4.0]}}, ["near", "far"]) == (
        "<td>-</td><td>4</td>"
    )
    assert _gate_outcomes({}, ["near"]) == "<td>-</td>"
    assert _gate_outcomes({"outcomes": {"near": []}}, ["near"]) == "<td>-</td>"


def damaged(path, change):
    record = read_json(path)
    change(record["result"])
    path.write_text(json.dumps(record))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda r: r["values"].pop(), "result.values has 9 items, 10 are accepted"),
        (lambda r: r["outcomes"]["final"].clear(), "final has 0 items, 10 are"),
    ],
)
def test_a_damaged_gate_is_refused_when_the_run_goes_on(tmp_path, change, message):
    replies = {**REPLIES, "generate": fenced(program(0.5)), "round0/revise": STOP}
    model = ScriptedModel(lambda request: replies[request.slot])
    config = RefinementConfig(rounds=1)
    refine(outcome_task(), model, config=config, directory=tmp_path / "run")
    manifest = tmp_path / "run" / "manifest.json"
    manifest.write_text(json.dumps({**read_json(manifest), "status": "interrupted"}))
    damaged(tmp_path / "run" / "checkpoints" / "r0_gate.json", change)
    with pytest.raises(StructjaxError) as refused:
        refine(
            outcome_task(),
            model,
            config=config,
            directory=tmp_path / "run",
            resume=True,
        )
    assert message in str(refused.value)
