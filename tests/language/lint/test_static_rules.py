"""Gradients, duplicates, numbers; and that the lint reads every valid program."""

import pytest
from hypothesis import HealthCheck, given, settings
from language.programs import CHOICE, DOOR, FIXTURES, SMALL
from language.test_render import EXPRESSIONS, MODULE

from structjax.language.lint.codes import LINT_CODES
from structjax.language.lint.static import static_problems
from structjax.language.parse import Program, StructureError, parse
from structjax.language.problem import CODES
from structjax.tasks.car_racing.schema import CAR_RACING_SCHEMA as CAR

HEADS = "steer=normal(w * obs.yaw), gas=normal(w * a)"


def program(*lines, module="", heads=HEADS):
    body = "".join(f"    {line}\n" for line in lines)
    text = f"w = weight(0.5)\n{module}def policy(obs):\n{body}"
    return parse(f"{text}    return action({heads})\n", SMALL)


def found(code, *lines, **options):
    problems = static_problems(program(*lines, **options), SMALL)
    return [(p.line, p.message) for p in problems if p.code == code]


V = "v = weight(0.0)\n"


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("abs(v) * obs.speed", "`abs(v)` has derivative 0 at its value 0"),
        ("square(v) + obs.speed", "`square(v)` has derivative 0 at its value 0"),
        ("relu(v) + obs.speed", "`relu(v)` has derivative 0 at its value 0"),
        ("1 if obs.speed > v else 0", "it only decides conditions or signs"),
        ("sign(v) * obs.speed", "it only decides conditions or signs"),
        ("v * obs.speed - v * obs.speed + obs.yaw", "it cancels out"),
        ("v / v * obs.speed", "it cancels out"),
        ("normalise(v * obs.tiles.x)[0]", "it only scales what is normalised"),
        (
            "normalise(stack(v * obs.speed, -v * obs.yaw))[1]",
            "it only scales what is normalised",
        ),
    ],
)
def test_no_gradient(expression, reason):
    ((line, message),) = found("NO_GRADIENT", f"a = {expression}", module=V)
    assert line == 2
    assert message == f"no gradient reaches weight `v`: {reason}"


def test_no_gradient_through_a_length_by_hand():
    lines = ["side = v * obs.tiles.x", "a = (side / (norm(side) + 0.001))[0]"]
    assert len(found("NO_GRADIENT", *lines, module=V)) == 1


@pytest.mark.parametrize(
    "expression",
    [
        "v * obs.speed",
        "abs(v * obs.speed)",
        "abs(v + obs.speed)",
        "relu(v - obs.speed)",
        "v if obs.speed > 0 else 0",
        "(obs.speed > v) + v",
        "normalise(v + obs.tiles.x)[0]",
        "v * normalise(obs.tiles.x)[0]",
        "obs.tiles.x[0] / norm(v * obs.tiles.x)",
    ],
)
def test_a_gradient(expression):
    assert found("NO_GRADIENT", f"a = {expression}", module=V) == []


def test_a_gradient_through_memory():
    lines = ["a = 0.5 * previous(a, start=0.0) + v * obs.speed"]
    assert found("NO_GRADIENT", *lines, module=V) == []


def test_an_unused_weight_is_reported_once():
    problems = static_problems(program("a = abs(obs.speed)", module=V), SMALL)
    assert [p.code for p in problems if "`v`" in p.message] == ["UNUSED_WEIGHT"]


def test_duplicates():
    lines = [
        "near = mean(abs(obs.tiles.x[:2])) * w",
        "far = obs.speed - mean(abs(obs.tiles.x[:2]))",
        "a = near + far",
    ]
    ((line, message),) = found("DUPLICATE", *lines)
    assert line == 3
    assert message == (
        "`mean(abs(obs.tiles.x[0:2]))` is written 2 times, in lines 3, 4"
    )


@pytest.mark.parametrize(
    "lines",
    [
        ["near = mean(obs.tiles.x)", "a = near + mean(obs.tiles.x)"],  # too short
        ["near = abs(obs.tiles.x[0] - w)", "a = near + abs(obs.tiles.x[1] - w)"],
        ["a = 0", "for i in range(3):", "    a = a + abs(obs.tiles.x[i] - w) * w"],
    ],
)
def test_no_duplicates(lines):
    assert found("DUPLICATE", *lines) == []


def test_magic_numbers():
    lines = ["b = 0.54 * obs.speed + 7", "a = b - 3 * w"]
    assert found("MAGIC_NUMBER", *lines) == [
        (3, "unnamed numbers 0.54, 7 in `b = 0.54 * obs.speed + 7`"),
        (4, "unnamed number 3 in `a = b - 3 * w`"),
    ]
    module = "def helper(x):\n    return 0.3 * x\n"
    ((line, _),) = found("MAGIC_NUMBER", "a = helper(obs.speed)", module=module)
    assert line == 3


@pytest.mark.parametrize(
    "lines",
    [
        ["a = 2 * obs.speed - 1 + 0.5 * obs.yaw"],
        ["a = K * obs.speed"],
        ["a = obs.tiles.x[2] + mean(obs.tiles.x[1:3])"],
        ["a = obs.speed ** 3"],
        ["a = clip(obs.speed, -1, 1)"],
        ["a = obs.yaw / max(obs.speed, 0.05)"],  # keeps a divisor away from 0
        ["a = obs.yaw / (obs.speed + 0.000001)"],
        ["a = dot(stack(3, 5, 7), obs.tiles.x)"],  # a table of numbers
        ["a = 0", "for i in range(3):", "    a = a + obs.tiles.x[i]"],
        ["a = previous(a, start=0.3)"],
    ],
)
def test_no_magic_numbers(lines):
    assert found("MAGIC_NUMBER", *lines, module="K = 0.54\n") == []


def test_scales_of_units_are_no_magic_numbers():
    text = (FIXTURES / "r0.py").read_text()
    text = text.replace("= obs.speed", "= 100 * obs.speed / 100")
    codes = [p.code for p in static_problems(parse(text, CAR), CAR)]
    assert "MAGIC_NUMBER" not in codes


def test_temporaries_are_shown_by_what_they_are():
    # The helper reads its parameter twice, so it becomes a temporary.
    module = "def twice(p):\n    return p * p\n"
    line = "a = 1 if twice(obs.speed + 1) < 8 else w"
    ((_, message),) = found("UNREACHABLE_BRANCH", line, module=module)
    assert message == ("condition `(obs.speed + 1) * (obs.speed + 1) < 8` always holds")


def test_a_program_without_faults():
    text = (
        "lean_gain = weight(0.5)\n"
        "def policy(obs):\n"
        "    lean = lean_gain * obs.yaw\n"
        "    push = sigmoid(lean + obs.speed)\n"
        "    return action(steer=normal(lean), gas=normal(push))\n"
    )
    assert static_problems(parse(text, SMALL), SMALL) == ()


def test_the_parser_s_warnings_are_part_of_it():
    checked = program("a = obs.speed", "b = 2 * a", module="v = weight(0, sign='+')\n")
    codes = {p.code for p in static_problems(checked, SMALL)}
    assert codes == {"START_ON_BOUND", "UNUSED_WEIGHT", "UNUSED_LATENT"}


@pytest.mark.parametrize("name", ["car_a", "car_b", "r0", "r1", "r2", "r3", "door_a"])
def test_problems_are_ordered_warnings_on_lines_of_the_program(name):
    schema = DOOR if name == "door_a" else CAR
    checked = parse((FIXTURES / f"{name}.py").read_text(), schema)
    problems = static_problems(checked, schema)
    lines = [p.line for p in problems]
    assert lines == sorted(lines)
    assert 1 <= lines[0] <= lines[-1] <= checked.source.count("\n")
    assert {p.severity for p in problems} == {"warning"}
    assert {p.code for p in problems} <= {*CODES, *LINT_CODES}


FAMILIES = ("normal", "truncated_normal", "tanh_normal", "beta")


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(EXPRESSIONS, EXPRESSIONS)
def test_every_valid_program_is_read(first, second):
    checked = 0
    for family in FAMILIES:
        heads = f"steer={family}({first}), gas={family}(a, std=0.2 + b ** 2)"
        lines = [
            f"b = {first}",
            f"c = previous(b, start=0.5) + ({second})",
            "a = previous(c, start=0.0) - c * b",
        ]
        if family == "normal":
            heads += ", coupling=b"
        try:
            read = program(*lines, module=MODULE, heads=heads)
        except StructureError as error:
            codes = {p.code for p in error.problems if p.severity == "error"}
            # A folded constant beyond the accepted range has further effects.
            assert "CONST" in codes or codes <= {"TYPE", "PREVIOUS"}
            continue
        checked += 1
        assert isinstance(static_problems(read, SMALL), tuple)
    assert checked in (0, len(FAMILIES))


@settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))
@given(EXPRESSIONS)
def test_every_valid_choice_is_read(expression):
    text = (
        f"w = weight(0.5)\n{MODULE}def policy(obs):\n    a = {expression}\n"
        "    return action(push=categorical(a, w * obs.angle))\n"
    )
    for old in ("obs.speed", "obs.yaw"):
        text = text.replace(old, "obs.angle")
    for old in ("obs.tiles.x", "obs.tiles.y", "obs.quat"):
        text = text.replace(old, "stack(obs.angle, 1, obs.state[0], obs.state[1])")
    try:
        read = parse(text, CHOICE)
    except StructureError:
        return
    assert isinstance(read, Program)
    assert isinstance(static_problems(read, CHOICE), tuple)
