"""Landlock: after `restrict`, this thread reads below the listed paths and no more.

Raw system calls, because no library is needed for three of them (Linux 5.13 or newer,
`Documentation/userspace-api/landlock.rst`). Standard library only: runs in the
sandbox server.
"""

import ctypes
import errno
import os
import stat
import struct
from collections.abc import Iterable

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # on every architecture
_VERSION = 1  # LANDLOCK_CREATE_RULESET_VERSION
_PATH_BENEATH = 1  # LANDLOCK_RULE_PATH_BENEATH
_READ_FILE, _READ_DIR = 1 << 2, 1 << 3

# How many file access rights each ABI version knows: all of them are withdrawn.
_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15}
_RIGHTS_LATEST = 16  # ABI 5 and newer: device ioctls
_NET = 0b11  # bind and connect TCP, ABI 4
_SCOPED = 0b11  # abstract unix sockets and signals stay inside, ABI 6

_libc = ctypes.CDLL(None, use_errno=True)


def _syscall(number: int, *arguments: int | bytes | None) -> int:
    result = _libc.syscall(ctypes.c_long(number), *(_c(a) for a in arguments))
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"landlock: {os.strerror(code)}")
    return int(result)


def _c(argument: int | bytes | None) -> ctypes.c_long | ctypes.c_char_p | None:
    if isinstance(argument, int):
        return ctypes.c_long(argument)
    return None if argument is None else ctypes.c_char_p(argument)


def abi() -> int:
    """The kernel's Landlock version, 0 when it has none or has it disabled."""
    try:
        return _syscall(_CREATE_RULESET, None, 0, _VERSION)
    except OSError as error:
        if error.errno in (errno.ENOSYS, errno.EOPNOTSUPP, errno.EPERM):
            return 0
        raise


def restrict(readable: Iterable[str]) -> None:
    """Withdraws every file access of this thread except reading below `readable`.

    `no_new_privs` must be set. Paths that are missing or unreadable are skipped.

    Raises:
      OSError: the kernel refused: nothing may run then.
    """
    version = abi()
    rights = (1 << _RIGHTS.get(version, _RIGHTS_LATEST)) - 1
    fields = [rights]
    if version >= 4:
        fields.append(_NET)
    if version >= 6:
        fields.append(_SCOPED)
    attributes = struct.pack(f"={len(fields)}Q", *fields)
    ruleset = _syscall(_CREATE_RULESET, attributes, len(attributes), 0)
    try:
        for path in readable:
            _allow_reading(ruleset, path)
        _syscall(_RESTRICT_SELF, ruleset, 0)
    finally:
        os.close(ruleset)


def _allow_reading(ruleset: int, path: str) -> None:
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        directory = stat.S_ISDIR(os.fstat(descriptor).st_mode)
        rights = _READ_FILE | _READ_DIR if directory else _READ_FILE
        rule = struct.pack("=Qi", rights, descriptor)
        _syscall(_ADD_RULE, ruleset, _PATH_BENEATH, rule, 0)
    finally:
        os.close(descriptor)
