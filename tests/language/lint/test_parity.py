"""Parity, held against the mirrored world, and the terms that break it."""

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from language.lint.numeric import evaluate
from language.lint.terms import programs
from language.test_render import EXPRESSIONS, MODULE

from structjax.language.lint.forward import read
from structjax.language.lint.parity import Parities
from structjax.language.lint.static import static_problems
from structjax.language.parse import StructureError, parse
from structjax.schema import ActionField, Field, Schema


def _field(name, size, mirror, order=None):
    return Field(name, size, "", -1.0, 1.0, "", mirror=mirror, mirror_order=order)


SCHEMA = Schema(
    (
        _field("tiles.x", 3, -1),
        _field("tiles.y", 3, 1),
        _field("speed", None, 1),
        _field("yaw", None, -1),
        _field("quat", 4, 1, (1, 0, 3, 2)),
        _field("plain", None, None),
    ),
    (
        ActionField("steer", "", mirror=-1),
        ActionField("gas", "", low=0.0, high=1.0, mirror=1),
    ),
)
HEAD = f"w = weight(0.5)\n{MODULE}def policy(obs):\n"


def program(a, steer="w * obs.yaw", gas="w * obs.speed"):
    heads = f"steer=normal({steer}), gas=normal({gas})"
    return parse(f"{HEAD}    a = {a}\n    return action({heads})\n", SCHEMA)


def kind(expression):
    structure = program(expression).structure
    return read(structure, SCHEMA, Parities(SCHEMA)).variables["a"].kind


@pytest.mark.parametrize(
    ("expression", "wanted"),
    [
        ("obs.yaw", "odd"),
        ("obs.speed", "even"),
        ("obs.plain", "unknown"),
        ("w", "even"),
        ("0", "zero"),
        ("0 * obs.yaw", "zero"),
        ("abs(obs.yaw)", "even"),
        ("-w * abs(obs.yaw)", "even"),
        ("obs.yaw * obs.yaw", "even"),
        ("obs.yaw ** 2", "even"),
        ("obs.yaw ** 3", "odd"),
        ("obs.yaw * abs(obs.yaw)", "odd"),
        ("obs.yaw / (1 + obs.speed)", "odd"),
        ("obs.yaw + obs.speed", "mixed"),
        ("relu(obs.yaw)", "mixed"),
        ("max(obs.yaw, 0)", "mixed"),
        ("relu(obs.yaw) - relu(-obs.yaw)", "unknown"),  # odd, but by two terms
        ("clip(obs.yaw, -1, 1)", "odd"),
        ("clip(obs.yaw, -w, w)", "odd"),
        ("clip(obs.yaw, 0, 1)", "mixed"),
        ("tanh(sin(obs.yaw))", "odd"),
        ("cos(obs.yaw)", "even"),
        ("mean(obs.tiles.x)", "odd"),
        ("max(abs(obs.tiles.x))", "even"),
        ("max(obs.tiles.x)", "unknown"),
        ("obs.tiles.x[1] - obs.tiles.x[0]", "odd"),
        ("weighted_mean(obs.tiles.x, exp(obs.tiles.y))", "odd"),
        ("dot(obs.tiles.x, obs.tiles.x)", "even"),
        ("atan2(mean(obs.tiles.x), mean(obs.tiles.y))", "odd"),
        ("atan2(obs.speed, obs.yaw)", "unknown"),
        ("obs.yaw if obs.speed > 0.5 else 2 * obs.yaw", "odd"),
        ("obs.yaw if obs.yaw > 0.5 else 2 * obs.yaw", "unknown"),
        ("1 if abs(obs.yaw) > 0.5 else 0", "even"),
        # Elements that the mirror exchanges: front left and front right.
        ("mean(obs.quat)", "even"),
        ("mean(obs.quat[2:4])", "even"),
        ("mean(obs.quat[1:3])", "unknown"),
        ("obs.quat[0]", "unknown"),
        ("obs.quat[2] + obs.quat[3]", "even"),
        ("obs.quat[2] - obs.quat[3]", "odd"),
        ("obs.quat[1] - obs.quat[3]", "unknown"),
        ("norm(obs.quat - mean(obs.quat))", "even"),
    ],
)
def test_kinds(expression, wanted):
    assert kind(expression) == wanted


def test_memory_keeps_a_parity():
    lines = "    held = 0.9 * previous(held, start=0.0) + obs.yaw\n    a = held\n"
    heads = "steer=normal(w * a), gas=normal(w * obs.speed)"
    text = f"{HEAD}{lines}    return action({heads})\n"
    structure = parse(text, SCHEMA).structure
    assert read(structure, SCHEMA, Parities(SCHEMA)).variables["a"].kind == "odd"
    structure = parse(text.replace("start=0.0", "start=1.0"), SCHEMA).structure
    assert read(structure, SCHEMA, Parities(SCHEMA)).variables["a"].kind == "unknown"


def check_kinds(structure, names):
    """Holds what is called even, odd or zero against the mirrored world."""
    reading = read(structure, SCHEMA, Parities(SCHEMA))
    rng = np.random.default_rng(0)
    for obs in rng.uniform(-1, 1, (4, SCHEMA.observation_size)):
        image = np.append(_mirrored(obs), obs[-1])
        here = evaluate(structure, SCHEMA, obs)
        there = evaluate(structure, SCHEMA, image)
        for name, text in names.items():
            kind = reading.variables[name].kind
            one, other = float(here[name]), float(there[name])
            if kind in ("mixed", "unknown") or not np.isfinite([one, other]).all():
                continue
            sign = 1 if kind == "even" else -1
            slack = 1e-9 * max(abs(one), abs(other))
            assert one == pytest.approx(sign * other, abs=slack), (text, kind)
            assert kind != "zero" or one == 0, text


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(EXPRESSIONS)
@example("(-float(((obs.tiles.y)[-1] < ((obs.tiles.x / 0.0))[-1])))")
def test_what_is_called_even_or_odd_is_so(expression):
    try:
        structure = program(expression).structure
    except StructureError:
        return
    check_kinds(structure, {"a": expression})


def test_every_operator_on_every_kind():
    for text, terms in programs():
        check_kinds(parse(text, SCHEMA).structure, terms)


def _mirrored(obs):
    """All but `plain`, which has no mirror sign."""
    signs = np.r_[-np.ones(3), np.ones(4), -1.0, np.ones(4)]
    image = signs * obs[:12]
    image[8:12] = obs[[9, 8, 11, 10]]
    return image


def broken(steer="w * obs.yaw", gas="w * obs.speed", a="w * obs.speed"):
    problems = static_problems(program(a, steer, gas), SCHEMA)
    return [p.message for p in problems if p.code == "PARITY"]


def even(term, kind="even"):
    needed = "the mean of `steer` needs it odd"
    return f"term {term} is {kind} in the mirrored world; {needed}"


def odd(term, where="the mean of `gas`"):
    return f"term {term} is odd in the mirrored world; {where} needs it even"


@pytest.mark.parametrize(
    ("steer", "message"),
    [
        ("obs.yaw - w * abs(obs.yaw)", even("`w * abs(obs.yaw)`")),
        ("clip(obs.yaw - 0.1 * obs.speed, -1, 1)", even("`0.1 * obs.speed`")),
        ("w * (obs.yaw + obs.speed)", even("`obs.speed`")),
        ("(obs.yaw + abs(obs.yaw)) / (1 + obs.speed)", even("`abs(obs.yaw)`")),
        ("obs.yaw * (1 + obs.yaw)", odd("`obs.yaw`", "the mean of `steer`")),
        ("obs.yaw + relu(obs.yaw)", even("`relu(obs.yaw)`", "neither even nor odd")),
        ("tanh(obs.yaw + a)", even("`w * obs.speed` of `a`")),
    ],
)
def test_terms_that_are_even_in_the_steering(steer, message):
    assert broken(steer) == [message]


@pytest.mark.parametrize(
    "steer",
    [
        "obs.yaw + w * obs.tiles.x[0] * abs(obs.yaw)",
        "obs.yaw + w",  # an offset is written on purpose
        "obs.yaw + obs.plain",
        "relu(obs.yaw - 0.1) - relu(-obs.yaw - 0.1)",  # odd, by two terms
        "obs.yaw * (1 + obs.speed + abs(obs.yaw))",
        "atan2(mean(obs.tiles.x), mean(obs.tiles.y)) / (1 + a)",
        "obs.yaw if obs.speed > 0.5 else obs.tiles.x[0]",
    ],
)
def test_odd_steering_passes(steer):
    assert broken(steer) == []


@pytest.mark.parametrize(
    ("gas", "message"),
    [
        ("w * obs.speed + 0.1 * obs.yaw", odd("`0.1 * obs.yaw`")),
        ("clip(relu(obs.speed - w * obs.yaw), 0, 1)", odd("`w * obs.yaw`")),
        ("sigmoid(obs.speed + mean(obs.tiles.x))", odd("`mean(obs.tiles.x)`")),
    ],
)
def test_terms_that_are_odd_in_the_gas(gas, message):
    assert broken(gas=gas) == [message]


@pytest.mark.parametrize(
    "gas", ["w * abs(obs.yaw)", "obs.yaw ** 2 + obs.speed", "mean(obs.quat)", "w"]
)
def test_even_gas_passes(gas):
    assert broken(gas=gas) == []


def test_a_std_is_even():
    text = (
        "w = weight(0.5)\ndef policy(obs):\n    return action("
        "steer=normal(w * obs.yaw, std=0.2 + 0.1 * obs.yaw), gas=normal(w * obs.speed))"
    )
    problems = static_problems(parse(text, SCHEMA), SCHEMA)
    (message,) = [p.message for p in problems if p.code == "PARITY"]
    assert message == odd("`0.1 * obs.yaw`", "the std of `steer`")
