"""LaTeX, written by hand for each notation; every fixture is balanced."""

import re

import pytest
from language.export.cases import COUPLED, INTEGRATOR, NAMES, choosing, load
from language.programs import read
from matplotlib.mathtext import MathTextParser

from structjax.errors import StructjaxError
from structjax.language.export.latex import latex


def right(*lines, **options):
    """The right side of `a = ...`."""
    text = latex(read(*lines).structure, "a", **options)
    left, _, formula = text.partition(" = ")
    assert left == r"\mathrm{a}"
    return formula


CASES = {
    "w * obs.speed + 2 * -obs.yaw": r"\mathrm{w} \, \mathrm{obs.speed} "
    r"+ 2 \, \left(-\mathrm{obs.yaw}\right)",
    "obs.speed * 2 - (1 - w)": r"\mathrm{obs.speed} \cdot 2 "
    r"- \left(1 - \mathrm{w}\right)",
    "(w + 1) ** 2 / obs.yaw": r"\frac{\left(\mathrm{w} + 1\right)^{2}}"
    r"{\mathrm{obs.yaw}}",
    "clip(obs.yaw, -1, w)": r"\operatorname{clip}\left(\mathrm{obs.yaw}, -1, "
    r"\mathrm{w}\right)",
    "w if obs.yaw >= 0 or obs.speed < 1 else 0.000002": r"\begin{cases} \mathrm{w} & "
    r"\text{if } \mathrm{obs.yaw} \geq 0 \vee \mathrm{obs.speed} < 1 \\ "
    r"2 \cdot 10^{-6} & \text{else} \end{cases}",
    "(obs.yaw > 0) * 3": r"\left[\mathrm{obs.yaw} > 0\right] \cdot 3",
    "abs(obs.yaw) + sqrt(w)": r"\left|\mathrm{obs.yaw}\right| + \sqrt{\mathrm{w}}",
    "min(w, obs.yaw, 1)": r"\min\left(\mathrm{w}, \mathrm{obs.yaw}, 1\right)",
    "mean(obs.tiles.x[:2]) + obs.quat[3]": r"\operatorname{mean}\left("
    r"\mathrm{obs.tiles.x}_{0:2}\right) + \mathrm{obs.quat}_{3}",
    "sum(stack(w, 1))": r"\operatorname{sum}\left(\left(\mathrm{w}, 1\right)\right)",
    "norm(obs.quat) * relu(w)": r"\left\| \mathrm{obs.quat} \right\| \, "
    r"\max\left(0, \mathrm{w}\right)",
    "(w / 2) ** 2": r"\left(\frac{\mathrm{w}}{2}\right)^{2}",
    "not obs.yaw > 0 and obs.speed > 0": r"\neg \left(\mathrm{obs.yaw} > 0\right) "
    r"\wedge \mathrm{obs.speed} > 0",
}


@pytest.mark.parametrize("program", CASES)
def test_notation(program):
    assert right(f"a = {program}") == CASES[program]


def test_latents_are_names_or_written_out():
    lines = ("big_step = obs.speed + 1", "a = w * big_step")
    assert right(*lines) == r"\mathrm{w} \, \mathrm{big\_step}"
    assert right(*lines, inline=True) == (
        r"\mathrm{w} \, \left(\mathrm{obs.speed} + 1\right)"
    )
    assert right(*lines, values={"w": -1.25}) == (
        r"\left(-1.25\right) \, \mathrm{big\_step}"
    )


def test_memory_has_the_index_of_the_step_before():
    assert latex(INTEGRATOR, "integral") == (
        r"\mathrm{integral} = \mathrm{integral}_{t-1} + \mathrm{obs.error}"
    )


def test_a_whole_program():
    assert latex(COUPLED) == (
        "\\begin{align*}\n"
        r"  \operatorname{mean}\left(\mathrm{pull}\right) &= \mathrm{obs.error} \\"
        "\n"
        r"  \operatorname{mean}\left(\mathrm{push}\right) &= \mathrm{obs.error}"
        "\n\\end{align*}"
    )


@pytest.mark.parametrize("name", [*NAMES, "operators", "choice"])
def test_brackets_are_balanced(name):
    structure = choosing()[0] if name == "choice" else load(name)[0]
    text = latex(structure)
    assert text.count("&=") == sum(v.logged for v in structure.latents) + sum(
        head.family != "categorical" for head in structure.heads
    )
    depth = 0
    for bracket in re.findall(r"(?<!\\)[{}]", text):
        depth += 1 if bracket == "{" else -1
        assert depth >= 0
    assert depth == 0


@pytest.mark.parametrize("name", [*NAMES, "operators"])
def test_an_independent_reader_takes_every_formula(name):
    reader = MathTextParser("path")  # it knows no `cases`
    structure = load(name)[0]
    formulas = [latex(structure, v.name) for v in structure.latents if v.logged]
    plain = [text for text in formulas if "cases" not in text]
    assert len(plain) > 0.8 * len(formulas)
    for text in plain:
        reader.parse(f"${text}$")


def test_the_turns_of_a_long_loop_keep_their_names():
    body = "for i in range(40):\n    a = a + a * obs.speed"
    structure = read("a = obs.yaw", body).structure
    # Sizes 3 + 2 n from 1: 1, 5, 13, 29, 61, 125, 253: the first above 200 is a name.
    text = latex(structure)
    assert r"\mathrm{\_a\_7} &=" in text
    assert r"\mathrm{\_a\_6}" not in text
    with pytest.raises(StructjaxError, match="keep the names of latents in it"):
        latex(structure, "a", inline=True)


def test_unknown_names_are_refused():
    with pytest.raises(StructjaxError, match="no latent or action 'steer'"):
        latex(COUPLED, "steer")
