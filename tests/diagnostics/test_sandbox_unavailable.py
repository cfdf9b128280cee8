"""Kernels without Landlock or seccomp, made by a filter that hides them."""

import ctypes
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from structjax.diagnostics.sandbox import sandbox_available

# Installed in a process of its own, which it binds for good: the system calls listed
# as [number, argument 0 or None, errno] fail, all others go through.
HIDE = """
import ctypes, json, struct, sys
from structjax.diagnostics import seccomp

rules = json.loads(sys.argv[1])
program = [(0x20, 0, 0, 0)]
allow = (0x06, 0, 0, 0x7fff0000)
for number, argument, error in rules:
    deny = [(0x06, 0, 0, 0x00050000 | error)]
    if argument is not None:
        deny = [(0x20, 0, 0, 16), (0x15, 0, 1, argument), *deny, allow]
    program += [(0x15, 0, len(deny), number), *deny]
program.append(allow)
zero = ctypes.c_ulong(0)
ctypes.CDLL(None).prctl(38, ctypes.c_ulong(1), zero, zero, zero)
seccomp.install(b"".join(struct.pack("=HBBI", *i) for i in program))

from structjax.diagnostics.sandbox import Sandbox, SandboxUnavailable, sandbox_available
answer = {"available": sandbox_available()}
for level in ("strict", "container"):
    try:
        with Sandbox(level=level) as sandbox:
            (finding,) = sandbox.run("print(6 * 7)")
            answer[level] = [finding.text, sandbox.level["probes_failed"]]
    except SandboxUnavailable as error:
        answer[level] = [str(error), error.kind]
print(json.dumps(answer))
"""
AVAILABLE, REASON = sandbox_available()
needed = pytest.mark.skipif(not AVAILABLE, reason=REASON)
ENOSYS, EINVAL, EPERM = 38, 22, 1
LANDLOCK = [444, None, ENOSYS]
NUMBERS = {"x86_64": {"prctl": 157, "unshare": 272, "mount": 165}}
NUMBERS["aarch64"] = {"prctl": 167, "unshare": 97, "mount": 40}


def run_without(*rules: list[int | None]) -> dict[str, list[object]]:
    command = [sys.executable, "-c", HIDE, json.dumps(rules)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def numbers() -> dict[str, int]:
    return NUMBERS[os.uname().machine]


def test_the_answer_agrees_with_the_kernel() -> None:
    landlock = ctypes.CDLL(None).syscall(444, None, 0, 1) >= 1
    filters = Path("/proc/sys/kernel/seccomp/actions_avail").exists()
    known = os.uname().machine in NUMBERS
    available, why = sandbox_available()
    assert available == (landlock and filters and known), why


@needed
@pytest.mark.parametrize("error", [ENOSYS, 95, EPERM])  # 95: built in, but disabled
def test_without_landlock(error: int) -> None:
    answer = run_without([444, None, error])
    available, why = answer["available"]
    assert available is False
    message, kind = answer["strict"]
    assert kind == "sandbox_unavailable"
    assert why == message
    assert "needs Landlock (Linux 5.13 or newer" in str(message)
    assert "seccomp" not in str(message)
    for way in ("--network none", "--sandbox container", "--sandbox off", "replay"):
        assert way in str(message)
    # seccomp alone still holds in the container: what stays open is reading.
    # (A process that is not root cannot read its own `environ` once undumpable.)
    text, failed = answer["container"]
    assert text == "42"
    assert [name for name in failed if name != "environ"] == ["read", "list"]


@needed
def test_without_seccomp() -> None:
    answer = run_without([numbers()["prctl"], 22, EINVAL])
    message, _ = answer["strict"]
    assert "needs seccomp filters" in str(message)
    assert "Landlock" not in str(message)
    text, failed = answer["container"]
    assert text == "42"
    assert "read" not in failed
    assert "fork" in failed


@needed
def test_without_either() -> None:
    answer = run_without(LANDLOCK, [numbers()["prctl"], 22, EINVAL])
    assert "needs Landlock" in str(answer["strict"][0])
    assert "seccomp filters" in str(answer["strict"][0])


@needed
def test_namespaces_are_not_needed() -> None:
    denied = [[numbers()[name], None, EPERM] for name in ("unshare", "mount")]
    answer = run_without(*denied)
    assert answer["strict"] == ["42", []]
