"""The run directory: atomic, locked, readable after any kill, resumable."""

import contextlib
import errno
import json
import os
import re
import secrets
import socket
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any

from structjax.errors import StructjaxError
from structjax.files import jsonable, read_json, write_atomic, write_json
from structjax.forms import Maybe, mismatch, read_form
from structjax.ledger import Ledger
from structjax.manifest import LEDGER, read_manifest
from structjax.provenance import git_commit, versions
from structjax.run_lock import NAME as LOCK
from structjax.run_lock import lock

__all__ = [
    "RunDirectory",
    "default_directory",
    "jsonable",
    "read_json",
    "write_atomic",
    "write_json",
]

FULL = (errno.ENOSPC, errno.EDQUOT)
RESUME = re.compile(r"--resume(?: the run)?$")
"""How hints end that do not know the run by name."""
SHOWN = 60
"""Characters of an option in an error."""
ROUND = {"round": int, "accepted": bool} | dict.fromkeys(
    ("gate_mean", "gate_worst"), Maybe(float)
)
"""A round in the log."""
SUBDIRECTORIES = ("structures", "params", "tables", "diagnostics", "checkpoints")


def finished_rounds(path: Path) -> list[dict[str, Any]]:
    """What the log of a run says of its rounds, also of a run that is under way.

    Raises:
      StructjaxError: a line was changed.
    """
    log = path / "metrics.jsonl"
    lines = log.read_bytes().split(b"\n")[:-1] if log.exists() else []
    rounds: dict[int, dict[str, Any]] = {}
    for number, line in enumerate(lines, 1):
        row = _row(log, number, line)
        if row.get("phase") == "refine":
            # A round that fails after its gate has a second row: refused after all.
            rounds[row["round"]] = {**rounds.get(row["round"], {}), **row}
    return list(rounds.values())


def _row(log: Path, number: int, line: bytes) -> dict[str, Any]:
    """A line of a log."""
    try:
        row = json.loads(line)
        problem = mismatch(row, {"phase": Maybe(str)})
        if not problem and row.get("phase") == "refine":
            problem = mismatch(row, ROUND)
    except (ValueError, RecursionError) as error:
        problem = str(error)
    if problem:
        raise StructjaxError(
            f"line {number} of {log} is no row of a log: {problem}",
            kind="run",
            hint=f"finish the run with --resume {log.parent}, or restore the file",
        )
    return dict(row)


def best_round(path: Path, manifest: Mapping[str, Any]) -> int | None:
    """The best round, of an unfinished run the best so far: the last accepted one."""
    if manifest.get("best_round") is not None:
        return int(manifest["best_round"])
    accepted = [int(row["round"]) for row in finished_rounds(path) if row["accepted"]]
    return accepted[-1] if accepted else None


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
        _check_unused(path)
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise _cannot_create(path, error) from error
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
        with lock(path) as note:
            _check_unused(path)  # now that nobody else can write into it
            try:
                for name in SUBDIRECTORIES:
                    (path / name).mkdir(exist_ok=True)
            except OSError as error:
                raise _cannot_create(path, error) from error
            yield from run._hold(note)

    @classmethod
    @contextlib.contextmanager
    def resume(
        cls,
        path: Path,
        *,
        config: Mapping[str, Any],
        task: str | None = None,
        defaults: Mapping[str, Any] | None = None,
    ) -> "Iterator[RunDirectory]":
        """Continues a run.

        Args:
          path: the run directory.
          config: options, as they were when it was created.
          task: name of the task.
          defaults: what a run did that was begun before an option existed.

        Raises:
          StructjaxError: no run there, another task or config, or another process
            holds it.
        """
        manifest = read_manifest(path)
        known = _filled(manifest["config"], jsonable(defaults or {}))
        _check_same({**manifest, "config": known}, task, jsonable(config), path)
        with lock(path) as note:
            run = cls(path, read_manifest(path))
            run._logged = _whole_lines(path / "metrics.jsonl")
            run.manifest["resumed"] = run.manifest.get("resumed", 0) + 1
            yield from run._hold(note)

    def _hold(self, note: str | None) -> "Iterator[RunDirectory]":
        if note:
            self.manifest["notes"].append(note)
        self.manifest["status"] = "running"
        try:
            self.save_manifest()
            yield self
            self.save_manifest()
        except KeyboardInterrupt:
            self._finish("interrupted")
            raise
        except OSError as error:
            if error.errno not in FULL:
                self._finish("failed", str(error))
                raise
            text = f"cannot write {error.filename or self.path}: {error.strerror}"
            full = StructjaxError(text, kind="disk", hint="free some space")
            self._fail(full)
            raise full from error
        except BaseException as error:
            self._fail(error)
            raise

    def _fail(self, error: BaseException) -> None:
        """Enters an error; its hint names the run where that can be resumed."""
        if isinstance(error, StructjaxError) and (self.path / "manifest.json").exists():
            again = f"--resume {self.path}"
            if error.kind == "disk":
                error.resumable = True
                command = f"structjax {self.manifest.get('kind')} {again}"
                error.hint = f"free some space or make it writable, then `{command}`"
            else:
                error.hint = RESUME.sub(lambda _: again, error.hint)
        later = isinstance(error, StructjaxError) and error.resumable
        self._finish("interrupted" if later else "failed", str(error))

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

    def step(self, name: str, compute: Callable[[], Any], form: Any = object) -> Any:
        """The JSON-ready result of a unit of work, computed once per run.

        Args:
          name: unique within the run, e.g. `"r1/gate"`.
          compute: does the work, books what it used in `self.ledger`, writes its files
            (they must be complete before it returns), and returns the result.
          form: what a result looks like (`structjax.forms`), checked when it is read.

        Returns:
          The result as read back from JSON, so that a resumed run sees the same.

        Raises:
          StructjaxError: the file that keeps the result was changed.
        """
        marker = self.path / "checkpoints" / (name.replace("/", "_") + ".json")
        if marker.exists():
            record = read_form(
                marker,
                {"result": form, "ledger": LEDGER},
                what=f"a result of {name}",
                kind="run",
                hint="delete it to compute it again, or restore it",
            )
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
    return frozenset(whole.decode(errors="replace").split("\n"))


def _check_unused(path: Path) -> None:
    """Refuses a path that holds more than what a kill during `create` leaves."""
    try:
        used = path.exists() and any(map(_is_content, path.iterdir()))
    except OSError as error:
        raise _cannot_create(path, error) from error
    if used:
        raise StructjaxError(
            f"run directory {path} is not empty",
            kind="run",
            hint=f"continue it with --resume {path}, or name another with --run",
        )


def _is_content(entry: Path) -> bool:
    if entry.name in SUBDIRECTORIES and entry.is_dir():
        return any(entry.iterdir())
    return entry.name != LOCK and entry.suffix != ".tmp"


def _cannot_create(path: Path, error: OSError) -> StructjaxError:
    return StructjaxError(
        f"cannot create run directory {path}: {error.strerror}",
        kind="disk",
        hint="name a writable one with --run DIR",
    )


def _check_same(
    manifest: Mapping[str, Any], task: str | None, config: Any, path: Path
) -> None:
    """Refuses to continue a run with another task or other options."""
    if task not in (None, manifest["task"]):
        raise StructjaxError(
            f"{path} is a run of task {manifest['task']!r}, not of {task!r}",
            kind="run",
            hint="resume it without naming a task, or start a new run",
        )
    _same_config(manifest["config"], config, path)


def _same_config(old: Mapping[str, Any], new: Mapping[str, Any], path: Path) -> None:
    if different := _differences(old, new):
        raise StructjaxError(
            f"{path} was started with another config ({', '.join(different)})",
            kind="run",
            hint="resume with the same options, or start a new run",
        )


def _filled(old: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """A config with the options that it lacks, at any depth."""
    found = {**defaults, **old}
    for key, value in defaults.items():
        if isinstance(value, dict) and isinstance(old.get(key), dict):
            found[key] = _filled(old[key], value)
    return found


def _differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """What differs between two configs, key by key."""
    found = []
    for key in sorted({*old, *new}):
        before, now = old.get(key), new.get(key)
        if isinstance(before, dict) and isinstance(now, dict):
            found += [f"{key}.{line}" for line in _differences(before, now)]
        elif before != now and not _same_file(before, now):
            found.append(f"{key}: {_shown(before)} there, {_shown(now)} now")
    return found


def _shown(value: Any) -> str:
    """A value in short; of a long text, such as a path, its end."""
    text = repr(value)
    if isinstance(value, str) and len(text) > SHOWN:
        return f"...{text[-SHOWN:]}"
    return text[:SHOWN]


def _same_file(before: Any, now: Any) -> bool:
    """Whether an older run has a relative name where newer ones have the whole."""
    return isinstance(before, str) and now == os.path.abspath(before)
