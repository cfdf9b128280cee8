"""Nothing is asked twice; a shipped transcript answers by slot or not at all."""

import pytest

from structjax.errors import StructjaxError
from structjax.llm.model import (
    Attempt,
    LLMUnavailable,
    Message,
    Reply,
    Request,
)
from structjax.llm.recorded import RecordedModel
from structjax.llm.replay import ReplayModel, TranscriptExhausted, TranscriptMismatch
from structjax.llm.scripted import ScriptedModel
from structjax.llm.transcript import Transcript, read_transcript

SLOTS = ("generate", "round1/tests", "round1/revise", "round2/tests", "round2/revise")


def ask(slot: str, text: str = "?") -> Request:
    return Request(slot, (Message("system", "You steer."), Message("user", text)))


def answer(request: Request) -> str:
    return f"reply to {request.slot}"


@pytest.fixture
def shipped(tmp_path):
    """A finished run's transcript."""
    path = tmp_path / "shipped.jsonl"
    transcript = Transcript(path, header={"provider": "manual", "model": "Big 1"})
    model = RecordedModel(ScriptedModel(answer), transcript)
    for slot in SLOTS:
        model.complete(ask(slot, f"line one\nasked in {slot}"))
    transcript.record_findings("round1/tests", [{"name": "check_a"}])
    return path


def own(tmp_path) -> Transcript:
    return Transcript(tmp_path / "llm.jsonl")


def test_a_killed_run_goes_on_without_asking_again(tmp_path):
    def killed_in_round_2(request: Request) -> str:
        if request.slot == "round2/tests":
            raise KeyboardInterrupt
        return answer(request)

    first = ScriptedModel(killed_in_round_2)
    model = RecordedModel(first, own(tmp_path))
    replies = [model.complete(ask(slot)) for slot in SLOTS[:3]]
    with pytest.raises(KeyboardInterrupt):
        model.complete(ask(SLOTS[3]))

    second = ScriptedModel(answer)
    resumed = RecordedModel(second, own(tmp_path))
    again = [resumed.complete(ask(slot)) for slot in SLOTS]
    assert again[:3] == replies  # the ledger of the resumed run sees the same usage
    assert [request.slot for request in second.requests] == list(SLOTS[3:])
    assert resumed.transcript.attempts("round2/tests") == 2


def test_a_changed_prompt_does_not_pay_again(tmp_path):
    RecordedModel(ScriptedModel(["one"]), own(tmp_path)).complete(ask("generate"))
    resumed = RecordedModel(ScriptedModel([]), own(tmp_path))
    assert resumed.complete(ask("generate", "changed")).text == "one"
    assert resumed.notes == ("generate: the prompt changed in 2 lines",)


def test_one_slot_may_be_asked_several_times(tmp_path):
    model = RecordedModel(ScriptedModel(["one", "two"]), own(tmp_path))
    assert [model.complete(ask("a")).text for _ in range(2)] == ["one", "two"]
    resumed = RecordedModel(ScriptedModel(["three"]), own(tmp_path))
    texts = [resumed.complete(ask("a")).text for _ in range(3)]
    assert texts == ["one", "two", "three"]


def test_a_failed_call_is_recorded_with_its_tries_and_sent_again(tmp_path):
    tries = (Attempt(1, "timeout", 5.0, maybe_billed=True, detail="late"),)

    class Failing(ScriptedModel):
        def complete(self, request: Request) -> Reply:
            raise LLMUnavailable("no reply", attempts=tries)

    model = RecordedModel(Failing([]), own(tmp_path))
    with pytest.raises(LLMUnavailable):
        model.complete(ask("a"))
    transcript = own(tmp_path)
    assert transcript.open_requests() == ()
    assert transcript.maybe_billed() == 1
    assert read_transcript(transcript.path).records[-1]["attempts"][0]["detail"] == (
        "late"
    )
    # The same process may ask again, and so may the next.
    resumed = RecordedModel(ScriptedModel(["one"]), transcript)
    assert resumed.complete(ask("a")).text == "one"


def test_slot_mode_answers_as_recorded_and_notes_changes(shipped, tmp_path):
    source = ReplayModel(shipped)
    assert source.description["model"] == "Big 1"
    assert source.description["recorded_provider"] == "manual"
    model = RecordedModel(source, own(tmp_path))
    reply = model.complete(ask("generate", "line one\nasked differently\nand more"))
    assert reply.text == "reply to generate"
    assert reply.replayed
    # one line replaced (- and +), one added
    assert model.notes == ("generate: the prompt changed in 3 lines",)
    assert model.findings("round1/tests") == [{"name": "check_a"}]
    assert model.findings("round2/tests") is None
    with pytest.raises(TranscriptExhausted, match="no reply for the slot 'round9/x'"):
        model.complete(ask("round9/x"))
    assert model.unused_slots() == SLOTS[1:]


def test_unused_slots_do_not_name_those_used_before_a_resume(shipped, tmp_path):
    for slot in SLOTS[:2]:
        model = RecordedModel(ReplayModel(shipped), own(tmp_path))
        model.complete(ask(slot))
    assert model.unused_slots() == SLOTS[2:]


def test_the_runs_own_findings_come_first(shipped, tmp_path):
    transcript = own(tmp_path)
    transcript.record_findings("round1/tests", [{"name": "own"}])
    model = RecordedModel(ReplayModel(shipped), transcript)
    assert model.findings("round1/tests") == [{"name": "own"}]


def test_strict_mode_names_the_slot_and_shows_the_difference(shipped, tmp_path):
    source = ReplayModel(shipped, "strict")
    model = RecordedModel(source, own(tmp_path))
    same = ask("generate", "line one\nasked in generate")
    assert model.complete(same).text == "reply to generate"
    longer = "\n".join(["line one", *(f"new {n}" for n in range(20))])
    with pytest.raises(TranscriptMismatch, match="slot 'round1/tests'") as caught:
        model.complete(ask("round1/tests", longer))
    lines = caught.value.diff.split("\n")
    assert lines[:2] == ["- asked in round1/tests", "+ new 0"]
    assert len(lines) == 6
    assert model.complete(ask("round1/tests", "line one\nasked in round1/tests"))


def test_strict_mode_also_guards_a_resumed_run(shipped, tmp_path):
    source = ReplayModel(shipped, "strict")
    asked = ask("generate", "line one\nasked in generate")
    RecordedModel(source, own(tmp_path)).complete(asked)
    resumed = RecordedModel(ReplayModel(shipped, "strict"), own(tmp_path))
    with pytest.raises(TranscriptMismatch):
        resumed.complete(ask("generate"))


def test_extend_goes_live_where_the_transcript_ends(shipped, tmp_path):
    live = ScriptedModel({"round3/tests": "new"})
    source = ReplayModel(shipped)
    model = RecordedModel(live, own(tmp_path), source=source)
    replies = [model.complete(ask(slot)) for slot in (*SLOTS, "round3/tests")]
    assert [reply.replayed for reply in replies] == [True] * 5 + [False]
    assert len(live.requests) == 1
    # The run's own transcript holds all of it and is a source in its turn.
    alone = ReplayModel(tmp_path / "llm.jsonl")
    assert alone.complete(ask("round3/tests")).text == "new"


def test_incomplete_replies_are_replayed_as_they_were(tmp_path):
    script = ScriptedModel([Reply(text="half", status="truncated", raw_usage={"x": 1})])
    RecordedModel(script, own(tmp_path)).complete(ask("a"))
    reply = ReplayModel(tmp_path / "llm.jsonl").complete(ask("a"))
    assert (reply.status, reply.text, reply.raw_usage) == (
        "truncated",
        "half",
        {"x": 1},
    )


def test_an_unknown_replay_mode_is_refused(shipped):
    with pytest.raises(StructjaxError, match="use slot or strict"):
        ReplayModel(shipped, "live")


def test_scripts_end_like_transcripts():
    assert ScriptedModel(["one"]).complete(ask("a")).usage_estimated
    assert ScriptedModel({"a": " "}).complete(ask("a")).status == "empty"
    # ceil(10/4) + ceil(1/4) = 4 input tokens, ceil(3/4) = 1 output token
    reply = ScriptedModel(lambda request: "one").complete(ask("a"))
    assert (reply.input_tokens, reply.output_tokens) == (4, 1)
    for script in ([], {"b": "two"}):
        with pytest.raises(TranscriptExhausted, match="slot 'a'"):
            ScriptedModel(script).complete(ask("a"))
