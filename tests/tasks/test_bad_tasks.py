"""Tasks and schemas that no run could use are refused when they are made."""

from dataclasses import replace

import pytest
from toy import SCHEMA, toy_task

from structjax.errors import StructjaxError
from structjax.schema import ActionField, Field, Schema
from structjax.tasks.adapters.gymnax import DEFAULT_SEEDS, task_from_gymnax
from structjax.tasks.classic import PENDULUM_SCHEMA


def field(name, size=None, low=-1.0, high=1.0):
    return Field(name, size, "", low, high, "")


@pytest.mark.parametrize("use", ["test", "gate", "selection", "debug"])
def test_a_task_without_a_seed_set_that_runs_need(use):
    seeds = {key: value for key, value in DEFAULT_SEEDS.items() if key != use}
    with pytest.raises(StructjaxError, match=f"it has no '{use}' seeds"):
        task_from_gymnax(
            "Pendulum-v1",
            schema=PENDULUM_SCHEMA,
            description="",
            name="mine",
            seeds=seeds,
        )


def test_a_task_needs_no_demonstrations_and_no_training():
    needed = ("test", "gate", "selection", "debug")
    seeds = {use: DEFAULT_SEEDS[use] for use in needed}
    assert replace(toy_task(), seeds=seeds).seeds == seeds


@pytest.mark.parametrize("horizon", [0, -1, 2.5, None])
def test_a_horizon_that_is_no_length(horizon):
    with pytest.raises(StructjaxError, match="its horizon is"):
        replace(toy_task(), horizon=horizon)


def test_a_gymnax_task_without_steps():
    with pytest.raises(StructjaxError, match="its horizon is 0"):
        task_from_gymnax(
            "Pendulum-v1",
            schema=PENDULUM_SCHEMA,
            description="",
            name="mine",
            horizon=0,
        )


@pytest.mark.parametrize(
    "seeds",
    [range(0), range(-3, 3), range(2**32, 2**32 + 2), range(10**9), [1, 2, 3], 7],
)
def test_seeds_that_no_generator_takes(seeds):
    task = toy_task()
    with pytest.raises(StructjaxError, match="its 'debug' seeds are"):
        replace(task, seeds={**task.seeds, "debug": seeds})


@pytest.mark.parametrize("name", ["", "a/b", "../x", "a b", "a" * 101])
def test_a_task_name_that_no_directory_should_have(name):
    with pytest.raises(StructjaxError, match="its name is"):
        replace(toy_task(), name=name)


FAULTY = {
    "space": ([field("a b")], "the observation field 'a b'"),
    "keyword": ([field("class")], "the observation field 'class'"),
    "keyword in a group": ([field("a.class")], "the observation field 'a.class'"),
    "empty": ([field("")], "the observation field ''"),
    "dots": ([field("a..b")], "the observation field 'a..b'"),
    "digit": ([field("1st")], "the observation field '1st'"),
    "not ASCII": ([field("größe")], "the observation field 'größe'"),
    "dunder": ([field("__a")], "the observation field '__a'"),
    "twice": ([field("a"), field("a")], "the observation field 'a' 2 times"),
    "same column": ([field("a.b"), field("a_b")], "column 'obs_a_b' 2 times"),
    "same element": ([field("a", 2), field("a_1")], "column 'obs_a_1' 2 times"),
    "no size": ([field("a", 0)], "'a' of size 0"),
    "empty range": ([field("a", None, 2.0, 1.0)], r"range \[2, 1\]"),
    "NaN range": ([field("a", None, float("nan"), 1.0)], "range"),
}


@pytest.mark.parametrize("name", FAULTY)
def test_observation_fields_that_cannot_be_used(name):
    fields, problem = FAULTY[name]
    with pytest.raises(StructjaxError, match=problem) as refused:
        Schema(tuple(fields), SCHEMA.actions)
    assert "\n" not in str(refused.value)


FAULTY_ACTIONS = {
    "space": ([ActionField("a b", "")], "the action 'a b'"),
    "keyword": ([ActionField("lambda", "")], "the action 'lambda'"),
    "dot": ([ActionField("a.b", "")], "the action 'a.b'"),
    "twice": ([ActionField("a", ""), ActionField("a", "")], "the action 'a' 2 times"),
    "column": (
        [ActionField("a", ""), ActionField("a_mean", "")],
        "column 'action_a_mean' 2 times",
    ),
    "range": ([ActionField("a", "", low=1.0, high=1.0)], r"range \[1, 1\]"),
    "no end": ([ActionField("a", "", high=float("inf"))], r"range \[-1, inf\]"),
    "no choice": ([ActionField("a", "", choices=())], r"'a' of choices \(\)"),
    "mixed": (
        [ActionField("a", "", choices=("x", "y")), ActionField("b", "")],
        "2 actions",
    ),
}


@pytest.mark.parametrize("name", FAULTY_ACTIONS)
def test_actions_that_cannot_be_used(name):
    actions, problem = FAULTY_ACTIONS[name]
    with pytest.raises(StructjaxError, match=problem):
        Schema(SCHEMA.observations, tuple(actions))
