"""The loop on a task computed by hand, with scripted replies; kills and resumes."""

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from toy import PROGRAM, toy_task

from structjax.demonstration import Demonstration
from structjax.errors import StructjaxError
from structjax.llm.model import Reply
from structjax.llm.replay import ReplayModel
from structjax.llm.scripted import ScriptedModel
from structjax.refinement import RefinementConfig
from structjax.runs import read_json
from structjax.session import refine


def program(gain):
    return PROGRAM.replace("1.0", str(gain))


def fenced(code):
    return f"```python\n{code}\n```"


def revise(gain):
    return f"Push harder.\n\nACTION: revise\n\n{fenced(program(gain))}"


TESTS = fenced("def check_rows(df):\n    print('rows', len(df))")
STOP = "Nothing left.\n\nACTION: stop\nThe point is at the origin."

# Gate seeds 2000..2009 start at 0, 0.1 ... 0.9 (mean 0.45). Gain 0.5 leaves 3/4 of the
# offset per step: the return is -x0 (3/4 + ... + (3/4)^5) = -2.28809 x0.
GATE_HALF = -0.45 * sum(0.75**k for k in range(1, 6))
GATE_ONE = -0.45 * 31 / 32

REPLIES = {
    "generate": fenced(program(0.5)),
    "round0/tests": TESTS,
    "round0/revise": revise(1.0),
    "round1/tests": TESTS,
    "round1/revise": revise(0.25),
    "round2/tests": TESTS,
    "round2/revise": revise(2.0),
}


def run(tmp_path, model, name="run", resume=False, rounds=3, **config):
    return refine(
        toy_task(),
        model,
        config=RefinementConfig(rounds=rounds, **config),
        directory=tmp_path / name,
        resume=resume,
    )


@pytest.fixture(scope="module")
def outcome(tmp_path_factory):
    return run(tmp_path_factory.mktemp("refine"), ScriptedModel(REPLIES))


def test_the_gate_accepts_and_refuses_as_computed_by_hand(outcome):
    gates = [r.gate for r in outcome.rounds]
    assert gates[0].mean == pytest.approx(GATE_HALF, rel=1e-5)
    assert gates[1].mean == pytest.approx(GATE_ONE, rel=1e-5)
    # Gain 2: one step to 0, where the push is clipped (0.6 ... 0.9) 0.1 ... 0.4 remain.
    assert gates[3].mean == pytest.approx(-0.1, rel=1e-5)
    assert [g.accepted for g in gates] == [True, True, False, True]
    assert outcome.best == 3
    assert outcome.status == "done"


def test_every_reset_is_booked_under_its_purpose(outcome):
    assert outcome.ledger.resets == {
        "demonstration": 0,
        "diagnosis": 3 * 8,  # three rounds are diagnosed, the last is only judged
        "gate": 4 * 10,
        "selection": 0,
        "training": 0,
        "evaluation": 4 * 10 + 10,  # every round, and the best with sampled actions
    }
    assert outcome.ledger.llm_calls == 7
    assert outcome.ledger.env_steps["gate"] == 4 * 10 * 5


def test_the_model_is_told_of_a_refusal_and_starts_from_the_best(tmp_path, outcome):
    records = [
        json.loads(line)
        for line in (outcome.run / "llm.jsonl").read_text().splitlines()
    ]
    asked = {r["slot"]: r["req"] for r in records if r["kind"] == "request"}
    last = asked["round2/revise"]["messages"][-1]["content"]
    assert "was REFUSED" in last
    assert "below -0.4359 of round 1" in last
    assert "gain = weight(1.0" in last
    # No seed and no row of the gate episodes is shown, in any prompt.
    everything = json.dumps(asked)
    assert "2003" not in everything
    assert "rows 40" in everything  # 8 episodes x 5 steps: the model's own check


def test_the_run_directory_holds_everything(outcome):
    names = {str(p.relative_to(outcome.run)) for p in outcome.run.rglob("*")}
    for name in (
        "manifest.json",
        "metrics.jsonl",
        "llm.jsonl",
        "report.html",
        "structures/r3.py",
        "structures/r3.json",
        "params/r3.npz",
        "tables/r2.parquet",
        "tables/evaluation.parquet",
        "diagnostics/r0.py",
        "diagnostics/r0.json",
    ):
        assert name in names
    manifest = read_json(outcome.run / "manifest.json")
    assert manifest["status"] == "done"
    assert manifest["best_round"] == 3
    assert "lock" not in names


def test_a_replay_takes_the_same_decisions_and_costs_no_call(tmp_path, outcome):
    again = run(tmp_path, ReplayModel(outcome.run / "llm.jsonl", mode="strict"))
    assert again.best == outcome.best
    assert [r.gate.values for r in again.rounds] == [
        r.gate.values for r in outcome.rounds
    ]
    assert (again.ledger.llm_calls, again.ledger.replayed_calls) == (0, 7)
    assert again.notes == ()


def test_a_replay_with_other_prompts_says_that_nothing_is_to_be_done(tmp_path, outcome):
    task = replace(toy_task(), description="Push the block, worded differently.")
    model, config = ReplayModel(outcome.run / "llm.jsonl"), RefinementConfig(rounds=0)
    again = refine(task, model, config=config, directory=tmp_path / "run")
    assert again.notes[0] == (
        "nothing to do: 1 reply was recorded with an earlier wording of its prompt, "
        "and is used in its place"
    )


def test_a_short_transcript_keeps_the_best(tmp_path, outcome):
    again = run(tmp_path, ReplayModel(outcome.run / "llm.jsonl"), rounds=5)
    assert again.status == "stopped:transcript"
    assert again.best == 3


def test_the_model_may_stop(tmp_path):
    model = ScriptedModel({**REPLIES, "round0/revise": STOP})
    outcome = run(tmp_path, model)
    assert outcome.status == "stopped:model"
    assert outcome.reason.endswith("The point is at the origin.")
    assert len(outcome.rounds) == 1


def test_a_revision_that_changes_nothing_stops(tmp_path):
    model = ScriptedModel({**REPLIES, "round0/revise": revise(0.5)})
    outcome = run(tmp_path, model)
    assert outcome.status == "stopped:model"
    assert "changed nothing" in outcome.reason


def test_extra_tests_run_on_the_same_table(tmp_path):
    more = f"One more look.\n\nACTION: test\n\n{TESTS.replace('rows', 'again')}"
    model = ScriptedModel(
        {**REPLIES, "round0/revise": more, "round0/extra1": revise(1.0)}
    )
    outcome = run(tmp_path, model, rounds=1)
    assert outcome.ledger.resets["diagnosis"] == 8
    assert outcome.ledger.llm_calls == 4
    findings = read_json(outcome.run / "diagnostics" / "r0_revise.json")
    assert findings[-1]["text"].strip() == "again 40"


def test_a_third_test_is_refused_with_what_is_accepted(tmp_path):
    more = f"Look.\n\nACTION: test\n\n{TESTS}"
    model = ScriptedModel(
        {
            **REPLIES,
            "round0/revise": more,
            "round0/extra1": more,
            "round0/extra2": more,
            "round0/extra2/repair1": revise(1.0),
        }
    )
    outcome = run(tmp_path, model, rounds=1)
    assert len(outcome.rounds) == 2


def test_the_gate_can_be_switched_off(tmp_path):
    outcome = run(tmp_path, ScriptedModel(REPLIES), gate="off", rounds=2)
    assert [r.gate.accepted for r in outcome.rounds] == [True, True, True]
    assert outcome.best == 2  # the last one, as the paper has it


def test_a_budget_keeps_the_best(tmp_path):
    outcome = run(tmp_path, ScriptedModel(REPLIES), max_calls=3)
    assert outcome.status == "stopped:budget"
    assert outcome.best == 1


@pytest.mark.parametrize("feedback", ["table", "none", "reward"])
def test_other_feedback_asks_for_no_tests(tmp_path, feedback):
    asked = []

    def reply(request):
        asked.append(request)
        return REPLIES[request.slot]

    run(tmp_path, ScriptedModel(reply), feedback=feedback, rounds=1)
    assert [r.slot for r in asked] == ["generate", "round0/revise"]
    question = asked[1].messages[-1].content
    assert ("obs_x" in question) == (feedback == "table")
    assert ("Validation episodes" in question) == (feedback != "none")
    assert "ACTION: test" not in question


def test_an_empty_first_reply_is_repaired(tmp_path):
    replies = {
        **REPLIES,
        "generate": "",
        "generate/repair1": "I would rather talk about it.",
        "generate/repair2": fenced("class Policy: pass"),
        "generate/regenerate1": fenced(program(0.5)),
    }
    outcome = run(tmp_path, ScriptedModel(replies), rounds=1)
    assert outcome.status == "done"
    assert outcome.ledger.llm_calls == 6


def test_no_first_program_at_all_is_one_clear_error(tmp_path):
    model = ScriptedModel(lambda request: Reply("", status="empty"))
    with pytest.raises(StructjaxError, match="no usable reply for generate") as caught:
        run(tmp_path, model)
    assert caught.value.hint.startswith("a resumed run reads the same replies again")
    # So it does: they are on record, and nothing is asked for or paid twice.
    again = ScriptedModel(lambda request: REPLIES[request.slot])
    with pytest.raises(StructjaxError, match="no usable reply for generate"):
        run(tmp_path, again, resume=True)
    assert not again.requests
    manifest = read_json(tmp_path / "run" / "manifest.json")
    assert manifest["status"] == "failed"
    assert "no usable reply" in manifest["reason"]


KILL = Path(__file__).parent / "killed_run.py"


def _killed(directory, phase, resume=False):
    """Runs the scripted refinement in a process that kills itself at a phase."""
    command = [sys.executable, str(KILL), str(directory), phase, str(int(resume))]
    here = f"{KILL.parent.parent}{os.pathsep}{KILL.parent}"
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "PYTHONPATH": here},
    )


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The outcome of a run that nobody kills."""
    done = _killed(tmp_path_factory.mktemp("whole") / "run", "never")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


PHASES = [
    "request:round0/tests",
    "step:r0/rollout",
    "reply:round0/revise",
    *(
        pytest.param(phase, marks=pytest.mark.slow)
        for phase in (
            "request:generate",
            "reply:generate",
            "step:r0/fit",
            "step:r0/gate",
            "reply:round0/tests",
            "step:round0/tests/findings",
            "request:round0/revise",
            "step:r1/fit",
            "step:r1/gate",
            "step:evaluation/r0",
            "step:evaluation/best_r1",
        )
    ),
]


@pytest.mark.parametrize("phase", PHASES)
def test_a_run_killed_at_any_phase_resumes_to_the_same_result(tmp_path, whole, phase):
    torn = _killed(tmp_path / "torn", phase)
    assert torn.returncode == -signal.SIGKILL
    manifest = read_json(tmp_path / "torn" / "manifest.json")
    assert manifest["status"] == "running"
    resumed = _killed(tmp_path / "torn", "never", resume=True)
    assert resumed.returncode == 0, resumed.stderr
    second = json.loads(resumed.stdout)
    for key in whole.keys() - {"run", "report", "requests"}:
        assert second[key] == whole[key], key
    # A reply on disk is not requested again: each slot has one response.
    lines = (tmp_path / "torn" / "llm.jsonl").read_text().splitlines()
    records = [json.loads(line) for line in lines]
    answered = [r["slot"] for r in records if r["kind"] == "response"]
    assert answered == ["generate", "round0/tests", "round0/revise"]
    asked = [r["slot"] for r in records if r["kind"] == "request"]
    # Killed between sending and recording, a call is sent once more.
    again = [phase.removeprefix("request:")] if phase.startswith("request:") else []
    assert sorted(asked) == sorted([*answered, *again])
    assert (tmp_path / "torn" / "report.html").exists()
    lines = (tmp_path / "torn" / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line)["round"] for line in lines] == [0, 1]


def test_a_call_killed_before_its_reply_is_noted_as_maybe_billed(tmp_path):
    class Paid(ScriptedModel):
        @property
        def description(self):
            return {"provider": "openai", "model": "m"}

    def killed(request):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, Paid(killed), rounds=0)
    outcome = run(tmp_path, Paid(REPLIES), rounds=0, resume=True)
    assert outcome.notes == ("calls without a reply that may have been billed: 1",)


def test_with_a_demonstration_the_fit_and_its_residuals_are_shown(tmp_path):
    # The demonstrator pushes with gain 1, so that the fit moves 0.5 to 1.
    x = np.linspace(-1, 1, 101, dtype=np.float32)
    demonstration = Demonstration(
        np.stack([x, np.zeros_like(x)], 1), -x[:, None], {"driver": "by hand"}
    )
    asked = {}

    def reply(request):
        asked[request.slot] = request.messages[-1].content
        return REPLIES[request.slot]

    outcome = refine(
        toy_task(),
        ScriptedModel(reply),
        config=RefinementConfig(rounds=1, fit="imitation"),
        demonstration=demonstration,
        directory=tmp_path / "run",
    )
    assert outcome.rounds[0].candidate.values["gain"] == pytest.approx(1, abs=0.02)
    assert "Largest moves:" in asked["round0/revise"]
    assert "demo_residual: push: rms" in asked["round0/revise"]
    assert "(fitted values in place)" in asked["round0/tests"]


def test_an_anchored_fit_chooses_its_strength_on_selection_episodes(tmp_path):
    x = np.linspace(-1, 1, 101, dtype=np.float32)
    # A demonstrator who pushes the wrong way: every fit is worse than the program.
    demonstration = Demonstration(np.stack([x, np.zeros_like(x)], 1), x[:, None], {})
    outcome = refine(
        toy_task(),
        ScriptedModel(REPLIES),
        config=RefinementConfig(rounds=1, fit="anchored"),
        demonstration=demonstration,
        directory=tmp_path / "run",
    )
    first = outcome.rounds[0].candidate
    rows = first.fit["rows"]
    chosen = rows[first.fit["chosen"]]
    assert chosen["selection_return"] == max(r["selection_return"] for r in rows)
    assert rows[0]["selection_return"] < rows[-1]["selection_return"]
    # Six strengths on ten selection episodes, twice: rounds 0 and 1.
    assert outcome.ledger.resets["selection"] == 2 * 6 * 10


def test_a_resumed_run_with_more_rounds_evaluates_its_own_best(tmp_path):
    first = {name: REPLIES[name] for name in ("generate", "round0/tests")}
    before = run(tmp_path, ScriptedModel(first))
    assert before.status == "stopped:transcript"
    assert before.evaluation["mean"] == pytest.approx(GATE_HALF, rel=1e-5)
    again = run(tmp_path, ScriptedModel(REPLIES), resume=True, rounds=3)
    assert (before.best, again.best) == (0, 3)
    assert len(again.test_returns) == 4
    assert again.evaluation["mean"] == pytest.approx(-0.1, rel=1e-5)
