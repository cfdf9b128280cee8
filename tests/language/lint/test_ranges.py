"""Ranges hold what programs compute, and what follows from them."""

import math

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from language.lint.numeric import evaluate
from language.lint.terms import programs
from language.programs import CHOICE, SMALL
from language.test_render import EXPRESSIONS, MODULE

from structjax.language.lint.forward import read
from structjax.language.lint.intervals import Intervals
from structjax.language.lint.static import static_problems
from structjax.language.parse import StructureError, parse
from structjax.schema import ActionField, Field, Schema

HEADS = "steer=normal(w * obs.yaw), gas=normal(w * obs.speed)"


def program(a, heads=HEADS, module=MODULE, schema=SMALL):
    text = f"w = weight(0.5)\n{module}def policy(obs):\n    a = {a}\n"
    return parse(f"{text}    return action({heads})\n", schema)


def bounds(expression):
    reading = read(program(expression).structure, SMALL, Intervals())
    value = reading.variables["a"]
    return value.low, value.high


@pytest.mark.parametrize(
    ("expression", "low", "high"),
    [
        ("obs.speed", -1, 1),  # the schema's range
        ("w", -math.inf, math.inf),
        ("u", -math.inf, 0),
        ("2 - 3 * obs.yaw", -1, 5),
        ("obs.yaw * obs.speed", -1, 1),
        ("obs.yaw * obs.yaw", 0, 1),
        ("dot(obs.tiles.x, obs.tiles.x)", 0, 3),
        ("square(obs.yaw) + 1", 1, 2),
        ("1 / (2 + obs.yaw)", 1 / 3, 1),
        ("1 / obs.yaw", -math.inf, math.inf),
        ("1 / abs(obs.yaw)", 1, math.inf),
        ("clip(w, -0.5, obs.yaw)", -1, 1),
        ("tanh(w)", -1, 1),
        ("relu(w)", 0, math.inf),
        ("obs.yaw ** 3", -1, 1),
        ("obs.yaw ** -2", 1, math.inf),
        ("sum(obs.tiles.x)", -3, 3),
        ("norm(obs.tiles.x)", 0, math.sqrt(3)),
        ("dot(obs.tiles.x, obs.tiles.y)", -3, 3),
        ("mean(obs.tiles.x[0:2])", -1, 1),
        ("obs.yaw < 2", 1, 1),
        ("obs.yaw > 1", 0, 0),
        ("obs.yaw >= 1", 0, 1),
        ("3 if obs.yaw < 2 else w", 3, 3),
        ("atan2(abs(obs.yaw), obs.speed)", 0, math.pi),
    ],
)
def test_bounds(expression, low, high):
    assert bounds(expression) == pytest.approx((low, high))


def check_ranges(structure, names):
    """Holds computed values against the ranges."""
    free = read(structure, SMALL, Intervals()).variables
    written = read(structure, SMALL, Intervals(fixed=True)).variables
    rng = np.random.default_rng(0)
    for obs in rng.uniform(-1, 1, (4, SMALL.observation_size)):
        values = evaluate(structure, SMALL, obs)
        for name, text in names.items():
            value = float(values[name])
            slack = 1e-9 * max(1.0, abs(value))
            for found in (free[name], written[name]):
                if math.isfinite(value):
                    assert found.low - slack <= value <= found.high + slack, text


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(EXPRESSIONS)
@example("clip(obs.speed, 1, -1)")
@example("(0.0 / obs.yaw) ** -1")
def test_what_is_computed_lies_in_the_range(expression):
    try:
        structure = program(expression).structure
    except StructureError:
        return
    check_ranges(structure, {"a": expression})


def test_every_operator_stays_in_its_range():
    for text, terms in programs():
        check_ranges(parse(text, SMALL).structure, terms)


def test_what_is_remembered_is_bounded():
    text = (
        "w = weight(0.5)\ndef policy(obs):\n"
        "    held = clip(previous(held, start=0.0) + obs.yaw, -2, 2)\n"
        "    total = previous(total, start=0.0) + square(obs.yaw)\n"
        f"    return action({HEADS})\n"
    )
    reading = read(parse(text, SMALL).structure, SMALL, Intervals())
    held, total = reading.variables["held"], reading.variables["total"]
    assert (held.low, held.high) == (-2, 2)
    assert total.high == math.inf


def found(program, code, schema=SMALL):
    return [p.message for p in static_problems(program, schema) if p.code == code]


GRIP = Schema(
    (Field("gap", 3, "m", -0.5, 0.5, ""), Field("side", None, "", -1.0, 1.0, "")),
    (ActionField("grip", ""),),
)


def test_an_action_that_is_always_the_same():
    (message,) = found(
        program("1", "grip=normal(1)", "", GRIP), "UNREACHABLE_ACTION", GRIP
    )
    assert message == "the mean of `grip` is always 1; the range is [-1, 1]"


@pytest.mark.parametrize(
    ("head", "reached"),
    [
        ("normal(clip(obs.side, 0, 1))", "[0, 1]"),
        ("normal(sigmoid(w * obs.side))", "[0, 1]"),
        ("truncated_normal(relu(w * obs.side))", "[0, 1]"),
        ("beta(-0.5 * abs(tanh(obs.side)))", f"[{-0.5 * math.tanh(1):.4g}, 0]"),
        ("tanh_normal(square(obs.side))", f"[0, {math.tanh(1):.4g}]"),
        ("normal(obs.side > 0)", "[0, 1]"),
    ],
)
def test_an_action_out_of_reach(head, reached):
    (message,) = found(
        program("1", f"grip={head}", "", GRIP), "UNREACHABLE_ACTION", GRIP
    )
    assert message.startswith(f"the mean of `grip` lies in {reached}; the range is [-1")


@pytest.mark.parametrize(
    "head",
    [
        "normal(clip(obs.side, -1, 1))",
        "normal(w * abs(obs.side))",  # the weight may be negative
        "normal(2 * sigmoid(w * obs.side) - 1)",
        "normal(clip(obs.side, -0.7, 0.7))",  # a limit, on purpose
        "tanh_normal(w * obs.side)",
    ],
)
def test_an_action_within_reach(head):
    checked = program("1", f"grip={head}", "", GRIP)
    assert found(checked, "UNREACHABLE_ACTION", GRIP) == []


def test_a_choice_out_of_reach():
    def choice(logits):
        checked = program("1", f"push=categorical({logits})", "", CHOICE)
        return found(checked, "UNREACHABLE_ACTION", CHOICE)

    (message,) = choice("tanh(obs.angle), 2")
    assert message == (
        "choice `left` of `push` is never the likeliest: its logit is at most 0.7616, "
        "another at least 2"
    )
    assert choice("w * obs.angle, 2") == []


def test_decided_conditions():
    (message,) = found(program("1 if obs.speed < 2 else w"), "UNREACHABLE_BRANCH")
    assert message == "condition `obs.speed < 2` always holds"
    (message,) = found(program("where(obs.yaw > 1, w, 0)"), "UNREACHABLE_BRANCH")
    assert message == "condition `obs.yaw > 1` never holds"
    assert found(program("1 if obs.speed < 1 else w"), "UNREACHABLE_BRANCH") == []
    assert found(program("1 if w < 1 else obs.speed"), "UNREACHABLE_BRANCH") == []


@pytest.mark.parametrize(
    "gas",
    [
        "normal(relu(w * obs.speed))",
        "normal(clip(w * obs.speed, 0, 1))",
        "normal(max(w * obs.speed, 0))",
        "normal(min(w * relu(obs.speed), 1))",
        "normal(clip(2 * clip(obs.speed, 0, 1), 0, 1) / (1 + abs(a)))",
    ],
)
def test_noise_at_the_edge(gas):
    checked = program("obs.yaw", f"steer=normal(a), gas={gas}")
    (message,) = found(checked, "ONE_SIDED_NOISE")
    assert message.startswith("the noise of `gas` is one-sided where the mean rests at")


@pytest.mark.parametrize(
    "gas",
    [
        "normal(sigmoid(w * obs.speed))",
        "truncated_normal(relu(w * obs.speed))",
        "beta(clip(w * obs.speed, 0, 1))",
        "normal(clip(0.5 + 0.1 * obs.speed, 0, 1))",  # never at the edge
    ],
)
def test_noise_that_is_not_at_the_edge(gas):
    checked = program("obs.yaw", f"steer=normal(clip(a, -1, 1)), gas={gas}")
    assert found(checked, "ONE_SIDED_NOISE") == []


@pytest.mark.parametrize(
    ("expression", "stays"),
    [
        # 1 - 4 d is 0 at 0.25; the longest distance is sqrt(3 * 0.25) = 0.866
        ("clip(1 - 4 * norm(obs.gap), 0, 1)", 0),
        ("relu(0.2 - 0.8 * sqrt(obs.gap[0] ** 2 + obs.gap[1] ** 2))", 0),
        ("clip(8 * w * norm(obs.gap), 0, 1)", 1),
    ],
)
def test_flat_beyond_a_distance(expression, stays):
    checked = program(expression, "grip=normal(a - obs.side)", "", GRIP)
    (message,) = found(checked, "FLAT_FAR", GRIP)
    assert message.startswith(f"`a` stays at {stays} where `")
    assert "` is above 0.25, " in message


@pytest.mark.parametrize(
    "expression",
    [
        "clip(1 - 1.5 * norm(obs.gap), 0, 1)",  # flat over less than half
        "exp(-4 * norm(obs.gap))",
        "relu(obs.side - 0.9)",  # not a distance
        "clip(1 - 4 * norm(obs.gap) + obs.side, 0, 1)",  # of two inputs
    ],
)
def test_not_flat(expression):
    checked = program(expression, "grip=normal(a - obs.side)", "", GRIP)
    assert found(checked, "FLAT_FAR", GRIP) == []


@pytest.mark.parametrize(
    ("expression", "divisor"),
    [
        ("1 / obs.yaw", "obs.yaw"),
        ("w / (obs.speed - obs.yaw)", "obs.speed - obs.yaw"),
        # Computed on both sides; its gradient would be NaN where the yaw is 0.
        ("1 / obs.yaw if abs(obs.yaw) > 0.1 else 0", "obs.yaw"),
        ("obs.speed ** -2", "obs.speed"),
        ("(obs.tiles.x / norm(obs.tiles.y))[0]", "norm(obs.tiles.y)"),
        ("obs.yaw / (w - 0.5)", "w - 0.5"),  # 0 as written
    ],
)
def test_a_divisor_that_can_be_zero(expression, divisor):
    (message,) = found(program(expression), "ZERO_DIVISOR")
    assert message == f"`a` divides by `{divisor}`, which can be 0"


@pytest.mark.parametrize(
    "expression",
    [
        "safe_div(1, obs.yaw)",
        "obs.speed / w",
        "obs.speed / (1 + obs.yaw * obs.yaw)",
        "obs.speed / max(obs.yaw, 0.1)",
        "obs.yaw ** -0.5",  # floors its base
        "obs.yaw ** 2 / 3",
    ],
)
def test_a_divisor_that_is_never_zero(expression):
    assert found(program(expression), "ZERO_DIVISOR") == []
