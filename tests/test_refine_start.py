"""Refinement that begins with a policy in place of the model's first program."""

import json

import jax
import numpy as np
import pytest
from test_failing_programs import NAN
from test_refine import REPLIES, STOP, TESTS, fenced, revise
from toy import PROGRAM, SCHEMA, toy_task

from structjax.demonstration import Demonstration
from structjax.errors import StructjaxError
from structjax.evaluation import evaluate
from structjax.language.parse import parse
from structjax.llm.replay import ReplayModel
from structjax.llm.scripted import ScriptedModel
from structjax.network_file import save_network
from structjax.policy import MLPPolicy
from structjax.policy_file import load_policy, save_policy
from structjax.refinement import RefinementConfig
from structjax.runs import RunDirectory, read_json
from structjax.session import refine
from structjax.start_policy import load_start

GAIN = 0.7071067690849304
"""The square root of a half in single precision."""
VALUES = {"gain": GAIN, "std_push": 0.12345679104328156}
AFTER = {
    "round0/tests": TESTS,
    "round0/revise": revise(1.0),
    "round1/tests": TESTS,
    "round1/revise": STOP,
}


@pytest.fixture
def tuned(tmp_path):
    path = tmp_path / "tuned.json"
    save_policy(path, parse(PROGRAM, SCHEMA), VALUES, toy_task())
    return path


def run(tmp_path, start, replies=AFTER, *, name="run", resume=False, **options):
    config = {"rounds": 1, **options.pop("config", {})}
    model = replies if isinstance(replies, ReplayModel) else ScriptedModel(replies)
    return refine(
        toy_task(),
        model,
        config=RefinementConfig(**config),
        start=start,
        directory=tmp_path / name,
        resume=resume,
        **options,
    )


def prompts(directory):
    lines = (directory / "llm.jsonl").read_text().splitlines()
    records = map(json.loads, lines)
    return {
        r["slot"]: "\n".join(m["content"] for m in r["req"]["messages"])
        for r in records
        if r["kind"] == "request"
    }


def test_round_0_is_the_policy_to_the_digit(tmp_path, tuned):
    outcome = run(tmp_path, tuned, {}, config={"rounds": 0})
    task, found = toy_task(), load_policy(tuned, toy_task())
    arm = found.policy, found.variables, task, task.seeds["test"]
    assert outcome.evaluation == evaluate(*arm).as_dict()
    sampled = evaluate(*arm, mode="sampled", key=jax.random.key(0))
    assert outcome.sampled["values"] == list(sampled.values)
    # The share 1 - gain / 2 of the offset is left after a step; starts 0, 0.1 ... 0.9.
    left = 1 - 0.5**0.5 / 2
    by_hand = -0.45 * sum(left**k for k in range(1, 6))
    assert outcome.evaluation["mean"] == pytest.approx(by_hand, rel=1e-5)
    assert outcome.rounds[0].candidate.values == VALUES
    assert load_policy(outcome.run, task).values == VALUES
    kept = parse((outcome.run / "structures" / "r0.py").read_text(), SCHEMA)
    assert {p.name: p.initial for p in kept.structure.parameters} == VALUES


def test_a_value_on_its_bound_stays_there(tmp_path):
    path = tmp_path / "saturated.json"
    values = {**VALUES, "gain": 0.0}
    save_policy(path, parse(PROGRAM, SCHEMA), values, toy_task())
    outcome = run(tmp_path, path, {}, config={"rounds": 0})
    assert outcome.rounds[0].candidate.values == values
    found = load_policy(path, toy_task())
    same = load_policy(outcome.run, toy_task())
    assert same.variables == found.variables
    assert "gain = weight(1e-07, " in outcome.rounds[0].candidate.text


def test_no_first_program_is_asked_for_or_booked(tmp_path, tuned):
    outcome = run(tmp_path, tuned)
    assert list(prompts(outcome.run)) == ["round0/tests", "round0/revise"]
    assert outcome.ledger.llm_calls == 2
    # One debug set, two gates: nothing of what the policy has cost before.
    assert outcome.ledger.headline_resets == 8
    assert outcome.ledger.total_resets == 8 + 2 * 10


def test_the_model_reads_rounded_values_and_where_the_program_is_from(tmp_path, tuned):
    asked = prompts(run(tmp_path, tuned).run)
    assert "# The program of round 0 (tuned values in place)" in asked["round0/tests"]
    program = PROGRAM.replace("1.0", "0.7071").replace("demand)", "demand, std=0.1235)")
    assert fenced(program.strip()) in asked["round0/tests"]
    assert "0.70710676" not in asked["round0/revise"]
    history = "accepted, the best so far. The program that the run was started from."
    assert history in asked["round0/revise"]


def test_a_program_is_started_from_as_it_is_written(tmp_path):
    path = tmp_path / "mine.py"
    written = PROGRAM.replace("1.0", "0.1234567") + "# the end\n"
    path.write_text(written)
    outcome = run(tmp_path, path)
    asked = prompts(outcome.run)["round0/tests"]
    assert "# The program of round 0\n" in asked
    assert fenced(written.strip()) in asked
    assert outcome.start.tuned is False
    assert (outcome.run / "structures" / "r0.py").read_text() == written


def test_a_run_is_started_from_at_its_best_round(tmp_path, tuned):
    first = run(tmp_path, tuned)
    assert first.best == 1
    second = run(tmp_path, first.run, {}, name="second", config={"rounds": 0})
    assert second.evaluation["values"] == first.evaluation["values"]
    # 8 debug and 20 gate episodes, two calls, as above.
    assert second.start.spent == {"resets": 28, "llm_calls": 2}
    assert "its run has 28 resets and 2 LLM calls" in second.start.line()


def test_a_start_from_an_unfinished_run_is_told(tmp_path, tuned):
    def stop(text):
        if text.startswith("evaluation"):
            raise KeyboardInterrupt

    short = {"replies": {}, "config": {"rounds": 0}}
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, tuned, **short, progress=stop)
    told = []
    run(tmp_path, tmp_path / "run", **short, name="second", progress=told.append)
    note = f"run {tmp_path / 'run'} is unfinished (status interrupted): round 0 is"
    assert any(line.startswith(note) for line in told)
    assert note in read_json(tmp_path / "second" / "manifest.json")["notes"][0]


@pytest.mark.parametrize("gain", ["0.7071", repr(GAIN)])
def test_the_program_as_shown_is_no_revision(tmp_path, tuned, gain):
    same = revise(gain).replace("(demand)", "(demand, std=0.1235)")
    if gain == repr(GAIN):
        same = same.replace("0.1235", repr(VALUES["std_push"]))
    outcome = run(tmp_path, tuned, {**AFTER, "round0/revise": same})
    assert (outcome.status, len(outcome.rounds)) == ("stopped:model", 1)
    assert "changed nothing" in outcome.reason


def demonstration(sign):
    x = np.linspace(-1, 1, 101, dtype=np.float32)
    return Demonstration(np.stack([x, np.zeros_like(x)], 1), sign * x[:, None], {})


def test_an_anchored_fit_is_held_to_the_policy(tmp_path, tuned):
    # A demonstrator who pushes the wrong way: the values as they were are the best.
    outcome = run(
        tmp_path,
        tuned,
        {},
        config={"rounds": 0, "fit": "anchored"},
        demonstration=demonstration(1),
    )
    first = outcome.rounds[0].candidate
    assert first.fit["chosen"] == len(first.fit["rows"]) - 1
    assert first.values["gain"] == pytest.approx(GAIN, abs=1e-6)


def test_a_fit_starts_from_the_policy_and_is_told_as_ever(tmp_path, tuned):
    outcome = run(
        tmp_path, tuned, config={"fit": "imitation"}, demonstration=demonstration(-1)
    )
    first = outcome.rounds[0].candidate
    moves = {row["name"]: row for row in first.fit["report"]["weights"]}
    assert moves["gain"]["start"] == pytest.approx(GAIN, abs=1e-6)
    assert first.values["gain"] == pytest.approx(1, abs=0.02)
    assert "(fitted values in place)" in prompts(outcome.run)["round0/tests"]


@pytest.mark.parametrize(
    ("std", "expected"),
    [
        ("0.1", "std=0.5"),
        ("fixed(0.1)", "std=fixed(0.5)"),
        ("abs(obs.x)", "std=max(abs(obs.x), 0.5)"),
    ],
)
def test_the_std_floor_of_a_trained_policy_goes_into_its_program(
    tmp_path, std, expected
):
    path = tmp_path / "noisy.json"
    program = parse(PROGRAM.replace("(demand)", f"(demand, std={std})"), SCHEMA)
    values = {p.name: p.initial for p in program.structure.parameters}
    save_policy(path, program, values, toy_task(), std_floor=0.5)
    outcome = run(tmp_path, path, {}, config={"rounds": 0})
    assert expected in outcome.rounds[0].candidate.text
    task, found = toy_task(), load_policy(path, toy_task())
    arm = found.policy, found.variables, task, task.seeds["test"]
    sampled = evaluate(*arm, mode="sampled", key=jax.random.key(0))
    assert outcome.sampled["values"] == pytest.approx(list(sampled.values), rel=1e-6)


def test_manifest_json_and_report_name_the_start(tmp_path, tuned):
    outcome = run(tmp_path, tuned)
    entry = outcome.as_dict()["start"]
    assert entry["path"] == str(tuned)
    assert entry["semantic_hash"] == read_json(tuned)["semantic_hash"]
    assert entry["spent"] is None
    assert read_json(outcome.run / "manifest.json")["start"] == entry
    page = (outcome.run / "report.html").read_text()
    assert f"started from {tuned} (its own resets and calls are not counted" in page
    assert "<span class=del>-gain = weight(0.7071," in page


def test_without_a_start_it_is_null(tmp_path):
    outcome = run(tmp_path, None, REPLIES, config={"rounds": 0})
    assert outcome.as_dict()["start"] is None


def test_a_resumed_run_does_not_read_the_policy_again(tmp_path, tuned):
    short = {"round0/tests": TESTS}
    assert run(tmp_path, tuned, short).status == "stopped:transcript"
    tuned.unlink()
    again = run(tmp_path, tuned, resume=True)
    assert again.status == "done"
    assert again.rounds[0].candidate.values == VALUES
    assert again.start.path == str(tuned)
    assert again.ledger.resets["gate"] == 20


def test_a_resumed_run_keeps_its_start(tmp_path, tuned):
    run(tmp_path, tuned, {"round0/tests": TESTS})
    with pytest.raises(StructjaxError, match=r"another config \(start: "):
        run(tmp_path, tmp_path / "other.json", resume=True)
    with pytest.raises(StructjaxError, match=r"start: .* there, None now"):
        run(tmp_path, None, resume=True)


def test_a_run_killed_before_it_has_its_start_reads_it_when_resumed(
    tmp_path, tuned, monkeypatch
):
    def killed(self, name, compute, form=object):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(RunDirectory, "step", killed)
        with pytest.raises(KeyboardInterrupt):
            run(tmp_path, tuned)
    assert run(tmp_path, tuned, resume=True).rounds[0].candidate.values == VALUES


def test_a_replay_is_started_from_the_same_policy(tmp_path, tuned):
    first = run(tmp_path, tuned)
    transcript = first.run / "llm.jsonl"
    again = run(tmp_path, tuned, ReplayModel(transcript, mode="strict"), name="again")
    assert again.evaluation == first.evaluation
    assert (again.ledger.llm_calls, again.ledger.replayed_calls) == (0, 2)
    with pytest.raises(StructjaxError, match="recorded from the policy") as caught:
        run(tmp_path, None, ReplayModel(transcript), name="without")
    assert str(tuned) in str(caught.value)
    assert caught.value.hint == f"name it: --start {tuned}"
    save_policy(tuned, parse(PROGRAM, SCHEMA), {**VALUES, "gain": 0.5}, toy_task())
    with pytest.raises(StructjaxError, match=r"another policy .* values hash"):
        run(tmp_path, tuned, ReplayModel(transcript), name="other")
    assert {p.name for p in tmp_path.iterdir() if p.is_dir()} == {"run", "again"}


def test_a_transcript_with_a_first_program_is_not_started_from_a_policy(
    tmp_path, tuned
):
    first = run(tmp_path, None, REPLIES, config={"rounds": 0})
    with pytest.raises(StructjaxError, match="a first program of its own") as caught:
        run(tmp_path, tuned, ReplayModel(first.run / "llm.jsonl"), name="other")
    assert "--model openai or manual" in caught.value.hint


def other_task(path):
    save_policy(path, parse(PROGRAM, SCHEMA), VALUES, toy_task())
    path.write_text(path.read_text().replace('"task": "toy"', '"task": "other"'))


def network(path):
    policy = MLPPolicy(SCHEMA, (4,))
    save_network(path, policy, policy.init(jax.random.key(0), np.zeros(2)), toy_task())


@pytest.mark.parametrize(
    ("write", "told"),
    [
        (lambda path: None, "cannot read .*policy.json: No such file"),
        (other_task, "policy.json was made for task 'other'"),
        (network, "policy.json is a network: it has no program"),
        (lambda path: path.write_text("{}"), "policy.json is not a saved policy"),
    ],
)
def test_what_cannot_be_started_from_is_refused_before_anything_is_written(
    tmp_path, write, told
):
    write(tmp_path / "policy.json")
    with pytest.raises(StructjaxError, match=told):
        run(tmp_path, tmp_path / "policy.json")
    assert not (tmp_path / "run").exists()


def test_a_policy_that_fails_in_its_episodes_is_one_clear_error(tmp_path):
    path = tmp_path / "failing.py"
    path.write_text(NAN)
    with pytest.raises(StructjaxError, match=r"cannot start from .*failing\.py: the"):
        run(tmp_path, path)
    assert read_json(tmp_path / "run" / "manifest.json")["status"] == "failed"


def test_the_same_policy_has_the_same_hashes(tmp_path, tuned):
    task = toy_task()
    facts = load_start(tuned, task).facts
    copy = tmp_path / "copy.json"
    save_policy(copy, parse(PROGRAM, SCHEMA), VALUES, task)
    other = load_start(copy, task).facts
    assert (facts.semantic_hash, facts.values_hash) == (
        other.semantic_hash,
        other.values_hash,
    )
    save_policy(copy, parse(PROGRAM, SCHEMA), {**VALUES, "gain": 0.5}, task)
    assert load_start(copy, task).facts.values_hash != facts.values_hash


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda r: r.update(program="x = "), "the program in .*start.json is refused"),
        (lambda r: r["values"].pop("gain"), r"start.json: the values do not belong"),
        (lambda r: r["values"].update(more=1.0), r"start.json: the values do not"),
        (lambda r: r["values"].update(gain=-1.0), r"start.json: weight 'gain' is -1.0"),
    ],
)
def test_a_kept_start_that_was_changed_is_told(tmp_path, tuned, change, told):
    directory = run(tmp_path, tuned, {"round0/tests": TESTS}).run
    path = directory / "checkpoints" / "start.json"
    record = read_json(path)
    change(record["result"])
    path.write_text(json.dumps(record))
    with pytest.raises(StructjaxError, match=told):
        run(tmp_path, tuned, resume=True)


def test_a_kept_fit_that_lacks_a_weight_is_told(tmp_path, tuned):
    directory = run(tmp_path, tuned, {"round0/tests": TESTS}).run
    path = directory / "checkpoints" / "r0_fit.json"
    record = read_json(path)
    del record["result"]["values"]["gain"]
    path.write_text(json.dumps(record))
    with pytest.raises(StructjaxError, match=r"r0_fit.json .*gain is missing"):
        run(tmp_path, tuned, resume=True)
