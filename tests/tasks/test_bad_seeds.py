"""Seeds, doors and horizons that a task cannot use: one line, with what is accepted."""

import numpy as np
import pytest

from structjax.errors import StructjaxError
from structjax.original import car_racing as original_car
from structjax.original import door_open as original_door
from structjax.original.lockstep import play_in_lockstep
from structjax.tasks.car_racing.bank import track_bank
from structjax.tasks.car_racing.task import car_racing
from structjax.tasks.car_racing.track import make_track
from structjax.tasks.door_open.configurations import door_position, door_positions
from structjax.tasks.door_open.scene import door_scene
from structjax.tasks.door_open.simulated import SimulatedDoors, simulate
from structjax.tasks.door_open.task import OUTCOMES, door_open


def rest(obs):
    return np.zeros((len(obs), 4), np.float32)


ONE = {
    "door_position": door_position,
    "door_scene": door_scene,
    "make_track": make_track,
    "car scene": car_racing().scene,
    "original car": lambda seed: original_car.OriginalCarRacing().reset(seed),
}
MANY = {
    "door_positions": door_positions,
    "door initial": door_open().initial,
    "car initial": car_racing().initial,
    "track_bank": track_bank,
    "simulate": lambda seeds: simulate(rest, seeds, OUTCOMES, horizon=1),
    "original car": lambda seeds: original_car.evaluate_original(rest, seeds),
    "original door": lambda seeds: original_door.evaluate_original(
        rest, seeds, OUTCOMES
    ),
}


@pytest.fixture
def _no_simulator(monkeypatch):
    """The originals refuse before they need what may not be installed."""
    for module in (original_car, original_door):
        monkeypatch.setattr(module, "import_simulator", lambda: lambda: None)


@pytest.mark.usefixtures("_no_simulator")
@pytest.mark.parametrize("seed", [-1, 2.5, "a", None, True, 2**32])
@pytest.mark.parametrize("name", ONE)
def test_a_seed_that_is_none(name, seed):
    with pytest.raises(StructjaxError) as refused:
        ONE[name](seed)
    assert str(refused.value) == (
        f"seed {seed!r}; accepted: whole numbers in [0, 4294967295]"
    )
    assert refused.value.kind == "seeds"


@pytest.mark.usefixtures("_no_simulator")
@pytest.mark.parametrize("name", MANY)
def test_seeds_that_are_none(name):
    with pytest.raises(StructjaxError, match="seed -1; accepted: whole numbers"):
        MANY[name]([3, -1])
    with pytest.raises(StructjaxError, match="no seeds; accepted: one or more whole"):
        MANY[name]([])


def test_seeds_of_numpy_are_seeds():
    np.testing.assert_array_equal(door_position(np.int32(3)), door_position(3))
    np.testing.assert_array_equal(
        door_positions(np.arange(2)), door_positions(range(2))
    )
    assert make_track(np.int64(3)).n == make_track(3).n


@pytest.mark.parametrize("horizon", [0, 501, 2.5])
def test_a_horizon_that_meta_world_does_not_have(horizon):
    with pytest.raises(StructjaxError, match=r"accepted: whole numbers, 1 to 500"):
        simulate(rest, [3], OUTCOMES, horizon=horizon)


def test_outcomes_of_values_that_the_door_does_not_have():
    with pytest.raises(StructjaxError, match="'near' is of info value 'nearness'"):
        simulate(rest, [3], {"near": ("nearness", "min")}, horizon=1)


@pytest.mark.parametrize(
    "doors", [np.zeros(2), np.zeros((0, 2)), np.zeros((1, 3)), [[0.0, np.nan]]]
)
def test_doors_that_stand_nowhere(doors):
    with pytest.raises(StructjaxError, match=r"accepted: finite x and y, `\[B, 2\]`"):
        SimulatedDoors(doors)


def test_no_episodes_in_lockstep():
    with pytest.raises(StructjaxError, match="no seeds"):
        play_in_lockstep([], rest, [], {})


@pytest.mark.usefixtures("_no_simulator")
def test_an_original_is_reset_before_its_first_step():
    with pytest.raises(StructjaxError, match="car_racing: a step before a reset"):
        original_car.OriginalCarRacing().step(np.zeros(3))
    with pytest.raises(StructjaxError, match="door_open: a step before a reset"):
        original_door.OriginalDoorOpen().step(np.zeros(4))


@pytest.mark.usefixtures("_no_simulator")
def test_an_episode_has_a_step():
    for module, env in (
        (original_car, original_car.OriginalCarRacing()),
        (original_door, original_door.OriginalDoorOpen()),
    ):
        with pytest.raises(StructjaxError, match="an episode of 0 steps"):
            module.run_episode(env, 3, rest, steps=0)


@pytest.mark.parametrize(
    ("action", "problem"),
    [
        (np.zeros(2), r"has the shape \(2,\)"),
        (0.0, r"has the shape \(\)"),
        ("left", "is 'left'"),
        (np.array([0, np.nan, 0]), "is not finite"),
    ],
)
def test_an_action_that_gymnasiums_car_cannot_take(action, problem):
    with pytest.raises(StructjaxError, match=f"car_racing: the action {problem}"):
        original_car.checked_action(action)


def test_an_action_out_of_range_is_clipped():
    np.testing.assert_array_equal(
        original_car.checked_action([-2.0, -1.0, 3.0]), [-1.0, 0.0, 1.0]
    )
