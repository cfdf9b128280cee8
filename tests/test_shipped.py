"""The shipped transcript replays to its result, with the sandbox and without one."""

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


@pytest.fixture(scope="module")
def task():
    return make_task("car_racing")


REFINED_DOOR = (
    Path(__file__).parent.parent / "experiments" / "refined_programs" / "door_1.json"
)
ALL = [*shipped("car_racing"), *shipped("door_open")]


def identity(path):
    return f"{path.parent.name}/{path.stem}"


# Recorded run -> options, verdicts of the gate, best round, its test return.
RUNS = {
    "run_09": ({}, [True, True, False, True, True], 4, 930.1),
    "run_10": (
        {"demonstration": "car_racing/human_2", "fit": "anchored"},
        [True] * 5,
        4,
        932.3,
    ),
}


def replay(task, directory, name):
    options, *_ = RUNS[name]
    demonstration = options.get("demonstration")
    if demonstration is not None:
        demonstration = load_demonstration(demonstration, task.schema)
    return refine(
        task,
        ReplayModel(find_transcript(name, task.name)),
        config=RefinementConfig(fit=options.get("fit", "none")),
        demonstration=demonstration,
        directory=directory,
    )


def test_every_shipped_run_is_listed_here():
    assert {path.stem for path in shipped("car_racing")} == RUNS.keys()


@needs_sandbox
@pytest.mark.parametrize(
    "name",
    [
        name if RUNS[name][0] == {} else pytest.param(name, marks=pytest.mark.slow)
        for name in RUNS
    ],
)
def test_a_shipped_run_replays_to_its_result(task, tmp_path, name):
    _, accepted, best, value = RUNS[name]
    outcome = replay(task, tmp_path / "run", name)
    assert [r.gate.accepted for r in outcome.rounds] == accepted
    assert outcome.best == best
    # One missed tile costs 3.5 on one of ten tracks.
    assert outcome.evaluation["mean"] == pytest.approx(value, abs=3)
    assert outcome.ledger.llm_calls == 0


@needs_sandbox
@pytest.mark.slow
def test_the_shipped_run_of_the_door_replays_to_its_result(tmp_path):
    (path,) = shipped("door_open")
    outcome = refine(
        make_task("door_open"), ReplayModel(path), config=RefinementConfig(),
        demonstration=None, directory=tmp_path / "run",
    )  # fmt: skip
    assert [r.gate.accepted for r in outcome.rounds] == [True] * 5
    assert outcome.best == 4
    outcomes = outcome.evaluation["outcomes"]
    assert outcomes["success_final"]["mean"] == 1
    assert outcomes["min_distance"]["mean"] == pytest.approx(0.0225, abs=0.0005)


def test_the_last_program_of_the_door_opens_all_doors_and_holds_them():
    task = make_task("door_open")
    found = load_policy(REFINED_DOOR, task)
    outcomes = evaluate(
        found.policy, found.variables, task, task.seeds["test"]
    ).outcomes
    assert outcomes["success_final"] == (1.0,) * 10
    assert max(outcomes["final_distance"]) < 0.025


def test_without_a_sandbox_recorded_outputs_are_used_and_labelled(
    task, tmp_path, monkeypatch
):
    class NoSandbox:
        def __init__(self, *_, **__):
            raise SandboxUnavailable("this system lacks Landlock")

    monkeypatch.setattr(structjax.analysis, "Sandbox", NoSandbox)
    name = shipped("car_racing")[0].stem
    outcome = replay(task, tmp_path / "run", name)
    assert outcome.best == RUNS[name][2]
    findings = json.loads((outcome.run / "diagnostics" / "r0.json").read_text())
    assert all(f["recorded"] for f in findings)
    assert "recorded output" in (outcome.run / "report.html").read_text()


@pytest.mark.parametrize("path", ALL, ids=identity)
def test_a_header_says_what_answered(path):
    header = ReplayModel(path).header
    assert header["provider"] == "manual"
    assert header["model"].startswith("large language model")


@pytest.mark.parametrize("path", ALL, ids=identity)
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
