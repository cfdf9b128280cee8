"""`structjax refine --start` as a user gives it."""

import json
import shutil

from cli.commands import TOY, refused, run
from test_refine import TESTS
from toy import PROGRAM


def test_a_run_is_started_from_a_program_and_resumed(capsys, tmp_path):
    program, script = tmp_path / "mine.py", tmp_path / "script.json"
    program.write_text(PROGRAM)
    script.write_text("{}")
    answered = ("refine", TOY, "--model", "scripted", "--script", script)
    begun = ("--start", program, "--rounds", "1", "--run", tmp_path / "run")
    code, out, err = run(capsys, *answered, *begun, "--json")
    assert code == 0, err
    found = json.loads(out.splitlines()[-1])
    assert (found["status"], len(found["rounds"])) == ("stopped:transcript", 1)
    assert found["start"]["path"] == str(program)
    assert found["start"]["tuned"] is False
    script.write_text(json.dumps({"round0/tests": TESTS}))
    shutil.move(program, tmp_path / "gone.py")
    code, out, _ = run(capsys, "refine", "--resume", tmp_path / "run")
    assert code == 0
    line = f"start       {program} (its own resets and calls are not counted here)"
    assert line in out.splitlines()


def test_a_shipped_transcript_is_not_started_from_a_policy(capsys, tmp_path):
    program = tmp_path / "mine.py"
    program.write_text(
        "w = weight(0.1)\n\n\ndef policy(obs):\n"
        "    return action(steer=normal(w), gas=normal(w), brake=normal(w))\n"
    )
    line = refused(capsys, "refine", "car_racing", "--start", program)
    assert "has a first program of its own" in line
    assert line.endswith("let a model answer: --model openai or manual")
