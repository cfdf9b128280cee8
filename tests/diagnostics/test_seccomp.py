"""The filter program of both architectures, run by an interpreter of classic BPF."""

import errno
import os
import struct

import pytest

from structjax.diagnostics import seccomp

PID = 4321
ALLOW, KILL = "allow", "kill"
# Numbers from the kernel's own tables (arch/x86/entry/syscalls/syscall_64.tbl and
# include/uapi/asm-generic/unistd.h), for calls that the allow-list does not contain.
DENIED = {
    "x86_64": {
        "socket": 41, "connect": 42, "socketpair": 53, "fork": 57, "vfork": 58,
        "execve": 59, "wait4": 61, "rename": 82, "mkdir": 83, "creat": 85,
        "unlink": 87, "symlink": 88, "chmod": 90, "ptrace": 101, "setuid": 105,
        "mount": 165, "tkill": 200, "renameat2": 316, "seccomp": 317,
        "memfd_create": 319, "bpf": 321, "execveat": 322, "pidfd_send_signal": 424,
        "io_uring_setup": 425, "pidfd_open": 434,
    },
    "aarch64": {
        "socket": 198, "connect": 203, "socketpair": 199, "execve": 221, "wait4": 260,
        "mkdirat": 34, "unlinkat": 35, "symlinkat": 36, "fchmodat": 53, "ptrace": 117,
        "setuid": 146, "mount": 40, "tkill": 130, "seccomp": 277, "memfd_create": 279,
        "bpf": 280, "execveat": 281, "pidfd_send_signal": 424, "io_uring_setup": 425,
        "pidfd_open": 434,
    },
}  # fmt: skip
CALLS = {
    "x86_64": {"read": 0, "openat": 257, "clone": 56, "kill": 62, "tgkill": 234}
    | {"prlimit64": 302, "fcntl": 72, "ioctl": 16, "prctl": 157},
    "aarch64": {"read": 63, "openat": 56, "clone": 220, "kill": 129, "tgkill": 131}
    | {"prlimit64": 261, "fcntl": 25, "ioctl": 29, "prctl": 167},
}
AUDIT = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}  # linux/audit.h
MACHINES = list(AUDIT)


def verdict(
    machine: str, number: int, *arguments: int, audit: int | None = None
) -> object:
    """What the kernel does with a call: `allow`, `kill` or an errno."""
    arch = seccomp.architecture(machine)
    assert arch is not None
    padded = [a % 2**64 for a in (*arguments, *[0] * (6 - len(arguments)))]
    audit = AUDIT[machine] if audit is None else audit
    data = struct.pack("<IIQ6Q", number, audit, 0, *padded)
    program = list(struct.iter_unpack("=HBBI", seccomp.assemble(arch, PID)))
    accumulator = position = 0
    while True:
        code, if_true, if_false, operand = program[position]
        position += 1
        if code == 0x20:  # BPF_LD | BPF_W | BPF_ABS
            (accumulator,) = struct.unpack_from("<I", data, operand)
        elif code == 0x06:  # BPF_RET | BPF_K
            if operand >> 16 == 0x0005:
                return operand & 0xFFFF
            return {0x7FFF0000: ALLOW, 0x80000000: KILL}[operand]
        else:  # BPF_JMP | BPF_K with JEQ, JGE or JSET
            holds = {
                0x15: accumulator == operand,
                0x35: accumulator >= operand,
                0x45: accumulator & operand != 0,
            }[code]
            position += if_true if holds else if_false


@pytest.mark.parametrize("machine", MACHINES)
def test_everything_outside_the_list_is_refused(machine: str) -> None:
    for name, number in DENIED[machine].items():
        assert verdict(machine, number) == errno.EPERM, name
    # clone3, openat2, faccessat2: the C library falls back to an older call.
    for number in (435, 437, 439, 600):
        assert verdict(machine, number) == errno.ENOSYS


@pytest.mark.parametrize("machine", MACHINES)
def test_foreign_architectures_are_killed(machine: str) -> None:
    assert verdict(machine, 0, audit=0x40000003) == KILL  # i386
    other = AUDIT[MACHINES[1 - MACHINES.index(machine)]]
    assert verdict(machine, 0, audit=other) == KILL


def test_x32_is_killed() -> None:
    assert verdict("x86_64", 0x40000000 | 39) == KILL


@pytest.mark.parametrize("machine", MACHINES)
def test_arguments_decide(machine: str) -> None:
    call = CALLS[machine]
    flags = os.O_RDONLY | os.O_CLOEXEC
    cases = [
        (ALLOW, "read", (0, 0, 1)),
        (ALLOW, "openat", (-100, 0, flags)),
        (errno.EPERM, "openat", (-100, 0, os.O_WRONLY)),
        (errno.EPERM, "openat", (-100, 0, os.O_RDWR)),
        (errno.EPERM, "openat", (-100, 0, os.O_RDONLY | os.O_CREAT)),
        (errno.EPERM, "openat", (-100, 0, os.O_RDONLY | os.O_TRUNC)),
        (errno.EPERM, "openat", (-100, 0, 3)),  # the undocumented access mode
        (ALLOW, "clone", (0x3D0F00,)),  # what pthread_create asks for
        (errno.EPERM, "clone", (17,)),  # SIGCHLD: a process
        (errno.EPERM, "clone", (0x10000000 | 17,)),  # CLONE_NEWUSER
        (ALLOW, "kill", (PID, 9)),
        (errno.EPERM, "kill", (PID - 1, 9)),
        (errno.EPERM, "kill", (0, 0)),
        (errno.EPERM, "kill", (-1, 0)),
        (errno.EPERM, "kill", (-PID, 0)),
        (ALLOW, "tgkill", (PID, PID + 1, 6)),
        (errno.EPERM, "tgkill", (1, 1, 6)),
        (ALLOW, "prlimit64", (0, 7, 0, 0x7FFF00001000)),
        (errno.EPERM, "prlimit64", (0, 7, 0x7FFF00001000, 0)),
        (errno.EPERM, "prlimit64", (0, 7, 0x7FFF00000000, 0)),  # low half is zero
        (errno.EPERM, "prlimit64", (1, 7, 0, 0x7FFF00001000)),
        (ALLOW, "fcntl", (1, 3)),  # F_GETFL
        (errno.EPERM, "fcntl", (1, 8, 1)),  # F_SETOWN
        (ALLOW, "ioctl", (1, 0x5401)),  # TCGETS
        (errno.EPERM, "ioctl", (0, 0x5412)),  # TIOCSTI
        (ALLOW, "prctl", (15,)),  # PR_SET_NAME
        (errno.EPERM, "prctl", (4, 1)),  # PR_SET_DUMPABLE
    ]
    for expected, name, arguments in cases:
        assert verdict(machine, call[name], *arguments) == expected, (name, arguments)


def test_machines_without_a_table() -> None:
    assert seccomp.architecture("riscv64") is None
