"""The lock of a run directory: one process at a time, and who it is.

The operating system holds it (flock), so it ends with its process, however that ends;
the file's content says for people whose it is.
"""

import contextlib
import json
import os
import socket
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from structjax.errors import StructjaxError

NAME = "lock"


@contextlib.contextmanager
def lock(directory: Path) -> Iterator[str | None]:
    """Holds the directory's lock; yields a note when a dead owner's was taken over.

    Raises:
      StructjaxError: another process holds it, or the directory is not writable.
    """
    path = directory / NAME
    try:
        descriptor = _acquire(path)
    except OSError as error:
        raise StructjaxError(
            f"cannot lock {directory}: {error.strerror or error}",
            kind="disk",
            hint="the run directory must be writable",
        ) from error
    if descriptor is None:
        raise _in_use(directory, _holder(path))
    try:
        note = _take(descriptor, directory)
    except StructjaxError:
        os.close(descriptor)
        raise
    try:
        yield note
    finally:
        # Deleted while it is locked: whoever waits for it sees that it is gone.
        with contextlib.suppress(OSError):
            path.unlink()
        os.close(descriptor)


def _acquire(path: Path) -> int | None:
    """An open, locked file; None when another process holds the lock."""
    while True:
        descriptor = os.open(path, os.O_CREAT | os.O_RDWR, 0o644)
        if not _lock_file(descriptor):
            os.close(descriptor)
            return None
        # The owner before may have deleted the file between the opening and the lock.
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(descriptor), os.stat(path)):
                return descriptor
        os.close(descriptor)


def _lock_file(descriptor: int) -> bool:
    """Whether the lock is ours now."""
    try:
        if sys.platform == "win32":
            import msvcrt

            os.lseek(descriptor, 1 << 30, os.SEEK_SET)  # the content stays readable
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    return True


def _take(descriptor: int, directory: Path) -> str | None:
    """Writes us into the locked file; a note about a dead owner."""
    before = os.pread(descriptor, 4096, 0) if hasattr(os, "pread") else b""
    owner = _owner(before)
    here = socket.gethostname()
    if owner.get("host", here) != here:
        raise _in_use(directory, owner)  # a lock does not always reach another host
    mine = json.dumps({"pid": os.getpid(), "host": here}).encode()
    os.ftruncate(descriptor, 0)
    os.lseek(descriptor, 0, os.SEEK_SET)
    os.write(descriptor, mine)
    if not before:
        return None
    return f"took over the lock of process {owner.get('pid', '?')}, which is gone"


def _holder(path: Path) -> dict[str, Any]:
    """Who holds the lock; it may not have written its name yet."""
    for _ in range(50):
        if owner := _owner(_content(path)):
            return owner
        time.sleep(0.01)
    return {}


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def _owner(content: bytes) -> dict[str, Any]:
    """Who the file names; nobody where a kill tore it."""
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _in_use(directory: Path, owner: Mapping[str, Any]) -> StructjaxError:
    return StructjaxError(
        f"{directory} is in use by process {owner.get('pid', '?')} on "
        f"{owner.get('host', 'this host')}",
        kind="run",
        hint=f"wait for it, or delete {directory / NAME} if that process is gone",
    )
