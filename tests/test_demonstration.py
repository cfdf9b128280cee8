"""Demonstration files: round trip, every fault in one clear line, the bundled ones."""

import json

import numpy as np
import pytest

from structjax.demonstration import (
    Demonstration,
    bundled_demonstrations,
    load_demonstration,
    save_demonstration,
)
from structjax.errors import StructjaxError
from structjax.schema import ActionField, Field, Schema
from structjax.tasks.car_racing.schema import CAR_RACING_SCHEMA

SCHEMA = Schema(
    (
        Field("speed", None, "m/s", 0, 10, "Speed."),
        Field("wheel", 2, "rad/s", 0, 10, "Wheels."),
    ),
    (
        ActionField("steer", "Steering."),
        ActionField("gas", "Gas.", low=0.0, high=1.0),
    ),
)
CHOICE = Schema(SCHEMA.observations, (ActionField("move", "", choices=("a", "b")),))
OBS = np.arange(12.0).reshape(4, 3)
ACTIONS = np.array([[-1.0, 0.0], [0.5, 0.5], [0.0, 1.0], [1.0, 0.25]])


def _write(path, **changes):
    np.savez(path, **({"observations": OBS, "actions": ACTIONS} | changes))
    return path


def test_what_is_saved_is_loaded(tmp_path):
    path = tmp_path / "new" / "demo.npz"
    save_demonstration(Demonstration(OBS, ACTIONS, {"driver": "me"}), path, SCHEMA)
    loaded = load_demonstration(path, SCHEMA)
    np.testing.assert_array_equal(loaded.observations, OBS)
    np.testing.assert_array_equal(loaded.actions, ACTIONS)
    assert loaded.observations.dtype == loaded.actions.dtype == np.float32
    assert loaded.provenance == {"driver": "me"}
    assert [entry.name for entry in path.parent.iterdir()] == ["demo.npz"]


def test_two_plain_arrays_are_enough(tmp_path):
    loaded = load_demonstration(_write(tmp_path / "demo.npz"), SCHEMA)
    assert loaded.provenance == {}


def test_choices_are_integers(tmp_path):
    path = _write(tmp_path / "demo.npz", actions=np.array([0, 1, 1, 0]))
    loaded = load_demonstration(path, CHOICE)
    assert loaded.actions.dtype == np.int32
    assert loaded.actions.tolist() == [0, 1, 1, 0]


def _replaced(array, index, value):
    array = array.copy()
    array[index] = value
    return array


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"observations": _replaced(OBS, (2, 1), np.nan)},
            "wheel_0 is nan at step 2 (1 such values); finite numbers are accepted",
        ),
        (
            {"actions": _replaced(ACTIONS, (1, 1), -np.inf)},
            "action gas is -inf at step 1 (1 such values); finite numbers are accepted",
        ),
        (
            {"actions": _replaced(ACTIONS, (slice(1, 3), 1), 1.5)},
            "action gas is 1.5 at step 1 (2 such values); [0.0, 1.0] is accepted",
        ),
        (
            {"observations": OBS[:0], "actions": ACTIONS[:0]},
            "has no steps; one or more are accepted",
        ),
        (
            {"actions": ACTIONS[:3]},
            "actions are float64 of shape [3, 2]; numbers of shape [T, 2] with one T "
            "for both are accepted",
        ),
        (
            {"observations": OBS[:, :2]},
            "observations are float64 of shape [4, 2]; numbers of shape [T, 3]",
        ),
        ({"observations": np.array(1.0)}, "observations are float64 of shape []"),
        ({"actions": np.full((4, 2), "left")}, "actions are <U4 of shape [4, 2]"),
        (
            {"observation_columns": np.array(["speed", "wheel_0", "yaw"])},
            "is of another task: observation_columns[2] is yaw; wheel_1 is accepted",
        ),
        (
            {"action_names": np.array(["steer", "gas", "brake"])},
            "is of another task: action_names[2] is brake; nothing more is accepted",
        ),
        ({"actions": np.array([None] * 4)}, "cannot be read: Object arrays"),
        ({"provenance": np.array("{not json")}, "cannot be read:"),
    ],
)
def test_each_fault_is_named_with_its_value(tmp_path, changes, message):
    path = _write(tmp_path / "demo.npz", **changes)
    with pytest.raises(StructjaxError) as caught:
        load_demonstration(path, SCHEMA)
    assert message in str(caught.value)
    assert str(path) in str(caught.value)
    assert caught.value.kind == "demonstration"


def test_choices_out_of_range_are_named(tmp_path):
    path = _write(tmp_path / "demo.npz", actions=np.array([0, 1, 2, 0]))
    with pytest.raises(StructjaxError, match=r"move is 2 at step 2 .*\[0, 1\] is acc"):
        load_demonstration(path, CHOICE)


def test_a_missing_array_is_named(tmp_path):
    np.savez(tmp_path / "demo.npz", observations=OBS)
    with pytest.raises(StructjaxError, match="has no array 'actions'; the arrays"):
        load_demonstration(tmp_path / "demo.npz", SCHEMA)


def test_a_missing_file_lists_the_bundled_names():
    with pytest.raises(StructjaxError, match=r"does not exist; .*car_racing/human_1"):
        load_demonstration("car_racing/human_99", SCHEMA)


@pytest.mark.parametrize("damage", ["text", "truncated", "single array", "empty"])
def test_what_is_no_archive_is_refused(tmp_path, damage):
    path = _write(tmp_path / "demo.npz")
    if damage == "text":
        path.write_text("speed,steer\n1,2\n")
    if damage == "truncated":
        path.write_bytes(path.read_bytes()[:-30])
    if damage == "single array":
        with path.open("wb") as file:
            np.save(file, OBS)
    if damage == "empty":
        path.write_bytes(b"")
    with pytest.raises(StructjaxError, match=r"cannot be read: .*savez.* is accepted"):
        load_demonstration(path, SCHEMA)


def test_an_unwritable_place_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StructjaxError, match=r"cannot be written: .*; a writable"):
        save_demonstration(
            Demonstration(OBS, ACTIONS), tmp_path / "file" / "demo.npz", SCHEMA
        )


def test_saving_checks_too(tmp_path):
    with pytest.raises(StructjaxError, match="finite numbers are accepted"):
        save_demonstration(
            Demonstration(OBS * np.nan, ACTIONS), tmp_path / "demo.npz", SCHEMA
        )
    assert list(tmp_path.iterdir()) == []


def test_the_bundled_set_has_both_levels_on_its_own_tracks():
    names = [n for n in bundled_demonstrations() if n.startswith("car_racing/")]
    assert names == [
        *(f"car_racing/expert_{i}" for i in range(1, 6)),
        *(f"car_racing/human_{i}" for i in range(1, 6)),
    ]
    seeds = set()
    for name in names:
        loaded = load_demonstration(name, CAR_RACING_SCHEMA)
        facts = loaded.provenance
        seeds.add(facts["seed"])
        low, high = (840, 900) if "human" in name else (915, 1000)
        assert low <= facts["return"] <= high
        assert 4000 <= facts["seed"] < 5000  # CONTRACTS: demonstration seeds
        assert len(loaded.actions) == facts["steps"]
        assert {"driver", "simulator", "versions", "settings"} <= facts.keys()
        json.dumps(dict(facts))
    assert len(seeds) == len(names)


@pytest.mark.original
@pytest.mark.parametrize("name", ["expert_2", "human_4"])
def test_recording_again_gives_the_bundled_arrays(name):
    pytest.importorskip("Box2D", reason="needs the extra `original`")
    from structjax.original.car_demonstrations import RECIPES, record_demonstration

    again = record_demonstration(RECIPES[name])
    bundled = load_demonstration(f"car_racing/{name}", CAR_RACING_SCHEMA)
    np.testing.assert_array_equal(again.actions, bundled.actions)
    # Sines may differ in the last bit between processors.
    np.testing.assert_allclose(again.observations, bundled.observations, atol=1e-6)
    versions = dict.fromkeys(["versions"])
    assert dict(again.provenance) | versions == dict(bundled.provenance) | versions
