"""A motion planner of our own for demonstrations of Door Opening.

It plans waypoints with minimum-jerk profiles from the first observation: up, over the
gap between the handle's bar and the panel, down, and then along the door's arc. While
pulling it closes the loop on the hinge angle, so that the door arrives at the goal and
is held there against the press of the panel. It sees only observations and knows the
geometry; so it drives every backend, and Meta-World itself.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count

import numpy as np

from structjax.tasks.door_open import constants as c
from structjax.tasks.door_open.actions import moved_target
from structjax.tasks.door_open.geometry import CLOSED_ANGLE, GOAL_ANGLE, GOAL_ARM

# The closed gripper's two fingers, from the hand: half width along x, extent along y.
BLOCK_X = 0.015
BLOCK_Y = (-0.013, 0.023)
BAR_BACK = -0.098  # y of the bar's surface that is pulled, in the door frame
LAG = 0.05  # s by which the hand trails a moving target


@dataclass(frozen=True)
class PlannerConfig:
    """How the planner moves.

    Attributes:
      speed: peak of the target's speed between waypoints, m per step, at most 0.01.
      clearance: height of the hand over the bar while moving above it, m.
      slot: where the fingers are lowered, in the door frame, m: x right of the stem, y
        between bar and panel.
      seat: where along the bar they pull, m from the hinge; the stem's side is 0.338.
      pull_steps: steps from the closed door to the goal.
      goal: hinge angle to hold, rad.
      gain, integral: m of lead per rad of angle that is missing, and per rad and step.
      noise: standard deviation of a smooth disturbance of the actions.
      seed: of the noise.
    """

    speed: float = 0.009
    clearance: float = 0.11
    slot: tuple[float, float] = (0.385, -0.06)
    seat: float = 0.357
    pull_steps: int = 100
    goal: float = GOAL_ANGLE
    gain: float = 0.1
    integral: float = 0.004
    noise: float = 0.0
    seed: int = 0


class Planner:
    """Drives one episode at a time: call `reset`, then `act` once a step."""

    def __init__(self, config: PlannerConfig | None = None) -> None:
        self.config = config or PlannerConfig()
        self._hinge = np.zeros(2)
        self._obs = np.zeros(0)
        self._moves: Iterator[np.ndarray] = iter(())

    def reset(self, obs: np.ndarray) -> None:
        """Plans an episode from its first observation `[39]`."""
        self._obs = np.asarray(obs, float)
        self._hinge = self._obs[36:38] - GOAL_ARM
        self._target = np.array(c.TARGET_START)
        self._moves = self._plan()
        self._noise = np.zeros(4)
        self._random = np.random.default_rng(self.config.seed)

    def act(self, obs: np.ndarray) -> np.ndarray:
        """The action `[4]` in [-1, 1] for the observation `[39]`."""
        self._obs = np.asarray(obs, float)
        wanted = next(self._moves)
        action = np.append((wanted - self._target) / c.ACTION_SCALE, 1.0)
        # 0.436 is sqrt(1 - 0.9^2): the noise keeps its standard deviation.
        self._noise = 0.9 * self._noise + 0.436 * self._random.normal(size=4)
        action = np.clip(action + self.config.noise * self._noise, -1.0, 1.0)
        self._target = moved_target(self._target, action)
        return action.astype(np.float32)

    def _plan(self) -> Iterator[np.ndarray]:
        """Where the target should be, step by step, without an end."""
        config = self.config
        x, y = self._from_door(0.0, *config.slot)
        high, low = c.DOOR_Z + config.clearance, c.DOOR_Z
        start = np.array(c.TARGET_START)
        above = np.array([x, y, high])
        waypoints = (np.array([start[0], start[1], high]), above, np.array([x, y, low]))
        for waypoint in waypoints:
            yield from minimum_jerk(start, waypoint, config.speed)
            start = waypoint
        for _ in range(10):  # the hand arrives
            yield start
        yield from self._pull(start)

    def _pull(self, start: np.ndarray) -> Iterator[np.ndarray]:
        """Along the arc to the goal, and holding the door there.

        The target runs on the path of the hooked hand at the angle that is due, ahead
        by the hand's lag, and by what angle is missing: a pull that grows until the
        door follows.
        """
        config = self.config
        missing = 0.0
        first = self._hooked(0.0)
        seated = min_jerk_steps(first - start[:2], config.speed)
        for step in count():
            due = config.goal * blend(step / config.pull_steps)
            soon = config.goal * blend((step + 1) / config.pull_steps)
            place = self._hooked(due)
            lead = (self._hooked(soon) - place) * (LAG / c.TIME_STEP)
            error = self.theta() - due
            missing = float(np.clip(missing + config.integral * error, 0.0, 0.3))
            ahead = max(config.gain * error + missing, 0.0)
            pull = ahead * np.array([math.sin(due), -math.cos(due)])
            # At first it only takes up the play between fingers and bar.
            way = blend(step / seated) * (place + lead + pull - start[:2])
            yield np.append(start[:2] + way, start[2])

    def theta(self) -> float:
        """The hinge angle that the observed handle shows."""
        arm = self._obs[4:6] - self._hinge
        return math.atan2(arm[1], arm[0]) - CLOSED_ANGLE

    def _hooked(self, theta: float) -> np.ndarray:
        """Hand position `[2]` whose fingers just touch the bar's back at an angle."""
        across, along = -math.sin(theta), math.cos(theta)
        behind = -BLOCK_Y[0] * along if along > 0 else BLOCK_Y[1] * -along
        return self._from_door(
            theta, self.config.seat, BAR_BACK + BLOCK_X * abs(across) + behind
        )

    def _from_door(self, theta: float, x: float, y: float) -> np.ndarray:
        cosine, sine = math.cos(theta), math.sin(theta)
        return self._hinge + np.array([cosine * x - sine * y, sine * x + cosine * y])


def blend(share: float) -> float:
    """Minimum-jerk progress 10 s^3 - 15 s^4 + 6 s^5, from 0 at s = 0 to 1 at s = 1."""
    s = min(max(share, 0.0), 1.0)
    return s**3 * (10.0 - 15.0 * s + 6.0 * s * s)


def min_jerk_steps(way: np.ndarray, speed: float) -> int:
    """Steps of a minimum-jerk move along `way` whose peak speed is `speed` per step.

    The peak of the profile is 15/8 of its mean speed.
    """
    return max(1, math.ceil(1.875 * float(np.linalg.norm(way)) / speed))


def minimum_jerk(
    start: np.ndarray, end: np.ndarray, speed: float
) -> Iterator[np.ndarray]:
    """Points from `start` (excluded) to `end` (included), one a step."""
    steps = min_jerk_steps(end - start, speed)
    for i in range(1, steps + 1):
        yield start + blend(i / steps) * (end - start)
