"""MuJoCo, and our model of the door compiled by it."""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np

from structjax.errors import StructjaxError
from structjax.tasks.door_open import constants as c
from structjax.tasks.door_open.mjcf import DoorModel, door_mjcf

OLDEST: Final = (3, 3)  # earlier ones do not know all of the MJCF's options
_FAR: tuple[float, float, float] = (5.0, 5.0, c.DOOR_Z)
SETTLING = 50  # control steps that Meta-World lets the hand settle at a reset


@dataclass(frozen=True, eq=False)
class Compiled:
    """The model as MuJoCo has it, and where its quantities lie.

    Attributes:
      model: `MjModel`.
      substeps: physics steps per control step.
      hand: number of the hand's body.
      target, door: numbers of the mocap bodies.
      right, left, hinge: places in `qpos`.
      qpos, qvel: the settled start, with a closed door.
    """

    model: Any
    substeps: int
    hand: int
    target: int
    door: int
    right: int
    left: int
    hinge: int
    qpos: np.ndarray
    qvel: np.ndarray


def import_mujoco() -> Any:
    """The module `mujoco`.

    Raises:
      StructjaxError: it is not installed, broken or too old.
    """
    try:
        import mujoco

        found = mujoco.mj_versionString()
    except Exception as error:  # of a broken installation: OSError, AttributeError
        raise _unusable(f"cannot be imported ({error})") from error
    if release(found) < OLDEST:
        raise _unusable(f"{found} is too old")
    return mujoco


def _unusable(problem: str) -> StructjaxError:
    return StructjaxError(
        f"MuJoCo {problem}",
        kind="dependency",
        hint='install it with `pip install --upgrade "mujoco>=3.3"`',
    )


def release(version: str) -> tuple[int, ...]:
    """The first two numbers of a version, whatever else it says."""
    return tuple(map(int, re.findall(r"\d+", version)[:2]))


@lru_cache(maxsize=8)
def compile_model(door_model: DoorModel) -> Compiled:
    """The model, compiled and settled.

    Raises:
      StructjaxError: MuJoCo cannot be used.
    """
    mujoco = import_mujoco()
    model = mujoco.MjModel.from_xml_string(door_mjcf(door_model))
    door = int(model.body("door").mocapid[0])
    qpos, qvel = _settled(model, door, SETTLING * door_model.substeps)
    if door_model.arm != "joints":
        # Meta-World's hand is not yet at rest at its start; the jointed arm's neither.
        qpos[:3] = np.subtract(c.HAND_START, c.TARGET_START)
    return Compiled(
        model=model,
        substeps=door_model.substeps,
        hand=model.body("hand").id,
        target=int(model.body("target").mocapid[0]),
        door=door,
        right=int(model.joint("right").qposadr[0]),
        left=int(model.joint("left").qposadr[0]),
        hinge=int(model.joint("hinge").qposadr[0]),
        qpos=qpos,
        qvel=qvel,
    )


def _settled(model: Any, door: int, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """`qpos` and `qvel` after `steps` with the gripper opening and the door away."""
    mujoco = import_mujoco()
    data = mujoco.MjData(model)
    data.mocap_pos[door] = _FAR
    data.ctrl[:] = (-1.0, 1.0)
    mujoco.mj_step(model, data, steps)
    return data.qpos.copy(), data.qvel.copy()
