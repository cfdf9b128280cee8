"""Replies from a recorded transcript: no key, no network, the same decisions."""

import difflib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from structjax.errors import StructjaxError
from structjax.llm.model import Reply, Request, request_content, request_key
from structjax.llm.transcript import (
    Call,
    calls_by_slot,
    last_findings,
    read_transcript,
)

ReplayMode = Literal["slot", "strict"]
DIFF_LINES = 6
_WIDTH = 120


class TranscriptExhausted(StructjaxError):
    """The transcript holds no reply for a slot: the run ends as `stopped:transcript`.

    Attributes:
      slot: the slot that was asked for.
    """

    def __init__(self, slot: str, source: str) -> None:
        super().__init__(
            f"{source} holds no reply for the slot {slot!r}",
            kind="transcript",
            hint="use --model openai or manual to go beyond the recorded run",
        )
        self.slot = slot


class TranscriptMismatch(StructjaxError):
    """In strict mode, the request differs from the recorded one.

    Attributes:
      slot: the slot that was asked for.
      diff: the first differing lines.
    """

    def __init__(self, slot: str, diff: str) -> None:
        super().__init__(
            f"the request of the slot {slot!r} is not the recorded one:\n{diff}\n",
            kind="transcript",
            hint="replay it in mode slot, or record it anew",
        )
        self.slot = slot
        self.diff = diff


class ReplayModel:
    """Answers from a transcript file, slot by slot.

    Attributes:
      mode: `strict`: a request must be the recorded one; `slot`: a changed prompt is
        noted and answered as recorded.
      notes: one line for each changed prompt.
    """

    def __init__(self, path: Path | str, mode: ReplayMode = "slot") -> None:
        if mode not in ("slot", "strict"):
            raise StructjaxError(
                f"unknown replay mode {mode!r}", kind="llm", hint="use slot or strict"
            )
        content = read_transcript(path)
        self.mode = mode
        self.name = Path(path).name
        self.header: Mapping[str, Any] = content.header
        self.notes: list[str] = []
        self._records = content.records
        self._calls = calls_by_slot(content.records)
        self._served: dict[str, int] = {}

    @property
    def description(self) -> dict[str, str]:
        """What answered when the transcript was recorded."""
        return {
            "provider": "replay",
            "model": str(self.header.get("model", "unknown")),
            "recorded_provider": str(self.header.get("provider", "unknown")),
            "transcript": self.name,
            "mode": self.mode,
        }

    def complete(self, request: Request) -> Reply:
        """The next recorded reply of the request's slot.

        Raises:
          TranscriptExhausted: there is none.
          TranscriptMismatch: in strict mode, the request differs.
        """
        return self.answer(request, self._served.get(request.slot, 0))

    def answer(self, request: Request, occurrence: int) -> Reply:
        """The reply recorded for one occurrence (0 for the first) of a slot."""
        calls = self._calls.get(request.slot, [])
        if occurrence >= len(calls):
            raise TranscriptExhausted(request.slot, f"the transcript {self.name}")
        call = calls[occurrence]
        check_request(request, call, strict=self.mode == "strict", notes=self.notes)
        self._served[request.slot] = occurrence + 1
        return replace(call.reply, replayed=True)

    def answers(self, slot: str) -> bool:
        """Whether a reply is recorded under a slot."""
        return slot in self._calls

    def findings(self, slot: str) -> list[dict[str, Any]] | None:
        """The recorded output of a slot's diagnostics; None when there is none."""
        return last_findings(self._records, slot)

    def unused_slots(self) -> tuple[str, ...]:
        """Slots with recorded replies that were not asked for, in order."""
        return tuple(
            slot
            for slot, calls in self._calls.items()
            if self._served.get(slot, 0) < len(calls)
        )


def check_request(
    request: Request, call: Call, *, strict: bool, notes: list[str]
) -> None:
    """Compares a request with the recorded one; a difference is noted or raised.

    Raises:
      TranscriptMismatch: they differ and `strict` is set.
    """
    if request_key(request) == call.key:
        return
    lines = changed_lines(call.request, request_content(request))
    if strict:
        raise TranscriptMismatch(request.slot, "\n".join(lines[:DIFF_LINES]))
    notes.append(f"{request.slot}: the prompt changed in {len(lines)} lines")


def changed_lines(
    recorded: Mapping[str, Any], asked: Mapping[str, Any]
) -> tuple[str, ...]:
    """Lines of two requests that differ: `- ` as recorded, `+ ` as asked."""
    diff = difflib.unified_diff(_lines(recorded), _lines(asked), n=0, lineterm="")
    kept = [line for line in diff if not line.startswith(("---", "+++", "@@"))]
    return tuple(f"{line[0]} {line[1:]}"[:_WIDTH] for line in kept)


def _lines(content: Mapping[str, Any]) -> list[str]:
    """A request as lines of text."""
    lines = [f"max_output_tokens: {content.get('max_output_tokens')}"]
    for message in content.get("messages") or ():
        lines += f"[{message['role']}] {message['content']}".split("\n")
    return lines
