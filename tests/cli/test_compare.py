"""`structjax compare` and `curves`: what they print, write and refuse."""

import json
import re
from pathlib import Path

import pandas as pd
import pytest
from cli.commands import run
from rl_runs import write_curve, write_evaluation, write_evaluations


@pytest.fixture
def runs(tmp_path):
    """Equal but for noise, and far above them: mean 10.5, 10.5 and 50.5."""
    noise = [[0, 1], [1, 2], [0, 0], [2, 1], [-1, -1]]
    near = [[10 + x for x in row] for row in noise]
    for name, values in (
        ("a", near),
        ("b", near[::-1]),
        ("high", [[x + 40 + i for x in row] for i, row in enumerate(near)]),
    ):
        write_evaluations(tmp_path / name, values)
    return tmp_path


def test_the_table_says_what_is_not_significant(capsys, runs):
    code, out, _ = run(capsys, "compare", *(runs / n for n in ("a", "b", "high")))
    assert code == 0
    assert "return of mean actions; 2 test tracks (1000 ... 1001); simulator jax" in out
    assert "a and b do NOT differ significantly" in out
    assert "that does not show that they are equal" in " ".join(out.split())
    assert "high is higher than a, significantly at 5% (Holm p" in out
    assert "over 3 tests" in out
    assert "5 training runs, paired" in out


def test_json_has_every_number(capsys, runs):
    arguments = (runs / "a", runs / "high", "--against", runs / "a", "--json")
    code, out, _ = run(capsys, "compare", *arguments)
    found = json.loads(out.splitlines()[-1])
    assert code == 0
    assert [row["label"] for row in found["arms"]] == ["a", "high"]
    assert found["arms"][0]["n"] == 5
    assert found["arms"][0]["iqm"]["unit"] == "training runs"
    pair = found["pairs"][0]
    assert (pair["first"], pair["second"]) == ("high", "a")
    # The differences are 40, 41, 42, 43, 44.
    assert pair["test"]["difference"] == pytest.approx(42)
    assert pair["permutation"]["p"] == pytest.approx(2 / 32)
    assert pair["significant"]
    assert pair["verdict"].startswith("high is higher than a")


def test_latex(capsys, runs):
    arguments = (runs / "a", runs / "high", "--latex", "--labels", "a_1", "b")
    code, out, _ = run(capsys, "compare", *arguments)
    assert code == 0
    assert out.count(r"\begin{tabular}") == out.count(r"\end{tabular}") == 2
    assert r"a\_1 - b & $-$42.00 [" in out
    assert "_1" not in out.replace(r"\_1", "")


def test_profiles_are_drawn(capsys, runs):
    arguments = (runs / "a", runs / "high", "--profile", runs / "p.svg")
    code, _, _ = run(capsys, "compare", *arguments)
    text = (runs / "p.svg").read_text()
    assert code == 0
    assert "high (n=5 training runs)" in text
    assert "share of units" in text


def test_the_page_shows_what_is_printed(capsys, monkeypatch):
    docs = Path(__file__).parents[2] / "docs"
    monkeypatch.chdir(docs / "examples")
    page = (docs / "comparing.md").read_text()
    blocks = re.findall(r"```console\n\$ structjax (.*?)\n\n(.*?)```", page, re.DOTALL)
    assert len(blocks) == 3
    for command, shown in blocks:
        code, out, _ = run(capsys, *command.replace("\\\n", "").split())
        assert code == 0
        parts = [part.strip() for part in shown.split("...\n")]
        assert all(part in out for part in parts)


def test_a_fixed_policy_is_said_to_be_one(capsys, runs):
    policy = write_evaluation(runs / "policy.json", [3.0, 5.0])
    code, out, _ = run(capsys, "compare", runs / "a", policy)
    assert code == 0
    assert "policy: one fixed policy. " in out
    assert "tracks are not independent training runs" in " ".join(out.split())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["a", "none"], "none"),
        (["a", "b", "--checkpoint", "best"], "has no checkpoint 'best'; it has final"),
        (["a", "b", "--mode", "sampled"], "has no mode 'sampled'; it has mean"),
        (["a", "b", "--profile", "p.pdf"], "its name ends with .png or .svg"),
        (["a"], "needs two arms"),
        ([], "needs two arms, given: none"),
    ],
)
def test_refusals_are_one_line(capsys, runs, monkeypatch, arguments, words):
    monkeypatch.chdir(runs)
    code, out, err = run(capsys, "compare", *arguments)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert words in err
    code, out, _ = run(capsys, "compare", *arguments, "--json")
    assert json.loads(out)["error"]["message"]


@pytest.fixture
def curves(tmp_path):
    write_curve(tmp_path / "fast", [[100, 905, 910], [100, 890, 920]])
    write_curve(tmp_path / "slow", [[100, 400, 600], [100, 500, 700]])
    return tmp_path


def test_curves_are_drawn_written_and_told(capsys, curves):
    code, out, _ = run(
        *(capsys, "curves", curves / "fast", curves / "slow", "--threshold", "900"),
        *("--output", curves / "c.svg", "--data", curves / "c.csv"),
    )
    assert code == 0
    assert "2 of 2" in out
    assert "0 of 2" in out
    assert "not reached" in out
    # Trapezoids of fast: (100 / 2 + 905 + 910 / 2) / 2 = 705, the other run's 700.
    assert "normalised AUC [95 %]" in out
    assert " 702.5 [" in out
    assert (
        "Normalised AUC: area under the learning curve, divided by its range of resets."
        in out
    )
    assert "fast (n=2)" in (curves / "c.svg").read_text()
    data = pd.read_csv(curves / "c.csv")
    assert list(data.columns) == ["arm", "resets", "mean", "low", "high", "n"]
    fast = data[data["arm"] == "fast"]
    assert fast["mean"].tolist() == [100, 897.5, 915]
    assert fast["resets"].tolist() == [0, 20, 40]


def test_the_same_curves_give_the_same_picture(capsys, curves):
    for name in ("one.svg", "two.svg"):
        run(capsys, "curves", curves / "fast", "--output", curves / name)
    assert (curves / "one.svg").read_bytes() == (curves / "two.svg").read_bytes()


def test_curves_as_json_and_as_png(capsys, curves):
    arguments = ("--x", "flops", "--threshold", "900", "--log", "--json")
    picture = ("--output", curves / "c.png")
    code, out, _ = run(
        capsys, "curves", curves / "fast", curves / "slow", *arguments, *picture
    )
    found = json.loads(out.splitlines()[-1])
    assert code == 0
    assert (found["x"], found["y"]) == ("flops", "mean")
    assert found["curves"][0]["x"] == [0, 1e6, 2e6]
    fast, slow = found["thresholds"]
    assert (fast["solved"], fast["restricted_mean"]) == (2, 1.5e6)
    assert (slow["solved"], slow["median"]) == (0, None)
    assert (curves / "c.png").read_bytes().startswith(b"\x89PNG")


def test_one_run_has_a_curve_without_interval(capsys, curves):
    write_curve(curves / "one", [[100, 905]])
    code, out, _ = run(capsys, "curves", curves / "one")
    assert code == 0
    assert "one: one run, so no interval" in out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["none"], "cannot read none"),
        (["fast", "--output", "c.pdf"], "its name ends with .png or .svg"),
        (["fast", "--threshold", "nan"], "a threshold is not finite"),
        ([], "no run is given"),
    ],
)
def test_curves_that_are_refused(capsys, curves, monkeypatch, arguments, words):
    monkeypatch.chdir(curves)
    code, out, err = run(capsys, "curves", *arguments)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert words in err
