"""Waits for a child with a deadline and an output cap, and always ends it.

Standard library only: runs in the sandbox server.
"""

import os
import select
import signal
import time
from contextlib import suppress
from dataclasses import dataclass, field

HEAD_BYTES, TAIL_BYTES = 16_000, 4_000
_KILL_BYTES = 1_000_000  # a child that prints more than this is stopped
_CHUNK = 65_536
_CONTROL_BYTES = 1_000_000


class Hangup(Exception):
    """The process that asked for the job is gone."""


@dataclass
class Output:
    """The first and the last bytes of a stream, and how many were dropped between."""

    head: bytearray = field(default_factory=bytearray)
    tail: bytearray = field(default_factory=bytearray)
    total: int = 0

    def add(self, chunk: bytes) -> None:
        """Takes the next bytes of the stream."""
        self.total += len(chunk)
        room = max(HEAD_BYTES - len(self.head), 0)
        self.head += chunk[:room]
        self.tail += chunk[room:]
        del self.tail[:-TAIL_BYTES]

    @property
    def dropped(self) -> int:
        """Bytes that are in neither part."""
        return self.total - len(self.head) - len(self.tail)

    def text(self) -> str:
        """Head and tail, with a note where bytes are missing."""
        if not self.dropped:
            return bytes(self.head + self.tail).decode("utf-8", "replace")
        note = f"\n... {self.dropped} bytes dropped ...\n"
        parts = [bytes(p).decode("utf-8", "replace") for p in (self.head, self.tail)]
        return note.join(parts)


@dataclass(frozen=True)
class Ending:
    """How a child ended.

    Attributes:
      control: what it announced before the code ran.
      output: what the code wrote.
      stopped: `"timeout"` or `"output_limit"` where we ended it, else empty.
      code: exit status, negative for a signal.
      seconds: wall time.
    """

    control: bytes
    output: Output
    stopped: str
    code: int
    seconds: float


class Watch:
    """One child process, its output and its control pipe."""

    def __init__(self, pid: int, output: int, control: int, client: int) -> None:
        self._pid = pid
        self._control_fd = control
        self._client = client
        self._open = {output, control}
        self._output = Output()
        self._control = bytearray()
        self._code: int | None = None

    def wait(self, wall: float) -> Ending:
        """Returns when the child is dead, by itself or by us.

        Raises:
          Hangup: the client closed its end; the child has been killed.
        """
        start = time.monotonic()
        stopped = ""
        try:
            stopped = self._until(start + wall)
        finally:
            self._kill()
            for descriptor in self._open:
                os.close(descriptor)
        seconds = time.monotonic() - start
        code = self._code if self._code is not None else -signal.SIGKILL
        return Ending(bytes(self._control), self._output, stopped, code, seconds)

    def _until(self, deadline: float) -> str:
        poller = select.poll()
        for descriptor in (*self._open, self._client):
            poller.register(descriptor, select.POLLIN)
        pause = 0.0005
        while not self._reap() or self._open:
            left = deadline - time.monotonic()
            if left <= 0:
                return "timeout"
            if not self._open:  # both ends closed: it is about to exit, or it hangs
                time.sleep(min(pause, left))
                pause = min(2 * pause, 0.02)
                continue
            events = poller.poll(min(left, 0.05) * 1000)
            if not events and self._code is not None:
                return ""  # dead, and something else holds the pipes
            for descriptor, _ in events:
                if not self._read(descriptor):
                    poller.unregister(descriptor)
            if self._output.total > _KILL_BYTES or len(self._control) > _CONTROL_BYTES:
                return "output_limit"
        return ""

    def _read(self, descriptor: int) -> bool:
        """Takes what is there; False at the end of the stream."""
        if descriptor == self._client:  # silent while a job runs: this is its end
            raise Hangup
        chunk = os.read(descriptor, _CHUNK)
        if not chunk:
            self._open.discard(descriptor)
            os.close(descriptor)
            return False
        if descriptor == self._control_fd:
            self._control += chunk
        else:
            self._output.add(chunk)
        return True

    def _reap(self) -> bool:
        if self._code is None:
            pid, status = os.waitpid(self._pid, os.WNOHANG)
            if pid and not os.WIFSTOPPED(status):  # one that asks to be traced stops
                self._code = os.waitstatus_to_exitcode(status)
        return self._code is not None

    def _kill(self) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._pid, signal.SIGKILL)
        if self._code is None:
            # Before its setsid the child leads no group.
            with suppress(ProcessLookupError):
                os.kill(self._pid, signal.SIGKILL)
            while not self._reap():
                time.sleep(0.0005)
