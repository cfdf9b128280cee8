"""What loops, branches and helpers become: single assignments, in order."""

import pytest
from language.programs import codes, program, read

from structjax.language.structure import (
    Call,
    Index,
    Latent,
    Number,
    Observation,
    Variable,
    Weight,
)

YAW = Observation("yaw")
X = Observation("tiles.x")
W = Weight("w")


def test_loop_keeps_the_last_value_under_its_name():
    structure = read("a = 0\nfor i in range(3):\n    a += i * obs.tiles.x[i]").structure
    terms = [Call("mul", (Number(float(i)), Index(X, i))) for i in range(3)]
    add = [Call("add", (Variable(f"_a_{i + 1}"), terms[i])) for i in range(3)]
    assert structure.latents == (
        Latent("_a_1", Number(0.0)),
        Latent("_a_2", add[0]),
        Latent("_a_3", add[1]),
        Latent("a", add[2]),
    )


def test_branch_known_from_the_loop_is_taken_statically():
    structure = read(
        "for i in range(2):\n"
        "    if i == 0:\n        a = obs.tiles.x[i]\n"
        "    else:\n        a = max(a, obs.tiles.x[i])"
    ).structure
    assert structure.latents == (
        Latent("_a_1", Index(X, 0)),
        Latent("a", Call("maximum", (Variable("_a_1"), Index(X, 1)))),
    )


def test_if_becomes_where():
    structure = read("if obs.yaw > 0:\n    a = 1\nelse:\n    a = w").structure
    condition = Call("gt", (YAW, Number(0.0)))
    where = Call("where", (condition, Number(1.0), W))
    assert structure.latents == (Latent("a", where),)


def test_if_without_else_updates_what_was_assigned_before():
    structure = read("a = w\nif obs.yaw > 0:\n    a = 2 * a").structure
    condition = Call("gt", (YAW, Number(0.0)))
    twice = Call("mul", (Number(2.0), Variable("_a_1")))
    assert structure.latents == (
        Latent("_a_1", W),
        Latent("a", Call("where", (condition, twice, Variable("_a_1")))),
    )


def test_condition_of_two_names_is_evaluated_once():
    structure = read(
        "if obs.yaw > 0:\n    a = 1\n    b = 2\nelse:\n    a = w\n    b = a", "c = b"
    ).structure
    condition = Variable("_condition_1")
    assert structure.latents == (
        Latent("_condition_1", Call("gt", (YAW, Number(0.0))), None, True),
        Latent("a", Call("where", (condition, Number(1.0), W))),
        Latent("b", Call("where", (condition, Number(2.0), W))),
        Latent("c", Variable("b")),
    )


def test_helper_is_inlined_with_its_locals_as_temporaries():
    structure = read(
        "a = f(obs.yaw * 2) + f(w)",
        module="K = 3\ndef f(x):\n    y = x * K\n    return y + x\n",
    ).structure
    results = (
        Call("add", (Variable("_f_y_1"), Variable("_f_x_1"))),
        Call("add", (Variable("_f_y_2"), W)),
    )
    assert structure.latents == (
        Latent("_f_x_1", Call("mul", (YAW, Number(2.0)))),
        Latent("_f_y_1", Call("mul", (Variable("_f_x_1"), Number(3.0)))),
        Latent("_f_y_2", Call("mul", (W, Number(3.0)))),
        Latent("a", Call("add", results)),
    )


def test_temporaries_avoid_names_of_the_program():
    names = [
        latent.name
        for latent in read("_a_1 = w\na = 0\nfor i in range(2):\n    a += _a_1")
        .structure.latents
    ]  # fmt: skip
    assert names == ["_a_1", "_a_2", "_a_3", "a"]


@pytest.mark.parametrize("condition", ["True", "1 < 2", "False", "w > 0"])
def test_a_branch_may_update_a_name_whether_or_not_its_condition_is_known(condition):
    result = read("a = obs.yaw", f"if {condition}:\n    a = a + w")
    last = next(v for v in result.structure.latents if v.name == "a")
    assert last.size is None
    kept = condition == "False"
    assert (last.expression == YAW) == kept


@pytest.mark.parametrize("condition", ["True", "w > 0"])
def test_a_branch_may_not_update_a_name_twice(condition):
    text = program("a = obs.yaw", f"if {condition}:\n    a = 1\n    a = 2")
    assert codes(text) == ["REASSIGNED"]
    text = program("a = obs.yaw", f"if {condition}:\n    a = 1", "a = 2")
    assert codes(text) == ["REASSIGNED"]


def test_a_name_updated_in_nested_known_branches_has_its_last_value():
    lines = "if True:\n    a = w\n    if True:\n        a = a + 1\n    b = a"
    result = read("a = obs.yaw", lines)
    assert "a" in [v.name for v in result.structure.latents]
    assert result.structure.latents[-1] == Latent("b", Variable("a"))
