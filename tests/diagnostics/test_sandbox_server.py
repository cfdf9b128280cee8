"""The process behind the sandbox: replaced, reloaded, ended, confined as it says."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest

from structjax.diagnostics import sandbox as sandbox_module
from structjax.diagnostics.sandbox import Sandbox, sandbox_available
from structjax.errors import StructjaxError

AVAILABLE, REASON = sandbox_available()
pytestmark = pytest.mark.skipif(not AVAILABLE, reason=REASON)

SERVER_PID = "import os\nprint(os.getppid())"


def server_pid(sandbox: Sandbox) -> int:
    return int(sandbox.run(SERVER_PID, static_check=False)[0].text)


def test_same_code_gives_the_same_text_in_another_server(table: Path) -> None:
    code = """
import random
print({"speed", "heading", "tiles", "x", "y"}, np.random.rand(), random.random())
"""
    texts = []
    for _ in range(2):
        with Sandbox(table) as sandbox:
            texts.append(sandbox.run(code)[0].text)
    assert texts[0] == texts[1]


def test_a_killed_server_is_replaced(table: Path) -> None:
    with Sandbox(table) as sandbox:
        first = server_pid(sandbox)
        os.kill(first, signal.SIGKILL)
        assert sandbox.run("print(len(df))")[0].text == "3"
        second = server_pid(sandbox)
        assert second != first
        os.kill(second, signal.SIGKILL)
        sandbox.load(table)
        assert sandbox.run("print(len(df))")[0].text == "3"


@pytest.mark.parametrize(("number", "name"), [(9, "SIGKILL"), (40, "signal 40")])
def test_the_signal_that_ended_a_child_is_named(
    number: int, name: str, shared: Sandbox
) -> None:
    code = f"import os\nos.kill(os.getpid(), {number})"
    (finding,) = shared.run(code, static_check=False)
    assert finding.status == "killed"
    assert finding.text == f"the process died of {name}"


def test_a_worn_server_is_replaced(
    table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sandbox_module, "_RESTART_AFTER", 2)
    with Sandbox(table) as sandbox:
        pids = [server_pid(sandbox) for _ in range(3)]
    assert pids[0] == pids[1] != pids[2]


def test_load_changes_the_table(table: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.parquet"
    pd.DataFrame({"x": range(5)}).to_parquet(other)
    broken = tmp_path / "broken.parquet"
    broken.write_bytes(b"PAR1 not a table")
    with Sandbox(table) as sandbox:
        sandbox.load(other)
        assert sandbox.run("print(len(df))")[0].text == "5"
        with pytest.raises(StructjaxError, match=r"cannot read the table .*Parquet"):
            sandbox.load(broken)
        assert "NameError" in sandbox.run("print(len(df))")[0].text
        with pytest.raises(StructjaxError, match=r"no table at .*; accepted: a Parq"):
            sandbox.load(tmp_path / "absent.parquet")
        sandbox.load(table)
        assert sandbox.run("print(len(df))")[0].text == "3"


def test_server_and_job_end_with_the_process_that_asked(
    table: Path, tmp_path: Path
) -> None:
    client = f"""
import os, sys
from structjax.diagnostics.sandbox import Sandbox, sandbox_available
with Sandbox({str(table)!r}) as sandbox:
    print(sandbox.run("import os; print(os.getppid())", static_check=False)[0].text)
    sys.stdout.flush()
    sandbox.run("while True: pass", wall=60.0)
"""
    process = subprocess.Popen(
        [sys.executable, "-c", client],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    assert process.stdout is not None
    with process.stdout as stdout:
        server = int(stdout.readline())
    time.sleep(0.3)  # the endless job has begun
    process.kill()
    process.wait()
    deadline = time.monotonic() + 10
    while _alive(server) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not _alive(server)
    assert list(tmp_path.iterdir()) == []


def _alive(pid: int) -> bool:
    """Whether the process runs: nobody may be there to reap it as an orphan."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return False
    return state not in "ZX"


def test_jax_is_not_in_the_process_that_forks(shared: Sandbox) -> None:
    code = "import sys\nprint(sorted({'jax', 'pandas', 'flax'} & set(sys.modules)))"
    assert shared.run(code, static_check=False)[0].text == "['pandas']"


def test_sandbox_says_what_it_verified(shared: Sandbox) -> None:
    level = shared.level
    assert level["level"] == "strict"
    assert level["landlock_abi"] >= 1
    assert level["seccomp"] is True
    assert level["probes"] >= 10
    assert level["probes_failed"] == []


def test_without_a_sandbox_the_record_says_what_is_open(table: Path) -> None:
    with Sandbox(table, level="off") as sandbox:
        assert sandbox.run("print(len(df))")[0].text == "3"
        assert sandbox.level["level"] == "off"
        assert {"read", "socket", "fork", "exec"} <= set(sandbox.level["probes_failed"])


def test_container_level_takes_the_layers_there_are(table: Path) -> None:
    with Sandbox(table, level="container") as sandbox:
        (finding,) = sandbox.run("open('/etc/passwd')", static_check=False)
        assert finding.text.endswith(
            "PermissionError: [Errno 13] Permission denied: '/etc/passwd'"
        )
        assert sandbox.level["probes_failed"] == []


def test_unknown_level() -> None:
    with pytest.raises(StructjaxError, match="'loose'; accepted: strict, container"):
        Sandbox(level="loose")
