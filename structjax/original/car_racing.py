"""Gymnasium's CarRacing-v3 on Box2D without rendering, with named observations.

Rendering is 99 % of the shipped environment's cost; the physics is untouched. Needs the
extra `original`; Gymnasium is imported on first use.
"""

import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from structjax.errors import StructjaxError
from structjax.original.lockstep import (
    LockstepEpisodes,
    OriginalStep,
    check_steps,
    not_reset,
    play_in_lockstep,
)
from structjax.ranges import episode_seed
from structjax.tasks.car_racing.track import kerbs

HORIZON = 1000  # steps, the TimeLimit of the registered environment
TILES = 12
ACTION_LOW = np.array([-1.0, 0.0, 0.0])
ACTION_HIGH = np.array([1.0, 1.0, 1.0])


class OriginalCarRacing:
    """CarRacing-v3 with the step limit, the named observation and no pixels.

    Attributes:
      simulator: the Gymnasium environment; its `car`, `track` and `road` may be read.
      nodes: `[N, 4]` of the track: alpha, beta, x, y.
      border: `[N]` bool, kerb tiles.
      steps: steps since reset.
    """

    def __init__(self) -> None:
        self._make = import_simulator()
        self.simulator: Any = None
        self.nodes = np.zeros((0, 4))
        self.border = np.zeros(0, bool)
        self.steps = 0

    def reset(self, seed: int) -> np.ndarray:
        """The first observation `[O]` of the track `seed`.

        Each episode gets a new Box2D world, so that it cannot depend on earlier ones.

        Raises:
          StructjaxError: no such seed.
        """
        seed = episode_seed(seed)
        self.simulator = self._make()
        self.simulator._render = lambda mode: None
        self.simulator.reset(seed=seed)
        self.nodes = np.array(self.simulator.track, np.float64)
        self.border = kerbs(self.nodes[:, 1])
        self.steps = 0
        return observe(self)

    def step(self, action: np.ndarray) -> OriginalStep:
        """One step of 0.02 s; the action `[3]` (steer, gas, brake) is clipped.

        Raises:
          StructjaxError: an action that cannot be used, or no reset before.
        """
        if self.simulator is None:
            raise not_reset("car_racing")
        action = checked_action(action)
        _, reward, terminated, _, _ = self.simulator.step(action)
        self.steps += 1
        return OriginalStep(
            observe(self),
            float(reward),
            bool(terminated),
            self.steps >= HORIZON,
            {"progress": self.simulator.tile_visited_count / len(self.nodes)},
        )


def checked_action(action: Any) -> np.ndarray:
    """The action `[3]`, clipped to its ranges.

    Raises:
      StructjaxError: it has another shape or is not finite.
    """
    try:
        array = np.asarray(action, np.float64)
    except (TypeError, ValueError):
        raise _refused(f"is {action!r:.60}") from None
    if array.shape != ACTION_LOW.shape:
        raise _refused(f"has the shape {array.shape}")
    if not np.isfinite(array).all():
        raise _refused(f"is not finite: {array}")
    return np.clip(array, ACTION_LOW, ACTION_HIGH)


def _refused(problem: str) -> StructjaxError:
    return StructjaxError(
        f"car_racing: the action {problem}",
        kind="action",
        hint="accepted: steer, gas and brake, shape (3,), finite",
    )


class Episode(NamedTuple):
    """One recorded episode of T steps.

    Attributes:
      observations: `[T, O]` float32, before each action.
      actions: `[T, 3]` float32, after clipping.
      rewards: `[T]`.
      poses: `[T + 1, 3]` hull x, y, angle.
      terminated: whether the last step ended the episode by itself.
      progress: share of tiles visited.
      seed: track seed.
    """

    observations: np.ndarray
    actions: np.ndarray
    rewards: np.ndarray
    poses: np.ndarray
    terminated: bool
    progress: float
    seed: int


def import_simulator() -> Callable[[], Any]:
    """Gymnasium's `CarRacing` class.

    Raises:
      StructjaxError: the extra `original` is not installed.
    """
    try:
        with warnings.catch_warnings():
            # SWIG's and pygame's own deprecations; nothing a user could act on.
            warnings.simplefilter("ignore")
            import gymnasium.error
            from gymnasium.envs.box2d.car_racing import CarRacing
    except ImportError as error:
        raise _missing(error) from error
    except gymnasium.error.DependencyNotInstalled as error:
        raise _missing(error) from error
    return CarRacing


def _missing(error: Exception) -> StructjaxError:
    """The error for an absent Gymnasium, Box2D or pygame."""
    return StructjaxError(
        f"the original Car Racing simulator cannot be imported ({error})",
        kind="dependency",
        hint='in a checkout `pip install -c constraints.txt ".[original]"`, else '
        '`pip install "structjax[original]"`',
    )


def observe(env: OriginalCarRacing) -> np.ndarray:
    """The named observation `[O]` float32 from the simulator's state.

    tiles.x[12], tiles.y[12], tiles.heading[12], tiles.corner[12], speed, steer_angle,
    yaw_rate, wheel_speed[4]: the nearest node and the next eleven in the hull's frame.
    """
    hull, wheels = env.simulator.car.hull, env.simulator.car.wheels
    angle = hull.angle
    right = np.array([np.cos(angle), np.sin(angle)])
    offset = env.nodes[:, 2:4] - np.array(hull.position)
    nearest = int(np.argmin((offset * offset).sum(1)))
    ahead = (nearest + np.arange(TILES)) % len(env.nodes)
    x = 0.03 * (offset[ahead] @ right)
    y = 0.03 * (offset[ahead] @ np.array([-right[1], right[0]]))
    heading = (env.nodes[ahead, 1] - angle + np.pi) % (2 * np.pi) / np.pi - 1.0
    scalars = [
        np.hypot(*hull.linearVelocity) / 100.0,
        wheels[0].joint.angle / np.pi,
        hull.angularVelocity / 10.0,
    ]
    spins = [wheel.omega / 200.0 for wheel in wheels]
    return np.concatenate(
        [x, y, heading, env.border[ahead], scalars, spins], dtype=np.float32
    )


def run_episode(
    env: OriginalCarRacing,
    seed: int,
    policy: Callable[[np.ndarray], np.ndarray],
    steps: int = HORIZON,
) -> Episode:
    """Drives the track `seed` with `policy`: observation `[O]` -> action `[3]`.

    Raises:
      StructjaxError: no such seed, an action that cannot be used, or no steps.
    """
    check_steps("car_racing", steps)
    obs = env.reset(seed)
    observations, actions, rewards, poses = [], [], [], [_pose(env)]
    for _ in range(steps):
        action = np.clip(policy(obs), ACTION_LOW, ACTION_HIGH).astype(np.float32)
        result = env.step(action)
        observations.append(obs)
        actions.append(action)
        rewards.append(result.reward)
        poses.append(_pose(env))
        obs = result.obs
        if result.terminated or result.truncated:
            break
    return Episode(
        np.array(observations),
        np.array(actions),
        np.array(rewards),
        np.array(poses),
        result.terminated,
        result.info["progress"],
        seed,
    )


def _pose(env: OriginalCarRacing) -> tuple[float, float, float]:
    """Hull x, y and angle."""
    hull = env.simulator.car.hull
    return (hull.position[0], hull.position[1], hull.angle)


def evaluate_original(
    act: Callable[[np.ndarray], np.ndarray], seeds: Sequence[int]
) -> LockstepEpisodes:
    """One episode per seed, all B of them in lockstep.

    `act` maps the observations `[B, O]` to the actions `[B, 3]`.

    Raises:
      StructjaxError: Gymnasium is missing, or seeds or an action cannot be used.
    """
    return play_in_lockstep([OriginalCarRacing() for _ in seeds], act, seeds, {})
