"""What the prompts announce is what the tables hold."""

import re
from dataclasses import replace

import numpy as np
from toy import SCHEMA, toy_task

from structjax.distributions import Categorical, Normal
from structjax.language.structure import Structure
from structjax.prompting import table_columns
from structjax.schema import ActionField, Schema
from structjax.table import demonstration_table

CHOICE = Schema(
    SCHEMA.observations,
    (ActionField("push", "direction", choices=("go left", "go-right")),),
)
EMPTY = Structure((), (), ())


def announced(schema):
    """Names of the action columns in the prompt."""
    text = table_columns(replace(toy_task(), schema=schema), EMPTY)
    return set(re.findall(r"`(action_[^`]*)`", text))


def held(schema, action, distribution):
    """Names of the action columns of a table."""
    obs = np.zeros((2, 2))
    frame = demonstration_table(obs, action, distribution, {}, schema, {}, {}).frame
    return {name for name in frame if name.startswith("action_")}


def test_the_columns_of_a_choice():
    columns = held(CHOICE, np.array([0, 1]), Categorical(np.eye(2)))
    assert announced(CHOICE) == columns
    assert "action_push_logit_go_left" in columns


def test_the_columns_of_a_continuous_action():
    push = np.zeros((2, 1))
    assert announced(SCHEMA) == held(SCHEMA, push, Normal(push, push + 1))
