"""Saved policies that no command has written, and starts of unusual size."""

import json

import jax
import numpy as np
import pytest
from toy import PROGRAM, SCHEMA, toy_task

from structjax.errors import StructjaxError
from structjax.language.parse import parse
from structjax.language.render import render
from structjax.network_file import load_network, save_network
from structjax.policy import MLPPolicy, initial_values, variables_from, weights
from structjax.policy_file import load_policy
from structjax.start_policy import load_start

FREE = PROGRAM.replace(', sign="+"', "")
VALUES = {"gain": 0.5, "std_push": 0.2}


def saved(tmp_path, *, program=PROGRAM, values=VALUES, floor=0.0):
    path = tmp_path / "policy.json"
    content = {"task": "toy", "program": program, "values": values}
    path.write_text(json.dumps({**content, "std_floor": floor}))
    return path


@pytest.mark.parametrize(
    ("gain", "accepted"),
    [
        ('weight(1.0, sign="+")', "at least 0"),
        ("weight(-9.0, high=-1)", "at most -1"),
        ("weight(0.5, low=0, high=1)", r"in \[0, 1\]"),
    ],
)
@pytest.mark.parametrize("read", [load_policy, load_start])
def test_a_value_outside_its_bounds_is_told_with_its_file(
    tmp_path, gain, accepted, read
):
    program = PROGRAM.replace('weight(1.0, sign="+")', gain)
    value = -5.0 if "high=-1" not in gain else 5.0
    path = saved(tmp_path, program=program, values={**VALUES, "gain": value})
    told = rf"policy\.json: weight 'gain' is {value}; accepted: .*{accepted}$"
    with pytest.raises(StructjaxError, match=told):
        read(path, toy_task())


@pytest.mark.parametrize("floor", [-0.5, 1.5, 5.0])
def test_a_std_floor_that_is_no_share_is_refused(tmp_path, floor):
    told = rf"policy\.json has a std floor of {floor}; accepted: 0 to 1"
    with pytest.raises(StructjaxError, match=told):
        load_policy(saved(tmp_path, floor=floor), toy_task())


@pytest.mark.parametrize("gain", [1e35, -3e38, 1e-46])
def test_a_value_beyond_the_numbers_of_programs_is_played_exactly(tmp_path, gain):
    path = saved(tmp_path, program=FREE, values={**VALUES, "gain": gain})
    found, start = load_policy(path, toy_task()), load_start(path, toy_task())
    structure = start.program.structure
    assert variables_from(structure, start.values) == found.variables
    # 1e30 is the largest number of a program.
    written = np.clip(gain, -1e30, 1e30)
    assert initial_values(structure)["gain"] == written
    text = render(found.program.structure, values=found.values)
    assert initial_values(parse(text, SCHEMA).structure)["gain"] == written


def test_a_start_that_is_0_in_single_precision_is_a_warning():
    program = parse(FREE.replace("1.0", "1e-46"), SCHEMA)
    assert [p.code for p in program.warnings] == ["COARSE_START"]
    assert "single precision makes 0" in program.warnings[0].message
    assert "write 0" in program.warnings[0].hint


@pytest.mark.parametrize("std", ["exact(s)", "exact(s * 1.0)", "s"])
def test_a_floor_above_a_weights_bound_is_no_value_of_the_weight(tmp_path, std):
    text = PROGRAM.replace("demand)", f"demand, std={std})")
    text = text.replace("\n\n\ndef", "\ns = weight(0.1, low=0.01, high=0.25)\n\n\ndef")
    values = {"gain": 0.5, "s": 0.125}
    path = saved(tmp_path, program=text, values=values, floor=0.5)
    start, found = load_start(path, toy_task()), load_policy(path, toy_task())
    assert start.values["s"] <= 0.25
    policy = found.policy.clone(structure=start.program.structure, std_floor=0.0)
    variables = variables_from(start.program.structure, start.values)
    obs = np.array([0.5, 0.0], np.float32)
    std = policy.apply(variables, obs)[0].std
    assert std == found.policy.apply(found.variables, obs)[0].std == 0.5


def test_a_program_that_its_values_make_too_long_is_told_as_such(tmp_path):
    # Values are longer than the written ones, and the std of the head is written out.
    room = 64 * 1024 - len(PROGRAM)
    path = saved(tmp_path, program=f"#{'x' * (room - 2)}\n{PROGRAM}")
    assert load_policy(path, toy_task()).values == VALUES
    with pytest.raises(StructjaxError) as caught:
        load_start(path, toy_task())
    told = str(caught.value)
    assert told.startswith(f"{path} with its values in place is refused: ")
    assert "65,5" in told


@pytest.mark.parametrize("bad", ["NaN", "Infinity", "-Infinity", "null", '"x"'])
def test_a_network_with_weights_that_are_no_numbers_is_refused(tmp_path, bad):
    path, policy = tmp_path / "network.json", MLPPolicy(SCHEMA, (2,))
    save_network(path, policy, policy.init(jax.random.key(0), np.zeros(2)), toy_task())
    content = json.loads(path.read_text())
    content["leaves"][0][0] = "@"
    path.write_text(json.dumps(content).replace('"@"', bad))
    with pytest.raises(StructjaxError, match=r"network\.json is no saved network: "):
        load_network(path, toy_task())


@pytest.mark.parametrize("option", ["initial_std", "std_floor"])
@pytest.mark.parametrize("bad", ["NaN", "-1.0", "Infinity", "1.5"])
def test_a_network_with_a_std_that_is_none_is_refused(tmp_path, option, bad):
    path, policy = tmp_path / "network.json", MLPPolicy(SCHEMA, (2,))
    save_network(path, policy, policy.init(jax.random.key(0), np.zeros(2)), toy_task())
    content = json.loads(path.read_text())
    content["network"][option] = "@"
    path.write_text(json.dumps(content).replace('"@"', bad))
    with pytest.raises(StructjaxError, match=r"network\.json is no saved network: "):
        load_network(path, toy_task())


def test_the_largest_and_the_least_floor_are_taken(tmp_path):
    for floor in (0, 1):
        found = load_policy(saved(tmp_path, floor=floor), toy_task())
        assert found.policy.std_floor == floor
        assert weights(found.policy, found.variables)["gain"] == pytest.approx(0.5)
