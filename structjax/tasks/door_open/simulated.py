"""Door Opening in C MuJoCo on the host: the MJCF that the backend `mjx` runs, too."""

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from structjax.errors import StructjaxError
from structjax.original.lockstep import Act, LockstepEpisodes, summed_up
from structjax.outcomes import Outcomes, problem
from structjax.tasks.door_open import constants as c
from structjax.tasks.door_open.actions import checked_action, moved_target
from structjax.tasks.door_open.configurations import checked_horizon, door_positions
from structjax.tasks.door_open.engine import Compiled, compile_model, import_mujoco
from structjax.tasks.door_open.environment import describe
from structjax.tasks.door_open.mjcf import DoorModel
from structjax.tasks.door_open.observation import Body, observe, opening_of, present
from structjax.tasks.door_open.reward import rate
from structjax.tasks.door_open.task import INFO


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
          StructjaxError: MuJoCo is not installed, or the doors are no places.
        """
        self.doors = _checked_doors(doors)
        self.compiled: Compiled = compile_model(model or DoorModel())
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
        actions = checked_action(actions, len(self.data))
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
        hand = np.array([data.xpos[k.hand] for data in self.data], np.float32)
        target = np.array([data.mocap_pos[k.target] for data in self.data], np.float32)
        return Body(
            hand=hand,
            opening=opening_of(qpos[:, k.right], -qpos[:, k.left]).astype(np.float32),
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
        data.mocap_pos[k.target] = moved_target(data.mocap_pos[k.target], action)
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
) -> LockstepEpisodes:
    """One episode per seed, all B of them in lockstep.

    Args:
      act: observations `[B, 39]` -> actions `[B, 4]` in [-1, 1], called once a step.
      seeds: the task's seeds.
      outcomes: what to report of each episode beside its return.
      model: what is simulated; by default what the backend `mjx` runs.
      horizon: steps of an episode.

    Raises:
      StructjaxError: MuJoCo is not installed, or seeds, outcomes, horizon or an action
        cannot be used.
    """
    horizon = checked_horizon(horizon)
    if unusable := problem(outcomes, INFO):
        raise StructjaxError(
            f"task 'door_open': {unusable[0]}",
            kind="outcomes",
            hint=f"accepted: {unusable[1]}",
        )
    world = SimulatedDoors(door_positions(seeds), model)
    obs, rewards = world.observations(), []
    info: dict[str, list[np.ndarray]] = {value: [] for value, _ in outcomes.values()}
    for _ in range(horizon):
        obs, reward, named = world.step(act(obs.copy()))
        rewards.append(reward.astype(np.float64))
        for name, values in info.items():
            values.append(named[name])
    return summed_up(rewards, np.ones((horizon, len(seeds)), bool), info, outcomes)


def _checked_doors(doors: np.ndarray) -> np.ndarray:
    array = np.asarray(doors, np.float32)
    if array.ndim != 2 or array.shape[1] != 2 or not len(array):
        fault = f"doors of the shape {array.shape}"
    elif not np.isfinite(array).all():
        fault = "a door whose place is not finite"
    else:
        return array
    raise StructjaxError(
        f"door_open: {fault}",
        kind="task",
        hint="accepted: finite x and y, `[B, 2]`, of one or more doors",
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
