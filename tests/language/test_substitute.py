"""Other numbers in a program's own text: everything else stays as it was."""

import difflib

import pytest
from language.programs import FIXTURES, SMALL, parse

from structjax.language.substitute import with_least_stds, with_values
from structjax.policy import initial_values
from structjax.tasks.car_racing.schema import CAR_RACING_SCHEMA

TEXT = '''"""Größe: ü before a weight on the same line; weight(1.0) in a text."""

first = weight(0.50, sign="+")  # stays as it is written
# ← above
second = weight(low=-2.0, init=-(1 + 0.5), high=-1)  # ± a named argument
third = weight((2), "+"); fourth = weight(1e-3)  # ä two in a line
std_gas = weight(0.2, low=0.01, high=0.4)


def helper(a):
    # kept
    return a * second  # weight(7)


def policy(obs):
    total = obs.speed
    for i in range(20):
        total = first * helper(total) + third + fourth
    return action(
        steer=normal(
            (total),  # the mean, in brackets
        ),
        gas=normal(total, std=std_gas),
    )
'''

NEW = {
    "first": 0.5,
    "second": -1.25,
    "third": 3.0000001192092896,
    "fourth": -7.0,
    "std_gas": 0.3,
    "std_steer": 0.25,
}


def changed_lines(before, after):
    diff = difflib.ndiff(before.splitlines(), after.splitlines())
    return [line[2:].strip() for line in diff if line.startswith("+ ")]


def test_values_stand_where_the_written_ones_stood():
    text = with_values(parse(TEXT, SMALL), NEW)
    assert changed_lines(TEXT, text) == [
        "second = weight(low=-2.0, init=-1.25, high=-1)  # ± a named argument",
        'third = weight((3.0000001192092896), "+"); fourth = weight(-7.0)  # ä two in '
        "a line",
        "std_gas = weight(0.3, low=0.01, high=0.4)",
        "std=0.25),",
    ]
    assert initial_values(parse(text, SMALL).structure) == NEW


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        ("normal(w)", "normal(w, std=0.25)"),
        ("normal(w,)", "normal(w,std=0.25)"),
        ("normal(w, 0.1)", "normal(w, 0.25)"),
        ("normal(w, std=2 * 0.05)", "normal(w, std=0.25)"),
        ("normal(w * obs.tiles.x[1])", "normal(w * obs.tiles.x[1], std=0.25)"),
    ],
)
def test_the_std_that_is_a_weight_of_its_own(head, expected):
    text = (
        "w = weight(0.5)\ndef policy(obs):\n    return action(steer=@, gas=normal(w))"
    )
    changed = with_values(parse(text.replace("@", head), SMALL), {"std_steer": 0.25})
    assert changed == text.replace("@", expected) + "\n"
    assert initial_values(parse(changed, SMALL).structure)["std_steer"] == 0.25


def test_a_value_on_its_bound_is_written_just_inside():
    text = with_values(parse(TEXT, SMALL), {"second": -1.0, "std_gas": 0.01})
    program = parse(text, SMALL)
    values = initial_values(program.structure)
    # 1e-7 of the ranges 1 and 0.39.
    assert values["second"] == pytest.approx(-1 - 1e-7, abs=1e-12)
    assert values["std_gas"] == pytest.approx(0.01 + 0.39e-7, abs=1e-12)
    assert not program.warnings


@pytest.mark.parametrize(
    "path", sorted(FIXTURES.glob("car_*.py")), ids=lambda p: p.stem
)
def test_every_fixture_takes_values_and_differs_in_nothing_else(path):
    before = parse(path.read_text(), CAR_RACING_SCHEMA)
    values = {
        # Halfway to a bound, or a third further.
        p.name: (p.initial + (p.initial * 4 / 3 if p.high is None else p.high)) / 2
        for p in before.structure.parameters
    }
    after = parse(with_values(before, values), CAR_RACING_SCHEMA)
    assert initial_values(after.structure) == values
    assert after.structure.latents == before.structure.latents
    assert after.structure.heads == before.structure.heads
    assert after.docs == before.docs
    assert with_values(before, initial_values(before.structure)) == before.source


@pytest.mark.parametrize(
    ("std", "expected"),
    [
        ("abs(obs.speed)", "max(abs(obs.speed), 0.05)"),
        ("exact(abs(obs.speed))", "exact(max(abs(obs.speed), 0.05))"),
        ("fixed(0.01)", "fixed(0.05)"),
        ("max(obs.speed, 0.05)", "max(obs.speed, 0.05)"),
        ("max(obs.speed, 0.04)", "max(max(obs.speed, 0.04), 0.05)"),
    ],
)
def test_a_least_std(std, expected):
    text = (
        "def policy(obs):\n    return action(steer=normal(0, std=@), gas=normal(0))\n"
    )
    program = parse(text.replace("@", std), SMALL)
    assert with_least_stds(program, {"steer": 0.05}) == text.replace("@", expected)
