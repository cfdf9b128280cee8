"""What programs mean: the Structure that they become."""

import math

import numpy as np
import pytest
from language.programs import CHOICE, DOOR, FIXTURES, SMALL, codes, parse, program, read

from structjax.language.functions import FUNCTIONS
from structjax.language.structure import (
    Call,
    Head,
    Index,
    Latent,
    Number,
    Observation,
    Parameter,
    Slice,
    Variable,
    Weight,
)
from structjax.tasks.car_racing.schema import CAR_RACING_SCHEMA

SPEED = Observation("speed")
YAW = Observation("yaw")
X = Observation("tiles.x")
W = Weight("w")


def expression(text: str):
    """The lowered expression of `a = text`."""
    return read(f"a = {text}").structure.latents[-1].expression


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("obs.speed", SPEED),
        ("w", W),
        ("2", Number(2.0)),
        ("2 * pi", Number(2 * math.pi)),
        ("-2 ** 2", Number(-4.0)),
        ("jnp.pi", Number(math.pi)),
        ("w * 2 * 3", Call("mul", (Call("mul", (W, Number(2.0))), Number(3.0)))),
        ("-obs.speed", Call("neg", (SPEED,))),
        ("+obs.speed", SPEED),
        ("obs.speed ** 2", Call("pow", (SPEED, Number(2.0)))),
        ("obs.tiles.x[-1]", Index(X, 2)),
        ("sum(obs.tiles.x[1:])", Call("reduce_sum", (Slice(X, 1, 3),))),
        ("sum(obs.tiles.x[:-1])", Call("reduce_sum", (Slice(X, 0, 2),))),
        ("max(obs.tiles.x)", Call("reduce_max", (X,))),
        ("max(w, 1)", Call("maximum", (W, Number(1.0)))),
        (
            "min(w, 1, obs.yaw)",
            Call("minimum", (Call("minimum", (W, Number(1.0))), YAW)),
        ),
        ("torch.clamp(w, 0, 1)", Call("clip", (W, Number(0.0), Number(1.0)))),
        ("jnp.linalg.norm(obs.tiles.x)", Call("norm", (X,))),
        ("math.atan2(w, 1)", Call("atan2", (W, Number(1.0)))),
        ("float(obs.yaw)", YAW),
        ("len(obs.tiles.x) * w", Call("mul", (Number(3.0), W))),
        (
            "1 if obs.yaw > 0 else 2",
            Call("where", (Call("gt", (YAW, Number(0.0))), Number(1.0), Number(2.0))),
        ),
        (
            "1 < obs.yaw < w",
            Call(
                "and_", (Call("lt", (Number(1.0), YAW)), Call("lt", (YAW, W)))
            ),
        ),
        (
            "not obs.yaw > 0 or obs.yaw == w",
            Call(
                "or_",
                (
                    Call("not_", (Call("gt", (YAW, Number(0.0))),)),
                    Call("eq", (YAW, W)),
                ),
            ),
        ),
    ],
)  # fmt: skip
def test_expression(text, wanted):
    assert expression(text) == wanted


@pytest.mark.parametrize(
    ("text", "size", "boolean"),
    [
        ("obs.tiles.x * w", 3, False),
        ("obs.tiles.x > 0", 3, True),
        ("where(obs.tiles.x > 0, w, 1)", 3, False),
        ("where(w > 0, obs.yaw > 0, obs.yaw < 0)", None, True),
        ("where(w > 0, obs.yaw > 0, 1)", None, False),
        ("(obs.yaw > 0) + 1", None, False),
        ("float(obs.yaw > 0)", None, False),
        ("True", None, True),
        ("stack(w, 1)", 2, False),
        ("stack(w > 0, w < 1)", 2, True),
        ("concat(obs.tiles.x, obs.quat)", 7, False),
        ("rotate(obs.quat, obs.tiles.x)", 3, False),
        ("rotate2d(stack(w, 1), pi)", 2, False),
        ("normalise(obs.quat)", 4, False),
        ("dot(obs.tiles.x, obs.tiles.y)", None, False),
        ("(obs.tiles.x > 0)[0]", None, True),
    ],
)
def test_types(text, size, boolean):
    latent = read(f"v = {text}", "a = 1").structure.latents[0]
    assert (latent.size, latent.boolean) == (size, boolean)


def test_chained_comparison_evaluates_its_middle_once():
    structure = read("a = 0 < obs.yaw * w < 1").structure
    assert [latent.name for latent in structure.latents] == ["_between_1", "a"]


def test_weights():
    module = (
        "SCALE = 2 * pi\nfree = weight(SCALE)\npositive = weight(1, sign='+')\n"
        "negative = weight(init=-1, sign='-', low=-3)\nboth = weight(0.5, None, 0, 1)\n"
    )
    structure = read("a = free + positive + negative + both", module=module).structure
    assert structure.parameters == (
        Parameter("w", 0.5),
        Parameter("free", 2 * math.pi),
        Parameter("positive", 1.0, 0.0, None),
        Parameter("negative", -1.0, -3.0, 0.0),
        Parameter("both", 0.5, 0.0, 1.0),
        # Implied by the heads: a tenth of the half ranges 1 and 0.5.
        Parameter("std_steer", 0.1, 1e-3, 1.0),
        Parameter("std_gas", 0.05, 5e-4, 0.5),
    )


@pytest.mark.parametrize(
    ("declaration", "moved"),
    [
        ("weight(0, sign='+')", 1e-3),
        ("weight(0, sign='-')", -1e-3),
        ("weight(2, low=2, high=12)", 2.01),
        ("weight(12, low=2, high=12)", 11.99),
    ],
)
def test_start_on_a_bound_is_moved_inside(declaration, moved):
    result = read("a = u * obs.yaw", module=f"u = {declaration}\n")
    assert result.structure.parameters[1].initial == pytest.approx(moved, rel=1e-12)
    assert [p.code for p in result.warnings] == ["START_ON_BOUND"]


def test_heads():
    text = (
        "s = weight(0.2)\ndef policy(obs):\n"
        "    return action(gas=normal(obs.yaw, std=fixed(0.25)), "
        "steer=normal(obs.speed, std=s))\n"
    )
    structure = parse(text, SMALL).structure
    clipped = Call("clip", (Weight("s"), Number(1e-3), Number(1.0)))
    assert structure.heads == (
        Head("steer", "normal", (SPEED, clipped)),
        Head("gas", "normal", (YAW, Number(0.25))),
    )
    assert structure.parameters == (Parameter("s", 0.2),)


def test_number_as_std_is_the_start_of_a_weight():
    text = "def policy(obs):\n    return action(steer=normal(obs.speed, 0.3), "
    structure = parse(text + "gas=normal(obs.yaw, std=0.2))\n", SMALL).structure
    assert structure.parameters == (
        Parameter("std_steer", 0.3, 1e-3, 1.0),
        Parameter("std_gas", 0.2, 5e-4, 0.5),
    )
    assert structure.heads[0].arguments[1] == Weight("std_steer")


@pytest.mark.parametrize(
    ("logits", "wanted"),
    [
        ("obs.angle, 1", (Observation("angle"), Number(1.0))),
        (
            "obs.state",
            (Index(Observation("state"), 0), Index(Observation("state"), 1)),
        ),
        (
            "obs.state * 2",
            (
                Index(Variable("_logits_push_1"), 0),
                Index(Variable("_logits_push_1"), 1),
            ),
        ),
    ],
)
def test_discrete_action(logits, wanted):
    text = f"def policy(obs):\n    return action(push=categorical({logits}))\n"
    structure = parse(text, CHOICE).structure
    assert structure.heads == (Head("push", "categorical", wanted),)
    assert structure.parameters == ()


@pytest.mark.parametrize(
    "head", ["normal(obs.angle)", "categorical(obs.angle)", "categorical(1, 2, 3)"]
)
def test_wrong_discrete_action(head):
    text = f"def policy(obs):\n    return action(push={head})\n"
    assert codes(text, CHOICE) == ["HEAD"]


def test_local_constant_may_index():
    assert read("k = 1\na = obs.tiles.x[k + 1]").structure.latents[1] == Latent(
        "a", Index(X, 2)
    )


def test_documentation():
    text = '''"""Drive."""

# --- steering
# how hard
w = weight(0.5)  # per speed
K = 2  # a constant

def f(x):
    """Doubles."""
    return 2 * x

def policy(obs):
    # set off by a blank line

    # above
    a = f(obs.yaw) * K  # beside
    b = w * (  # open
        obs.speed
    )  # close: \u03b8
    if obs.yaw > 0:
        c = 1  # in a branch
    else:
        c = 2
    return action(steer=normal(a + c), gas=normal(b))  # the end
'''
    result = parse(text, SMALL)
    assert dict(result.docs) == {
        "": "Drive.",
        "w": "how hard per speed",
        "K": "a constant",
        "f": "Doubles.",
        "a": "above beside",
        "b": "open close: \u03b8",
        "c": "in a branch",
    }
    assert result.lines["w"] == 5
    assert result.lines["a"] == 16


@pytest.mark.parametrize(
    "change",
    [
        lambda text: "\ufeff" + text,
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text.replace("\n", "\r"),
        lambda text: text.replace("\n", "  \t\n"),
        lambda text: "\f" + text,
        lambda text: text.rstrip("\n"),
        lambda text: text + "\n\n",
    ],
)
def test_line_ends_and_trailing_space_do_not_matter(change):
    text = program("a = 1  # caf\u00e9")
    assert parse(change(text), SMALL) == parse(text, SMALL)


@pytest.mark.parametrize(
    ("lines", "module", "code"),
    [
        (["a = 1", "b = 2"], "", "UNUSED_LATENT"),
        (["a = 1"], "u = weight(1.0)\n", "UNUSED_WEIGHT"),
        (["b = obs.yaw * u", "a = 1"], "u = weight(1.0)\n", "UNUSED_WEIGHT"),
        (["a = 1"], "def f(x):\n    return x\n", "UNUSED_HELPER"),
        (["a = 1"], "", "BLIND_ACTION"),
        (["a = obs.yaw ** 0.5"], "", "FRACTIONAL_POWER"),
    ],
)
def test_warning(lines, module, code):
    assert code in [p.code for p in read(*lines, module=module).warnings]


def test_program_without_weights_is_accepted_with_a_warning():
    text = (
        "def policy(obs):\n"
        "    return action(steer=normal(obs.yaw), gas=normal(obs.speed))\n"
    )
    assert [str(p) for p in parse(text, SMALL).warnings] == [
        "line 1: warning: the program has no weight; numbers that are guesses become "
        "`name = weight(0.5)`"
    ]


def test_three_hundred_latents():
    lines = [f"x{i} = x{i - 1} + obs.yaw" for i in range(1, 300)]
    result = read("x0 = w", *lines, "a = x299")
    assert len(result.structure.latents) == 301
    assert result.warnings == ()


@pytest.mark.parametrize(
    ("name", "schema", "parameters", "warnings"),
    [
        # weights written in the file + one std per action
        ("car_a", CAR_RACING_SCHEMA, 35 + 3, []),
        ("car_b", CAR_RACING_SCHEMA, 26 + 3, []),
        ("door_a", DOOR, 12 + 4, ["START_ON_BOUND", "BLIND_ACTION"]),
    ],
)
def test_zero_shot_programs_are_accepted_as_they_are(
    name, schema, parameters, warnings
):
    result = parse((FIXTURES / f"{name}.py").read_text(), schema)
    assert len(result.structure.parameters) == parameters
    assert [p.code for p in result.warnings] == warnings
    assert all(len(result.docs[p.name]) > 5 for p in result.structure.parameters
               if not p.name.startswith("std_"))  # fmt: skip


@pytest.mark.parametrize(
    ("name", "parameters", "latents"),
    # arXiv 2610.01652, anatomy of the recorded car policies
    [("r0", 15, 13), ("r1", 21, 17), ("r2", 24, 20), ("r3", 26, 23)],
)
def test_paper_programs_have_the_paper_s_counts(name, parameters, latents):
    structure = parse(
        (FIXTURES / f"{name}.py").read_text(), CAR_RACING_SCHEMA
    ).structure
    assert len(structure.parameters) == parameters
    assert sum(latent.logged for latent in structure.latents) == latents


@pytest.mark.parametrize(("exponent", "floor"), [("0.5", "0"), ("-0.5", "1e-6")])
def test_a_fractional_power_says_what_it_makes_of_a_negative_base(exponent, floor):
    (warning,) = [
        p
        for p in read(f"a = obs.yaw ** {exponent}").warnings
        if p.code == "FRACTIONAL_POWER"
    ]
    assert f"takes a base below {floor} as {floor}" in warning.message
    # As the function does: 0 ** 0.5, or (1e-6) ** -0.5.
    value = float(FUNCTIONS["pow"](np.float32(-4.0), float(exponent)))
    assert value == pytest.approx({"0.5": 0.0, "-0.5": 1000.0}[exponent], rel=1e-5)
