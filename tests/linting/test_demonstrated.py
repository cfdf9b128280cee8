"""Rules that look along a demonstration, on a schema of two numbers."""

import numpy as np
import pytest
from language.programs import CHOICE

from structjax.demonstration import Demonstration
from structjax.errors import StructjaxError
from structjax.language.parse import parse
from structjax.linting.lint import lint
from structjax.schema import ActionField, Field, Schema

SCHEMA = Schema(
    (
        Field("x", None, "m", -1.0, 1.0, "", mirror=-1),
        Field("joint", None, "", -1.0, 1.0, "", mirror=-1),
    ),
    (
        ActionField("push", "", low=-1.0, high=1.0, mirror=-1),
        ActionField("gas", "", low=0.0, high=1.0, mirror=1),
    ),
)
STEPS = 400
# x runs evenly from -1 to 1: a share of steps is a share of that range.
X = np.linspace(-1, 1, STEPS)
HEADS = "push=normal(w * obs.x), gas=normal(w * a)"


def shown(joint=None, gas=0.5, push=0.1):
    joint = np.zeros(STEPS) if joint is None else joint
    ones = np.ones(STEPS)
    return Demonstration(
        np.stack([X, joint], 1).astype(np.float32),
        np.stack([push * ones, gas * ones], 1).astype(np.float32),
    )


def found(code, *lines, heads=HEADS, module="", demonstration=None, values=None):
    body = "".join(f"    {line}\n" for line in lines)
    text = f"w = weight(0.5)\n{module}def policy(obs):\n{body}"
    program = parse(f"{text}    return action({heads})\n", SCHEMA)
    problems = lint(
        program, SCHEMA, demonstration=demonstration or shown(), values=values
    )
    return [(p.line, p.message) for p in problems if p.code == code]


V = "v = weight(0.3)\n"


@pytest.mark.parametrize(
    "expression",
    [
        "relu(obs.x - 1.5 - v)",  # never above 0
        "obs.joint * v",  # a field that is always 0
        "clip(v * obs.x, 2, 3)",
        "v * obs.x * u",  # u starts at 0
    ],
)
def test_zero_gradient(expression):
    module = f"{V}u = weight(0.0)\n"
    lines = [f"a = {expression}", "b = u"]
    found_lines = [line for line, _ in found("ZERO_GRADIENT", *lines, module=module)]
    assert 2 in found_lines


@pytest.mark.parametrize(
    "expression",
    [
        "relu(obs.x - v)",
        "v * obs.x",
        "0.0001 * v * obs.x",
        "v",
        "a0 * previous(a0, start=1.0)",
    ],
)
def test_a_gradient(expression):
    lines = ["a0 = v * abs(obs.x)", f"a = {expression}"]
    assert found("ZERO_GRADIENT", *lines, module=V) == []


def test_a_large_weight_with_a_small_slope():
    module = "v = weight(40000000.0)\n"
    lines = ["a = v * obs.x / 40000000"]
    assert found("ZERO_GRADIENT", *lines, module=module) == []


def test_what_the_text_shows_is_not_said_again():
    module = "v = weight(0.0)\nu = weight(0.5)\n"
    lines = ["a = abs(v) * obs.x"]
    assert found("ZERO_GRADIENT", *lines, module=module) == []
    assert len(found("NO_GRADIENT", *lines, module=module)) == 1
    assert len(found("UNUSED_WEIGHT", *lines, module=module)) == 1


def test_the_given_values_are_judged():
    lines = ["a = relu(obs.x - v)"]
    assert found("ZERO_GRADIENT", *lines, module=V) == []
    ((line, message),) = found("ZERO_GRADIENT", *lines, module=V, values={"v": 1.5})
    assert line == 2
    assert message.startswith("weight `v` has no effect along the demonstration")


def test_saturated_latent():
    # x is above 0.3 on 35 % of the steps and below -0.3 on as many.
    lines = ["a = 2 * clip(obs.x, -0.3, 0.3) + obs.joint"]
    ((line, message),) = found("SATURATED", *lines)
    assert line == 3
    assert message == (
        "`a` is clipped on 70.0% of the demonstration's steps: 35.0% at -0.3, 35.0% at "
        "0.3; no gradient passes there"
    )
    assert found("SATURATED", "a = 2 * clip(obs.x, -0.6, 0.6) + obs.joint") == []


def test_saturated_at_a_bound_that_is_a_weight():
    lines = ["a = clip(obs.x, -2, -v) + obs.joint"]
    ((_, message),) = found("SATURATED", *lines, module=V)
    assert "65.0% of the demonstration's steps: 65.0% at -v" in message


def test_a_head_stuck_where_the_demonstration_acts():
    heads = "push=normal(w * obs.x), gas=normal(clip(a, 0, 1))"
    lines = ["a = w * obs.x"]
    ((line, message),) = found("SATURATED", *lines, heads=heads)
    assert line == 4
    assert message == (
        "the mean of `gas` is stuck at 0 on 50.0% of the demonstration's steps "
        "although the demonstration does otherwise there"
    )
    # A demonstration that does not press the gas either is followed.
    assert found("SATURATED", *lines, heads=heads, demonstration=shown(gas=0.0)) == []


def test_a_head_outside_its_range():
    ((line, message),) = found("HEAD_OUTSIDE", "a = 2 * obs.x")
    assert line == 4
    assert message == (
        "the mean of `gas` lies outside its range on 50.0% of the demonstration's "
        "steps: 50.0% below 0, 0.0% above 1"
    )
    assert found("HEAD_OUTSIDE", "a = abs(obs.x)") == []
    squashed = "push=normal(w * obs.x), gas=tanh_normal(5 * a)"
    assert found("HEAD_OUTSIDE", "a = obs.x", heads=squashed) == []


def pushes():
    """Random pushes of an episode, and a joint that follows them by one step."""
    push = np.random.default_rng(0).uniform(-1, 1, STEPS)
    return push, np.r_[0.0, push[:-1]]


@pytest.mark.parametrize(
    "follow",
    [
        lambda joint: joint,
        lambda joint: -0.3 * joint + 0.1,
        lambda joint: np.clip(joint, -0.4, 0.4),  # a joint at its limit
    ],
)
def test_copycat(follow):
    push, joint = pushes()
    demonstration = shown(follow(joint), push=push)
    lines = ["a = abs(obs.x)", "b = w * obs.joint"]
    heads = "push=normal(b), gas=normal(a)"
    options = {"heads": heads, "demonstration": demonstration}
    ((line, message),) = found("COPYCAT", *lines, **options)
    assert line == 4
    assert message.startswith("`obs.joint` (joint) repeats the previous action: it")


def test_no_copycat():
    push, joint = pushes()
    noise = np.random.default_rng(1).normal(size=STEPS)
    lines = ["a = abs(obs.joint)"]
    # A third of the variance is the joint's own.
    own = shown(joint + 0.4 * noise, push=push)
    assert found("COPYCAT", *lines, demonstration=own) == []
    # The same copy, but nobody reads it.
    copied = shown(joint, push=push)
    assert found("COPYCAT", "a = abs(obs.x)", demonstration=copied) == []


def test_a_slow_feature_is_no_copy():
    rng = np.random.default_rng(2)
    slow = np.cumsum(rng.normal(size=STEPS)) / 50
    push = np.clip(np.append(slow[1:], 0) + 0.028 * rng.normal(size=STEPS), -1, 1)
    # The push explains it well, its own past better: steps of 0.02 against 0.028.
    assert np.corrcoef(push[:-1], slow[1:])[0, 1] ** 2 > 0.95
    demonstration = shown(slow, push=push)
    assert found("COPYCAT", "a = abs(obs.joint)", demonstration=demonstration) == []


@pytest.mark.parametrize(
    "heads",
    [
        HEADS,
        "push=truncated_normal(w * obs.x), gas=beta(clip(a, 0.1, 0.9))",
        "push=tanh_normal(w * obs.x), gas=normal(a)",
        "push=normal(w * obs.x), gas=normal(a), coupling=0.5 * tanh(w)",
        "push=normal(w / 0), gas=normal(a, std=exact(0 / w))",
    ],
)
def test_every_family_is_looked_at(heads):
    lines = ["a = previous(a, start=0.5) * 0.5 + abs(obs.x)"]
    assert found("ZERO_GRADIENT", *lines, heads=heads, module=V) == []
    assert len(found("UNUSED_WEIGHT", *lines, heads=heads, module=V)) == 1


def test_choices_are_looked_at():
    text = (
        "w = weight(0.5)\nv = weight(0.5)\ndef policy(obs):\n"
        "    return action(push=categorical(v + w * obs.angle, v))\n"
    )
    demonstration = Demonstration(
        np.linspace(-1, 1, 60).reshape(20, 3), np.zeros(20, int)
    )
    problems = lint(parse(text, CHOICE), CHOICE, demonstration=demonstration)
    # v moves both logits alike: no choice becomes likelier.
    assert [p.line for p in problems if p.code == "ZERO_GRADIENT"] == [2]


def test_a_short_demonstration():
    short = Demonstration(np.zeros((1, 2)), np.zeros((1, 2)))
    assert found("COPYCAT", "a = abs(obs.joint)", demonstration=short) == []


def test_values_on_their_bound():
    module = "v = weight(0.3, low=0.0, high=1.0)\n"
    options = {"module": module, "values": {"v": 0.9999}}
    ((line, message),) = found("START_ON_BOUND", "a = v * obs.x", **options)
    assert line == 2
    assert message == "weight `v` has the value 0.9999, on its bound 1"
    options["values"] = {"v": 0.9}
    assert found("START_ON_BOUND", "a = v * obs.x", **options) == []


def test_values_of_other_programs_are_refused():
    with pytest.raises(StructjaxError, match="no weight 'u' in the program"):
        found("SATURATED", "a = 1", values={"u": 1.0})


def test_demonstrations_of_other_tasks_are_refused():
    foreign = Demonstration(np.zeros((5, 3)), np.zeros((5, 2)))
    with pytest.raises(StructjaxError, match="observations are"):
        found("SATURATED", "a = 1", demonstration=foreign)
