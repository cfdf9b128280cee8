"""A person, or any chat model, answers through files."""

import threading
import time

import pytest

from structjax.errors import StructjaxError
from structjax.llm.manual import ManualModel, ReplyPending, read_reply
from structjax.llm.model import Message, Request
from structjax.llm.recorded import RecordedModel
from structjax.llm.transcript import Transcript

CHAT = (
    Message("system", "You write programs."),
    Message("user", "Write one.\r\nSoon."),
    Message("assistant", "ACTION: test"),
    Message("user", "Findings: none.\ud800"),
)


def ask(slot: str = "round1/revise", chat: tuple[Message, ...] = CHAT) -> Request:
    return Request(slot, chat)


def quick(directory, **options) -> ManualModel:
    options = {"poll_seconds": 0.01, "settle_seconds": 0.0, **options}
    return ManualModel(directory, echo=lambda line: None, **options)


def reply_to(directory, name: str, text: str) -> None:
    (directory / f"{name}.reply.md").write_text(text)


def test_prompt_holds_everything_and_says_where_to_answer(tmp_path):
    lines = []
    model = ManualModel(tmp_path / "new" / "manual", wait=False, echo=lines.append)
    with pytest.raises(ReplyPending) as caught:
        model.complete(ask())
    prompt = tmp_path / "new" / "manual" / "001_round1_revise.prompt.md"
    text = prompt.read_text()
    places = [text.index(message.content[:10]) for message in CHAT]
    assert places == sorted(places)
    assert "message 1 of 4: system" in text
    assert "001_round1_revise.reply.md" in text.splitlines()[-1]
    assert str(tmp_path) not in text
    assert len(lines) == 1
    assert str(prompt) in lines[0]
    assert caught.value.exit_code == 75
    assert "--resume" in str(caught.value)
    assert list(prompt.parent.iterdir()) == [prompt]  # no partial file stays


def test_reply_is_read_once_it_has_settled(tmp_path):
    # The writer saves half of the reply, pauses, and saves the rest.
    def write() -> None:
        path = tmp_path / "001_generate.reply.md"
        while not list(tmp_path.glob("001_generate.prompt.md")):
            time.sleep(0.01)
        path.touch()
        time.sleep(0.05)
        with path.open("w") as file:
            for part in ("half ", "of it, ", "whole"):
                file.write(part)
                file.flush()
                time.sleep(0.1)

    writer = threading.Thread(target=write)
    writer.start()
    model = quick(tmp_path, settle_seconds=0.6)
    reply = model.complete(ask("generate"))
    writer.join()
    assert reply.text == "half of it, whole"
    assert reply.usage_estimated
    assert reply.output_tokens == 5  # 17 characters / 4, rounded up
    assert reply.latency_s > 0.6


def test_a_reply_that_is_there_is_not_asked_for_again(tmp_path):
    lines = []
    model = ManualModel(tmp_path, wait=False, settle_seconds=0.0, echo=lines.append)
    with pytest.raises(ReplyPending):
        model.complete(ask("a"))
    reply_to(tmp_path, "001_a", "yes")
    assert model.complete(ask("a")).text == "yes"
    assert len(lines) == 1


def test_white_space_is_no_reply(tmp_path):
    model = quick(tmp_path, wait=False)
    reply_to(tmp_path, "001_a", " \n")
    with pytest.raises(ReplyPending):
        model.complete(ask("a"))
    reply_to(tmp_path, "001_a", "yes")
    assert model.complete(ask("a")).text == "yes"


def test_the_wait_has_a_deadline(tmp_path):
    with pytest.raises(
        ReplyPending, match=r"no reply yet to .*write it to .*001_a\.reply\.md"
    ):
        quick(tmp_path, deadline_s=0.05).complete(ask("a"))


def test_numbers_go_on_and_a_waiting_prompt_is_taken_up_again(tmp_path):
    with pytest.raises(ReplyPending):
        quick(tmp_path, wait=False).complete(ask("generate"))
    # Another process, resumed: the same question keeps its number.
    reply_to(tmp_path, "001_generate", "one")
    resumed = quick(tmp_path, wait=False)
    assert resumed.complete(ask("generate")).text == "one"
    # A repair turn and a repeated question get new numbers.
    for number, slot in enumerate(("generate/repair1", "generate"), start=2):
        with pytest.raises(ReplyPending):
            resumed.complete(ask(slot))
        name = f"{number:03d}_{slot.replace('/', '_')}.prompt.md"
        assert (tmp_path / name).exists()


def test_a_slot_is_not_confused_with_the_end_of_another(tmp_path):
    reply_to(tmp_path, "001_round1_revise", "one")
    quick(tmp_path, wait=False).complete(ask("round1/revise"))
    with pytest.raises(ReplyPending):
        quick(tmp_path, wait=False).complete(ask("revise"))
    assert (tmp_path / "002_revise.prompt.md").exists()


def test_a_changed_question_gets_a_new_number(tmp_path):
    with pytest.raises(ReplyPending):
        quick(tmp_path, wait=False).complete(ask("a"))
    with pytest.raises(ReplyPending):
        quick(tmp_path, wait=False).complete(ask("a", CHAT[:2]))
    assert len(list(tmp_path.glob("*.prompt.md"))) == 2


def test_pending_run_resumes_through_its_transcript(tmp_path):
    path = tmp_path / "llm.jsonl"
    with pytest.raises(ReplyPending):
        RecordedModel(quick(tmp_path, wait=False), Transcript(path)).complete(ask("a"))
    reply_to(tmp_path, "001_a", "yes")
    model = quick(tmp_path, wait=False, answered_by="a friend")
    reply = RecordedModel(model, Transcript(path)).complete(ask("a"))
    assert (reply.text, reply.model) == ("yes", "a friend")
    assert Transcript(path).maybe_billed() == 0


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_replies_of_any_editor_are_read(tmp_path, encoding):
    # utf-16 is what redirection in PowerShell writes.
    (tmp_path / "r").write_bytes("naïve → ok".encode(encoding))
    assert read_reply(tmp_path / "r") == "naïve → ok"


def test_unwritable_directory_is_reported(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StructjaxError, match=r"cannot use .*file.*--resume"):
        quick(tmp_path / "file").complete(ask())
