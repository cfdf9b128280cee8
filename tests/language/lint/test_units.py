"""Units as text, and what may not be added."""

import math

import pytest

from structjax.language.lint.static import static_problems
from structjax.language.lint.units import PURE, RADIAN, Unit, parse_unit
from structjax.language.parse import parse
from structjax.schema import ActionField, Field, Schema

FIELDS = {
    "speed": "100 m/s",
    "metre_speed": "m/s",
    "wheel": "200 rad/s",
    "yaw": "10 rad/s",
    "x": "33.33 m",
    "y": "33.33 m",
    "heading": "pi rad",
    "angle": "rad",
    "share": "",
    "time": "s",
    "clock": "0.02 s",
    "odd_text": "m per ?",
}
SCHEMA = Schema(
    tuple(Field(name, None, unit, -1.0, 1.0, "") for name, unit in FIELDS.items()),
    (ActionField("push", ""),),
)


def found(*lines):
    """`CODE: message` of the unit rules."""
    body = "".join(f"    {line}\n" for line in lines)
    text = f"w = weight(0.5)\nK = 3.7\ndef policy(obs):\n{body}"
    text += "    return action(push=normal(w * a))\n"
    codes = ("UNLIKE_UNITS", "ANGLE_UNIT")
    problems = static_problems(parse(text, SCHEMA), SCHEMA)
    return [f"{p.code}: {p.message}" for p in problems if p.code in codes]


@pytest.mark.parametrize(
    ("text", "scale", "powers"),
    [
        ("", 1, {}),
        ("m", 1, {"m": 1}),
        ("100 m/s", 100, {"m": 1, "s": -1}),
        ("m/s^2", 1, {"m": 1, "s": -2}),
        ("m/s2", 1, {"m": 1, "s": -2}),
        ("1/m", 1, {"m": -1}),
        ("pi rad", math.pi, {"rad": 1}),
        ("deg/s", math.pi / 180, {"rad": 1, "s": -1}),
        ("km/h", 1000 / 3600, {"m": 1, "s": -1}),
        ("N m", 1, {"kg": 1, "m": 2, "s": -2}),
        ("10 N", 10, {"kg": 1, "m": 1, "s": -2}),
        ("1e-3 m", 1e-3, {"m": 1}),
        ("10 steps", 10, {"steps": 1}),
        ("%", 0.01, {}),
    ],
)
def test_units_are_read(text, scale, powers):
    unit = parse_unit(text)
    assert unit.scale == pytest.approx(scale)
    assert dict(unit.powers) == powers


@pytest.mark.parametrize("text", ["?", "m per ?", "m^(1/2)", "1/0 m", "\xb0"])
def test_other_text_is_no_unit(text):
    assert parse_unit(text) is None


def test_units_print():
    assert str(parse_unit("100 m/s")) == "100 m/s"
    assert str(parse_unit("pi rad")) == "pi rad"
    assert str(parse_unit("m s^-2".replace("s^-2", "/s^2"))) == "m/s^2"
    assert str(PURE) == "1"
    assert str(Unit(2.0, (("s", -1.0),))) == "2/s"
    assert RADIAN.like(parse_unit("rad"))
    assert not RADIAN.like(parse_unit("pi rad"))


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("obs.wheel - obs.speed", "subtracts unlike units"),
        ("obs.speed + obs.metre_speed", "adds unlike units"),  # the scale counts
        ("min(obs.x, obs.speed)", "compares unlike units"),
        ("1 if obs.x > obs.share else 0", "compares unlike units"),
        ("obs.x / obs.time - obs.speed", "subtracts unlike units"),
        ("sqrt(square(obs.x)) + obs.time", "adds unlike units"),
        ("obs.x * obs.y + obs.x", "adds unlike units"),
        ("abs(relu(obs.wheel)) - clip(obs.speed, 0, 1)", "subtracts unlike units"),
        ("atan2(obs.x, obs.y) - obs.heading", "subtracts unlike units"),
        ("atan2(obs.x, obs.speed)", "takes the angle of unlike units"),
        ("200 * obs.wheel - 100 * obs.speed", "subtracts unlike units"),
        ("obs.angle / obs.time - obs.yaw", "subtracts unlike units"),
    ],
)
def test_unlike_units_are_found(expression, words):
    (message,) = found(f"a = {expression}")
    assert message.startswith("UNLIKE_UNITS")
    assert words in message


@pytest.mark.parametrize(
    "expression",
    [
        "obs.x - obs.y",
        "obs.speed + 0.3",
        "w * obs.wheel - obs.speed",  # a weight can carry any unit
        "200 * 0.54 * obs.wheel / 100 - obs.speed",  # so can a number
        "w - obs.speed",
        "100 * obs.speed - obs.metre_speed",  # the scale of the unit: now m/s
        "pi * obs.heading + obs.angle",
        "10 * obs.yaw - obs.angle / obs.time",
        "sin(obs.angle) + obs.speed",  # a pure number can stand for anything
        "tanh(obs.x) - obs.speed",
        "obs.x * obs.time - obs.y * obs.time",
        "obs.x ** 2 - obs.x * obs.y",
        "sqrt(obs.x ** 2 + obs.y ** 2) - obs.x",
        "obs.odd_text - obs.speed",  # a unit that cannot be read
        "1 - obs.x / obs.y",
        "-obs.x + obs.y",
        "(obs.x if obs.share > 0 else obs.y) - obs.x",
    ],
)
def test_like_units_pass(expression):
    assert found(f"a = {expression}") == []


def test_units_pass_through_names():
    lines = ["rim = mean(stack(obs.wheel, obs.wheel))", "slip = rim - obs.speed"]
    (message,) = found(*lines, "a = slip")
    assert "`rim` is in 200 rad/s" in message


def test_units_pass_through_memory():
    lines = ["held = obs.wheel", "a = previous(held, start=0.0) - obs.speed"]
    (message,) = found(*lines)
    assert "`previous(held, start=0)` is in 200 rad/s" in message


def test_one_fault_is_reported_once():
    # The difference is of no known unit, so what follows from it is not judged.
    lines = ["slip = obs.wheel - obs.speed", "a = slip + obs.x"]
    assert len(found(*lines)) == 1


@pytest.mark.parametrize("function", ["sin", "cos", "wrap_angle"])
def test_angles_are_in_rad(function):
    (message,) = found(f"a = {function}(obs.heading)")
    assert message == (
        f"ANGLE_UNIT: `{function}` takes rad, `obs.heading` is in pi rad"
    )
    assert found(f"a = {function}(pi * obs.heading)") == []
    assert found(f"a = {function}(obs.angle)") == []
    assert found(f"a = {function}(obs.share)") == []


def test_the_turns_of_a_loop_count_once():
    lines = ["a = 0", "for i in range(5):", "    a = a + (obs.wheel - obs.speed) * w"]
    assert len(found(*lines)) == 1
