"""A program that is read for another task than its own: told in one line, with it."""

import json
from pathlib import Path

import pytest
from cli.commands import TOY, refused, run

FIXTURES = Path(__file__).parent.parent / "fixtures"
DOOR = FIXTURES / "programs" / "door_a.py"
CAR = FIXTURES / "programs" / "car_a.py"


def test_check_names_the_task_and_the_one_that_accepts_the_program(capsys):
    code, out, _ = run(capsys, "check", DOOR)
    first, *rest = out.splitlines()
    assert code == 1
    assert "read for task 'car_racing' (the default)" in first
    assert first.endswith("accepted for task 'door_open': add --task door_open")
    # 18 problems, counted by hand in the program: 12 fields, 4 actions, the return
    # and a warning.
    assert len(rest) == 4
    assert rest[-1] == "and 15 more"


def test_check_names_a_task_that_was_given_too(capsys):
    _, out, _ = run(capsys, "check", CAR, "--task", "door_open")
    first = out.splitlines()[0]
    assert "read for task 'door_open'," in first
    assert first.endswith("--task car_racing")


def test_check_tells_every_problem_where_no_task_accepts_the_program(capsys, tmp_path):
    path = tmp_path / "none.py"
    path.write_text(
        "def policy(obs):\n    x = obs.b\n    y = obs.c\n"
        "    return action(a=normal(x))\n"
    )
    _, out, _ = run(capsys, "check", path)
    first, *rest = out.splitlines()
    assert first == f"{path}, read for task 'car_racing' (the default):"
    # Two fields, the action `a`, and the actions that lack.
    assert [line.split(":")[1] for line in rest] == [
        *(" error FIELD", " error FIELD", " error HEAD", " error HEAD")
    ]


def test_check_of_a_module_names_its_task(capsys):
    _, out, _ = run(capsys, "check", "--from", "torch", FIXTURES / "torch" / "door.py")
    assert out.splitlines()[0].endswith("--task door_open")


def test_the_object_of_check_has_all_problems_and_the_tasks(capsys):
    _, out, _ = run(capsys, "check", DOOR, "--json")
    result = json.loads(out)
    assert len(result["problems"]) == 18
    assert (result["task"], result["accepted_by"]) == ("car_racing", ["door_open"])
    _, out, _ = run(capsys, "check", CAR, "--json")
    result = json.loads(out)
    assert (result["task"], result["accepted_by"]) == ("car_racing", [])


@pytest.mark.parametrize(
    "arguments",
    [
        ("evaluate", DOOR),
        ("rollout", DOOR),
        ("graph", DOOR),
        ("diff", DOOR, DOOR),
        ("fit", DOOR, "--demonstration", "door_open/expert_1"),
        ("rl", DOOR),
    ],
)
def test_other_commands_say_it_in_one_line(capsys, arguments):
    line = refused(capsys, *arguments)
    assert line == (
        f"structjax: error: {DOOR} is no program of task 'car_racing' (the default), "
        "but one of 'door_open'; add --task door_open"
    )


def test_a_program_that_no_task_accepts_is_told_with_its_task(capsys, tmp_path):
    path = tmp_path / "none.py"
    path.write_text("def policy(obs):\n    return action(a=normal(obs.b))\n")
    line = refused(capsys, "evaluate", path, "--task", TOY)
    assert f"{path}, read for task 'toy':" in line
    assert "default" not in line


def test_a_start_of_another_task_is_told_with_the_command_that_takes_it(capsys):
    line = refused(capsys, "refine", "car_racing", "--start", DOOR)
    assert line.endswith(
        f"but one of 'door_open'; `structjax refine door_open --start {DOOR}` takes it"
    )
