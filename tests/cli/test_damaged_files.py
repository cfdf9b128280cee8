"""Files that were changed, and names that no file can have: one line, status 2."""

import json
import os
import shutil
import stat
import threading

import pytest
from cli.commands import TOY, refused, run
from test_refine import REPLIES
from toy import PROGRAM

REPLIES = {key: REPLIES[key] for key in ("generate", "round0/tests", "round0/revise")}


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A run of the toy task with one revision."""
    directory = tmp_path_factory.mktemp("finished")
    script = directory / "script.json"
    script.write_text(json.dumps(REPLIES))
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(directory)
        from structjax.cli import main

        with pytest.raises(SystemExit) as stopped:
            main(
                [
                    *("refine", TOY, "--model", "scripted", "--script", str(script)),
                    *("--rounds", "1", "--run", str(directory / "run")),
                ]
            )
    assert stopped.value.code == 0
    return directory / "run"


@pytest.fixture
def copy(finished, tmp_path):
    return shutil.copytree(finished, tmp_path / "copy")


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return path


def test_commands_find_the_task_of_a_run(capsys, finished, tmp_path):
    assert run(capsys, "report", finished)[0] == 0
    code, out, _ = run(capsys, "evaluate", finished, "--json")
    assert code == 0
    assert json.loads(out.splitlines()[-1])["task"] == "toy"
    output = tmp_path / "graph.svg"
    assert run(capsys, "graph", finished, "--output", output)[0] == 0
    assert output.read_text().startswith("<svg")


def test_a_run_is_not_resumed_with_another_task(capsys, copy):
    before = {p: p.read_bytes() for p in copy.rglob("*") if p.is_file()}
    line = refused(capsys, "refine", "pendulum", "--resume", copy)
    assert "is a run of task 'toy', not of 'pendulum'" in line
    assert {p: p.read_bytes() for p in copy.rglob("*") if p.is_file()} == before


def test_a_run_is_resumed_with_its_own_task(capsys, copy):
    assert run(capsys, "refine", TOY, "--resume", copy)[0] == 0


def changed(copy, name, change):
    """Edits a JSON file of the run as a text."""
    path = copy / name
    value = json.loads(path.read_text())
    change(value)
    path.write_text(json.dumps(value))


@pytest.mark.parametrize("text", ["null", "[]", "{}", '{"task": "toy"}', "{", "3"])
@pytest.mark.parametrize(
    "command", [("report",), ("evaluate",), ("refine", "--resume"), ("graph",)]
)
def test_a_damaged_manifest_is_named(capsys, copy, command, text):
    (copy / "manifest.json").write_text(text)
    assert "manifest.json" in refused(capsys, *command, copy)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("best_round", 7),
        ("best_round", "0"),
        ("best_round", -1),
        ("rounds", []),
        ("rounds", None),
        ("rounds", [3]),
        ("evaluation", None),
        ("evaluation", {}),
        ("ledger", {}),
        ("model", 3),
        ("notes", [3]),
        ("config", {}),
    ],
)
def test_a_manifest_with_another_value_is_named(capsys, copy, key, value):
    changed(copy, "manifest.json", lambda manifest: manifest.update({key: value}))
    assert "manifest.json" in refused(capsys, "report", copy)


@pytest.mark.parametrize(
    "command", [3, [], {"config": 3}, {"rounds": 1, "task": 3}, {"model": "nobody"}]
)
def test_a_manifest_with_another_command_is_named(capsys, copy, command):
    def change(manifest):
        kept = manifest["command"]
        whole = isinstance(command, dict)
        manifest["command"] = {**kept, **command} if whole else command

    changed(copy, "manifest.json", change)
    assert "manifest" in refused(capsys, "refine", "--resume", copy)


@pytest.mark.parametrize(
    "name",
    ["r0_fit", "r0_gate", "r0_rollout", "round0_tests_findings", "evaluation_best_r1"],
)
@pytest.mark.parametrize("text", ["null", '{"result": null, "ledger": null}', "{"])
def test_a_damaged_checkpoint_is_named(capsys, copy, name, text):
    (copy / "checkpoints" / f"{name}.json").write_text(text)
    assert f"{name}.json" in refused(capsys, "refine", "--resume", copy)


@pytest.mark.parametrize("text", ["null", "{}", "\xff"])
def test_a_damaged_run_is_listed_as_such(capsys, copy, text):
    (copy / "manifest.json").write_bytes(text.encode("latin-1"))
    code, out, _ = run(capsys, "runs", copy.parent)
    assert code == 0
    assert "unreadable" in out


def test_runs_of_every_kind_are_listed(capsys, copy):
    values = {"kind": "rl", "status": "running"}
    changed(copy, "manifest.json", lambda m: [m.update(values), m.pop("best_round")])
    code, out, _ = run(capsys, "runs", copy.parent)
    assert code == 0
    (line,) = [line for line in out.splitlines() if str(copy) in line]
    assert line.split()[1:5] == ["rl", "toy", "running", "-"]


def test_a_damaged_evaluation_does_not_hide_the_run(capsys, copy):
    changed(copy, "manifest.json", lambda m: m.update(evaluation={"mean": "x"}))
    code, out, _ = run(capsys, "runs", copy.parent)
    assert code == 0
    assert "done" in out


def test_a_log_that_is_no_text_is_kept_beside_the_new_lines(capsys, copy):
    (copy / "metrics.jsonl").write_bytes(b"\xff\xfe\n")
    assert run(capsys, "refine", "--resume", copy)[0] == 0


@pytest.mark.parametrize("name", ["structures/r1.py", "structures/r1.json"])
def test_a_structure_that_is_gone_or_no_text_is_named(capsys, copy, name):
    for command in ("report", "evaluate"):
        (copy / name).write_bytes(b"\xff\xfe\x00")
        assert f"{name} is not UTF-8" in refused(capsys, command, copy)
    (copy / name).unlink()
    for command in ("report", "evaluate"):
        assert f"{name}: No such file" in refused(capsys, command, copy)


def test_a_lock_that_is_a_directory_is_named(capsys, copy):
    (copy / "lock").mkdir()
    assert "cannot lock" in refused(capsys, "refine", "--resume", copy)


@pytest.mark.parametrize("text", ["null", "3", ""])
def test_a_lock_with_other_content_is_taken_over(capsys, copy, text):
    (copy / "lock").write_text(text)
    assert run(capsys, "refine", "--resume", copy)[0] == 0


SAVED = {"task": "toy", "program": PROGRAM, "values": {"gain": 1.0, "std_push": 0.1}}


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"values": None}, "values is null"),
        ({"values": 3}, "values is 3"),
        ({"values": []}, "values is a list"),
        ({"values": {"gain": "x", "std_push": 0.1}}, "values.gain is 'x'"),
        ({"values": {"gain": {}, "std_push": 0.1}}, "values.gain is an object"),
        ({"values": {"gain": [], "std_push": 0.1}}, "values.gain is a list"),
        ({"values": {"gain": 10**500, "std_push": 0.1}}, "values.gain is 1000"),
        ({"values": {"gain": 1e300, "std_push": 0.1}}, "values.gain is 1e+300"),
        ({"values": {"gain": float("nan"), "std_push": 0.1}}, "values.gain is nan"),
        ({"values": {"gain": -5.0, "std_push": 0.1}}, "weight 'gain' is -5"),
        ({"values": {"gain": 1.0}}, "std_push"),
        ({"program": None}, "program is null"),
        ({"program": 3}, "program is 3"),
        ({"task": 3}, "task is 3"),
    ],
)
def test_a_bad_saved_policy_is_one_line(capsys, tmp_path, change, problem):
    path = tmp_path / "policy.json"
    path.write_text(json.dumps(SAVED | change))
    assert problem in refused(capsys, "evaluate", path, "--task", TOY)


@pytest.mark.parametrize("text", ["null", "[]", "[" * 100_000, "{", "\x00"])
def test_a_file_that_is_no_policy_is_one_line(capsys, tmp_path, text):
    path = tmp_path / "policy.json"
    path.write_text(text)
    assert "policy.json" in refused(capsys, "evaluate", path, "--task", TOY)


@pytest.mark.parametrize(
    "content",
    [
        *(None, 3, [3], {"generate": 3}, {"generate": None}, {"generate": ["a"]}),
        {"generate": {"text": "x"}},
    ],
)
def test_a_bad_script_is_one_line(capsys, tmp_path, content):
    path = tmp_path / "script.json"
    path.write_text(json.dumps(content))
    arguments = ("refine", TOY, "--model", "scripted", "--script", path)
    line = refused(capsys, *arguments, "--run", tmp_path / "run")
    assert "script.json is not a script" in line
    assert not (tmp_path / "run").exists()


def test_a_transcript_of_another_task_is_refused(capsys, tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_text(json.dumps({"v": 1, "kind": "header", "task": "car_racing"}) + "\n")
    arguments = ("refine", TOY, "--transcript", path, "--run", tmp_path / "run")
    assert "recorded on task 'car_racing'" in refused(capsys, *arguments)
    assert not (tmp_path / "run").exists()


LONG = "a" * 300


@pytest.mark.parametrize("name", ["", ".", "/", LONG])
def test_names_that_no_output_can_have(capsys, program, name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    arguments = ("graph", program, "--task", TOY, "--output", name)
    assert "cannot write" in refused(capsys, *arguments)


@pytest.mark.parametrize("name", ["", ".", "/", LONG])
@pytest.mark.parametrize(
    "arguments",
    [
        ("check",),
        ("evaluate",),
        ("report",),
        ("refine", "--resume"),
        ("refine", TOY, "--model", "manual", "--run"),
        ("refine", TOY, "--transcript"),
        ("refine", TOY, "--fit", "imitation", "--demonstration"),
        ("refine",),
        ("diagnose", __file__, "--sandbox", "off", "--table"),
    ],
)
def test_names_that_no_input_can_have(capsys, arguments, name, tmp_path, monkeypatch):
    (tmp_path / "something").write_text("")
    monkeypatch.chdir(tmp_path)
    refused(capsys, *arguments, name)


def test_an_archive_whose_members_are_no_arrays(capsys, program, tmp_path):
    import zipfile

    path = tmp_path / "demo.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("observations", "text")
        archive.writestr("actions", "text")
    arguments = ("fit", program, "--task", TOY, "--demonstration", path)
    assert "is no array" in refused(capsys, *arguments)


def test_a_pipe_as_output_stays_a_pipe(capsys, program, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    received = []
    reader = threading.Thread(target=lambda: received.append(pipe.read_bytes()))
    reader.start()
    code, _, _ = run(capsys, "graph", program, "--task", TOY, "--output", pipe)
    reader.join(10)
    assert code == 0
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert received[0].startswith(b"<svg")


def test_a_task_file_that_exits_is_one_line(capsys, tmp_path, program):
    path = tmp_path / "tasks.py"
    path.write_text("import sys\nsys.exit()\n")
    line = refused(capsys, "check", program, "--task", f"{path}:make")
    assert "SystemExit" in line
    path.write_text("import sys\ndef make():\n    sys.exit(0)\n")
    line = refused(capsys, "check", program, "--task", f"{path}:make")
    assert "SystemExit" in line
