"""A driver of our own for demonstrations: it sees the whole track, unlike any policy.

It relaxes a racing line inside the road, limits speed by grip and curvature with a
backward braking pass, steers by preview with yaw damping, and inverts the tyre law to
keep the rear wheels from spinning. Lag, noise and a lower grip make it human.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.optimize import lsq_linear

from structjax.tasks.car_racing.constants import (
    BRAKE_RATE,
    ENGINE_POWER,
    TYRE_STIFFNESS,
    WHEEL_RADIUS,
    WHEEL_SPIN_INERTIA,
    WHEEL_Y,
)
from structjax.tasks.car_racing.constants import ROAD_GRIP as GRIP
from structjax.tasks.car_racing.constants import TIME_STEP as STEP
from structjax.tasks.car_racing.track import Track

# Rounded: the bundled demonstrations were recorded with these.
MASS = 7.302  # kg, hull and wheels
HALF_WIDTH = 6.667  # m, of the road
WHEELBASE = WHEEL_Y[0] - WHEEL_Y[2]  # m


@dataclass(frozen=True)
class DriverConfig:
    """How well the driver drives.

    Attributes:
      grip: share of the tyres' grip used in bends.
      braking: deceleration used before bends, m/s^2.
      top_speed: m/s.
      corridor: how far the line may leave the centre, share of the half width.
      lag: reaction time in steps of 0.02 s.
      steer_noise: standard deviation of the smooth noise on steering.
      pedal_noise: standard deviation of the smooth noise on the speed aimed at, as a
        share of it.
      noise_time: correlation time of the noise in steps.
      preview: time the steering looks ahead, s.
      damping: gain of the yaw rate error, rad of wheel angle per rad/s.
    """

    grip: float = 0.5
    braking: float = 60.0
    top_speed: float = 80.0
    corridor: float = 0.4
    lag: int = 0
    steer_noise: float = 0.0
    pedal_noise: float = 0.0
    noise_time: float = 25.0
    preview: float = 0.2
    damping: float = 0.05


class CarState(NamedTuple):
    """What the driver sees of the car.

    Attributes:
      position: `[2]` hull origin, m.
      angle: hull heading, rad.
      velocity: `[2]` m/s.
      yaw_rate: rad/s.
      rear_omega: mean spin of the rear wheels, rad/s.
    """

    position: np.ndarray
    angle: float
    velocity: np.ndarray
    yaw_rate: float
    rear_omega: float


class Line(NamedTuple):
    """The line to drive: `[N]` points, one per node.

    Attributes:
      points: `[N, 2]` m.
      distance: `[N + 1]` arc length at each point, the last one closes the lap.
      speed: `[N]` m/s.
    """

    points: np.ndarray
    distance: np.ndarray
    speed: np.ndarray


def racing_line(track: Track, config: DriverConfig) -> Line:
    """The smoothest line inside the corridor, with its speed profile."""
    centre = np.stack([track.x, track.y], 1)
    normal = np.stack([np.cos(track.beta), np.sin(track.beta)], 1)
    # Rounded, like the actions: recordings then do not depend on the last bits of the
    # machine's linear algebra.
    points = np.round(_relax(centre, normal, config.corridor * HALF_WIDTH), 3)
    gaps = np.linalg.norm(np.roll(points, -1, 0) - points, axis=1)
    distance = np.concatenate([[0.0], np.cumsum(gaps)])
    speed = _speed_profile(_curvature(points), gaps, config)
    return Line(points, distance, speed)


def _relax(centre: np.ndarray, normal: np.ndarray, limit: float) -> np.ndarray:
    """Minimises the sum of squared second differences over offsets within `limit`."""
    n = len(centre)
    identity = np.eye(n)
    bend = np.roll(identity, 1, 0) - 2 * identity + np.roll(identity, -1, 0)
    matrix = np.concatenate([bend * normal[:, 0], bend * normal[:, 1]])
    target = -np.concatenate([bend @ centre[:, 0], bend @ centre[:, 1]])
    offset = lsq_linear(matrix, target, (-limit, limit), tol=1e-6).x
    return centre + offset[:, None] * normal


def _curvature(points: np.ndarray, reach: int = 2) -> np.ndarray:
    """`[N]` 1/m through each point and its neighbours `reach` away (Menger)."""
    before, after = np.roll(points, reach, 0), np.roll(points, -reach, 0)
    a, b = points - before, after - points
    cross = a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0]
    sides = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    return 2 * cross / (sides * np.linalg.norm(after - before, axis=1))


def _speed_profile(
    curvature: np.ndarray, gaps: np.ndarray, config: DriverConfig
) -> np.ndarray:
    """`[N]` m/s: grip in bends, then braking distances, two laps backward."""
    lateral = config.grip * 4 * GRIP / MASS
    speed = np.sqrt(lateral / np.maximum(np.abs(curvature), 1e-6))
    speed = np.minimum(speed, config.top_speed)
    n = len(speed)
    for i in range(2 * n - 1, -1, -1):
        reachable = speed[(i + 1) % n] ** 2 + 2 * config.braking * gaps[i % n]
        speed[i % n] = min(speed[i % n], np.sqrt(reachable))
    return speed


class Driver:
    """Drives one episode on one track; deterministic in (track, config, seed)."""

    def __init__(self, track: Track, config: DriverConfig, seed: int) -> None:
        self.config = config
        self.line = racing_line(track, config)
        self._rng = np.random.default_rng(seed)
        self._noise = self._rng.standard_normal(2)
        self._seen: list[CarState] = []

    def act(self, state: CarState) -> np.ndarray:
        """The action `[3]` (steer, gas, brake) for the state of this step."""
        self._seen.append(state)
        seen = self._seen[max(0, len(self._seen) - 1 - self.config.lag)]
        keep = np.exp(-1.0 / self.config.noise_time)
        fresh = self._rng.standard_normal(2)
        self._noise = keep * self._noise + np.sqrt(1 - keep * keep) * fresh
        here = self._progress(seen.position)
        steer = self._steer(seen, here) + self.config.steer_noise * self._noise[0]
        factor = 1.0 + self.config.pedal_noise * self._noise[1]
        gas, brake = self._pedals(seen, here, factor)
        action = np.clip([steer, gas, brake], [-1, 0, 0], 1)
        return np.round(action, 4).astype(np.float32)

    def _progress(self, position: np.ndarray) -> float:
        """Arc length of the nearest point of the line."""
        offset = self.line.points - position
        i = int(np.argmin((offset * offset).sum(1)))
        along = self.line.points[(i + 1) % len(offset)] - self.line.points[i]
        return float(self.line.distance[i] - offset[i] @ along / np.linalg.norm(along))

    def _point(self, distance: float) -> np.ndarray:
        """`[2]` point of the line at an arc length."""
        line = self.line
        distance %= line.distance[-1]
        closed = np.concatenate([line.points, line.points[:1]])
        return np.array([np.interp(distance, line.distance, c) for c in closed.T])

    def _steer(self, state: CarState, here: float) -> float:
        """Pure pursuit of a point ahead, plus damping of the yaw rate error."""
        speed = float(np.hypot(*state.velocity))
        reach = 4.0 + self.config.preview * speed
        to_target = self._point(here + reach) - state.position
        right = np.array([np.cos(state.angle), np.sin(state.angle)])
        forward = np.array([-right[1], right[0]])
        # Direction of travel, not of the hull: a sliding car is steered into the slide.
        course = np.arctan2(-(state.velocity @ right), state.velocity @ forward)
        if speed < 5.0:
            course = 0.0
        bearing = np.arctan2(-(to_target @ right), to_target @ forward) - course
        curvature = 2 * np.sin(bearing) / np.linalg.norm(to_target)
        yaw_error = speed * curvature - state.yaw_rate
        wheel = WHEELBASE * curvature + course + self.config.damping * yaw_error
        return float(-wheel)

    def _pedals(
        self, state: CarState, here: float, factor: float
    ) -> tuple[float, float]:
        """Gas and brake that give the force the speed error asks for."""
        speed = float(np.hypot(*state.velocity))
        line = self.line
        ahead = (here + 0.04 * speed) % line.distance[-1]
        target = factor * np.interp(
            ahead, line.distance, np.append(line.speed, line.speed[0])
        )
        lateral = min(1.0, abs(state.yaw_rate) * speed * MASS / (4 * GRIP))
        spare = GRIP * np.sqrt(1.0 - lateral * lateral)
        force = MASS * (target - speed) / (5 * STEP)
        if force >= 0:
            per_wheel = min(force / 2, 0.8 * spare)
            # At this spin rate the engine feeds just what the tyre takes.
            fed = per_wheel * WHEEL_RADIUS * (abs(state.rear_omega) + 5) / ENGINE_POWER
            wanted_slip = per_wheel / TYRE_STIFFNESS
            slip = state.rear_omega * WHEEL_RADIUS - speed
            return float(fed + 0.05 * (wanted_slip - slip)), 0.0
        per_wheel = min(-force / 4, 0.9 * spare)
        rate = STEP * per_wheel * WHEEL_RADIUS / WHEEL_SPIN_INERTIA / BRAKE_RATE
        return 0.0, float(rate)
