"""The client's end of one sandbox server: start, ask, end."""

import importlib.util
import json
import os
import select
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from structjax.diagnostics.finding import clean_text
from structjax.errors import StructjaxError

_LIBRARIES = ("numpy", "pandas", "pyarrow", "scipy", "sklearn", "statsmodels")
_SYSTEM = (
    *("/usr/lib", "/usr/lib64", "/lib", "/lib64", "/etc/ld.so.cache"),
    *("/usr/share/zoneinfo", "/dev/urandom"),
)
_WAYS_ON = (
    "run structjax in a container without network (`docker run --network none`) and"
    " add `--sandbox container`, or accept the risk with `--sandbox off` (recorded in"
    " the run); a replay uses the recorded outputs"
)


class SandboxError(StructjaxError):
    """Our own failure, not the code's: the run stops and can be resumed."""

    def __init__(self, message: str) -> None:
        super().__init__(message, kind="sandbox")


class SandboxUnavailable(StructjaxError):
    """This system cannot confine the code; nothing has run."""

    def __init__(self, message: str) -> None:
        super().__init__(message, kind="sandbox_unavailable", hint=_WAYS_ON)


class Client:
    """The client's end of one server process."""

    def __init__(self, level: str) -> None:
        if not hasattr(os, "fork") or not sys.executable:
            raise SandboxUnavailable(
                f"the sandbox for generated code needs Linux (here: {sys.platform})"
            )
        self.jobs = 0
        self._directory = tempfile.TemporaryDirectory(
            prefix="structjax-sandbox-", ignore_cleanup_errors=True
        )
        root = Path(self._directory.name)
        self.canary = root / "canary"
        self.canary.write_text("a file outside the allow-list")
        work = root / "empty"
        work.mkdir(mode=0o500)
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed by close()
        settings = {"level": level, "readable": _readable(), "paths": _library_paths()}
        settings["directory"] = str(root)
        launch = Path(__file__).with_name("launch.py")
        # -P -s and an environment of our own are what -I means, but for the hash seed:
        # the order of a set of strings must not differ from run to run.
        command = [sys.executable, "-P", "-s", "-B", str(launch), json.dumps(settings)]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            stderr=self._errors,
            env=_environment(),
            cwd=work,
            close_fds=True,
            start_new_session=True,
        )
        self._requests, self._replies = (
            pipe.fileno()
            for pipe in (self._process.stdin, self._process.stdout)
            if pipe is not None
        )

    def ask(self, request: dict[str, Any], timeout: float) -> Iterator[dict[str, Any]]:
        """Sends a request; yields the replies but the last, which only says so.

        Raises:
          SandboxError: no reply within `timeout` seconds, or the server is gone.
        """
        body = json.dumps(request).encode()
        try:
            self._write(struct.pack(">I", len(body)) + body)
        except OSError:
            raise self._gone() from None
        while True:
            deadline = time.monotonic() + timeout
            (length,) = struct.unpack(">I", self._read(4, deadline))
            reply = json.loads(self._read(length, deadline))
            if "failed" in reply:
                raise SandboxError(f"cannot confine a diagnostic: {reply['failed']}")
            if "done" in reply:
                return
            yield reply

    def _write(self, data: bytes) -> None:
        while data:
            data = data[os.write(self._requests, data) :]

    def _read(self, count: int, deadline: float) -> bytes:
        poller = select.poll()
        poller.register(self._replies, select.POLLIN)
        data = b""
        while len(data) < count:
            left = deadline - time.monotonic()
            if left <= 0 or not poller.poll(left * 1000):
                raise SandboxError("the sandbox server does not answer")
            chunk = os.read(self._replies, count - len(data))
            if not chunk:
                raise self._gone()
            data += chunk
        return data

    def _gone(self) -> SandboxError:
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(2.0)
        self._errors.seek(0)
        last = clean_text(self._errors.read().decode("utf-8", "replace")).strip()
        detail = last.splitlines()[-1] if last else f"status {self._process.poll()}"
        return SandboxError(f"the sandbox server has ended: {detail}")

    def close(self) -> None:
        """Ends the process and removes its directory."""
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()  # the server kills what it runs, and ends
        try:
            self._process.wait(2.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._errors.close()
        self._directory.cleanup()


def _environment() -> dict[str, str]:
    """All that the server, and so any code in it, can see of the environment."""
    threads = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    fixed = {"HOME": "/nonexistent", "LANG": "C.UTF-8", "TZ": "UTC"}
    fixed |= {"PYTHONHASHSEED": "0"} | dict.fromkeys(threads, "1")
    if "LD_LIBRARY_PATH" in os.environ:  # where an interpreter finds its libraries
        fixed["LD_LIBRARY_PATH"] = os.environ["LD_LIBRARY_PATH"]
    return fixed


def _readable() -> list[str]:
    """Where the system and the interpreter keep libraries."""
    prefixes = dict.fromkeys((sys.prefix, sys.base_prefix))
    return [*_SYSTEM, *(f"{prefix}/lib" for prefix in prefixes)]


def _library_paths() -> list[str]:
    """Directories that hold the libraries, wherever this process finds them."""
    found = [importlib.util.find_spec(name) for name in _LIBRARIES]
    origins = [
        Path(spec.origin).parent.parent for spec in found if spec and spec.origin
    ]
    return [str(path) for path in dict.fromkeys(origins)]
