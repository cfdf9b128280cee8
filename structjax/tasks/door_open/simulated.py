"""Door Opening in C MuJoCo on the host: the MJCF that the backend `mjx` runs, too."""

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from structjax.errors import StructjaxError
from structjax.original.lockstep import Act, OriginalEpisodes
from structjax.outcomes import Outcomes, reduce_outcomes
from structjax.tasks.door_open import constants as c
from structjax.tasks.door_open.actions import numbers
from structjax.tasks.door_open.configurations import door_positions
from structjax.tasks.door_open.engine import Compiled, compile_model, import_mujoco
from structjax.tasks.door_open.environment import describe
from structjax.tasks.door_open.mjcf import DoorModel
from structjax.tasks.door_open.observation import Body, observe, present
from structjax.tasks.door_open.reward import rate


class SimulatedDoors:
    """B doors side by side in C MuJoCo; observation and reward are the shared ones.

    Attributes:
      compiled: the model.
      data: one `MjData` per episode.
      doors: `[B, 2]` where the doors stand.
    """

    def __init__(self, doors: np.ndarray, model: DoorModel | None = None) -> None:
        """Closed doors at `doors` `[B, 2]`.

        Raises:
          StructjaxError: MuJoCo is not installed.
        """
        self.compiled: Compiled = compile_model(model or DoorModel())
        self.doors = np.asarray(doors, np.float32)
        self.data = [self._start(door) for door in self.doors]
        self._now = np.asarray(_look(self.bodies(), self.doors))

    def observations(self) -> np.ndarray:
        """The first observations `[B, 39]` float32."""
        return np.asarray(_observe(self._now, self._now, self.doors))

    def step(
        self, actions: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]:
        """One step of 12.5 ms with actions `[B, 4]`: observations, rewards, info.

        Raises:
          StructjaxError: an action that is not finite or leaves [-1, 1].
        """
        actions = _checked(actions, len(self.data))
        # Plainly one after the other: threads and `mujoco.rollout` gain nothing over
        # steps of 20 microseconds.
        for data, action in zip(self.data, actions, strict=True):
            self._move(data, action)
        bodies = self.bodies()
        now, reward, info = _judge(bodies, self.doors, actions)
        obs = _observe(now, self._now, self.doors)
        self._now = np.asarray(now)
        named = {name: np.asarray(values) for name, values in info.items()}
        return np.asarray(obs), np.asarray(reward), named

    def bodies(self) -> Body:
        """The bodies of all episodes, `[B, ...]` each."""
        k = self.compiled
        qpos = np.array([data.qpos for data in self.data])
        gap = c.OPENING_UNIT - qpos[:, k.right] + qpos[:, k.left]
        hand = np.array([data.xpos[k.hand] for data in self.data], np.float32)
        target = np.array([data.mocap_pos[k.target] for data in self.data], np.float32)
        return Body(
            hand=hand,
            opening=np.clip(gap / c.OPENING_UNIT, 0.0, 1.0).astype(np.float32),
            theta=qpos[:, k.hinge].astype(np.float32),
            target=target,
        )

    def _start(self, door: np.ndarray) -> Any:
        mujoco, k = import_mujoco(), self.compiled
        data = mujoco.MjData(k.model)
        data.qpos[:], data.qvel[:] = k.qpos, k.qvel
        data.mocap_pos[k.target] = c.TARGET_START
        data.mocap_pos[k.door] = (door[0], door[1], c.DOOR_Z)
        mujoco.mj_forward(k.model, data)
        return data

    def _move(self, data: Any, action: np.ndarray) -> None:
        mujoco, k = import_mujoco(), self.compiled
        target = data.mocap_pos[k.target] + c.ACTION_SCALE * action[:3]
        data.mocap_pos[k.target] = np.clip(target, c.TARGET_LOW, c.TARGET_HIGH)
        data.ctrl[:] = (action[3], -action[3])
        mujoco.mj_step(k.model, data, k.substeps)
        mujoco.mj_kinematics(k.model, data)


def simulate(
    act: Act,
    seeds: Sequence[int],
    outcomes: Outcomes,
    *,
    model: DoorModel | None = None,
    horizon: int = c.HORIZON,
) -> OriginalEpisodes:
    """One episode per seed, all B of them in lockstep.

    Args:
      act: observations `[B, 39]` -> actions `[B, 4]` in [-1, 1], called once a step.
      seeds: the task's seeds.
      outcomes: what to report of each episode beside its return.
      model: what is simulated; by default what the backend `mjx` runs.
      horizon: steps of an episode.

    Raises:
      StructjaxError: MuJoCo is not installed, or an action cannot be used.
    """
    world = SimulatedDoors(door_positions(seeds), model)
    obs, rewards = world.observations(), []
    info: dict[str, list[np.ndarray]] = {value: [] for value, _ in outcomes.values()}
    for _ in range(horizon):
        obs, reward, named = world.step(act(obs.copy()))
        rewards.append(reward.astype(np.float64))
        for name, values in info.items():
            values.append(named[name])
    valid = np.ones((horizon, len(world.data)), bool)
    found = reduce_outcomes(outcomes, {k: np.array(v) for k, v in info.items()}, valid)
    return OriginalEpisodes(
        np.sum(rewards, axis=0),
        np.full(len(world.data), horizon),
        {name: np.asarray(values) for name, values in found.items()},
    )


def _checked(actions: np.ndarray, episodes: int) -> np.ndarray:
    """Actions `[B, 4]` float32 within [-1, 1]."""
    array = numbers(actions)
    if array.shape != (episodes, 4):
        problem = f"the actions have the shape {array.shape}"
    elif not np.isfinite(array).all():
        problem = "an action is not finite"
    elif np.abs(array).max() > 1.0:
        problem = f"an action is {array.flat[np.abs(array).argmax()]:g}"
    else:
        return array
    raise StructjaxError(
        f"door_open: {problem}",
        kind="action",
        hint=f"accepted: [{episodes}, 4], dx, dy, dz and grip, each in [-1, 1]",
    )


@jax.jit
def _look(bodies: Body, doors: jax.Array) -> jax.Array:
    return jax.vmap(present)(bodies, doors)


@jax.jit
def _observe(now: jax.Array, before: jax.Array, doors: jax.Array) -> jax.Array:
    return jax.vmap(observe)(now, before, doors)


@jax.jit
def _judge(
    bodies: Body, doors: jax.Array, actions: jax.Array
) -> tuple[jax.Array, jax.Array, dict[str, jax.Array]]:
    """What is seen `[B, 18]`, rewards `[B]` and named values after a step."""
    rating = jax.vmap(rate)(bodies, doors, actions)
    return (
        _look(bodies, doors),
        rating.reward,
        jax.vmap(describe)(bodies, doors, rating),
    )
