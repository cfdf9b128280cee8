"""Shipped transcripts replay to their results, with the sandbox and without one."""

import json
import re
from pathlib import Path

import pytest

import structjax.analysis
from structjax.demonstration import load_demonstration
from structjax.diagnostics.sandbox import SandboxUnavailable, sandbox_available
from structjax.evaluation import evaluate
from structjax.llm.replay import ReplayModel
from structjax.policy_file import load_policy
from structjax.refinement import RefinementConfig
from structjax.session import refine
from structjax.tasks.registry import make_task
from structjax.transcripts import find_transcript, shipped

needs_sandbox = pytest.mark.skipif(
    not sandbox_available()[0], reason=f"no sandbox here: {sandbox_available()[1]}"
)


# Recorded run -> options, verdicts of the gate, best round, its test return.
RUNS = {
    "car_racing/run_09": ({}, [True, True, False, True, True], 4, 930.1),
    "car_racing/run_10": (
        {"demonstration": "car_racing/human_2", "fit": "anchored"},
        [True] * 5,
        4,
        932.3,
    ),
    "door_open/run_01": ({}, [True] * 5, 4, 4516.4),
}
REFINED_DOOR = (
    Path(__file__).parent.parent / "experiments" / "refined_programs" / "door_1.json"
)
QUICK = "car_racing/run_09"
SHIPPED = [*shipped("car_racing"), *shipped("door_open")]


def name_of(path):
    return f"{path.parent.name}/{path.stem}"


def replay(directory, name):
    options, *_ = RUNS[name]
    task = make_task(name.partition("/")[0])
    demonstration = options.get("demonstration")
    if demonstration is not None:
        demonstration = load_demonstration(demonstration, task.schema)
    return refine(
        task,
        ReplayModel(find_transcript(name.partition("/")[2], task.name)),
        config=RefinementConfig(fit=options.get("fit", "none")),
        demonstration=demonstration,
        directory=directory,
    )


def test_every_shipped_run_is_listed_here():
    assert {name_of(path) for path in SHIPPED} == RUNS.keys()


@needs_sandbox
@pytest.mark.parametrize(
    "name",
    [
        name if name == QUICK else pytest.param(name, marks=pytest.mark.slow)
        for name in RUNS
    ],
)
def test_a_shipped_run_replays_to_its_result(tmp_path, name):
    _, accepted, best, value = RUNS[name]
    outcome = replay(tmp_path / "run", name)
    assert [r.gate.accepted for r in outcome.rounds] == accepted
    assert outcome.best == best
    # One missed tile costs 3.5 on one of ten tracks.
    assert outcome.evaluation["mean"] == pytest.approx(value, abs=3)
    assert outcome.ledger.llm_calls == 0


def test_the_last_program_of_the_door_opens_all_doors_and_holds_them():
    task = make_task("door_open")
    found = load_policy(REFINED_DOOR, task)
    outcomes = evaluate(
        found.policy, found.variables, task, task.seeds["test"]
    ).outcomes
    assert outcomes["success_final"] == (1.0,) * 10
    assert max(outcomes["final_distance"]) < 0.025


def test_without_a_sandbox_recorded_outputs_are_used_and_labelled(
    tmp_path, monkeypatch
):
    class NoSandbox:
        def __init__(self, *_, **__):
            raise SandboxUnavailable("this system lacks Landlock")

    monkeypatch.setattr(structjax.analysis, "Sandbox", NoSandbox)
    outcome = replay(tmp_path / "run", QUICK)
    assert outcome.best == RUNS[QUICK][2]
    findings = json.loads((outcome.run / "diagnostics" / "r0.json").read_text())
    assert all(f["recorded"] for f in findings)
    assert "recorded output" in (outcome.run / "report.html").read_text()


@pytest.mark.parametrize("path", SHIPPED, ids=name_of)
def test_a_header_says_what_answered(path):
    header = ReplayModel(path).header
    assert header["provider"] == "manual"
    assert header["model"].startswith("large language model")


@pytest.mark.parametrize("path", SHIPPED, ids=name_of)
def test_no_prompt_shows_a_seed_or_a_gate_episode(path):
    printed = []
    for line in path.read_text().splitlines():
        record = json.loads(line)
        if record["kind"] == "findings":
            printed += [finding["text"] for finding in record["findings"]]
        if record["kind"] != "request":
            continue
        text = " ".join(m["content"] for m in record["req"]["messages"])
        # What checks print of their table, step counts and lengths, is no seed.
        for output in sorted(filter(None, printed), key=len, reverse=True):
            text = text.replace(output, "")
        # Seeds stand alone; 0.2003 and 20030 are measurements.
        assert not re.findall(r"(?<![\d.])(?:200\d|100[1-9])(?![\d.])", text)
