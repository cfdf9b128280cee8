"""`structjax check --from torch`: reports, writes, refuses."""

import json
import re
from pathlib import Path

import pytest

from structjax.cli import main

FIXTURES = Path(__file__).parent.parent / "fixtures" / "torch"


def run(capsys, *arguments):
    """Exit status, stdout and stderr of one command."""
    with pytest.raises(SystemExit) as stopped:
        main([str(a) for a in arguments])
    captured = capsys.readouterr()
    return stopped.value.code, captured.out, captured.err


def test_a_module_is_described(capsys):
    path = FIXTURES / "car_r1.py"
    code, out, _ = run(capsys, "check", "--from", "torch", path, "--json")
    result = json.loads(out.splitlines()[-1])
    assert code == 0
    assert result["ok"]
    assert len(result["parameters"]) == 21
    assert [v["name"] for v in result["latents"]][:3] == [
        *("offset", "mean_theta", "mean_abs_theta")
    ]
    assert result["problems"] == []


def test_a_written_module_is_a_program_of_the_language(capsys, tmp_path):
    written = tmp_path / "program.py"
    code, out, _ = run(
        capsys,
        *("check", "--from", "torch", FIXTURES / "car_r0.py", "--output", written),
    )
    assert code == 0
    assert "16 latents: lateral_offset, mean_theta" in out
    code, again, _ = run(capsys, "check", written)
    assert code == 0
    assert again.split("semantic hash")[0] == out.split("semantic hash")[0]


@pytest.mark.slow
def test_the_page_quotes_the_return_of_its_two_commands(capsys, monkeypatch, tmp_path):
    page = (FIXTURES.parents[2] / "docs" / "torch.md").read_text()
    quoted = re.search(r"([\d.]+) ± ([\d.]+) with the values as written", page)
    assert quoted is not None
    check, evaluate = re.findall(r"^structjax (.*)$", page, re.MULTILINE)[:2]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tests").symlink_to(FIXTURES.parents[1])
    assert run(capsys, *check.split())[0] == 0
    code, out, _ = run(capsys, *evaluate.split(), "--json")
    result = json.loads(out.splitlines()[-1])
    assert code == 0
    # Long episodes amplify the last digit of a machine's float32 arithmetic.
    assert result["mean"] == pytest.approx(float(quoted[1]), abs=15)
    assert result["std_ddof0"] == pytest.approx(float(quoted[2]), abs=15)


def test_a_faulty_module_is_listed_with_its_problems(capsys, tmp_path):
    path = tmp_path / "bad.py"
    text = (FIXTURES / "car_r0.py").read_text()
    path.write_text(
        text.replace("steer = torch.clamp(raw_steer, -1.0, 1.0)", "raise X")
    )
    code, out, _ = run(capsys, "check", "--from", "torch", path)
    assert code == 1
    first, second, *_ = out.splitlines()
    assert first == f"{path}, read for task 'car_racing' (the default):"
    assert second.startswith("line 49: error CONTROL: `raise X` is reached")


def test_a_module_is_no_program(capsys):
    code, out, _ = run(capsys, "check", FIXTURES / "car_r0.py")
    assert code == 1
    path = FIXTURES / "car_r0.py"
    hint = f"structjax check --from torch {path} --output PROGRAM.py"
    assert out.splitlines()[0] == f"this looks like a PyTorch module: {hint}"
    assert "error IMPORT" in out
    code, _, err = run(capsys, "evaluate", path)
    assert code == 2
    assert err == f"structjax: error: this looks like a PyTorch module; {hint}\n"


def test_output_is_for_modules(capsys, tmp_path):
    program = FIXTURES.parent / "programs" / "r0.py"
    code, _, err = run(capsys, "check", program, "--output", tmp_path / "x.py")
    assert code == 2
    assert "--output without --from torch" in err


def test_coupled_actions_that_cannot_be_written(capsys, tmp_path, monkeypatch):
    from structjax.errors import StructjaxError
    from structjax.language.torch_source import written

    def refuse(program, schema):
        raise StructjaxError("its actions are correlated", kind="torch")

    monkeypatch.setattr(written, "program_text", refuse)
    path = FIXTURES / "planner.py"
    target = tmp_path / "x.py"
    code, _, err = run(capsys, "check", "--from", "torch", path, "--output", target)
    assert code == 2
    assert "its actions are correlated" in err
    assert not target.exists()
