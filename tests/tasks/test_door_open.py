"""What Door Opening shows and pays, from closed forms and by hand."""

import math
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from structjax.errors import StructjaxError
from structjax.language.parse import parse
from structjax.tasks.base import DEFAULT_SEEDS
from structjax.tasks.door_open import constants as c
from structjax.tasks.door_open import geometry, reward
from structjax.tasks.door_open.actions import checked_action, clip_action
from structjax.tasks.door_open.configurations import (
    TEST_DOORS,
    door_position,
    door_positions,
)
from structjax.tasks.door_open.observation import Body, observe, present
from structjax.tasks.door_open.schema import DOOR_OPEN_SCHEMA
from structjax.tasks.door_open.task import door_open

PROGRAMS = Path(__file__).parents[1] / "fixtures" / "programs"
START = 0.5475296784522107  # of the published records, in every configuration


def body(hand=c.HAND_START, theta=0.0, opening=1.0):
    return Body(
        jnp.asarray(hand), jnp.asarray(opening), jnp.asarray(theta), jnp.asarray(hand)
    )


def apart(door_xy, theta):
    """Handle to goal, from the two positions."""
    handle = geometry.handle_position(jnp.asarray(door_xy), jnp.asarray(theta))
    return float(jnp.linalg.norm(handle - geometry.goal_position(jnp.asarray(door_xy))))


def test_every_seed_starts_at_the_same_distance_though_the_doors_differ():
    seeds = [*DEFAULT_SEEDS["test"], *range(2000, 2010), *range(4000, 4020)]
    doors = door_positions(seeds)
    assert len({tuple(door) for door in doors.tolist()}) == len(seeds)
    assert [apart(door, 0.0) for door in doors] == pytest.approx(
        [START] * len(seeds), abs=2e-7
    )
    assert float(geometry.goal_distance(0.0)) == pytest.approx(START, abs=1e-7)
    assert START == geometry.START_DISTANCE


@pytest.mark.parametrize("theta", [-0.1, -0.7, -1.2, -1.61, -1.9])
def test_the_distance_depends_on_the_hinge_angle_alone(theta):
    expected = float(geometry.goal_distance(theta))
    for door in TEST_DOORS:
        assert apart(door, theta) == pytest.approx(expected, abs=3e-7)


def test_the_distance_is_smallest_where_handle_and_goal_are_on_one_ray():
    """Arcs of radius 0.3907 (handle) and 0.3684 (goal): 0.0223 remain, at -1.610."""
    angles = np.linspace(-2.0, 0.0, 20_001)
    distances = np.asarray(jax.vmap(geometry.goal_distance)(jnp.asarray(angles)))
    assert distances.min() == pytest.approx(0.3907 - 0.3684, abs=1e-4)
    assert angles[distances.argmin()] == pytest.approx(-1.610, abs=1e-3)
    assert distances.min() >= geometry.MIN_DISTANCE - 1e-7


def test_the_handle_of_the_published_configurations():
    """The records of configurations 0 and 1 state the handle and the goal."""
    for seed, handle, goal in (
        (1000, (0.199063873, 0.698079351), (-0.291657756, 0.455219247)),
        (1001, (0.221916129, 0.682682210), (-0.268805500, 0.439822106)),
    ):
        door = jnp.asarray(door_position(seed))
        found = geometry.handle_position(door, jnp.zeros(()))
        np.testing.assert_allclose(found, [*handle, 0.150035949], atol=1e-7)
        np.testing.assert_allclose(
            geometry.goal_position(door), [*goal, 0.15], atol=1e-7
        )


def test_a_quarter_turn_swaps_the_handles_axes():
    """At -90 degrees the offset (x, y) from the hinge becomes (y, -x)."""
    door = jnp.zeros(2)
    found = geometry.handle_position(door, jnp.asarray(-math.pi / 2))[:2]
    hinge = np.array(c.HINGE)
    np.testing.assert_allclose(found - hinge, [c.HANDLE[1], -c.HANDLE[0]], atol=1e-6)


def test_the_quaternion_turns_with_the_door():
    """The half turn about z, (0, 0, sin -45, cos -45), times the first quaternion."""
    x, y, z, w = c.QUATERNION
    root = math.sqrt(0.5)
    expected = np.array([x + y, y - x, z - w, w + z]) * root
    found = geometry.handle_quaternion(jnp.asarray(-math.pi / 2))
    np.testing.assert_allclose(found, expected, atol=1e-6)
    np.testing.assert_allclose(
        geometry.handle_quaternion(jnp.zeros(())), c.QUATERNION, atol=1e-7
    )


def test_the_observation_has_the_fields_of_the_schema():
    door = jnp.asarray(door_position(1000))
    now = present(body(theta=-0.5, opening=0.4), door)
    before = present(body(), door)
    obs = observe(now, before, door)
    assert obs.shape == (DOOR_OPEN_SCHEMA.observation_size,) == (39,)
    assert obs.dtype == jnp.float32

    def field(name):
        return np.asarray(obs[DOOR_OPEN_SCHEMA.slice_of(name)])

    np.testing.assert_allclose(field("hand"), c.HAND_START, rtol=1e-6)
    assert field("grip") == pytest.approx(0.4)
    np.testing.assert_allclose(
        field("handle"), geometry.handle_position(door, jnp.asarray(-0.5)), atol=1e-7
    )
    np.testing.assert_allclose(
        field("prev_handle")[:2], (0.199064, 0.698079), atol=1e-6
    )
    np.testing.assert_allclose(field("prev_handle_quat"), c.QUATERNION, atol=1e-6)
    np.testing.assert_allclose(field("goal"), (-0.291658, 0.455219, 0.15), atol=1e-6)
    assert not field("unused").any()
    assert not field("prev_unused").any()


def test_observations_over_the_whole_arc_lie_in_the_ranges_of_the_schema():
    for x in (c.DOOR_LOW[0], c.DOOR_HIGH[0]):
        for y in (c.DOOR_LOW[1], c.DOOR_HIGH[1]):
            for theta in np.linspace(-2.0, 0.0, 9):
                door = jnp.array([x, y])
                now = np.asarray(present(body(theta=theta), door))
                obs = np.asarray(observe(now, now, door))
                for field in DOOR_OPEN_SCHEMA.observations:
                    values = obs[DOOR_OPEN_SCHEMA.slice_of(field.name)]
                    assert values.min() >= field.low - 1e-6, field.name
                    assert values.max() <= field.high + 1e-6, field.name


@pytest.mark.parametrize("name", ["door_a", "door_r0"])
def test_published_programs_can_be_read(name):
    """Reading raises for a field or an action that the schema lacks."""
    assert parse((PROGRAMS / f"{name}.py").read_text(), DOOR_OPEN_SCHEMA).structure


class TestReward:
    """Terms by hand. The funnel's axis is at handle - (0.05, 0, 0)."""

    handle = jnp.array([0.2, 0.7, 0.15])

    def test_the_long_tail(self):
        """1 inside; 0.1 at the margin; 1 / (9 / 4 + 1) at half of it."""
        assert float(reward.long_tail(0.3, 0.5, 2.0)) == 1.0
        assert float(reward.long_tail(2.5, 0.5, 2.0)) == pytest.approx(0.1)
        assert float(reward.long_tail(1.5, 0.5, 2.0)) == pytest.approx(4 / 13)
        assert float(reward.long_tail(-1.0, 0.5, 2.0)) == pytest.approx(4 / 13)

    def test_the_hamacher_product(self):
        """1/2 and 1/2: (1/4) / (1 - 1/4)."""
        assert float(reward.hamacher(0.5, 0.5)) == pytest.approx(1 / 3)
        assert float(reward.hamacher(1.0, 0.3)) == pytest.approx(0.3)
        assert float(reward.hamacher(0.0, 0.0)) == 0.0

    @pytest.mark.parametrize(
        ("x", "z", "expected"),
        [
            (0.15, 0.05, 1.0),  # on the funnel's axis
            (0.15 + 0.119, 0.05, 1.0),  # just inside
            (0.15 + 0.12 + math.exp(-5), 0.2, 1.0),  # the wall is 0.4 - 0.2 high
            # 0.11 below it: 0.1 beyond the tolerance, the margin is 0.1
            (0.15 + 0.12 + math.exp(-5), 0.09, 0.1),
        ],
    )
    def test_the_floor(self, x, z, expected):
        hand = jnp.array([x, 0.7, z])
        found = reward.above_floor(hand, self.handle)
        assert float(found) == pytest.approx(expected, abs=2e-4)

    def test_the_place_of_the_hand(self):
        """Within 0.06 of handle + (0, 0.03, -0.01); 0.25 beyond is half the margin."""
        place = self.handle + jnp.array([0.0, 0.03, -0.01])
        near = place + jnp.array([0.03, 0.04, 0.0])
        far = place + jnp.array([0.0, 0.0, 0.31])
        assert float(reward.in_place(near, self.handle)) == 1.0
        assert float(reward.in_place(far, self.handle)) == pytest.approx(4 / 13)

    def test_the_opening_of_the_door(self):
        """120 degrees are the aim; 0.5 rad short is enough, pi/3 more rates 0.1."""
        full = 2 * math.pi / 3
        assert float(reward.opened(jnp.asarray(-full))) == pytest.approx(1.0)
        assert float(reward.opened(jnp.asarray(0.5 - full))) == pytest.approx(1.0)
        short = jnp.asarray(0.5 + math.pi / 3 - full)
        assert float(reward.opened(short)) == pytest.approx(0.2 + 0.08, abs=1e-6)
        closed = 0.8 / (9 * ((full - 0.5) / (math.pi / 3)) ** 2 + 1)
        assert float(reward.opened(jnp.zeros(()))) == pytest.approx(closed, rel=1e-5)

    def test_the_whole(self):
        """In place with a closing gripper: 2 + 8 times the opening of a shut door."""
        door = jnp.asarray(door_position(1000))
        hand = geometry.handle_position(door, jnp.zeros(()))
        closed = 8 * float(reward.opened(jnp.zeros(())))
        for grip, effort in ((1.0, 1.0), (-1.0, 0.0), (0.0, 0.5)):
            action = jnp.array([0.0, 0.0, 0.0, grip])
            found = reward.rate(body(hand=hand), door, action)
            assert float(found.reward) == pytest.approx(2 * effort + closed, abs=1e-5)
            assert float(found.success) == 0.0
            assert float(found.distance) == pytest.approx(START, abs=1e-7)

    def test_success_is_judged_along_x_and_pays_ten(self):
        """At the nearest angle the handle is 0.0223 past the goal; closed it is not."""
        door = jnp.asarray(door_position(1003))
        idle = jnp.zeros(4)
        solved = reward.rate(body(theta=geometry.GOAL_ANGLE), door, idle)
        assert (float(solved.success), float(solved.reward)) == (1.0, 10.0)
        assert float(solved.distance) == pytest.approx(0.0223, abs=1e-4)
        assert float(reward.rate(body(theta=-2.0), door, idle).success) == 0.0
        assert float(reward.rate(body(theta=-1.2), door, idle).success) == 0.0


def test_configurations_lie_in_their_box_and_repeat():
    doors = door_positions(range(4000, 4200))
    assert doors.min(0) == pytest.approx(c.DOOR_LOW, abs=5e-3)
    assert doors.max(0) == pytest.approx(c.DOOR_HIGH, abs=5e-3)
    assert (doors.min(0) >= c.DOOR_LOW).all()
    assert (doors.max(0) <= np.float32(c.DOOR_HIGH)).all()
    np.testing.assert_array_equal(doors, door_positions(range(4000, 4200)))
    np.testing.assert_allclose(door_positions(DEFAULT_SEEDS["test"]), TEST_DOORS)


def test_actions_are_clipped_in_jax_and_refused_on_the_host():
    clipped = clip_action(jnp.array([3.0, -2.0, 0.5, 1.0]))
    np.testing.assert_array_equal(clipped, [1.0, -1.0, 0.5, 1.0])
    np.testing.assert_array_equal(checked_action(clipped), clipped)
    for action, problem in (
        ([0, 0, np.nan, 0], "'dz' is nan"),
        ([0, np.inf, 0, 0], "'dy' is inf"),
        ([0, 0, 0, -1.5], "'grip' is -1.5"),
        ([0, 0, 0], "shape"),
    ):
        with pytest.raises(StructjaxError, match=problem):
            checked_action(np.array(action))


def test_the_info_tells_where_the_hands_target_is():
    """Meta-World moves it by an action's hundredth: from (0, 0.6, 0.2) by 1 cm in x."""
    task = door_open()
    params, starts = task.initial([1000])
    _, state = task.reset(starts[0], params)
    action = jnp.array([1.0, 0.0, 0.0, -1.0])
    info = task.step(jax.random.key(0), state, action, params).info
    found = [float(info[f"target_{axis}"]) for axis in "xyz"]
    assert found == pytest.approx([0.01, 0.6, 0.2], abs=1e-6)
    hand = np.array([info[f"hand_{axis}"] for axis in "xyz"])
    lag = float(np.linalg.norm(hand - found))
    assert lag == pytest.approx(float(info["target_lag"]), abs=1e-6)
