"""Gives up, in a freshly forked child, everything that analysis code has no need of.

Standard library only: runs in the sandbox server.
"""

import ctypes
import math
import os
import resource
import signal
import sys
from dataclasses import dataclass

from structjax.diagnostics import landlock, seccomp

_SET_PDEATHSIG, _SET_DUMPABLE, _CAPBSET_DROP = 1, 4, 24
_SET_NO_NEW_PRIVS, _CAP_AMBIENT, _CAP_AMBIENT_CLEAR = 38, 47, 4
_CAPABILITY_VERSION_3 = 0x20080522
_MEBIBYTE = 2**20


@dataclass(frozen=True)
class Confinement:
    """What a child is left with.

    Attributes:
      level: `"strict"` needs every layer, `"container"` takes those there are,
        `"off"` leaves resource limits only.
      readable: files and directories that stay readable.
    """

    level: str
    readable: tuple[str, ...]


def confine(settings: Confinement, *, wall: float, memory_mb: int) -> None:
    """Confines this process for good. Call in a child with one thread.

    Raises:
      OSError: a layer could not be applied; nothing may run then.
    """
    os.setsid()
    linux = sys.platform == "linux"
    if linux:
        _prctl(_SET_PDEATHSIG, signal.SIGKILL)
        _prctl(_SET_DUMPABLE, 0)
    _limit_resources(wall, memory_mb)
    if settings.level == "off" or not linux:
        return
    _drop_capabilities()
    _prctl(_SET_NO_NEW_PRIVS, 1)
    strict = settings.level == "strict"
    if strict or landlock.abi() > 0:
        landlock.restrict(settings.readable)
    arch = seccomp.architecture()
    if arch is None and strict:
        raise OSError(f"seccomp: no table for {os.uname().machine}")
    if arch is not None and (strict or seccomp_available()):
        seccomp.install(seccomp.assemble(arch, os.getpid()))


def seccomp_available() -> bool:
    """Whether this kernel offers seccomp filters: an empty one is a bad address."""
    libc = ctypes.CDLL(None, use_errno=True)
    null = ctypes.c_ulong(0)
    libc.prctl(22, ctypes.c_ulong(2), null, null, null)  # PR_SET_SECCOMP, filter mode
    return ctypes.get_errno() == 14  # EFAULT


def _limit_resources(wall: float, memory_mb: int) -> None:
    cpu = math.ceil(wall) + 1
    limits = [
        (resource.RLIMIT_CPU, cpu),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_NOFILE, 64),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_STACK, 8 * _MEBIBYTE),
    ]
    mapped = _mapped_bytes()
    if mapped is not None:
        limits.append((resource.RLIMIT_AS, mapped + memory_mb * _MEBIBYTE))
    for kind, value in limits:
        hard = resource.getrlimit(kind)[1]
        bound = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (bound, bound))


def _mapped_bytes() -> int | None:
    """Address space this process has already: the budget of a job comes on top."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[0]) * resource.getpagesize()
    except OSError:
        return None


def _drop_capabilities() -> None:
    """Root without capabilities: keeps the user id, so that imports go on working."""
    _prctl(_CAP_AMBIENT, _CAP_AMBIENT_CLEAR)
    capability = 0
    while _try_prctl(_CAPBSET_DROP, capability):  # ends at the last, or without rights
        capability += 1
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    nothing = (ctypes.c_uint32 * 6)()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.capset(ctypes.byref(header), ctypes.byref(nothing)) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"capset: {os.strerror(code)}")


def _prctl(option: int, argument: int) -> None:
    if not _try_prctl(option, argument):
        code = ctypes.get_errno()
        raise OSError(code, f"prctl({option}): {os.strerror(code)}")


def _try_prctl(option: int, argument: int) -> bool:
    libc = ctypes.CDLL(None, use_errno=True)
    rest = (ctypes.c_ulong(argument), *[ctypes.c_ulong(0)] * 3)
    return bool(libc.prctl(option, *rest) == 0)
