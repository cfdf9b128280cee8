"""Runs analysis code written by a language model: text comes back, nothing else.

`Sandbox` starts one fork server, an isolated interpreter that holds the rollout table;
each diagnostic runs in a child of it, with no files, sockets, processes or signals
(`confine`), a deadline, a memory limit and an output cap. What the kernel enforces is
tried out at every start (`probes`).

Left open, knowingly: Landlock does not cover `stat`, so that the existence and the
size of files can be seen.
"""

import threading
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from structjax.diagnostics import probes
from structjax.diagnostics.client import Client, SandboxError, SandboxUnavailable
from structjax.diagnostics.finding import Finding, clean_text
from structjax.errors import StructjaxError

LEVELS = ("strict", "container", "off")
MAX_CODE_BYTES = 200_000
_RESTART_AFTER = 200  # children; a fresh server has no fragmented memory to inherit
_START_SECONDS = 180.0  # importing pandas from a cold disk on a loaded machine
_GRACE_SECONDS = 60.0  # the server's deadline comes first, and imports on demand


class Sandbox:
    """A place to run generated diagnostics over one rollout table at a time.

    Use it as a context manager. One thread at a time runs code in it.

    Args:
      table_path: Parquet file that the code sees as `df`, or None.
      level: `"strict"` (Landlock and seccomp, verified), `"container"` (the user
        vouches for the surroundings: the layers there are) or `"off"` (limits only).

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
        self._server: Client | None = None
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
            if self._server is None:
                return
            try:
                self._load(self._server)
            except SandboxError:
                self.close()
                self._start()
            except StructjaxError:  # no later run may see the table before this one
                self._table = None
                self.close()
                raise

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
          StructjaxError: a limit is not positive.
        """
        if not (wall > 0 and total > 0 and memory_mb > 0):
            raise StructjaxError(
                f"sandbox limits wall={wall}, total={total}, memory_mb={memory_mb};"
                " accepted: positive numbers",
                kind="sandbox",
            )
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
        server = self._server
        if server is None or server.jobs >= _RESTART_AFTER:
            self.close()
            server = self._start()
        try:
            replies = list(server.ask(request, wall + _GRACE_SECONDS))
        except BaseException:  # an interrupt, too, leaves half a reply on the pipe
            self.close()
            raise
        server.jobs += len(replies)
        return tuple(_finding(reply["finding"]) for reply in replies)

    def _start(self) -> Client:
        server = Client(self._wanted)
        try:
            self._level = _verify(server, self._wanted)
            list(server.ask({"op": "warm"}, _START_SECONDS))
            self._load(server)
        except BaseException:
            server.close()
            raise
        self._server = server
        return server

    def _load(self, server: Client) -> None:
        if self._table is not None and not self._table.is_file():
            raise StructjaxError(
                f"no table at {self._table}; accepted: a Parquet file", kind="table"
            )
        path = None if self._table is None else str(self._table.resolve())
        errors = list(server.ask({"op": "load", "path": path}, _START_SECONDS))
        if errors:
            raise StructjaxError(
                f"cannot read the table {self._table} ({errors[0]['error']});"
                " accepted: a Parquet file",
                kind="table",
            )


def sandbox_available() -> tuple[bool, str]:
    """Whether `"strict"` holds here, and what was verified or is missing."""
    try:
        server = Client("strict")
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


def _verify(server: Client, level: str) -> dict[str, Any]:
    """Runs the self-test and returns the record of it.

    Raises:
      SandboxUnavailable: `level` is `"strict"` and a layer or a probe fails.
    """
    request = {"op": "probe", "canary": str(server.canary)}
    (facts,) = server.ask(request, _START_SECONDS)
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
