"""The car's motion: masses, pedals, steering, signs and units, mirror symmetry."""

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from car_simulator import SEEDS, Simulator
from simple_driver import drive

from structjax.tasks.car_racing import constants as c
from structjax.tasks.car_racing.dynamics import (
    Grip,
    car_at_rest,
    step_car,
)
from structjax.tasks.car_racing.environment import EnvParams
from structjax.tasks.car_racing.schema import CAR_RACING_SCHEMA
from structjax.tasks.car_racing.tables import track_arrays
from structjax.tasks.car_racing.track import Track, make_track

LEFT, RIGHT = (-0.4, 0.1, 0.0), (0.4, 0.1, 0.0)


def value(obs: np.ndarray, name: str) -> Any:
    return obs[CAR_RACING_SCHEMA.slice_of(name)]


def test_masses_are_those_that_box2d_computes() -> None:
    """Read from Box2D's bodies: `hull.mass`, `hull.inertia`, `wheel.mass` ..."""
    assert c.HULL.mass == pytest.approx(7.06, abs=1e-6)
    assert c.HULL.y == pytest.approx(-0.0825307, abs=1e-6)
    assert c.HULL.inertia == pytest.approx(18.21228, abs=1e-4)
    assert c.WHEEL.mass == pytest.approx(0.06048, abs=1e-7)
    assert c.WHEEL.inertia == pytest.approx(0.0074592, abs=1e-7)


def test_steering_right_turns_right(simulator: Simulator) -> None:
    """Half a second of gentle bends from the start on; every sign of the schema."""
    right, at_right = simulator.run(0, RIGHT, 25)
    left, at_left = simulator.run(0, LEFT, 25)
    start, at_start = simulator.run(0, LEFT, 0)
    assert value(right, "steer_angle") < -0.12 < 0.12 < value(left, "steer_angle")
    assert value(right, "yaw_rate") < -0.05 < 0.05 < value(left, "yaw_rate")
    assert at_right.car.heading < at_start.car.heading < at_left.car.heading
    # The road lies to the left of a car that went right, and heads left of it.
    assert value(right, "tiles.x")[0] < 0 < value(left, "tiles.x")[0]
    assert value(right, "tiles.heading")[0] > 0 > value(left, "tiles.heading")[0]
    assert value(start, "tiles.y")[11] > value(start, "tiles.y")[1] > 0


def test_positions_are_in_the_documented_units(simulator: Simulator) -> None:
    obs, _ = simulator.run(0, LEFT, 0)
    x, y = value(obs, "tiles.x"), value(obs, "tiles.y")
    np.testing.assert_allclose(np.hypot(np.diff(x), np.diff(y)), 0.105, rtol=0.02)
    assert pytest.approx(0.2) == c.ROAD_HALF_WIDTH * 0.03


def test_speed_and_wheels_agree_when_rolling(simulator: Simulator) -> None:
    """Coasting straight on, the rims move as the car does: 0.54 m * 200 rad/s."""
    obs, state = simulator.run(0, (0.0, 0.1, 0.0), 50)
    for _ in range(60):
        result = simulator.step(state, jnp.zeros(3), simulator.params)
        obs, state = np.asarray(result.obs), result.state
    speed = float(value(obs, "speed")[0])
    assert speed > 0.05
    np.testing.assert_allclose(value(obs, "wheel_speed") * 1.08, speed, rtol=1e-3)
    before = np.array([result.info["position_x"], result.info["position_y"]])
    result = simulator.step(state, jnp.zeros(3), simulator.params)
    after = np.array([result.info["position_x"], result.info["position_y"]])
    moved = float(np.linalg.norm(after - before))
    assert moved / c.TIME_STEP == pytest.approx(100 * speed, rel=1e-2)


def test_the_brake_takes_fifteen_rad_per_s_and_locks_at_nine_tenths() -> None:
    """A wheel in the air, so to say: grip 0 leaves only engine and brake."""
    zero = jnp.float32(0)
    car = car_at_rest(zero, zero, zero, zero)._replace(spin=jnp.full(4, 100.0))
    grip = Grip(road=0.0, grass=0.0)
    half = step_car(car, jnp.zeros(4, bool), jnp.array([0.0, 0.0, 0.5]), grip)
    np.testing.assert_allclose(half.spin, 100.0 - 7.5, rtol=1e-6)
    locked = step_car(car, jnp.zeros(4, bool), jnp.array([0.0, 0.0, 0.9]), grip)
    np.testing.assert_array_equal(locked.spin, np.zeros(4))
    # Engine: h P gas / (I (|w| + 5)) on the rear wheels, the gas having risen by 0.1.
    gas = step_car(car, jnp.zeros(4, bool), jnp.array([0.0, 1.0, 0.0]), grip)
    push = 0.02 * 40000 * 0.1 / (1.6 * 105)
    np.testing.assert_allclose(gas.spin, 100 + np.array([0, 0, push, push]), rtol=1e-6)


def test_front_wheels_turn_at_three_rad_per_s_to_their_limit() -> None:
    """0.06 rad a step: 0.4 is passed in the seventh, 0.42, and not exceeded by more
    than the overshoot of one step."""
    zero = jnp.float32(0)
    car = car_at_rest(zero, zero, zero, zero)
    angles = []
    for _ in range(12):
        car = step_car(car, jnp.ones(4, bool), jnp.array([-1.0, 0.0, 0.0]), Grip())
        angles.append(float(car.joint[0]))
    np.testing.assert_allclose(angles[:7], 0.06 * np.arange(1, 8), atol=1e-4)
    np.testing.assert_allclose(angles[7:], 0.42, atol=1e-3)
    np.testing.assert_allclose(car.joint[2:], 0.0, atol=1e-4)


def test_the_world_is_mirror_symmetric(simulator: Simulator) -> None:
    """A mirrored state under mirrored actions stays mirrored, in all fields."""
    params, mirrored = mirror_track(make_track(SEEDS[0]))
    mirror = np.array([a.mirror for a in CAR_RACING_SCHEMA.actions], np.float32)
    obs, state = simulator.reset(0, params)
    other, twin = simulator.reset(0, mirrored)
    rng = np.random.default_rng(0)
    for _ in range(120):
        action = drive(np.asarray(obs)) + rng.normal(size=3).astype("f4") * 0.1
        obs, state, reward, *_ = simulator.step(state, action, params)
        other, twin, same, *_ = simulator.step(twin, action * mirror, mirrored)
        expected = CAR_RACING_SCHEMA.mirror_observation(np.asarray(obs))
        np.testing.assert_allclose(other, expected, atol=2e-3)
        assert float(reward) == pytest.approx(float(same))


def mirror_track(track: Track) -> tuple[EnvParams, EnvParams]:
    """The track and its mirror image, as parameters."""
    from structjax.tasks.car_racing.environment import make_params

    flipped = track._replace(x=-track.x, beta=-track.beta)
    banks = []
    for each in (track, flipped):
        arrays = track_arrays(each)
        banks.append(type(arrays)(*(np.asarray(a)[None] for a in arrays)))
    return make_params(banks[0]), make_params(banks[1])
