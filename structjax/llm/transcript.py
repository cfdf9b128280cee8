"""The append-only record of every request, reply, outcome and finding of a run.

One JSON object a line (`llm.jsonl`), on disk before the next step is taken:

    {"v": 1, "kind": "header", "provider", "model", "task", ...}
    {"v": 1, "kind": "request", "slot", "key", "attempt", "req": {messages, ...}}
    {"v": 1, "kind": "response", "slot", "key", "attempt", "status", "text", ...}
    {"v": 1, "kind": "failure", "slot", "key", "attempt", "error", "attempts"}
    {"v": 1, "kind": "outcome", "slot", "outcome", "detail"}
    {"v": 1, "kind": "findings", "slot", "findings": [...]}
"""

import json
import os
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, NamedTuple

from structjax.errors import StructjaxError
from structjax.forms import Maybe, mismatch
from structjax.llm.model import Reply, Request, clean_text, redact, request_content
from structjax.manifest import START

VERSION = 1
_TRIES = Maybe([{"maybe_billed": bool}])
_PLACE = {"slot": str, "attempt": int}
_MESSAGE = {"role": str, "content": str}
FORMS: dict[str, dict[str, Any]] = {
    "header": {
        "task": Maybe(str),
        "model": Maybe(str),
        "provider": Maybe(str),
        "start": Maybe(START),
    },
    "request": {**_PLACE, "key": str, "req": {"messages": Maybe([_MESSAGE])}},
    "response": {
        **_PLACE,
        "key": str,
        "status": str,
        "text": str,
        "input_tokens": Maybe(int),
        "output_tokens": Maybe(int),
        "usage_estimated": Maybe(bool),
        "latency_s": Maybe(float),
        "model": Maybe(str),
        "raw_usage": Maybe(dict),
        "attempts": _TRIES,
    },
    "failure": {**_PLACE, "error": str, "attempts": _TRIES},
    "outcome": {"slot": str, "outcome": str},
    "findings": {"slot": str, "findings": [dict]},
}
FREE_PROVIDERS = ("manual", "replay", "scripted")  # cost nothing when interrupted


class Content(NamedTuple):
    """What a transcript file holds.

    Attributes:
      header: its first line, empty when there is none.
      records: the other lines, in order.
      whole_bytes: length of the file without a torn last line.
    """

    header: dict[str, Any]
    records: list[dict[str, Any]]
    whole_bytes: int


class Call(NamedTuple):
    """One recorded call: the reply, and the request that led to it."""

    slot: str
    key: str
    reply: Reply
    request: dict[str, Any]


def read_transcript(path: Path | str) -> Content:
    """The content of a transcript file; the file is not changed.

    Raises:
      StructjaxError: it cannot be read, or a line other than the last is damaged.
    """
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise StructjaxError(
            f"cannot read the transcript {path} ({error.strerror or error})",
            kind="transcript",
            hint="give the path of an existing .jsonl transcript",
        ) from error
    lines = data.split(b"\n")
    tail = lines.pop()
    whole = len(data) - len(tail)
    if _decode(tail) is not None:  # complete but for its newline
        lines.append(tail)
        whole = len(data)
    records: list[dict[str, Any]] = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        record = _decode(line)
        if problem := _problem(record):
            raise _damaged(path, number, problem)
        records.append(dict(record))
    if records and records[0]["kind"] == "header":
        return Content(_known(path, records[0]), records[1:], whole)
    return Content({}, records, whole)


def calls_by_slot(records: Iterable[Mapping[str, Any]]) -> dict[str, list[Call]]:
    """Recorded calls with a reply, in order, under their slot."""
    calls: dict[str, list[Call]] = {}
    asked: dict[str, dict[str, Any]] = {}
    for record in records:
        if record["kind"] == "request":
            asked[record["slot"]] = dict(record["req"])
        elif record["kind"] == "response":
            slot = record["slot"]
            call = Call(slot, record["key"], _reply(record), asked.get(slot, {}))
            calls.setdefault(slot, []).append(call)
    return calls


class Transcript:
    """A run's own transcript, open for appending.

    Opening repairs a torn last line; `header` is written when the file is new.
    """

    def __init__(
        self, path: Path | str, *, header: Mapping[str, Any] | None = None
    ) -> None:
        self.path = Path(path)
        self._lock = threading.Lock()
        self._records: list[dict[str, Any]] = []
        self.header: dict[str, Any] = {}
        if self.path.exists():
            self.header, self._records, whole = read_transcript(self.path)
            self._cut(whole)
        if not self.header and not self._records:
            self.header = self._append("header", **dict(header or {}))

    def calls(self) -> dict[str, list[Call]]:
        """Recorded calls with a reply, in order, under their slot."""
        return calls_by_slot(self._records)

    def findings(self, slot: str) -> list[dict[str, Any]] | None:
        """The findings recorded last under a slot; None when there are none."""
        return last_findings(self._records, slot)

    def outcomes(self, slot: str) -> tuple[str, ...]:
        """What became of the replies of a slot, in order."""
        return tuple(
            record["outcome"]
            for record in self._records
            if record["kind"] == "outcome" and record["slot"] == slot
        )

    def attempts(self, slot: str) -> int:
        """How often a slot's request was sent."""
        return sum(r["kind"] == "request" and r["slot"] == slot for r in self._records)

    def open_requests(self) -> tuple[tuple[str, int], ...]:
        """(slot, attempt) of requests that a kill left without reply or failure."""
        waiting: dict[tuple[str, int], None] = {}
        for record in self._records:
            if record["kind"] == "request":
                waiting[record["slot"], record["attempt"]] = None
            elif record["kind"] in ("response", "failure"):
                waiting.pop((record["slot"], record["attempt"]), None)
        return tuple(waiting)

    def maybe_billed(self) -> int:
        """Calls that may have been paid without a reply: killed or cut off."""
        lost = [one for one in self.open_requests() if not self._free(*one)]
        tries = (one for r in self._records for one in r.get("attempts") or ())
        return len(lost) + sum(bool(one["maybe_billed"]) for one in tries)

    def record_request(
        self, slot: str, key: str, attempt: int, request: Request, provider: str = ""
    ) -> None:
        """Records a request; call it before sending."""
        content = request_content(request)
        self._append(
            "request",
            slot=slot,
            key=key,
            attempt=attempt,
            provider=provider,
            req=content,
        )

    def record_reply(self, slot: str, key: str, attempt: int, reply: Reply) -> None:
        """Records what came back, whole or not."""
        self._append("response", slot=slot, key=key, attempt=attempt, **asdict(reply))

    def record_failure(
        self,
        slot: str,
        key: str,
        attempt: int,
        error: str,
        *,
        attempts: Sequence[Any] = (),
    ) -> None:
        """Records a call that ended without a reply, with the provider's tries."""
        tries = [asdict(one) for one in attempts]
        self._append(
            "failure", slot=slot, key=key, attempt=attempt, error=error, attempts=tries
        )

    def record_outcome(self, slot: str, outcome: str, detail: str = "") -> None:
        """Records what became of a reply: accepted, rejected..., malformed."""
        self._append("outcome", slot=slot, outcome=outcome, detail=detail)

    def record_findings(self, slot: str, findings: Sequence[Mapping[str, Any]]) -> None:
        """Records the output of a slot's diagnostics."""
        self._append("findings", slot=slot, findings=[dict(one) for one in findings])

    def _free(self, slot: str, attempt: int) -> bool:
        """Whether a request went to a provider that charges nothing."""
        return any(
            r.get("provider") in FREE_PROVIDERS
            for r in self._records
            if r["kind"] == "request" and (r["slot"], r["attempt"]) == (slot, attempt)
        )

    def _cut(self, whole: int) -> None:
        """Removes a torn tail from the file, or completes a lost last newline."""
        try:
            with self.path.open("r+b", buffering=0) as file:
                file.truncate(whole)
                file.seek(max(whole - 1, 0))
                if whole and file.read(1) != b"\n":
                    file.write(b"\n")
                os.fsync(file.fileno())
        except OSError as error:
            raise _unwritable(self.path, error) from error

    def _append(self, kind: str, **content: Any) -> dict[str, Any]:
        """Writes one record and waits until it is on disk."""
        record = _plain({"v": VERSION, "kind": kind, **content, "t": _now()})
        line = json.dumps(record, allow_nan=False).encode() + b"\n"
        with self._lock:
            try:
                append_line(self.path, line)
            except OSError as error:
                raise _unwritable(self.path, error) from error
            if kind != "header":
                self._records.append(record)
        return record


def append_line(path: Path, line: bytes) -> None:
    """Appends a line and waits until it is on disk; on failure none of it stays.

    Raises:
      OSError: the disk is full or the file cannot be written.
    """
    # Unbuffered: a buffer would write the rest of a failed line at closing.
    with path.open("ab", buffering=0) as file:
        start = os.fstat(file.fileno()).st_size
        try:
            rest = memoryview(line)
            while rest:
                rest = rest[file.write(rest) :]
            os.fsync(file.fileno())
        except OSError:
            file.truncate(start)
            raise


def last_findings(
    records: Iterable[Mapping[str, Any]], slot: str
) -> list[dict[str, Any]] | None:
    """The findings recorded last under a slot; None when there are none."""
    found = None
    for record in records:
        if record["kind"] == "findings" and record["slot"] == slot:
            found = [dict(one) for one in record["findings"]]
    return found


def _decode(line: bytes) -> Any:
    """The value of a line, or None when it is not JSON."""
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _problem(record: Any) -> str:
    """Why a value is no record; empty when it is one."""
    if problem := mismatch(record, {"kind": str}):
        return problem
    return mismatch(record, FORMS.get(record["kind"], {}))


def _known(path: Path | str, header: dict[str, Any]) -> dict[str, Any]:
    """The header, when this version reads its format."""
    if header.get("v") != VERSION:
        raise StructjaxError(
            f"the transcript {path} has format {header.get('v')!r}",
            kind="transcript",
            hint=f"this version of structjax reads format {VERSION}",
        )
    return header


def _damaged(path: Path | str, number: int, problem: str) -> StructjaxError:
    return StructjaxError(
        f"line {number} of the transcript {path} is not a record ({problem})",
        kind="transcript",
        hint="restore the file, or cut it before that line and resume from there",
    )


def _unwritable(path: Path, error: OSError) -> StructjaxError:
    return StructjaxError(
        f"cannot write the transcript {path} ({error.strerror or error})",
        kind="disk",
        hint="free disk space or make the directory writable, then --resume the run",
    )


def _reply(record: Mapping[str, Any]) -> Reply:
    """The reply in a response record; its tries stay in the file."""
    names = {one.name for one in fields(Reply)} - {"attempts"}
    return Reply(**{name: record[name] for name in names if name in record})


def _plain(value: Any) -> Any:
    """Data that JSON takes: text clean and without secrets, NaN and inf as null."""
    if isinstance(value, str):
        return redact(clean_text(value))
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and value - value != 0.0:
        return None
    return value


def _now() -> str:
    """UTC, to the second."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
