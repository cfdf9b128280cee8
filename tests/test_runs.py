"""The run directory: atomic, locked, resumable."""

import errno
import json
import os
import stat
import subprocess
import sys
import threading

import pytest

from structjax.errors import StructjaxError
from structjax.llm.model import LLMUnavailable
from structjax.llm.transcript import Transcript
from structjax.run_lock import lock
from structjax.runs import (
    SUBDIRECTORIES,
    RunDirectory,
    jsonable,
    read_json,
    write_atomic,
)


def _create(path, **config):
    return RunDirectory.create(path, kind="refine", task="toy", config=config)


def test_a_step_is_computed_once_and_its_ledger_added_once(tmp_path):
    calls = []

    def work(run):
        def compute():
            calls.append(1)
            run.ledger.book("gate", resets=10, env_steps=100)
            return {"values": [0.1, 0.2]}

        return run.step("r0/gate", compute)

    with _create(tmp_path / "run") as run:
        first = work(run)
    with RunDirectory.resume(tmp_path / "run", config={}) as run:
        second = work(run)
        assert run.ledger.resets["gate"] == 10
    assert first == second == {"values": [0.1, 0.2]}
    assert len(calls) == 1


def test_a_resumed_run_logs_nothing_twice_and_cuts_a_torn_line(tmp_path):
    log = tmp_path / "run" / "metrics.jsonl"
    with _create(tmp_path / "run") as run:
        run.log(round=0, loss=float("nan"))
        run.log(round=1)
    log.write_text(log.read_text()[:-4])
    with RunDirectory.resume(tmp_path / "run", config={}) as run:
        for values in ({"round": 0, "loss": float("nan")}, {"round": 1}, {"round": 2}):
            run.log(**values)
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert lines == [{"round": 0, "loss": None}, {"round": 1}, {"round": 2}]


def test_a_step_that_fails_leaves_nothing_behind(tmp_path):
    def fail(run):
        run.ledger.book("gate", resets=10, env_steps=1)
        raise StructjaxError("no", kind="x")

    with pytest.raises(StructjaxError), _create(tmp_path / "run") as run:
        run.step("r0/gate", lambda: fail(run))
    manifest = read_json(tmp_path / "run" / "manifest.json")
    assert manifest["status"] == "failed"
    assert not list((tmp_path / "run" / "checkpoints").iterdir())


def test_two_processes_cannot_hold_one_run(tmp_path):
    with (
        _create(tmp_path / "run"),
        pytest.raises(StructjaxError, match=f"in use by process {os.getpid()}"),
        RunDirectory.resume(tmp_path / "run", config={}),
    ):
        pass


def test_a_dead_owners_lock_is_taken_over_with_a_note(tmp_path):
    with _create(tmp_path / "run") as run:
        pass
    owner = {"pid": 2**22 + 1, "host": os.uname().nodename, "started": "1"}
    (tmp_path / "run" / "lock").write_text(json.dumps(owner))
    with RunDirectory.resume(tmp_path / "run", config={}) as run:
        assert "took over the lock" in run.manifest["notes"][0]
    assert not (tmp_path / "run" / "lock").exists()


def _hold_and_die(path):
    """Takes the lock in another process and ends it without releasing it."""
    code = (
        "import os, sys, pathlib\n"
        "from structjax.run_lock import lock\n"
        "held = lock(pathlib.Path(sys.argv[1]))\n"
        "held.__enter__()\n"
        "os._exit(1)\n"
    )
    subprocess.run([sys.executable, "-c", code, str(path)], check=False)


@pytest.mark.parametrize("torn", [None, "", '{"pid": 1', "null", "3", "\x00"])
def test_a_lock_that_a_kill_left_is_taken_over(tmp_path, torn):
    with _create(tmp_path / "run"):
        pass
    _hold_and_die(tmp_path / "run")
    assert json.loads((tmp_path / "run" / "lock").read_text())["pid"]
    if torn is not None:
        (tmp_path / "run" / "lock").write_text(torn)
    with RunDirectory.resume(tmp_path / "run", config={}) as run:
        owner = json.loads((tmp_path / "run" / "lock").read_text())
        assert owner == {"pid": os.getpid(), "host": os.uname().nodename}
        assert run.manifest["status"] == "running"


def test_a_torn_lock_of_a_living_process_still_locks(tmp_path):
    with _create(tmp_path / "run"):
        (tmp_path / "run" / "lock").write_text("")
        with (
            pytest.raises(StructjaxError, match="is in use by process"),
            RunDirectory.resume(tmp_path / "run", config={}),
        ):
            pass


def test_a_lock_of_another_host_is_left_to_the_user(tmp_path):
    with _create(tmp_path / "run"):
        pass
    (tmp_path / "run" / "lock").write_text('{"pid": 1, "host": "elsewhere"}')
    with (
        pytest.raises(StructjaxError, match="in use by process 1 on elsewhere"),
        RunDirectory.resume(tmp_path / "run", config={}),
    ):
        pass
    assert (tmp_path / "run" / "lock").exists()


def test_a_directory_in_place_of_the_lock_is_one_clear_line(tmp_path):
    with _create(tmp_path / "run"):
        pass
    (tmp_path / "run" / "lock").mkdir()
    with (
        pytest.raises(StructjaxError, match="cannot lock"),
        RunDirectory.resume(tmp_path / "run", config={}),
    ):
        pass


def test_of_many_takers_of_a_dead_lock_one_wins(tmp_path):
    (tmp_path / "lock").write_text("")
    wins, losses, start = [], [], threading.Barrier(16)
    done = threading.Barrier(16)

    def take():
        start.wait()
        try:
            with lock(tmp_path):
                wins.append(1)
                done.wait()
        except StructjaxError as error:
            losses.append(str(error))
            done.wait()

    threads = [threading.Thread(target=take) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(wins) == 1
    assert len(losses) == 15
    assert all("is in use by process" in line for line in losses)


@pytest.mark.parametrize("left", [(), ("lock",), ("structures", "tables", ".1-ab.tmp")])
def test_what_a_kill_before_the_manifest_leaves_can_be_started_again(tmp_path, left):
    for name in left:
        if name in SUBDIRECTORIES:
            (tmp_path / name).mkdir()
        else:
            (tmp_path / name).write_text("")
    with _create(tmp_path) as run:
        assert {p.name for p in run.path.iterdir()} >= {
            *SUBDIRECTORIES,
            "manifest.json",
        }


def test_a_finished_run_is_not_started_again(tmp_path):
    with _create(tmp_path / "run"):
        pass
    with pytest.raises(StructjaxError, match="not empty"), _create(tmp_path / "run"):
        pass


def test_a_run_of_another_task_is_not_continued(tmp_path):
    with _create(tmp_path / "run"):
        pass
    before = (tmp_path / "run" / "manifest.json").read_bytes()
    with (
        pytest.raises(StructjaxError, match="a run of task 'toy', not of 'car'"),
        RunDirectory.resume(tmp_path / "run", config={}, task="car"),
    ):
        pass
    assert (tmp_path / "run" / "manifest.json").read_bytes() == before


MANIFESTS = ["null", "[]", "{}", '{"task": 3}', "{", "\xff"]


@pytest.mark.parametrize("text", MANIFESTS)
def test_a_manifest_that_was_changed_is_one_clear_line(tmp_path, text):
    with _create(tmp_path / "run"):
        pass
    path = tmp_path / "run" / "manifest.json"
    path.write_bytes(text.encode("latin-1"))
    with (
        pytest.raises(StructjaxError, match=r"manifest\.json") as refused,
        RunDirectory.resume(tmp_path / "run", config={}),
    ):
        pass
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("key", ["task", "status", "config", "notes", "ledger"])
def test_a_manifest_without_a_key_names_it(tmp_path, key):
    with _create(tmp_path / "run"):
        pass
    path = tmp_path / "run" / "manifest.json"
    manifest = read_json(path)
    del manifest[key]
    path.write_text(json.dumps(manifest))
    with (
        pytest.raises(StructjaxError, match=f"{key} is missing"),
        RunDirectory.resume(tmp_path / "run", config={}),
    ):
        pass


@pytest.mark.parametrize(
    "text", ["null", "[]", '{"result": 1}', '{"result": null, "ledger": {}}', "{"]
)
def test_a_checkpoint_that_was_changed_names_its_file(tmp_path, text):
    with _create(tmp_path / "run") as run:
        run.step("r0/gate", lambda: [1.0], [float])
        (tmp_path / "run" / "checkpoints" / "r0_gate.json").write_text(text)
        with pytest.raises(StructjaxError, match=r"r0_gate\.json") as refused:
            run.step("r0/gate", lambda: [1.0], [float])
    assert "\n" not in str(refused.value)


def test_a_directory_with_something_in_it_is_refused(tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(StructjaxError, match="not empty"), _create(tmp_path):
        pass
    assert (tmp_path / "file").read_text() == "mine"


def test_no_run_to_resume(tmp_path):
    with (
        pytest.raises(StructjaxError, match="cannot read"),
        RunDirectory.resume(tmp_path / "none", config={}),
    ):
        pass


def test_ctrl_c_leaves_a_resumable_run(tmp_path):
    with pytest.raises(KeyboardInterrupt), _create(tmp_path / "run"):
        raise KeyboardInterrupt
    assert read_json(tmp_path / "run" / "manifest.json")["status"] == "interrupted"
    with RunDirectory.resume(tmp_path / "run", config={}) as run:
        assert run.manifest["status"] == "running"


def test_numbers_that_json_does_not_know_become_null():
    assert jsonable({"a": float("nan"), "b": (1, float("inf"))}) == {
        "a": None,
        "b": [1, None],
    }


def full_of(monkeypatch, place):
    """A disk that is full for what is written by one way."""

    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(place, full)


def written_marker(run):
    run.step("r0/gate", lambda: 1)


def written_log(run):
    run.log(round=0)


def written_transcript(run):
    header = {"provider": "openai", "model": "m"}
    Transcript(run.path / "llm.jsonl", header=header)


def written_elsewhere(run):
    raise OSError(errno.ENOSPC, "No space left on device", "other.bin")


def fills_up(path, write):
    with _create(path) as run, pytest.MonkeyPatch.context() as patched:
        full_of(patched, "os.fsync")
        full_of(patched, "pathlib.Path.open")
        write(run)


@pytest.mark.parametrize(
    "write", [written_marker, written_log, written_transcript, written_elsewhere]
)
def test_a_disk_that_fills_up_during_a_run_names_how_it_goes_on(tmp_path, write):
    path = tmp_path / "run"
    with pytest.raises(StructjaxError) as refused:
        fills_up(path, write)
    assert "No space left on device" in str(refused.value)
    assert refused.value.kind == "disk"
    assert refused.value.hint == (
        f"free some space or make it writable, then `structjax refine --resume {path}`"
    )
    assert str(refused.value).count(";") == 1
    assert read_json(path / "manifest.json")["status"] == "interrupted"
    with RunDirectory.resume(path, config={}):
        pass


def test_a_run_that_could_not_begin_is_not_to_be_resumed(tmp_path, monkeypatch):
    full_of(monkeypatch, "os.fsync")
    with pytest.raises(StructjaxError) as refused, _create(tmp_path / "run"):
        pass
    assert "--resume" not in refused.value.hint


def test_an_error_that_leaves_a_run_resumable_names_the_run(tmp_path):
    path = tmp_path / "run"
    with (
        pytest.raises(LLMUnavailable) as refused,
        _create(path),
    ):
        raise LLMUnavailable("busy", kind="llm", hint="later: --resume the run")
    assert refused.value.hint == f"later: --resume {path}"


def test_a_hint_that_names_another_run_keeps_it(tmp_path):
    hint = "finish it with `structjax rl --resume runs/other`"
    with pytest.raises(StructjaxError) as refused, _create(tmp_path / "run"):
        raise StructjaxError("unfinished", kind="run", hint=hint)
    assert refused.value.hint == hint


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_directory_is_one_clear_line(tmp_path):
    tmp_path.chmod(stat.S_IRUSR | stat.S_IXUSR)
    with pytest.raises(StructjaxError, match="cannot create run directory"):
        _create(tmp_path / "run").__enter__()


def test_a_full_disk_is_one_clear_line(tmp_path, monkeypatch):
    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StructjaxError, match="No space left on device; free some"):
        write_atomic(tmp_path / "file", "text")
    assert not list(tmp_path.iterdir())
