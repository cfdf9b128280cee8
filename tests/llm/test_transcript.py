"""The transcript survives kills, full disks and hands that edit it."""

import errno
import json
import os

import pytest

from structjax.errors import StructjaxError
from structjax.llm import transcript as module
from structjax.llm.model import Attempt, Message, Reply, Request, request_key
from structjax.llm.transcript import Transcript, read_transcript


def ask(slot: str, text: str = "?") -> Request:
    return Request(slot, (Message("system", "You steer."), Message("user", text)))


def record(transcript: Transcript, slot: str, text: str) -> None:
    request = ask(slot)
    key = request_key(request)
    transcript.record_request(slot, key, 1, request)
    transcript.record_reply(slot, key, 1, Reply(text=text, input_tokens=3))


def replies(transcript: Transcript, slot: str) -> list[Reply]:
    return [call.reply for call in transcript.calls().get(slot, ())]


def test_records_come_back(tmp_path):
    path = tmp_path / "llm.jsonl"
    first = Transcript(path, header={"provider": "manual", "model": "m", "task": "car"})
    record(first, "generate", "one")
    first.record_outcome("generate", "accepted")
    first.record_findings("round1/tests", [{"name": "check_a", "seconds": 0.5}])
    again = Transcript(path)
    assert again.header["model"] == "m"
    assert again.header["v"] == 1
    assert replies(again, "generate") == [Reply(text="one", input_tokens=3)]
    assert replies(again, "round1/tests") == []
    assert again.outcomes("generate") == ("accepted",)
    assert again.findings("round1/tests") == [{"name": "check_a", "seconds": 0.5}]
    assert again.findings("generate") is None
    kinds = [json.loads(line)["kind"] for line in path.read_text().splitlines()]
    assert kinds == ["header", "request", "response", "outcome", "findings"]


def test_replies_of_one_slot_keep_their_order(tmp_path):
    transcript = Transcript(tmp_path / "llm.jsonl")
    record(transcript, "a", "one")
    record(transcript, "a", "two")
    texts = [r.text for r in replies(Transcript(tmp_path / "llm.jsonl"), "a")]
    assert texts == ["one", "two"]


@pytest.mark.parametrize("cut", [1, 7, 60])
def test_torn_tail_is_dropped_and_cut_off(tmp_path, cut):
    path = tmp_path / "llm.jsonl"
    transcript = Transcript(path)
    record(transcript, "a", "one")
    whole = path.read_bytes()
    transcript.record_outcome("a", "accepted")
    line = path.read_bytes()[len(whole) :]
    path.write_bytes(whole + line[:cut])
    again = Transcript(path)
    assert again.outcomes("a") == ()
    assert path.read_bytes() == whole
    again.record_outcome("a", "malformed")
    assert Transcript(path).outcomes("a") == ("malformed",)


def test_a_complete_last_line_without_newline_is_kept(tmp_path):
    # A prefix of a JSON object is never JSON, so the line must be whole.
    path = tmp_path / "llm.jsonl"
    record(Transcript(path), "a", "one")
    path.write_bytes(path.read_bytes().rstrip(b"\n"))
    Transcript(path).record_outcome("a", "accepted")
    assert Transcript(path).outcomes("a") == ("accepted",)
    assert len(replies(Transcript(path), "a")) == 1


def test_reading_changes_nothing(tmp_path):
    path = tmp_path / "llm.jsonl"
    record(Transcript(path), "a", "one")
    torn = path.read_bytes() + b'{"v": 1, "ki'
    path.write_bytes(torn)
    path.chmod(0o444)
    content = read_transcript(path)
    assert len(content.records) == 2
    assert path.read_bytes() == torn


RESPONSE = {
    **{"v": 1, "kind": "response", "slot": "generate", "key": "k", "attempt": 1},
    **{"status": "ok", "text": "x", "input_tokens": 1},
}


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"text": None}, "text is null, a text is accepted"),
        ({"text": ["a"]}, "text is a list"),
        ({"slot": 3}, "slot is 3"),
        ({"slot": []}, "slot is a list"),
        ({"kind": ["response"]}, "kind is a list"),
        ({"kind": None}, "kind is null"),
        ({"input_tokens": -5}, "input_tokens is -5, a whole number of at least 0"),
        ({"input_tokens": "many"}, "input_tokens is 'many'"),
        ({"input_tokens": float("nan")}, "input_tokens is nan"),
        ({"output_tokens": 1.5}, "output_tokens is 1.5"),
        ({"raw_usage": 3}, "raw_usage is 3"),
        ({"kind": "request", "req": None}, "req is null"),
        ({"kind": "request", "req": {"messages": [3]}}, r"req.messages\[0\] is 3"),
        ({"kind": "findings", "findings": 3}, "findings is 3"),
        ({"kind": "header", "task": 3}, "task is 3"),
    ],
)
@pytest.mark.parametrize("end", ["\n", ""])  # whole JSON is no torn line
def test_a_record_of_another_form_is_named_with_what_is_accepted(
    tmp_path, change, problem, end
):
    path = tmp_path / "t.jsonl"
    path.write_text(json.dumps(RESPONSE | change) + end)
    before = path.read_bytes()
    with pytest.raises(StructjaxError, match=f"line 1 .*{problem}") as refused:
        Transcript(path)
    assert "\n" not in str(refused.value)
    assert path.read_bytes() == before


def test_a_line_nested_too_deeply_is_damaged(tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_text("[" * 100_000 + "\n")
    with pytest.raises(StructjaxError, match="line 1 "):
        read_transcript(path)


@pytest.mark.parametrize("bad", [b"{oops\n", b"[1]\n", b'{"kind": "response"}\n'])
def test_damaged_middle_line_is_named(tmp_path, bad):
    path = tmp_path / "llm.jsonl"
    record(Transcript(path), "a", "one")
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([lines[0], bad, *lines[1:]]))
    with pytest.raises(StructjaxError, match="line 2 of the transcript"):
        Transcript(path)


def test_editors_may_change_line_ends_and_add_blank_lines(tmp_path):
    path = tmp_path / "llm.jsonl"
    record(Transcript(path), "a", "one")
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n\r\n"))
    assert len(replies(Transcript(path), "a")) == 1


def test_missing_and_newer_transcripts(tmp_path):
    with pytest.raises(StructjaxError, match="cannot read the transcript"):
        read_transcript(tmp_path / "none.jsonl")
    (tmp_path / "new.jsonl").write_text('{"v": 2, "kind": "header"}\n')
    with pytest.raises(StructjaxError, match="format 2; this version"):
        read_transcript(tmp_path / "new.jsonl")


def test_full_disk_leaves_no_half_line(tmp_path, monkeypatch):
    path = tmp_path / "llm.jsonl"
    transcript = Transcript(path)
    record(transcript, "a", "one")
    before = path.read_bytes()

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(module.os, "fsync", full)
    with pytest.raises(StructjaxError, match=r"No space left.*--resume"):
        transcript.record_outcome("a", "accepted")
    assert path.read_bytes() == before
    assert transcript.outcomes("a") == ()


def test_unwritable_place_is_reported(tmp_path):
    with pytest.raises(StructjaxError, match=r"cannot write the transcript.*writable"):
        Transcript(tmp_path / "missing" / "llm.jsonl")


def test_numbers_that_json_lacks_become_null(tmp_path):
    path = tmp_path / "llm.jsonl"
    values = {"a": float("nan"), "b": [float("inf"), 1.5]}
    Transcript(path).record_findings("s", [values])
    assert Transcript(path).findings("s") == [{"a": None, "b": [None, 1.5]}]


def test_secrets_and_surrogates_stay_out(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "a-very-secret-gateway-key")
    path = tmp_path / "llm.jsonl"
    transcript = Transcript(path)
    text = (
        "sk-proj-abcdefghijkl0123 Bearer abcdefghijklmnop0123 "
        "a-very-secret-gateway-key \ud800 sk-learn"
    )
    transcript.record_failure("a", "k", 1, text)
    stored = path.read_text()
    for secret in ("sk-proj", "abcdefghijklmnop", "gateway-key"):
        assert secret not in stored
    assert "[redacted] [redacted] [redacted] ? sk-learn" in stored


def test_maybe_billed_calls_are_counted(tmp_path):
    transcript = Transcript(tmp_path / "llm.jsonl")
    # Killed between sending and recording: one at a provider that charges.
    transcript.record_request("a", "k", 1, ask("a"), "openai")
    transcript.record_request("b", "k", 1, ask("b"), "manual")
    assert transcript.open_requests() == (("a", 1), ("b", 1))
    assert transcript.maybe_billed() == 1
    # A reply after a timeout: the timed-out try may have been billed.
    tries = (Attempt(1, "timeout", 9.0, True), Attempt(2, "ok", 1.0))
    transcript.record_request("a", "k", 2, ask("a"), "openai")
    transcript.record_reply("a", "k", 2, Reply(text="x", attempts=tries))
    assert Transcript(tmp_path / "llm.jsonl").maybe_billed() == 2
    assert transcript.attempts("a") == 2
