"""seccomp: the system calls that analysis code needs, and no others.

An allow-list: reading, memory, threads, clocks. No sockets, no new process, no signal
to another process, no file opened for writing, nothing that changes a file. A call
outside the list fails with EPERM; one newer than clone3 with ENOSYS, on which the C
library falls back to an older call. A call of another architecture kills the process.
Standard library only: runs in the sandbox server. Layout: `linux/filter.h`,
`linux/seccomp.h`.
"""

import ctypes
import errno
import os
import struct
import sys
from collections.abc import Sequence
from typing import NamedTuple

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_KILL, _ERRNO, _ALLOW = 0x80000000, 0x00050000, 0x7FFF0000
_NUMBER, _ARCHITECTURE = 0, 4  # offsets in struct seccomp_data
_X32_BIT = 0x40000000
_CLONE3 = 435  # from pidfd_open on, numbers are the same on every architecture

_READ_ONLY_FLAGS = 0o3 | 0o100 | 0o1000 | 0o2000 | 0o20000000  # bits that must be clear
_CLONE_THREAD = 0x00010000
_PR_SET_NAME = 15
_TCGETS, _FIONREAD, _FIOCLEX = 0x5401, 0x541B, 0x5451
_DUPFD, _GETFD, _SETFD, _GETFL, _DUPFD_CLOEXEC = 0, 1, 2, 3, 1030

_PR_SET_SECCOMP, _MODE_FILTER = 22, 2

Instruction = tuple[int, int, int, int]  # code, jump if true, jump if false, operand


class Architecture(NamedTuple):
    """A calling convention: its audit number and the numbers of the allowed calls."""

    audit: int
    x32: bool
    numbers: dict[str, int]


def _table(text: str) -> dict[str, int]:
    words = text.split()
    return dict(zip(words[::2], map(int, words[1::2]), strict=True))


ARCHITECTURES = {
    "x86_64": Architecture(
        0xC000003E,
        True,
        _table("""
        read 0 write 1 open 2 close 3 stat 4 fstat 5 lstat 6 poll 7 lseek 8 mmap 9
        mprotect 10 munmap 11 brk 12 rt_sigaction 13 rt_sigprocmask 14 rt_sigreturn 15
        ioctl 16 pread64 17 readv 19 writev 20 access 21 select 23 sched_yield 24
        mremap 25 mincore 27 madvise 28 dup 32 nanosleep 35 getpid 39 clone 56 exit 60
        kill 62 uname 63 fcntl 72 getdents 78 getcwd 79 gettimeofday 96 getrlimit 97
        getrusage 98 sysinfo 99 times 100 getuid 102 getgid 104 geteuid 107 getegid 108
        getppid 110 sigaltstack 131 prctl 157 arch_prctl 158 gettid 186 time 201
        futex 202 sched_getaffinity 204 getdents64 217 set_tid_address 218
        restart_syscall 219 fadvise64 221 clock_gettime 228 clock_getres 229
        clock_nanosleep 230 exit_group 231 tgkill 234 openat 257 newfstatat 262
        faccessat 269 pselect6 270 ppoll 271 set_robust_list 273 prlimit64 302
        getcpu 309 getrandom 318 membarrier 324 statx 332 rseq 334
        """),
    ),
    "aarch64": Architecture(
        0xC00000B7,
        False,
        _table("""
        getcwd 17 dup 23 fcntl 25 ioctl 29 faccessat 48 openat 56 close 57
        getdents64 61 lseek 62 read 63 write 64 readv 65 writev 66 pread64 67
        pselect6 72 ppoll 73 newfstatat 79 fstat 80 exit 93 exit_group 94
        set_tid_address 96 futex 98 set_robust_list 99 nanosleep 101 clock_gettime 113
        clock_getres 114 clock_nanosleep 115 sched_getaffinity 123 sched_yield 124
        restart_syscall 128 kill 129 tgkill 131 sigaltstack 132 rt_sigaction 134
        rt_sigprocmask 135 rt_sigreturn 139 times 153 uname 160 getrlimit 163
        getrusage 165 prctl 167 getcpu 168 gettimeofday 169 getpid 172 getppid 173
        getuid 174 geteuid 175 getgid 176 getegid 177 gettid 178 sysinfo 179 brk 214
        munmap 215 mremap 216 clone 220 mmap 222 fadvise64 223 mprotect 226 mincore 232
        madvise 233 prlimit64 261 getrandom 278 membarrier 283 statx 291 rseq 293
        """),
    ),
}


def architecture(machine: str | None = None) -> Architecture | None:
    """The table of this machine, None when there is none (then: no sandbox)."""
    if machine is None and sys.maxsize < 2**32:
        return None  # a 32-bit interpreter on a 64-bit kernel
    return ARCHITECTURES.get(machine or os.uname().machine)


def assemble(arch: Architecture, pid: int) -> bytes:
    """The filter program for process `pid`, as an array of `struct sock_filter`."""
    program: list[Instruction] = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_EQUAL, 1, 0, arch.audit),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER),
    ]
    if arch.x32:
        program += [(_AT_LEAST, 0, 1, _X32_BIT), (_RETURN, 0, 0, _KILL)]
    checks = _argument_checks(pid)
    for name, number in arch.numbers.items():
        block = checks.get(name, [(_RETURN, 0, 0, _ALLOW)])
        program += [(_EQUAL, 0, len(block), number), *block]
    program += [
        (_AT_LEAST, 0, 1, _CLONE3),
        (_RETURN, 0, 0, _ERRNO | errno.ENOSYS),
        (_RETURN, 0, 0, _ERRNO | errno.EPERM),
    ]
    return b"".join(struct.pack("=HBBI", *i) for i in program)


def _argument_checks(pid: int) -> dict[str, list[Instruction]]:
    """For calls of which only some uses are allowed: the block that decides.

    Each argument compared is an `int` to the kernel, which ignores the upper half.
    """
    return {
        "open": _no_bit(1, _READ_ONLY_FLAGS),
        "openat": _no_bit(2, _READ_ONLY_FLAGS),
        "clone": _some_bit(0, _CLONE_THREAD),
        "kill": _one_of(0, [pid]),
        "tgkill": _one_of(0, [pid]),
        "prctl": _one_of(0, [_PR_SET_NAME]),
        "ioctl": _one_of(1, [_TCGETS, _FIONREAD, _FIOCLEX]),
        "fcntl": _one_of(1, [_DUPFD, _GETFD, _SETFD, _GETFL, _DUPFD_CLOEXEC]),
        "prlimit64": _only_reads_own_limits(),
    }


def _low(argument: int) -> Instruction:
    return (_LOAD, 0, 0, 16 + 8 * argument)  # both architectures are little-endian


def _high(argument: int) -> Instruction:
    return (_LOAD, 0, 0, 20 + 8 * argument)


_DENY: Instruction = (_RETURN, 0, 0, _ERRNO | errno.EPERM)
_ACCEPT: Instruction = (_RETURN, 0, 0, _ALLOW)


def _no_bit(argument: int, mask: int) -> list[Instruction]:
    return [_low(argument), (_ANY_BIT, 0, 1, mask), _DENY, _ACCEPT]


def _some_bit(argument: int, mask: int) -> list[Instruction]:
    return [_low(argument), (_ANY_BIT, 1, 0, mask), _DENY, _ACCEPT]


def _one_of(argument: int, values: Sequence[int]) -> list[Instruction]:
    block = [_low(argument)]
    for value in values:
        block += [(_EQUAL, 0, 1, value), _ACCEPT]
    return [*block, _DENY]


def _only_reads_own_limits() -> list[Instruction]:
    """prlimit64(0, resource, NULL, old): the new limits are a 64-bit pointer."""
    block: list[Instruction] = []
    for load in (_low(0), _low(2), _high(2)):
        block += [load, (_EQUAL, 1, 0, 0), _DENY]
    return [*block, _ACCEPT]


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))


def install(program: bytes) -> None:
    """Applies a filter to this thread for good; `no_new_privs` must be set.

    Raises:
      OSError: the kernel has no seccomp filters, or forbids them.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    buffer = ctypes.create_string_buffer(program, len(program))
    header = _Program(len(program) // 8, ctypes.addressof(buffer))
    arguments = (_MODE_FILTER, ctypes.addressof(header), 0, 0)
    if libc.prctl(_PR_SET_SECCOMP, *map(ctypes.c_ulong, arguments)) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"seccomp: {os.strerror(code)}")
