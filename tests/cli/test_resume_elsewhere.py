"""Files named relative to a directory are found when a run is resumed in another."""

import json

import numpy as np
import pytest
from cli.commands import TOY, run
from test_refine import TESTS
from toy import PROGRAM, SCHEMA

from structjax.cli.options import restored, stored
from structjax.cli.refine import Refine
from structjax.cli.rl import Rl
from structjax.demonstration import Demonstration, save_demonstration
from structjax.runs import RunDirectory


@pytest.fixture
def places(tmp_path):
    """A directory with files, and another one beside it."""
    here, other = tmp_path / "here", tmp_path / "other"
    here.mkdir()
    other.mkdir()
    (here / "policy.py").write_text(PROGRAM)
    (here / "script.json").write_text(json.dumps({"round0/tests": TESTS}))
    x = np.linspace(-1, 1, 60, dtype=np.float32)
    shown = Demonstration(np.stack([x, np.zeros_like(x)], 1), -x[:, None], {})
    save_demonstration(shown, here / "shown.npz", SCHEMA)
    return here, other


def test_names_of_files_are_kept_whole(places, monkeypatch):
    here, _ = places
    monkeypatch.chdir(here)
    (here / "mlp").mkdir()
    for name in ("taken.jsonl", "run_10"):
        (here / name).touch()
    kept = stored(Rl(policy="policy.py"))
    assert kept["policy"] == str(here / "policy.py")
    assert stored(Rl(policy="mlp"))["policy"] == "mlp"
    options = {"start": "../here/policy.py", "transcript": "taken.jsonl"}
    kept = stored(Refine(demonstration="shown.npz", **options))
    assert kept["start"] == str(here / "policy.py")
    assert kept["transcript"] == str(here / "taken.jsonl")
    assert kept["demonstration"] == str(here / "shown.npz")
    # Names of what ships are looked for first.
    kept = stored(Refine(demonstration="car_racing/human_1", transcript="run_10"))
    assert kept["demonstration"] == "car_racing/human_1"
    assert kept["transcript"] == "run_10"


def refine(capsys, *arguments):
    code, out, err = run(capsys, "refine", *arguments, "--json")
    assert code == 0, err
    return json.loads(out.splitlines()[-1])


def test_a_run_from_a_policy_and_a_demonstration_goes_on_elsewhere(
    capsys, places, monkeypatch
):
    here, other = places
    monkeypatch.chdir(here)
    options = ["--model", "scripted", "--script", "script.json", "--rounds", "1"]
    options += ["--fit", "imitation", "--num-updates", "8", "--restarts", "1"]
    options += ["--start", "policy.py", "--demonstration", "shown.npz"]
    first = refine(capsys, TOY, *options, "--run", "run")
    assert first["start"]["path"] == "policy.py"
    monkeypatch.chdir(other)
    again = refine(capsys, "--resume", here / "run")
    assert again["evaluation"] == first["evaluation"]
    # Named again, however it is named.
    start = ("--start", "../here/policy.py")
    shown = ("--demonstration", here / "shown.npz")
    assert refine(capsys, "--resume", "../here/run", *start, *shown)["rounds"]


def test_a_run_killed_before_it_has_its_start_goes_on_elsewhere(
    capsys, places, monkeypatch
):
    here, other = places
    monkeypatch.chdir(here)

    def killed(self, name, compute, form=object):
        raise KeyboardInterrupt

    options = ["--model", "scripted", "--script", "script.json", "--rounds", "0"]
    options += ["--start", "policy.py", "--run", "run"]
    with monkeypatch.context() as patch:
        patch.setattr(RunDirectory, "step", killed)
        assert run(capsys, "refine", TOY, *options)[0] == 130
    monkeypatch.chdir(other)
    assert refine(capsys, "--resume", here / "run")["status"] == "done"


def test_an_older_run_with_a_relative_name_goes_on_where_it_was_begun(
    places, monkeypatch
):
    here, _ = places
    monkeypatch.chdir(here)
    config = {"demonstration": "shown.npz"}
    command = {"demonstration": "shown.npz"}
    with RunDirectory.create(
        here / "run", kind="refine", task="toy", config=config, command=command
    ):
        pass
    assert restored(Refine(), here / "run").demonstration == "shown.npz"
    now = {"demonstration": str(here / "shown.npz")}
    with RunDirectory.resume(here / "run", config=now):
        pass
