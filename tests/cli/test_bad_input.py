"""Bad input at the command line: one clear line with the remedy, status 2."""

import json

import numpy as np
import pytest
from cli.commands import TOY, refused, run
from toy import PROGRAM

from structjax.cli.options import stored
from structjax.cli.refine import Refine
from structjax.policy_file import load_policy, save_policy
from structjax.runs import RunDirectory
from structjax.tasks.loading import load_task


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return path


def test_unknown_task(capsys):
    line = refused(capsys, "refine", "car_rcing")
    assert (
        "unknown task 'car_rcing'; known: car_racing, door_open, pendulum, cartpole"
        in line
    )


def test_missing_demonstration(capsys, tmp_path):
    line = refused(
        capsys, "refine", TOY, "--demonstration", "nobody", "--fit", "imitation"
    )
    assert "nobody" in line


def test_foreign_demonstration(capsys, tmp_path):
    path = tmp_path / "other.npz"
    np.savez(path, observations=np.zeros((9, 3)), actions=np.zeros((9, 1)))
    line = refused(capsys, "refine", TOY, "--demonstration", path, "--fit", "imitation")
    assert "3" in line
    assert "2" in line


def test_demonstration_with_nan(capsys, tmp_path, program):
    path = tmp_path / "nan.npz"
    observations = np.zeros((9, 2))
    observations[4, 1] = np.nan
    np.savez(path, observations=observations, actions=np.zeros((9, 1)))
    line = refused(capsys, "fit", program, "--task", TOY, "--demonstration", path)
    assert "clock is nan at step 4" in line


def test_a_fit_without_a_demonstration(capsys):
    line = refused(capsys, "refine", TOY, "--fit", "anchored")
    assert "--fit anchored needs a demonstration" in line


def test_no_transcript_for_a_task(capsys):
    line = refused(capsys, "refine", TOY)
    assert "no transcript ships for task 'toy'; use --model manual" in line


def test_no_key(capsys, monkeypatch, tmp_path):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    line = refused(
        capsys, "refine", TOY, "--model", "openai", "--run", tmp_path / "run"
    )
    assert "OPENAI_API_KEY" in line


def test_a_dead_base_url(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("OPENAI_API_KEY", "dummy")
    line = refused(
        capsys,
        *("refine", TOY, "--model", "openai", "--base-url", "http://127.0.0.1:9/v1"),
        *("--run", tmp_path / "run"),
    )
    assert "is the server at http://127.0.0.1:9/v1 running?" in line
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    assert manifest["status"] == "interrupted"  # goes on when the server does


def test_a_run_directory_that_is_in_use_or_not_empty(capsys, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "mine").write_text("")
    script = tmp_path / "script.json"
    script.write_text("{}")
    line = refused(
        capsys,
        *("refine", TOY, "--model", "scripted", "--script", script),
        *("--run", tmp_path / "run"),
    )
    assert "is not empty" in line
    assert "--resume" in line


def test_refine_without_a_task(capsys):
    assert "no task was named" in refused(capsys, "refine")


def test_run_and_resume_together(capsys, tmp_path):
    line = refused(capsys, "refine", TOY, "--run", tmp_path, "--resume", tmp_path)
    assert "--run and --resume were both given" in line


def test_resuming_nothing(capsys, tmp_path):
    script = tmp_path / "script.json"
    script.write_text("{}")
    line = refused(
        capsys,
        *("refine", TOY, "--model", "scripted", "--script", script),
        *("--resume", tmp_path / "none"),
    )
    assert "cannot read" in line


def test_a_manual_reply_that_is_not_there_yet(capsys, tmp_path):
    code, _, err = run(
        capsys,
        *("refine", TOY, "--model", "manual", "--no-wait", "--run", tmp_path / "run"),
    )
    assert code == 75
    assert "structjax: no reply yet to " in err
    assert "error" not in err
    assert list((tmp_path / "run" / "manual").glob("*.prompt.md"))
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    assert manifest["status"] == "interrupted"


def test_demo_alone_names_its_help(capsys):
    assert "see `structjax demo --help`" in refused(capsys, "demo")


@pytest.mark.parametrize("seeds", ["5", "9:9", "a:b", "7:3"])
def test_bad_seed_ranges(capsys, program, seeds):
    line = refused(capsys, "evaluate", program, "--task", TOY, "--seeds", seeds)
    assert "A:B" in line
    if seeds in ("5", "a:b"):
        assert "or one of " in line
        assert "gate" in line


def test_an_unknown_simulator(capsys, program):
    line = refused(capsys, "evaluate", program, "--task", TOY, "--simulator", "mujoco")
    assert "it has jax, pencil" in line


def test_errors_under_json_are_one_object(capsys):
    code, out, _ = run(capsys, "refine", "nothing", "--json")
    assert code == 2
    error = json.loads(out.splitlines()[-1])["error"]
    assert error["kind"] == "task"
    assert error["message"] == "unknown task 'nothing'"
    assert error["hint"].startswith("known: car_racing")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "EMPTY"),
        ("import os\n", "IMPORT"),
        ("def policy(obs):\n    return action(push=normal(obs.y))\n", "FIELD"),
        ("def policy(obs):\n    return obs.x\n", "RETURN"),
        ("def policy(obs:\n", "SYNTAX"),
        ("def policy(obs):\n    return action(push=normal(not obs.x))\n", "TYPE"),
    ],
)
def test_a_faulty_program_is_listed_with_its_problems(capsys, tmp_path, text, problem):
    path = tmp_path / "bad.py"
    path.write_text(text)
    code, out, _ = run(capsys, "check", path, "--task", TOY, "--json")
    result = json.loads(out.splitlines()[-1])
    assert code == 1
    assert not result["ok"]
    assert problem in [p["code"] for p in result["problems"]]
    code, _, err = run(capsys, "evaluate", path, "--task", TOY)
    assert code == 2
    assert "Traceback" not in err


def test_binary_and_missing_programs(capsys, tmp_path):
    path = tmp_path / "binary.py"
    path.write_bytes(b"\xff\xfe\x00")
    assert "not UTF-8" in refused(capsys, "check", path, "--task", TOY)
    assert "cannot read" in refused(capsys, "check", tmp_path / "no.py", "--task", TOY)


def test_a_good_program_is_described(capsys, program):
    code, out, _ = run(capsys, "check", program, "--task", TOY, "--json")
    result = json.loads(out.splitlines()[-1])
    assert code == 0
    assert [p["name"] for p in result["parameters"]] == ["gain", "std_push"]
    assert [v["name"] for v in result["latents"]] == ["demand"]
    assert result["problems"] == []


def test_evaluate_prints_the_documented_object(capsys, program):
    code, out, _ = run(
        capsys,
        *("evaluate", program, "--task", TOY, "--seeds", "1000:1010", "--json"),
    )
    result = json.loads(out.splitlines()[-1])
    assert code == 0
    assert result["mean"] == pytest.approx(-31 / 32 * 0.45)  # see toy.py
    assert set(result) == {
        *("task", "simulator", "mode", "seeds", "returns", "metric", "values", "mean"),
        *("std_ddof0", "resets", "env_steps"),
    }
    assert (result["resets"], result["env_steps"]) == (10, 50)


@pytest.mark.parametrize(("mode", "batches"), [("mean", 2), ("sampled", 1)])
def test_rollout_reports_every_reset(capsys, tmp_path, program, mode, batches):
    # Beside mean actions it plays the sampled ones, for the gap between them.
    code, out, _ = run(
        capsys,
        *("rollout", program, "--task", TOY, "--seeds", "3000:3003", "--mode", mode),
        *("--output", tmp_path / "table.parquet", "--json"),
    )
    result = json.loads(out.splitlines()[-1])
    assert code == 0
    assert result["rows"] == 3 * 5
    assert (result["resets"], result["env_steps"]) == (3 * batches, 3 * 5 * batches)


@pytest.mark.parametrize("phase", ["fit", "gate", "rollout", "tests", "report"])
def test_ctrl_c_leaves_one_line_and_a_resumable_run(
    capsys, tmp_path, monkeypatch, phase
):
    from test_refine import REPLIES

    script = tmp_path / "script.json"
    script.write_text(json.dumps(REPLIES))
    targets = {
        "fit": "structjax.rounds.fit_program",
        "gate": "structjax.rounds.evaluate",
        "rollout": "structjax.rounds.collect",
        "tests": "structjax.analysis.findings_text",
        "report": "structjax.session.write_report",
    }

    def interrupt(*_, **__):
        raise KeyboardInterrupt

    arguments = ("refine", TOY, "--model", "scripted", "--script", script)
    arguments = (*arguments, "--rounds", "1")
    with monkeypatch.context() as patched:
        patched.setattr(targets[phase], interrupt)
        code, _, err = run(capsys, *arguments, "--run", tmp_path / "run")
    assert code == 130
    assert f"interrupted; continue with --resume {tmp_path / 'run'}" in err
    assert "Traceback" not in err
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    assert manifest["status"] == "interrupted"
    resume = ("refine", "--resume", tmp_path / "run")
    assert "rounds: 1 there, 2 now" in refused(capsys, *resume, "--rounds", "2")
    code, out, _ = run(capsys, *resume, "--json")
    assert code == 0
    assert json.loads(out.splitlines()[-1])["status"] == "done"


@pytest.mark.parametrize("given", [(), ("--sandbox", "strict")])
def test_a_resumed_run_is_as_isolated_as_this_call_says(
    capsys, tmp_path, monkeypatch, given
):
    from test_refine import REPLIES

    def interrupt(*_, **__):
        raise KeyboardInterrupt

    script = tmp_path / "script.json"
    script.write_text(json.dumps(REPLIES))
    arguments = ("refine", TOY, "--model", "scripted", "--script", script)
    with monkeypatch.context() as patched:
        patched.setattr("structjax.dialogue.Dialogue.ask", interrupt)
        run(
            capsys,
            *(*arguments, "--rounds", "0", "--sandbox", "off"),
            *("--run", tmp_path / "run"),
        )
    path = tmp_path / "run" / "manifest.json"
    manifest = json.loads(path.read_text())
    assert manifest["sandbox"]["level"] == "off"
    # Older runs stored the level with the options.
    manifest["command"]["sandbox"] = "off"
    path.write_text(json.dumps(manifest))
    code, _, _ = run(capsys, "refine", "--resume", tmp_path / "run", *given)
    assert code == 0
    manifest = json.loads(path.read_text())
    assert manifest["sandbox"]["level"] == "strict"
    assert "sandbox was off until the run was resumed with strict" in manifest["notes"]


def test_a_resumed_run_waits_unless_this_call_says_otherwise(tmp_path):
    first = Refine(task=TOY, model="manual", wait=False)
    again = {}

    def note(self):
        again["wait"] = self.wait
        return 0

    with RunDirectory.create(
        tmp_path, kind="refine", task="toy", config={}, command=stored(first)
    ):
        pass
    changed = json.loads((tmp_path / "manifest.json").read_text())
    changed["command"]["wait"] = False
    (tmp_path / "manifest.json").write_text(json.dumps(changed))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Refine, "_run", note)
        Refine(resume=tmp_path).run_command()
    assert again["wait"]


def test_a_saved_policy_of_a_task_that_is_not_built_in(capsys, program, tmp_path):
    task = load_task(TOY)
    start, path = load_policy(program, task), tmp_path / "saved.json"
    save_policy(path, start.program, start.values, task)
    line = refused(capsys, "evaluate", path)
    assert "was made for task 'toy', which is not built in" in line
    assert "--task path/to/file.py:function" in line
    assert run(capsys, "evaluate", path, "--task", TOY)[0] == 0
