"""`structjax graph`, `diff` and `export` from the command line."""

import json
from pathlib import Path

import numpy as np
import pytest
from toy import PROGRAM

from structjax.cli import main

TOY = f"{Path(__file__).parent.parent / 'toy.py'}:toy_task"


@pytest.fixture
def program(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return path


@pytest.fixture
def fitted(tmp_path):
    """The same program, saved with another gain."""
    from structjax.language.parse import parse
    from structjax.policy_file import save_policy
    from structjax.tasks.loading import load_task

    task = load_task(TOY)
    path = tmp_path / "policy.json"
    values = {"gain": 0.5, "std_push": 0.1}
    save_policy(path, parse(PROGRAM, task.schema), values, task)
    return path


@pytest.fixture
def run(capsys):
    def call(*arguments):
        with pytest.raises(SystemExit) as stopped:
            main([*map(str, arguments), "--task", TOY])
        captured = capsys.readouterr()
        return stopped.value.code, captured.out, captured.err

    return call


@pytest.mark.parametrize(
    ("options", "name", "begins"),
    [
        ((), "graph.svg", "<svg"),
        (("--format", "dot"), "graph.dot", "digraph"),
        (("--output", "a.dot"), "a.dot", "digraph"),
        (("--output", "a.html", "--rollout"), "a.html", "<!doctype html>"),
    ],
)
def test_graph(run, program, tmp_path, options, name, begins):
    code, out, _ = run("graph", program, *options)
    assert (code, out.strip()) == (0, name)
    text = (tmp_path / name).read_text()
    assert text.startswith(begins)
    assert ("type=range" in text) == ("--rollout" in options)


def test_a_rollout_belongs_to_the_page(run, program):
    code, _, err = run("graph", program, "--rollout")
    assert code == 2
    assert "a graph as svg shows no rollout; add --format html" in err


def test_diff(run, program, tmp_path):
    other = tmp_path / "other.py"
    other.write_text(
        PROGRAM.replace("demand", "wish").replace("weight(1.0", "weight(2.0")
    )
    code, out, _ = run("diff", program, other, "--html", tmp_path / "d.html")
    assert code == 0
    assert out == (
        "renamed        latent demand -> wish\ninitial value  weight gain: 1 -> 2\n"
    )
    assert "program.py → other.py" in (tmp_path / "d.html").read_text()
    _, out, _ = run("diff", program, other, "--json")
    found = json.loads(out)
    assert found["differ"] is True
    assert found["renamed"] == [{"kind": "latent", "old": "demand", "new": "wish"}]
    _, out, _ = run("diff", program, program, "--json")
    assert json.loads(out)["differ"] is False


def test_a_fit_is_a_change(run, program, fitted, tmp_path):
    _, out, _ = run("diff", program, fitted, "--html", tmp_path / "d.html")
    assert out == "fitted value   weight gain: 1 -> 0.5\n"
    assert "fitted value" in (tmp_path / "d.html").read_text()
    _, out, _ = run("diff", fitted, fitted)
    assert out == "no change\n"


def test_a_numpy_file_has_the_fitted_weights(run, fitted, tmp_path):
    path = tmp_path / "exported.py"
    code, out, _ = run("export", fitted, "--to", "numpy", "--output", path)
    assert (code, out.strip()) == (0, str(path))
    names = {"__name__": "exported"}
    exec(path.read_text(), names)
    np.testing.assert_allclose(names["act"]([0.5, 0.0]).mean, [-0.25])


def test_an_onnx_model(run, fitted, tmp_path):
    onnx = pytest.importorskip("onnx")
    path = tmp_path / "policy.onnx"
    code, _, _ = run("export", fitted, "--to", "onnx", "--output", path)
    assert code == 0
    weights = {w.name: w for w in onnx.load(path).graph.initializer}
    assert onnx.numpy_helper.to_array(weights["weight_gain"]) == 0.5
    code, _, err = run("export", fitted, "--to", "onnx")
    assert code == 2
    assert "say where it goes: --output policy.onnx" in err


def test_formulas(run, fitted):
    pytest.importorskip("sympy")
    _, out, _ = run("export", fitted, "--to", "sympy", "--inline", "--values")
    assert out == "demand = -0.5*obs.x\naction.push = -0.5*obs.x\n"
    _, out, _ = run("export", fitted, "--to", "latex", "--latent", "demand", "--json")
    formula = r"\mathrm{demand} = \left(-\mathrm{gain}\right) \, \mathrm{obs.x}"
    assert json.loads(out) == {"export": None, "text": formula + "\n"}
    code, _, err = run("export", fitted, "--to", "latex", "--latent", "demant")
    assert code == 2
    assert "did you mean `demand`?" in err


def test_options_of_formulas_are_refused_elsewhere(run, fitted):
    code, _, err = run("export", fitted, "--to", "numpy", "--latent", "demand")
    assert code == 2
    assert "--to numpy writes the whole policy" in err
