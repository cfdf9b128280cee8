"""The driver on a circular road, where line and speed are known."""

import numpy as np
import pytest

from structjax.tasks.car_racing.driver import (
    CarState,
    Driver,
    DriverConfig,
    racing_line,
)
from structjax.tasks.car_racing.track import Track

NODES = 64
RADIUS = NODES * 3.5 / (2 * np.pi)  # 35.65 m


def _circle(nodes: int = NODES) -> Track:
    """Counter-clockwise: at polar angle a the road heads a, measured from +y."""
    a = 2 * np.pi * np.arange(nodes) / nodes
    x, y = RADIUS * np.cos(a), RADIUS * np.sin(a)
    return Track(a, a, x, y, np.zeros(nodes, bool), nodes)


def _state(speed: float, radius: float = RADIUS) -> CarState:
    """At polar angle 0, along the road, in a steady turn, wheels rolling."""
    return CarState(
        position=np.array([radius, 0.0]),
        angle=0.0,
        velocity=np.array([0.0, speed]),
        yaw_rate=speed / RADIUS,
        rear_omega=speed / 0.54,
    )


def test_speed_in_a_steady_bend_uses_the_share_of_grip():
    line = racing_line(_circle(), DriverConfig(corridor=1e-6, grip=0.5))
    # v^2 / R = 0.5 * 4 * 400 N / 7.302 kg = 109.56 m/s^2: v = sqrt(109.56 * 35.65).
    np.testing.assert_allclose(line.speed, 62.50, rtol=2e-3)


def test_the_line_stays_inside_its_corridor_and_smooths_the_road():
    wavy = _circle()
    radius = RADIUS + 2.0 * np.where(np.arange(NODES) % 2 == 0, 1.0, -1.0)
    wavy = wavy._replace(x=radius * np.cos(wavy.alpha), y=radius * np.sin(wavy.alpha))
    config = DriverConfig(corridor=0.45)  # 3 m: enough for the 2 m zigzag
    points = racing_line(wavy, config).points
    offset = np.linalg.norm(points - np.stack([wavy.x, wavy.y], 1), axis=1)
    assert offset.max() <= 3.0 + 2e-3
    assert np.ptp(np.linalg.norm(points, axis=1)) < 0.1  # a circle again; 4 m before


def test_braking_begins_in_time():
    n = 120  # an oval: two straights of 30 nodes, two hairpins
    turn = np.zeros(n)
    turn[30:60] = turn[90:] = np.pi / 30
    beta = np.cumsum(turn) - turn / 2
    x, y = np.cumsum(-3.5 * np.sin(beta)), np.cumsum(3.5 * np.cos(beta))
    oval = Track(beta, beta, x, y, np.zeros(n, bool), n)
    config = DriverConfig(corridor=1e-6, braking=40.0, top_speed=80.0)
    line = racing_line(oval, config)
    gaps = np.diff(line.distance)
    drop = line.speed**2 - np.roll(line.speed, -1) ** 2
    assert (drop <= 2 * 40.0 * gaps + 1e-6).all()
    assert (drop[:30] > 0.99 * 2 * 40.0 * 3.5).any()  # it does brake on the straight


@pytest.mark.parametrize(("speed", "pedal"), [(40.0, 1), (75.0, 2)])
def test_the_pedal_follows_the_speed_error(speed, pedal):
    driver = Driver(_circle(), DriverConfig(corridor=1e-6), seed=0)  # aims at 62.5 m/s
    action = driver.act(_state(speed))
    assert action[pedal] > 0.05
    assert action[3 - pedal] == 0


def test_it_steers_left_in_a_left_bend_and_more_so_from_outside():
    config = DriverConfig(corridor=1e-6)
    on_line = Driver(_circle(), config, 0).act(_state(50.0))[0]
    outside = Driver(_circle(), config, 0).act(_state(50.0, RADIUS + 2))[0]
    # Steady turn: the front wheels stand at wheelbase / R = 3.24 / 35.65 = 0.091 rad.
    assert on_line == pytest.approx(-0.091, abs=0.01)
    assert outside < on_line - 0.05


def test_a_lag_delays_what_is_seen():
    speeds = np.linspace(30, 70, 12)
    prompt = Driver(_circle(), DriverConfig(corridor=1e-6), 0)
    late = Driver(_circle(), DriverConfig(corridor=1e-6, lag=4), 0)
    now = np.array([prompt.act(_state(v)) for v in speeds])
    then = np.array([late.act(_state(v)) for v in speeds])
    np.testing.assert_array_equal(then[4:], now[:-4])
    np.testing.assert_array_equal(then[:4], now[[0, 0, 0, 0]])


def test_noise_is_smooth_of_the_stated_size_and_repeats_with_the_seed():
    config = DriverConfig(corridor=1e-6, steer_noise=0.05, noise_time=10.0)

    def steering(seed: int) -> np.ndarray:
        driver = Driver(_circle(), config, seed)
        return np.array([driver.act(_state(50.0))[0] for _ in range(3000)])

    first = steering(1)
    np.testing.assert_array_equal(first, steering(1))
    # About 3000 / (2 * 10) = 150 independent values: the deviation is within 20 %.
    assert first.std() == pytest.approx(0.05, rel=0.2)
    # One step's correlation is exp(-1 / 10) = 0.905.
    assert np.corrcoef(first[1:], first[:-1])[0, 1] == pytest.approx(0.905, abs=0.03)
    assert not np.array_equal(first, steering(2))
