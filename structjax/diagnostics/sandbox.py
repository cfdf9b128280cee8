"""Runs analysis code written by a language model: text comes back, nothing else.

`Sandbox` starts one fork server, an isolated interpreter that holds the rollout table;
each diagnostic runs in a child of it, with no files, sockets, processes or signals
(`confine`), a deadline, a memory limit and an output cap. What the kernel enforces is
tried out at every start (`probes`).

Left open, knowingly: Landlock does not cover `stat`, so that the existence and the
size of files can be seen.
"""

import importlib.util
import json
import os
import select
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from structjax.diagnostics import probes
from structjax.diagnostics.finding import Finding, clean_text
from structjax.errors import StructjaxError

LEVELS = ("strict", "container", "off")
MAX_CODE_BYTES = 200_000
_RESTART_AFTER = 200  # children; a fresh server has no fragmented memory to inherit
_START_SECONDS = 180.0  # importing pandas from a cold disk on a loaded machine
_GRACE_SECONDS = 20.0  # the server's own deadline comes first
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


class Sandbox:
    """A place to run generated diagnostics over one rollout table at a time.

    Use it as a context manager. One thread at a time runs code in it.

    Args:
      table_path: Parquet file that the code sees as `df`, or None.
      level: `"strict"` (Landlock and seccomp, verified), `"container"` (the user vouches
        for the surroundings: the layers there are) or `"off"` (limits only).

    Raises:
      SandboxUnavailable: on entry, when `"strict"` does not hold here.
      StructjaxError: `level` is unknown, or the table cannot be read.
    """

    def __init__(
        self, table_path: str | Path | None = None, *, level: str = "strict"
    ) -> None:
        if level not in LEVELS:
            raise StructjaxError(
                f"unknown sandbox level '{level}'; accepted: {', '.join(LEVELS)}",
                kind="sandbox",
            )
        self._wanted = level
        self._table = None if table_path is None else Path(table_path)
        self._lock = threading.Lock()
        self._server: _Server | None = None
        self._level: dict[str, Any] = {"level": level}

    def __enter__(self) -> Self:
        with self._lock:
            self._start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends the server; the sandbox can be entered again."""
        if self._server is not None:
            self._server.close()
            self._server = None

    @property
    def level(self) -> dict[str, Any]:
        """What was verified: `{"level", "landlock_abi", "seccomp", "probes"...}`."""
        return dict(self._level)

    def load(self, table_path: str | Path | None) -> None:
        """Changes the table that later runs see.

        Raises:
          StructjaxError: it is missing or not a Parquet file.
        """
        with self._lock:
            self._table = None if table_path is None else Path(table_path)
            if self._server is not None:
                self._load(self._server)

    def run(
        self,
        code: str,
        *,
        wall: float = 10.0,
        memory_mb: int = 1024,
        total: float = 120.0,
        static_check: bool = True,
    ) -> tuple[Finding, ...]:
        """Runs the code's top level, then each `check_` and `test_` function.

        Every function gets a process and a copy of the table of its own, in which the
        top level has run before: one that hangs or changes the table loses only itself.

        Args:
          code: Python text; `df`, `np` and `pd` are defined.
          wall: seconds for each function.
          memory_mb: MiB for each function, on top of the libraries and the table.
          total: seconds for all of them together.
          static_check: report refused imports and names before anything runs.

        Returns:
          The finding `"module"`, then one for each function in order of definition.

        Raises:
          SandboxError: the sandbox itself failed, twice.
        """
        text = code.encode("utf-8", "replace").decode()
        size = len(text.encode())
        if size > MAX_CODE_BYTES:
            message = f"{size} bytes of code; accepted: at most {MAX_CODE_BYTES}"
            return (Finding("module", "exception", message, 0.0),)
        request = {"op": "run", "code": text, "wall": wall, "memory_mb": memory_mb}
        request |= {"total": total, "static_check": static_check}
        with self._lock:
            try:
                return self._attempt(request, wall)
            except SandboxError:
                # The code cannot reach the server; what killed it may have passed.
                return self._attempt(request, wall)

    def _attempt(self, request: dict[str, Any], wall: float) -> tuple[Finding, ...]:
        if self._server is None or self._server.jobs >= _RESTART_AFTER:
            self.close()
            self._start()
        server = self._server
        assert server is not None  # for the type checker: _start sets it or raises
        try:
            replies = list(server.ask(request, wall + _GRACE_SECONDS))
        except BaseException:  # an interrupt, too, leaves half a reply on the pipe
            self.close()
            raise
        server.jobs += len(replies)
        return tuple(_finding(reply["finding"]) for reply in replies)

    def _start(self) -> None:
        server = _Server(self._wanted)
        try:
            self._level = _verify(server, self._wanted)
            list(server.ask({"op": "warm"}, _START_SECONDS))
            self._load(server)
        except BaseException:
            server.close()
            raise
        self._server = server

    def _load(self, server: "_Server") -> None:
        if self._table is None:
            return
        if not self._table.is_file():
            raise StructjaxError(
                f"no table at {self._table}; accepted: a Parquet file", kind="table"
            )
        path = str(self._table.resolve())
        for reply in server.ask({"op": "load", "path": path}, _START_SECONDS):
            raise StructjaxError(
                f"cannot read the table {self._table} ({reply['error']});"
                " accepted: a Parquet file",
                kind="table",
            )


def sandbox_available() -> tuple[bool, str]:
    """Whether `"strict"` holds here, and what was verified or is missing."""
    try:
        server = _Server("strict")
        try:
            level = _verify(server, "strict")
        finally:
            server.close()
    except StructjaxError as error:
        return False, str(error)
    layers = f"Landlock ABI {level['landlock_abi']}, seccomp"
    return True, f"{layers}, {level['probes']} probes"


def _finding(reply: dict[str, Any]) -> Finding:
    text = clean_text(reply["text"]).strip("\n")
    return Finding(reply["name"], reply["status"], text, round(reply["seconds"], 4))


def _verify(server: "_Server", level: str) -> dict[str, Any]:
    """Runs the self-test and returns the record of it.

    Raises:
      SandboxUnavailable: `level` is `"strict"` and a layer or a probe fails.
    """
    request = {"op": "probe", "canary": str(server.canary)}
    facts = next(iter(list(server.ask(request, _START_SECONDS))))
    verdicts = facts["probes"]
    failed = [n for n, wanted in probes.EXPECTED.items() if verdicts[n] != wanted]
    missing = _missing(facts, failed)
    if level == "strict" and missing:
        raise SandboxUnavailable(
            f"the sandbox for generated code needs {', '.join(missing)}"
        )
    record = {"level": level, "landlock_abi": facts["landlock_abi"]}
    record |= {"seccomp": facts["seccomp"], "probes": len(verdicts)}
    return record | {"probes_failed": failed}


def _missing(facts: dict[str, Any], failed: list[str]) -> list[str]:
    missing = []
    if facts["landlock_abi"] < 1:
        missing.append("Landlock (Linux 5.13 or newer, enabled at boot)")
    if not facts["seccomp"]:
        missing.append("seccomp filters (CONFIG_SECCOMP_FILTER)")
    if not facts["seccomp_table"]:
        missing.append(f"x86_64 or aarch64 (here: {facts['machine']})")
    if not missing and "setup" in facts:
        missing.append(f"a working confinement ({facts['setup']})")
    elif not missing and failed:
        missing.append(f"a self-test without failures (failed: {', '.join(failed)})")
    return missing


class _Server:
    """The client's end of one server process."""

    def __init__(self, level: str) -> None:
        if not hasattr(os, "fork") or not sys.executable:
            raise SandboxUnavailable(
                f"the sandbox for generated code needs Linux (here: {sys.platform})"
            )
        self.jobs = 0
        self._directory = tempfile.TemporaryDirectory(prefix="structjax-sandbox-")
        root = Path(self._directory.name)
        self.canary = root / "canary"
        self.canary.write_text("a file outside the allow-list")
        work = root / "empty"
        work.mkdir(mode=0o500)
        self._errors: IO[bytes] = tempfile.TemporaryFile()
        settings = {"level": level, "readable": _readable(), "paths": _library_paths()}
        launch = Path(__file__).with_name("launch.py")
        # -P -s and an environment of our own are what -I means, but for the hash seed:
        # the order of a set of strings must not differ from run to run.
        command = [sys.executable, "-P", "-s", "-B", str(launch), json.dumps(settings)]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env=_environment(),
            cwd=work,
            close_fds=True,
            start_new_session=True,
        )

    def ask(self, request: dict[str, Any], timeout: float) -> Iterator[dict[str, Any]]:
        """Sends a request; yields the replies but the last, which only says so.

        Raises:
          SandboxError: no reply within `timeout` seconds, or the server is gone.
        """
        body = json.dumps(request).encode()
        pipe = self._process.stdin
        assert pipe is not None  # for the type checker
        try:
            pipe.write(struct.pack(">I", len(body)) + body)
            pipe.flush()
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

    def _read(self, count: int, deadline: float) -> bytes:
        pipe = self._process.stdout
        assert pipe is not None  # for the type checker
        poller = select.poll()
        poller.register(pipe, select.POLLIN)
        data = b""
        while len(data) < count:
            left = deadline - time.monotonic()
            if left <= 0 or not poller.poll(left * 1000):
                raise SandboxError("the sandbox server does not answer")
            chunk = os.read(pipe.fileno(), count - len(data))
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
            assert pipe is not None  # for the type checker
            with suppress(OSError):
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
