"""`structjax check --lint`, and the page that lists the rules."""

import json
from pathlib import Path

import numpy as np
import pytest

import structjax
from structjax.cli import main
from structjax.language.lint.codes import LINT_CODES
from structjax.language.problem import CODES
from structjax.tasks.car_racing.schema import CAR_RACING_SCHEMA as CAR

ROOT = Path(__file__).parents[2]
R1 = ROOT / "tests" / "fixtures" / "programs" / "r1.py"


def check(capsys, *arguments):
    """Exit status and stdout."""
    with pytest.raises(SystemExit) as stopped:
        main(["check", str(R1), *map(str, arguments)])
    return stopped.value.code, capsys.readouterr().out


def test_without_lint_only_the_parser_speaks(capsys):
    status, out = check(capsys)
    assert status == 0
    assert "UNLIKE_UNITS" not in out


def test_lint_prints_warnings_and_leaves_the_status(capsys):
    status, out = check(capsys, "--lint")
    assert status == 0
    assert "line 39: warning UNLIKE_UNITS: `wheel_speed - speed` subtracts" in out
    assert "semantic hash" in out


def test_lint_as_json_with_a_demonstration(capsys):
    arguments = ["--demonstration", "car_racing/human_1", "--json"]
    status, out = check(capsys, *arguments)
    assert status == 0
    answer = json.loads(out.splitlines()[-1])
    assert answer["ok"]
    problem = next(p for p in answer["problems"] if p["code"] == "COPYCAT")
    assert problem["severity"] == "warning"
    assert set(problem) == {"code", "severity", "line", "message", "hint"}
    assert problem["line"] == 37


def test_a_foreign_demonstration_is_one_error(capsys, tmp_path):
    path = tmp_path / "other.npz"
    np.savez(path, observations=np.zeros((9, 3)), actions=np.zeros((9, 1)))
    assert check(capsys, "--demonstration", path)[0] == 2


def test_lint_is_public():
    program = structjax.parse(R1.read_text(), CAR)
    codes = {problem.code for problem in structjax.lint(program, CAR)}
    assert {"UNLIKE_UNITS", "PARITY"} <= codes


def test_the_page_lists_every_rule():
    page = (ROOT / "docs" / "lint.md").read_text()
    rows = [line for line in page.splitlines() if line.startswith("| `")]
    listed = {row.split("`")[1]: row.split("|")[2].strip() for row in rows}
    parser = {c: m for c, m in CODES.items() if m.startswith("warning: ")}
    wanted = LINT_CODES | {c: m.removeprefix("warning: ") for c, m in parser.items()}
    assert listed == wanted
    assert not LINT_CODES.keys() & CODES.keys()
