"""Written starts are what a policy plays, to single precision, or a warning says so."""

import numpy as np
import pytest
from toy import SCHEMA

from structjax.language.parse import StructureError, parse
from structjax.language.render import render
from structjax.policy import StructuredPolicy, initial_values, variables_from, weights

BODY = "def policy(obs):\n    return action(push=normal({} * obs.x))\n"


def played(declaration, name="w"):
    """The weight as the policy computes it, and the codes of the warnings."""
    program = parse(f"{name} = {declaration}\n\n\n{BODY.format(name)}", SCHEMA)
    structure = program.structure
    policy = StructuredPolicy(structure, SCHEMA)
    variables = variables_from(structure, initial_values(structure))
    value = float(weights(policy, variables)[name])
    return value, [warning.code for warning in program.warnings]


EXACT = [
    ("weight(5, low=0, high=1e9)", 5),
    ("weight(1e-6, low=0, high=1e9)", 1e-6),
    ("weight(1e-20, low=0, high=1)", 1e-20),
    ("weight(-5, low=-1e9, high=0)", -5),
    ("weight(0.5, low=-1e9, high=1)", 0.5),
    ("weight(1.5, low=1, high=1e9)", 1.5),
    ("weight(1e9 - 500, low=0, high=1e9)", 1e9 - 500),
    ("weight(0, low=-1e9, high=1e9)", 0),
    ("weight(1e-9, low=0)", 1e-9),
    ("weight(1e-30, sign='+')", 1e-30),
    ("weight(-1e-30, sign='-')", -1e-30),
    ("weight(1e20, low=0)", 1e20),
    ("weight(3 + 1e-6, low=3)", 3 + 1e-6),
    ("weight(0.3, low=0.1, high=0.7)", 0.3),
    ("weight(1e-12)", 1e-12),
]


@pytest.mark.parametrize(("declaration", "wanted"), EXACT)
def test_a_start_strictly_inside_is_played_exactly(declaration, wanted):
    value, warnings = played(declaration)
    # The unconstrained weight has 24 bits: a share of e^-46 is good to 46 * 2^-24.
    assert value == pytest.approx(wanted, rel=1e-5, abs=0)
    assert warnings == []


COARSE = [
    ("weight(5, low=-1e9, high=1e9)", 5),
    ("weight(1e-30, low=0, high=1e30)", 1e-30),
    ("weight(1e-3, low=-1e9, high=2e9)", 1e-3),
    ("weight(7, low=-3e9, high=1e9)", 7),
]


@pytest.mark.parametrize(("declaration", "wanted"), COARSE)
def test_a_start_that_cannot_be_played_is_a_warning(declaration, wanted):
    value, warnings = played(declaration)
    assert value != pytest.approx(wanted, rel=1e-3, abs=1e-3 * (wanted == 0))
    assert warnings == ["COARSE_START"]


def test_a_value_on_a_bound_is_taken_just_inside():
    program = parse(f"w = weight(1, low=0, high=2)\n\n\n{BODY.format('w')}", SCHEMA)
    policy = StructuredPolicy(program.structure, SCHEMA)
    for bound, inside in ((0.0, 2e-7), (2.0, 2 - 2e-7)):
        variables = variables_from(program.structure, {"w": bound})
        value = float(weights(policy, variables)["w"])
        assert value == pytest.approx(inside, abs=1.2e-7)
        assert np.isfinite(variables["params"]["w"])


def test_a_fitted_value_near_a_bound_is_printed_as_it_is():
    program = parse(f"w = weight(1, low=0, high=1e9)\n\n\n{BODY.format('w')}", SCHEMA)
    text = render(program.structure, {}, {"w": 5.0})
    assert "weight(5.0, low=0.0, high=1000000000.0)" in text
    assert "weight(100.0, low=0.0" in render(program.structure, {}, {"w": 0.0})


def test_a_weight_cannot_be_called_params():
    with pytest.raises(StructureError, match="`params` has a meaning"):
        parse(f"params = weight(1)\n\n\n{BODY.format('params')}", SCHEMA)
    # Only a weight cannot.
    text = "params = 2\n\n\n" + BODY.format("params")
    assert parse(text, SCHEMA).structure.parameters[0].name == "std_push"
