"""The fork server: holds the table, forks one confined child per diagnostic.

Its own process, never forked from the one that runs JAX. Requests and replies are JSON
behind a four-byte length, on stdin and stdout; children never see these pipes.
"""

import gc
import json
import os
import re
import signal
import struct
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import redirect_stdout
from typing import Any, BinaryIO

from structjax.diagnostics import landlock, probes, seccomp
from structjax.diagnostics.confine import Confinement, confine, seccomp_available
from structjax.diagnostics.job import (
    EXIT_EXCEPTION,
    EXIT_MEMORY,
    EXIT_OK,
    MODULE,
    Job,
    execute,
)
from structjax.diagnostics.watch import Ending, Hangup, Watch

_MAX_FUNCTIONS = 64
_SLOW_IMPORTS = ("sklearn", "statsmodels")  # 1 s each: once in the server, on demand


class SetupError(Exception):
    """A child could not be confined: nothing of the code has run."""


def receive(stream: BinaryIO) -> dict[str, Any] | None:
    """The next message, None at the end of the stream."""
    header = stream.read(4)
    if len(header) < 4:
        return None
    message = json.loads(stream.read(struct.unpack(">I", header)[0]))
    return dict(message)


def send(stream: BinaryIO, message: dict[str, Any]) -> None:
    """Writes one message."""
    body = json.dumps(message).encode()
    stream.write(struct.pack(">I", len(body)) + body)
    stream.flush()


class Server:
    """State of the server: how to confine, and the table."""

    def __init__(self, confinement: Confinement, client: int) -> None:
        self._confinement = confinement
        self._client = client
        self._table: Any = None

    def answer(self, request: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """The replies to one request; the last one has the key `done`."""
        operation = request.pop("op")
        if operation == "probe":
            yield self._probe(**request)
        elif operation == "warm":
            _warm()
        elif operation == "load":
            yield from self._load(**request)
        elif operation == "run":
            yield from self._run(**request)
        yield {"done": True}

    def _probe(self, canary: str) -> dict[str, Any]:
        linux = sys.platform == "linux"
        facts: dict[str, Any] = {
            "landlock_abi": landlock.abi() if linux else 0,
            "seccomp": linux and seccomp_available(),
            "machine": os.uname().machine,
            "seccomp_table": seccomp.architecture() is not None,
        }
        job = Job(probes.code(canary), MODULE, 10.0, probes.MEMORY_MB, False)
        try:
            ending = self._fork(job)
        except SetupError as error:
            return {**facts, "setup": str(error), "probes": probes.verdicts("")}
        return {**facts, "probes": probes.verdicts(ending.output.text())}

    def _load(self, path: str | None) -> Iterator[dict[str, Any]]:
        import pandas as pd

        self._table = None
        if path is None:
            return
        try:
            self._table = pd.read_parquet(path, use_threads=False, memory_map=False)
        except Exception as error:  # whatever a damaged file makes the reader raise
            yield {"error": f"{type(error).__name__}: {error}"}
        gc.collect()
        gc.freeze()

    def _run(
        self,
        code: str,
        wall: float,
        total: float,
        memory_mb: int,
        static_check: bool,
    ) -> Iterator[dict[str, Any]]:
        _import_slow(code)
        end = time.monotonic() + total
        first = self._fork(Job(code, MODULE, wall, memory_mb, static_check))
        finding = _finding(MODULE, first, wall)
        names = _announced(first.control)
        yield {"finding": finding}
        for name in names[:_MAX_FUNCTIONS]:
            left = end - time.monotonic()
            if finding["status"] not in ("ok", "output_limit"):
                why = f"the top level ended with status {finding['status']}"
                yield {"finding": _not_run(name, "exception", why)}
            elif left <= 0:
                why = f"the {total:g} s for all diagnostics together are used up"
                yield {"finding": _not_run(name, "timeout", why)}
            else:
                limit = min(wall, left)
                ending = self._fork(Job(code, name, limit, memory_mb, static_check))
                yield {"finding": _finding(name, ending, limit)}
        for name in names[_MAX_FUNCTIONS:]:
            why = f"{len(names)} functions; accepted: at most {_MAX_FUNCTIONS}"
            yield {"finding": _not_run(name, "exception", why)}

    def _fork(self, job: Job) -> Ending:
        output, output_end = os.pipe()
        control, control_end = os.pipe()
        server = os.getpid()
        with warnings.catch_warnings():
            # Python 3.12 warns of threads; pyarrow's are idle, and reset at fork.
            warnings.simplefilter("ignore", DeprecationWarning)
            pid = os.fork()
        if pid == 0:
            self._child(job, server, output_end, control_end)
        os.close(output_end)
        os.close(control_end)
        ending = Watch(pid, output, control, self._client).wait(job.wall)
        if not ending.control.startswith(b"+") and ending.stopped != "timeout":
            raise SetupError(ending.control.decode("utf-8", "replace") or "no answer")
        return ending

    def _child(self, job: Job, server: int, output: int, control: int) -> None:
        """Never returns. Until `announce` has run, only our own code runs here."""
        try:
            null = os.open(os.devnull, os.O_RDONLY)
            for source, target in ((null, 0), (output, 1), (output, 2)):
                os.dup2(source, target)
            os.dup2(control, 3)
            os.closerange(4, 1 << 16)
            confine(self._confinement, wall=job.wall, memory_mb=job.memory_mb)
            if os.getppid() != server:
                os._exit(EXIT_EXCEPTION)
            os.write(3, b"+")
        except BaseException as error:
            os.write(3, f"-{type(error).__name__}: {error}".encode())
            os._exit(EXIT_EXCEPTION)
        try:
            status = execute(job, self._table, _announce)
        except BaseException:
            status = EXIT_EXCEPTION
        os._exit(status)


def _announce(names: bytes) -> None:
    os.write(3, names)
    os.close(3)


def _announced(control: bytes) -> list[str]:
    """The functions' names; none when the child died while parsing."""
    try:
        return list(json.loads(control[1:]))
    except ValueError:
        return []


def _finding(name: str, ending: Ending, wall: float) -> dict[str, Any]:
    status, note = _status(ending, wall)
    text = ending.output.text()
    if note:
        text = f"{text.rstrip()}\n{note}".lstrip("\n")
    return _record(name, status, text, ending.seconds)


def _status(ending: Ending, wall: float) -> tuple[str, str]:
    if ending.stopped == "timeout":
        return "timeout", f"stopped after {wall:g} s"
    if ending.stopped == "output_limit":
        return "output_limit", f"stopped after {ending.output.total} bytes of output"
    if ending.code == -signal.SIGXCPU:
        return "timeout", "stopped: the CPU time is used up"
    if ending.code < 0:
        return "killed", f"the process died of {_signal_name(-ending.code)}"
    if ending.code == EXIT_OK:
        return ("output_limit" if ending.output.dropped else "ok"), ""
    if ending.code == EXIT_MEMORY:
        return "memory", ""
    if ending.code == EXIT_EXCEPTION:
        return "exception", ""
    return "exception", f"the code ended its process with status {ending.code}"


def _signal_name(number: int) -> str:
    """`SIGKILL`; real-time signals have no name of their own."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _not_run(name: str, status: str, why: str) -> dict[str, Any]:
    return _record(name, status, f"not run: {why}", 0.0)


def _record(name: str, status: str, text: str, seconds: float) -> dict[str, Any]:
    return {"name": name, "status": status, "text": text, "seconds": seconds}


def _import_slow(code: str) -> None:
    """Imports the libraries that the code names, so that each child has them."""
    for library in _SLOW_IMPORTS:
        pattern = rf"\b(?:import|from)\s+({library}(?:\.\w+)*)"
        for module in re.findall(pattern, code):
            if module not in sys.modules:
                try:
                    __import__(module)
                except Exception:
                    continue  # the child meets the same error and reports it
                gc.freeze()


def _warm() -> None:
    """Imports what diagnostics use, and what pandas itself imports at first use."""
    import numpy as np
    import pandas as pd
    import scipy.stats

    pd.set_option("display.width", 120, "display.max_columns", 40)
    frame = pd.DataFrame({"episode": [0, 0, 1], "x": np.arange(3.0)})
    with redirect_stdout(open(os.devnull, "w")):
        print(frame.groupby("episode").x.agg(["mean", "std"]), frame.describe())
        print(frame.corr(), scipy.stats.linregress(frame.x, frame.x))
    gc.collect()
    gc.freeze()


def serve(level: str, readable: list[str]) -> None:
    """Answers requests on stdin until it closes."""
    requests, replies = sys.stdin.buffer, sys.stdout.buffer
    sys.stdout = sys.stderr  # nothing but replies on the pipe
    server = Server(Confinement(level, tuple(readable)), requests.fileno())
    while (request := receive(requests)) is not None:
        try:
            for reply in server.answer(request):
                send(replies, reply)
        except SetupError as error:
            send(replies, {"failed": str(error)})
        except (Hangup, BrokenPipeError):
            return
