"""The run directory: atomic, locked, readable after any kill, resumable."""

import contextlib
import json
import math
import os
import secrets
import socket
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any

from structjax.errors import StructjaxError
from structjax.ledger import Ledger
from structjax.provenance import git_commit, versions

SUBDIRECTORIES = ("structures", "params", "tables", "diagnostics", "checkpoints")


def jsonable(value: Any) -> Any:
    """The value as strict JSON: NaN and infinities become null, arrays lists."""
    if isinstance(value, Mapping):
        return {str(k): jsonable(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [jsonable(v) for v in value]
    if hasattr(value, "tolist"):
        return jsonable(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def write_atomic(path: Path, content: str | bytes) -> None:
    """Writes a whole file or nothing: temporary file, fsync, rename.

    Raises:
      StructjaxError: the disk is full or the directory is not writable.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    data = content.encode() if isinstance(content, str) else content
    try:
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise StructjaxError(
            f"cannot write {path}: {error.strerror}",
            kind="disk",
            hint="free some space or make the directory writable, then --resume",
        ) from error


def write_json(path: Path, value: Any) -> None:
    """Writes strict, indented JSON atomically."""
    write_atomic(path, json.dumps(jsonable(value), indent=1, allow_nan=False) + "\n")


def read_json(path: Path) -> Any:
    """Reads JSON.

    Raises:
      StructjaxError: missing or damaged file.
    """
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise StructjaxError(
            f"cannot read {path}: {error}",
            kind="run",
            hint="give a run directory, as printed at the end of a run",
        ) from error


def default_directory(task: str) -> Path:
    """`runs/<task>-<date>-<time>-<hex6>` below the working directory."""
    stamp = datetime.now().strftime("%Y%m%d-%H%M%S")
    return Path("runs") / f"{task}-{stamp}-{secrets.token_hex(3)}"


class RunDirectory:
    """One run on disk. Use as a context manager: it holds the lock.

    Every unit of work goes through `step`: its result is written once, with what it
    added to the ledger, and is read back instead of computed when the run resumes. So a
    resumed run takes the same decisions and counts nothing twice.

    Attributes:
      path: the directory.
      manifest: status, config, versions, counters; saved by `save_manifest`.
      ledger: the counters, also under `manifest["ledger"]`.
    """

    def __init__(self, path: Path, manifest: dict[str, Any]) -> None:
        self.path = path
        self.manifest = manifest
        self.ledger = Ledger()
        self._logged: frozenset[str] = frozenset()

    @classmethod
    @contextlib.contextmanager
    def create(
        cls,
        path: Path,
        *,
        kind: str,
        task: str,
        config: Mapping[str, Any],
        command: Mapping[str, Any] | None = None,
    ) -> "Iterator[RunDirectory]":
        """A new run in an empty or missing directory.

        `command` holds the options of the command line, for `--resume` alone.

        Raises:
          StructjaxError: the directory holds something already, or is not writable.
        """
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            raise StructjaxError(
                f"run directory {path} is not empty",
                kind="run",
                hint=f"continue it with --resume {path}, or name another with --run",
            )
        try:
            for name in SUBDIRECTORIES:
                (path / name).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StructjaxError(
                f"cannot create run directory {path}: {error.strerror}",
                kind="disk",
                hint="name a writable one with --run DIR",
            ) from error
        manifest = {
            "kind": kind,
            "task": task,
            "status": "running",
            "config": jsonable(config),
            "command": jsonable(command or {}),
            "versions": versions(),
            "commit": git_commit(),
            "host": socket.gethostname(),
            "started": datetime.now().isoformat(timespec="seconds"),
            "notes": [],
        }
        run = cls(path, manifest)
        with _lock(path) as note:
            yield from run._hold(note)

    @classmethod
    @contextlib.contextmanager
    def resume(
        cls, path: Path, *, config: Mapping[str, Any]
    ) -> "Iterator[RunDirectory]":
        """Continues a run.

        Raises:
          StructjaxError: no run there, another config, or another process holds it.
        """
        manifest = read_json(path / "manifest.json")
        _same_config(manifest.get("config", {}), jsonable(config), path)
        run = cls(path, manifest)
        with _lock(path) as note:
            run._logged = _whole_lines(path / "metrics.jsonl")
            run.manifest["resumed"] = run.manifest.get("resumed", 0) + 1
            yield from run._hold(note)

    def _hold(self, note: str | None) -> "Iterator[RunDirectory]":
        if note:
            self.manifest["notes"].append(note)
        self.manifest["status"] = "running"
        self.save_manifest()
        try:
            yield self
        except KeyboardInterrupt:
            self._finish("interrupted")
            raise
        except BaseException as error:
            later = isinstance(error, StructjaxError) and error.resumable
            self._finish("interrupted" if later else "failed", str(error))
            raise
        self.save_manifest()

    def _finish(self, status: str, reason: str | None = None) -> None:
        """Best effort: the disk may be full."""
        self.manifest["status"] = status
        if reason:
            self.manifest["reason"] = reason
        with contextlib.suppress(StructjaxError):
            self.save_manifest()

    def save_manifest(self) -> None:
        """Writes the manifest with the ledger as it stands."""
        self.manifest["ledger"] = asdict(self.ledger)
        write_json(self.path / "manifest.json", self.manifest)

    def step(self, name: str, compute: Callable[[], Any]) -> Any:
        """The JSON-ready result of a unit of work, computed once per run.

        Args:
          name: unique within the run, e.g. `"r1/gate"`.
          compute: does the work, books what it used in `self.ledger`, writes its files
            (they must be complete before it returns), and returns the result.

        Returns:
          The result as read back from JSON, so that a resumed run sees the same.
        """
        marker = self.path / "checkpoints" / (name.replace("/", "_") + ".json")
        if marker.exists():
            record = read_json(marker)
            self.ledger.add(record["ledger"])
            return record["result"]
        before = self.ledger.copy()
        result = jsonable(compute())
        record = {"result": result, "ledger": self.ledger.since(before)}
        write_json(marker, record)
        self.save_manifest()
        return json.loads(json.dumps(result))

    def log(self, **values: Any) -> None:
        """Appends one line to metrics.jsonl; not again those of before a resume."""
        line = json.dumps(jsonable(values), allow_nan=False)
        if line in self._logged:
            return
        try:
            with (self.path / "metrics.jsonl").open("a") as file:
                file.write(line + "\n")
        except OSError as error:
            raise StructjaxError(
                f"cannot write {self.path / 'metrics.jsonl'}: {error.strerror}",
                kind="disk",
                hint="free some space, then --resume",
            ) from error


def _whole_lines(path: Path) -> frozenset[str]:
    """The lines of a log; one that a kill has torn is cut off."""
    if not path.exists():
        return frozenset()
    whole, newline, torn = path.read_bytes().rpartition(b"\n")
    if torn:
        write_atomic(path, whole + newline)
    return frozenset(whole.decode().split("\n"))


def _same_config(old: Mapping[str, Any], new: Mapping[str, Any], path: Path) -> None:
    different = [
        f"{key}: {old.get(key)!r} there, {new.get(key)!r} now"
        for key in sorted({*old, *new})
        if old.get(key) != new.get(key)
    ]
    if different:
        raise StructjaxError(
            f"{path} was started with another config ({', '.join(different)})",
            kind="run",
            hint="resume with the same options, or start a new run",
        )


def _start_time(pid: int) -> str | None:
    """Start time of a process, so that a recycled pid is not taken for its owner."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[19]
    except (OSError, IndexError):
        return None


def _alive(owner: Mapping[str, Any]) -> bool:
    if owner.get("host") != socket.gethostname():
        return True  # cannot tell: the user must decide
    try:
        os.kill(owner["pid"], 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    started = _start_time(owner["pid"])
    return started is None or started == owner.get("started")


@contextlib.contextmanager
def _lock(path: Path) -> Iterator[str | None]:
    """Holds `path/lock`; yields a note when a dead owner's lock was taken over."""
    lock = path / "lock"
    note = None
    owner = {"pid": os.getpid(), "host": socket.gethostname()}
    owner["started"] = _start_time(os.getpid())
    if lock.exists():
        other = _read_owner(lock)
        if _alive(other):
            raise StructjaxError(
                f"{path} is in use by process {other.get('pid')} on "
                f"{other.get('host')}",
                kind="run",
                hint=f"wait for it, or delete {lock} if that process is gone",
            )
        note = f"took over the lock of process {other.get('pid')}, which is gone"
        lock.unlink()
    try:
        descriptor = os.open(lock, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
    except FileExistsError:
        raise StructjaxError(
            f"{path} was just taken by another process", kind="run", hint="wait for it"
        ) from None
    except OSError as error:
        raise StructjaxError(
            f"cannot lock {path}: {error.strerror}",
            kind="disk",
            hint="the run directory must be writable",
        ) from error
    with os.fdopen(descriptor, "w") as file:
        json.dump(owner, file)
    try:
        yield note
    finally:
        with contextlib.suppress(OSError):
            lock.unlink()


def _read_owner(lock: Path) -> dict[str, Any]:
    """The owner; an unreadable lock is one torn by a kill, so its owner is gone."""
    try:
        return dict(json.loads(lock.read_text()))
    except (OSError, ValueError):
        return {"pid": 2**30, "host": socket.gethostname()}
