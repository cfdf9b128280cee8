"""Every known attack on the sandbox fails, and most are shown to work outside it.

Witnesses are real: listening sockets, a secret file and a directory that everybody may
write to. Run as whoever runs the suite.
"""

import os
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from diagnostics import attacks

from structjax.diagnostics.sandbox import Sandbox, sandbox_available

AVAILABLE, REASON = sandbox_available()
pytestmark = pytest.mark.skipif(not AVAILABLE, reason=REASON)

SECRET = "canary-7391"
ALL = attacks.EFFECTIVE | attacks.OTHERS


class World(NamedTuple):
    """What an attack could reach."""

    secret_file: Path
    loot: Path
    received: list[bytes]
    replace: dict[str, str]

    def arm(self, code: str) -> str:
        """The attack's program with this world's names in it."""
        for name, value in self.replace.items():
            code = code.replace(name, value)
        return attacks.PRELUDE + code

    def reset(self) -> None:
        """Undoes what an attack outside the sandbox has done."""
        self.received.clear()
        for path in [*self.loot.iterdir(), self.secret_file.parent / "moved"]:
            if path.is_dir() and not path.is_symlink():
                path.rmdir()
            else:
                path.unlink(missing_ok=True)
        (self.secret_file.parent / "written").unlink(missing_ok=True)
        self.secret_file.unlink(missing_ok=True)
        self.secret_file.write_text(SECRET)
        self.secret_file.chmod(0o600)
        os.utime(self.secret_file, (1e9, 1e9))

    def harm(self) -> list[str]:
        """What an attack has done to it."""
        status = self.secret_file.stat() if self.secret_file.exists() else None
        untouched = status is not None and (status.st_mode & 0o7777) == 0o600
        untouched = untouched and status.st_mtime == 1e9
        found = [] if untouched else ["secret file"]
        found += [str(p) for p in self.loot.iterdir()]
        found += [str(p) for p in self.secret_file.parent.iterdir() if p.name != "key"]
        return found + [repr(message) for message in self.received]


def _listen(
    kind: int, family: int, address: object, received: list[bytes]
) -> socket.socket:
    server = socket.socket(family, kind)
    server.bind(address)
    if kind == socket.SOCK_STREAM:
        server.listen(8)

    def serve() -> None:
        while True:
            try:
                if kind == socket.SOCK_STREAM:
                    connection, _ = server.accept()
                    connection.close()
                    received.append(b"connection")
                else:
                    received.append(server.recv(100))
            except OSError:
                return
            if received[-1] == b"":
                return

    threading.Thread(target=serve, daemon=True).start()
    return server


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    root = tmp_path_factory.mktemp("world")
    home, loot = root / "home", root / "loot"
    home.mkdir()
    loot.mkdir(mode=0o777)
    received: list[bytes] = []
    abstract = f"structjax-test-{os.getpid()}"
    short = Path("/tmp") / f"structjax-test-{os.getpid()}.sock"  # 108 bytes at most
    short.unlink(missing_ok=True)
    datagram, stream = socket.SOCK_DGRAM, socket.SOCK_STREAM
    sockets = [
        _listen(stream, socket.AF_INET, ("127.0.0.1", 0), received),
        _listen(datagram, socket.AF_INET, ("127.0.0.1", 0), received),
        _listen(datagram, socket.AF_UNIX, b"\0" + abstract.encode(), received),
        _listen(datagram, socket.AF_UNIX, str(short), received),
    ]
    replace = {
        "SECRET_FILE": str(home / "key"),
        "HOME": str(home),
        "CLIENT": str(os.getpid()),
        "TCP": str(sockets[0].getsockname()[1]),
        "UDP": str(sockets[1].getsockname()[1]),
        "ABSTRACT": abstract,
        "UNIX'": f"{short}'",
        "LOOT": str(loot),
    }
    world = World(home / "key", loot, received, replace)
    world.reset()
    yield world
    for server in sockets:
        server.shutdown(socket.SHUT_RDWR) if server.type == stream else None
        server.close()
    short.unlink(missing_ok=True)


@pytest.fixture(scope="module")
def environment() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_API_KEY", SECRET)
        yield


@pytest.fixture(scope="module")
def sandbox(environment: None, table: Path) -> Iterator[Sandbox]:
    with Sandbox(table) as sandbox:
        yield sandbox


@pytest.fixture(scope="module")
def no_sandbox(environment: None) -> Iterator[Sandbox]:
    with Sandbox(level="off") as sandbox:
        yield sandbox


@pytest.mark.parametrize("name", ALL)
def test_attack_is_refused(name: str, sandbox: Sandbox, world: World) -> None:
    world.reset()
    (finding,) = sandbox.run(world.arm(ALL[name]), wall=5.0, static_check=False)
    assert finding.status in ("ok", "exception", "killed"), finding
    assert attacks.MARK not in finding.text
    assert SECRET not in finding.text
    assert world.harm() == []
    # Stopped by the sandbox, not by a slip in the attack's own text.
    for slip in ("SyntaxError", "NameError", "TypeError", "AttributeError"):
        assert slip not in finding.text


@pytest.mark.parametrize("name", attacks.EFFECTIVE)
def test_attack_works_without_the_sandbox(
    name: str, no_sandbox: Sandbox, world: World
) -> None:
    world.reset()
    code = world.arm(attacks.EFFECTIVE[name])
    (finding,) = no_sandbox.run(code, wall=5.0, static_check=False)
    leak = attacks.MARK in finding.text or bool(world.harm())
    world.reset()
    assert leak, finding


def test_the_server_outlives_all_of_it(sandbox: Sandbox) -> None:
    code = "def check_rows(df):\n    return len(df)"
    assert [f.text for f in sandbox.run(code)] == ["", "3"]


HANGS = """
import os, re, signal, sys, time

def check_loop(df):
    while True:
        pass

def check_sleep(df):
    time.sleep(60)

def check_long_integer(df):
    sys.set_int_max_str_digits(0)
    return len(str(1 << 200_000_000))

def check_regex(df):
    return re.match(r"(a+)+$", "a" * 64 + "b")

def check_ignores_signals(df):
    for number in range(1, 65):
        try:
            signal.signal(number, signal.SIG_IGN)
        except (OSError, ValueError):
            pass
    while True:
        pass

def check_closes_its_output(df):
    os.close(1)
    os.close(2)
    time.sleep(60)

def check_rows(df):
    return len(df)
"""


def test_what_hangs_is_killed_and_loses_only_itself(sandbox: Sandbox) -> None:
    findings = sandbox.run(HANGS, wall=0.5, static_check=False)
    assert [f.status for f in findings] == ["ok", *["timeout"] * 6, "ok"]
    assert findings[-1].text == "3"
    assert all(f.seconds < 3 for f in findings)


def test_memory_is_limited(sandbox: Sandbox) -> None:
    code = """
def check_array(df):
    return np.ones(10 * 2**30 // 8).sum()

def check_list(df):
    rows = []
    while True:
        rows.append(bytes(2**20))

def check_threads(df):
    import threading, time
    count = 0
    try:
        for _ in range(10_000):
            threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
            count += 1
    finally:
        print("threads" if count < 500 else "LEAK", flush=True)
"""
    findings = sandbox.run(code, wall=10.0, memory_mb=256, static_check=False)
    assert [f.status for f in findings[1:3]] == ["memory", "memory"]
    assert "LEAK" not in findings[3].text
    assert findings[3].status in ("exception", "memory", "killed")


@pytest.mark.parametrize(
    ("expression", "status"),
    [
        ("ctypes.string_at(8)", "killed"),
        ("os.abort()", "killed"),
        ("os.kill(os.getpid(), signal.SIGKILL)", "killed"),
        (
            "sys.setrecursionlimit(10**9); f = lambda x: list(map(f, [x])); f(1)",
            "killed",
        ),
        ("f = lambda: f(); f()", "exception"),
        ("sys.exit(0)", "exception"),
        ("raise KeyboardInterrupt", "exception"),
        ("os._exit(97)", "exception"),
        ("os._exit(0)", "ok"),
    ],
)
def test_a_dying_process_is_a_finding(
    expression: str, status: str, sandbox: Sandbox
) -> None:
    code = f"import ctypes, os, signal, sys\n{expression}"
    (finding,) = sandbox.run(code, wall=10.0, static_check=False)
    # From 3.12 on the interpreter counts C calls as well and raises RecursionError.
    bounded = sys.version_info >= (3, 12) and "setrecursionlimit" in expression
    assert finding.status == ("exception" if bounded else status)


@pytest.mark.skipif(
    os.uname().machine != "x86_64", reason="x32 is an x86_64 convention"
)
def test_x32_calls_kill_the_process(sandbox: Sandbox) -> None:
    code = """
import ctypes
print(ctypes.CDLL(None).syscall(0x40000000 | 39))
"""
    (finding,) = sandbox.run(code, static_check=False)
    assert (finding.status, finding.text) == (
        "killed",
        f"the process died of {signal.SIGSYS.name}",
    )


@pytest.mark.parametrize(
    "code",
    [
        "while True: print('x' * 100_000)",
        "import sys\nwhile True: sys.stderr.write('x' * 100_000)",
        "import os\nwhile True: os.write(2, b'x' * 100_000)",
        "class Long:\n    def __str__(self): return 'x' * 100_000_000\nprint(Long())",
    ],
)
def test_endless_output_is_stopped(code: str, sandbox: Sandbox) -> None:
    (finding,) = sandbox.run(code, wall=10.0, static_check=False)
    assert finding.status == "output_limit"
    assert len(finding.text) < 21_000
    assert "bytes dropped" in finding.text
