"""Prompts out as files, replies in as files: any chat model, or a person."""

import codecs
import os
import re
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from structjax.errors import StructjaxError
from structjax.llm.model import (
    LLMUnavailable,
    Reply,
    Request,
    clean_text,
    estimate_usage,
)

_NUMBER = re.compile(r"(\d+)_.*\.prompt\.md", re.ASCII)


class ReplyPending(LLMUnavailable):
    """The prompt is written and its reply is not there yet; resume when it is."""

    exit_code = 75  # "try again later": EX_TEMPFAIL of sysexits.h

    def __init__(self, prompt: Path, reply: Path) -> None:
        super().__init__(
            f"no reply yet to {prompt}",
            kind="pending",
            hint=f"write it to {reply}, then --resume the run",
            code="pending",
        )


def _to_stderr(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


class ManualModel:
    """Writes `NNN_slot.prompt.md` and reads `NNN_slot.reply.md` beside it.

    An unanswered prompt of an earlier process is taken up again under its number
    when nothing in it changed; otherwise numbers go on where they ended.
    """

    def __init__(
        self,
        directory: Path | str,
        *,
        poll_seconds: float = 0.5,
        settle_seconds: float = 1.0,
        wait: bool = True,
        deadline_s: float | None = None,
        answered_by: str = "manual",
        echo: Callable[[str], None] = _to_stderr,
    ) -> None:
        """Prepares a directory of prompts and replies.

        Args:
          directory: where the files go; made when missing.
          poll_seconds: time between two looks.
          settle_seconds: how long a reply's size must not change: editors and
            downloads write in pieces.
          wait: False raises `ReplyPending` instead of waiting.
          deadline_s: longest wait for one reply; None waits forever.
          answered_by: who or what answers, for headers and manifests.
          echo: receives one line per prompt, with its path; default: stderr.
        """
        self.directory = Path(directory)
        self.answered_by = answered_by
        self._poll_seconds = poll_seconds
        self._settle_seconds = settle_seconds
        self._wait = wait
        self._deadline_s = deadline_s
        self._echo = echo
        self._answered: set[Path] = set()

    @property
    def description(self) -> dict[str, str]:
        """What answers."""
        return {"provider": "manual", "model": self.answered_by}

    def complete(self, request: Request) -> Reply:
        """Writes the prompt and reads the reply, usage estimated.

        Raises:
          ReplyPending: without `wait`, or after the deadline.
          StructjaxError: the directory cannot be written.
        """
        started = time.monotonic()
        try:
            prompt = self._prompt(request)
            text = self._await(prompt)
        except OSError as error:
            raise StructjaxError(
                f"cannot use {self.directory} ({error.strerror or error})",
                kind="llm",
                hint="make it writable or free disk space, then --resume the run",
            ) from error
        self._answered.add(prompt)
        asked, answered = estimate_usage(request, text)
        return Reply(
            text=text,
            input_tokens=asked,
            output_tokens=answered,
            usage_estimated=True,
            model=self.answered_by,
            latency_s=time.monotonic() - started,
        )

    def _prompt(self, request: Request) -> Path:
        """The prompt's file: one that waits already, or a new one."""
        self.directory.mkdir(parents=True, exist_ok=True)
        name = re.sub(r"[^A-Za-z0-9.-]+", "_", request.slot)
        for path in sorted(self.directory.glob(f"*_{name}.prompt.md")):
            same_slot = re.fullmatch(rf"\d+_{re.escape(name)}\.prompt\.md", path.name)
            text = prompt_text(request, reply_path(path).name).encode()
            fresh = path not in self._answered
            if same_slot and fresh and path.read_bytes() == text:
                return path
        path = self.directory / f"{self._next_number():03d}_{name}.prompt.md"
        partial = path.with_suffix(".partial")
        partial.write_bytes(prompt_text(request, reply_path(path).name).encode())
        os.replace(partial, path)
        return path

    def _next_number(self) -> int:
        names = (_NUMBER.fullmatch(path.name) for path in self.directory.iterdir())
        return max((int(match[1]) for match in names if match), default=0) + 1

    def _await(self, prompt: Path) -> str:
        """The reply's text, once it is there and has settled."""
        reply = reply_path(prompt)
        if not reply.exists() or not read_reply(reply).strip():
            self._echo(f"prompt: {prompt}  ->  write the reply to {reply}")
        for settled in self._looks(reply):
            if settled:
                text = read_reply(reply)
                if text.strip():
                    return text
        raise ReplyPending(prompt, reply)

    def _looks(self, reply: Path) -> Iterator[bool]:
        """Looks at a reply's file until the wait is over: has it settled?"""
        started = time.monotonic()
        last, since = (-1, -1), started
        while True:
            now, state = time.monotonic(), _state(reply)
            if state != last:
                last, since = state, now
            yield state[0] > 0 and now - since >= self._settle_seconds
            late = self._deadline_s is not None and now - started > self._deadline_s
            # A reply that is being written is still read, even without waiting.
            settling = state[0] > 0 and now - since < self._settle_seconds
            if not settling and (late or not self._wait):
                return
            time.sleep(self._poll_seconds)


def reply_path(prompt: Path) -> Path:
    """Where the reply to a prompt's file belongs."""
    return prompt.with_name(prompt.name.removesuffix(".prompt.md") + ".reply.md")


def prompt_text(request: Request, reply_name: str) -> str:
    """A request as one markdown file that holds everything, and where to answer."""
    total = len(request.messages)
    parts = [
        f"<!-- message {number} of {total}: {message.role} -->\n\n"
        f"{clean_text(message.content).strip()}\n"
        for number, message in enumerate(request.messages, start=1)
    ]
    end = (
        f"<!-- end of the prompt: write the whole reply, and nothing else, to the file "
        f"{reply_name} in this directory -->\n"
    )
    return "\n".join([*parts, end])


def read_reply(path: Path) -> str:
    """The text of a reply's file, whatever editor or shell wrote it."""
    data = path.read_bytes()
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return data.decode("utf-16", "replace")
    return data.decode("utf-8-sig", "replace")


def _state(path: Path) -> tuple[int, int]:
    """(size, time of the last change) of a file; size 0 when it is missing."""
    try:
        stat = path.stat()
    except FileNotFoundError:
        return 0, 0
    return stat.st_size, stat.st_mtime_ns
