"""The page docs/your_own_task.md, followed to the letter."""

import json
import re
import runpy
import sys
from pathlib import Path

import pytest

from structjax.cli.main import main
from structjax.errors import StructjaxError
from structjax.tasks.loading import load_task

PAGE = (Path(__file__).parents[2] / "docs" / "your_own_task.md").read_text()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with the page's files, as the working directory."""
    files = re.findall(r"`(\w+\.py)`:\n\n```python\n(.*?)```", PAGE, re.DOTALL)
    names = ["my_task.py", "my_program.py", "other_start.py", "record.py"]
    assert [name for name, _ in files] == names
    for name, text in files:
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STRUCTJAX_CACHE", str(tmp_path / "cache"))
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    sys.modules.pop("my_task", None)


def test_the_file_of_a_task_may_hold_dataclasses(tmp_path):
    # A dataclass with postponed annotations looks its own module up in sys.modules.
    path = tmp_path / "held.py"
    path.write_text(
        "from __future__ import annotations\n"
        "from dataclasses import dataclass\n"
        "from structjax.tasks.registry import make_task\n\n"
        "@dataclass\nclass Options:\n    name: str = 'pendulum'\n\n"
        "def task():\n    return make_task(Options().name)\n"
    )
    assert load_task(f"{path}:task").name == "pendulum"


def test_a_file_that_fails_leaves_no_module_behind(tmp_path):
    path = tmp_path / "broken.py"
    path.write_text("1 / 0\n")
    before = set(sys.modules)
    with pytest.raises(StructjaxError, match="ZeroDivisionError"):
        load_task(f"{path}:task")
    assert not {name for name in set(sys.modules) - before if "broken" in name}


def _commands(name):
    return re.findall(rf"^structjax ({name} .*)$", PAGE, re.MULTILINE)


def _run(command, capsys):
    """The JSON line of a command of the page."""
    with pytest.raises(SystemExit) as caught:
        main([*command.split(), "--json"])
    assert caught.value.code == 0
    return json.loads(capsys.readouterr().out.splitlines()[-1])


def test_the_page_can_be_followed(folder, capsys):
    assert _run(_commands("check")[0], capsys)["ok"]
    written, weak, fitted = _commands("evaluate")
    result = _run(written, capsys)
    assert result["seeds"] == list(range(1000, 1010))
    # The goal gives 100, and a hundred steps of full force would cost 10.
    printed = re.search(r"a return of about (\d+)", PAGE)
    assert printed is not None
    assert result["mean"] == pytest.approx(float(printed.group(1)), abs=1)
    runpy.run_path("record.py")
    # Nobody gets out: nothing but the cost of force.
    assert -1 < _run(weak, capsys)["mean"] < 0
    values = _run(_commands("fit")[0], capsys)["values"]
    # The demonstrator's effort is 40 and its noise 0.1; where the engine runs at full
    # force half of that noise is clipped away.
    assert values["effort"] == pytest.approx(40, rel=0.15)
    assert 0.05 < values["std_force"] < 0.11
    moved = _run(_commands("diff")[0], capsys)["refitted"]
    assert [change["name"] for change in moved] == ["effort", "std_force"]
    assert _run(fitted, capsys)["mean"] > 85


def test_a_fit_that_was_too_short_says_what_to_do(folder, capsys):
    runpy.run_path("record.py")
    command = _commands("fit")[0].replace("3000", "1000")
    with pytest.raises(SystemExit) as caught:
        main(command.split())
    assert caught.value.code == 0
    advice = "NOT converged after 1000 updates: raise --num-updates"
    assert advice in capsys.readouterr().out


def test_refine_writes_its_first_prompt(folder, capsys):
    command = [*_commands("refine")[0].split(), "--no-wait"]
    with pytest.raises(SystemExit) as caught:
        main(command)
    assert caught.value.code == 75, "no reply yet"
    prompt = next((folder / "runs/valley/manual").glob("*.prompt.md")).read_text()
    assert "the valley's floor is at -0.52" in prompt
    assert "001_generate.reply.md" in capsys.readouterr().err
