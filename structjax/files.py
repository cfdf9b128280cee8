"""Files: written whole or not at all, read with one clear line when they cannot be."""

import contextlib
import errno
import json
import math
import os
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from structjax.errors import StructjaxError


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

    A link is followed, and what is not a regular file (a pipe, a device) is written to,
    never replaced.

    Raises:
      StructjaxError: the disk is full or the directory is not writable.
    """
    data = content.encode() if isinstance(content, str) else content
    try:
        target = _target(path)
        if target.exists() and not target.is_file():
            with target.open("wb", buffering=0) as file:
                _write_all(file, data)
        else:
            _replace(target, data)
    except OSError as error:
        raise StructjaxError(
            f"cannot write {str(path)!r}: {error.strerror or error}",
            kind="disk",
            hint="free some space or name a file in a directory that can be written",
        ) from error


def _target(path: Path) -> Path:
    """What the path names, links followed."""
    # Not Path.resolve: on Python 3.11 it raises RuntimeError for a ring of links.
    target = Path(os.path.realpath(path))
    if target.is_symlink():
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
    if target.is_dir():
        raise IsADirectoryError(None, "it is a directory")
    return target


def _replace(target: Path, data: bytes) -> None:
    # A short name: one made from the target's could be too long.
    temporary = target.with_name(f".{os.getpid()}-{secrets.token_hex(4)}.tmp")
    try:
        with temporary.open("wb", buffering=0) as file:
            _write_all(file, data)
            os.fsync(file.fileno())
        temporary.replace(target)
    except OSError:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise


def _write_all(file: Any, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[file.write(rest) :]


def write_json(path: Path, value: Any) -> None:
    """Writes strict, indented JSON atomically."""
    write_atomic(path, json.dumps(jsonable(value), indent=1, allow_nan=False) + "\n")


def read_text(path: Path, *, kind: str, hint: str) -> str:
    """The text of a file.

    Raises:
      StructjaxError: it is missing, or not UTF-8 text.
    """
    try:
        return Path(path).read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        text = f"{path} is not UTF-8 text ({error.reason} at byte {error.start})"
        raise StructjaxError(text, kind=kind, hint=hint) from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        text = f"cannot read {path}: {reason}"
        raise StructjaxError(text, kind=kind, hint=hint) from error


def read_json(
    path: Path,
    *,
    kind: str = "run",
    hint: str = "give a run directory, as printed at the end of a run",
) -> Any:
    """Reads JSON.

    Raises:
      StructjaxError: missing or damaged file.
    """
    text = read_text(path, kind=kind, hint=hint)
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        reason = (
            "it is nested too deeply" if isinstance(error, RecursionError) else error
        )
        raise StructjaxError(
            f"cannot read {path}: {reason}", kind=kind, hint=hint
        ) from error
