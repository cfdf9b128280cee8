"""The run directory: atomic, locked, resumable."""

import json
import os
import stat

import pytest

from structjax.errors import StructjaxError
from structjax.runs import RunDirectory, jsonable, read_json, write_atomic


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


def test_another_config_is_refused_with_the_difference(tmp_path):
    with _create(tmp_path / "run", rounds=3):
        pass
    with (
        pytest.raises(StructjaxError, match="rounds: 3 there, 4 now"),
        RunDirectory.resume(tmp_path / "run", config={"rounds": 4}),
    ):
        pass


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
