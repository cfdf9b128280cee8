"""Meta-World's door-open-v3 on the MuJoCo it pins: the judge of Door Opening.

A seed stands the door where `structjax.tasks.door_open.configurations` says: those of
the test are the protocol of arXiv 2610.01652, ten consecutive resets of one
`Meta-World/MT1` environment of seed 0. Needs the extra `metaworld`, which needs a
virtual environment of its own; imported on first use.
"""

import pickle
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import metadata
from typing import Any, NamedTuple

import numpy as np

from structjax.errors import StructjaxError
from structjax.original.lockstep import (
    Act,
    LockstepEpisodes,
    OriginalStep,
    check_steps,
    not_reset,
    play_in_lockstep,
)
from structjax.outcomes import Outcomes
from structjax.tasks.door_open import constants as c
from structjax.tasks.door_open.actions import checked_action
from structjax.tasks.door_open.configurations import door_position

NAME = "door-open-v3"
PINNED = {"metaworld": "3.1.1", "mujoco": "3.3.0"}
AXES = ("x", "y", "z")


class DoorState(NamedTuple):
    """The physical state behind an observation.

    Attributes:
      hand: `[3]` position, m.
      opening: of the gripper, in [0, 1].
      theta: hinge angle, 0 closed, negative open, rad.
      target: `[3]` what the hand is drawn to, m.
      door: `[2]` where the door stands, x and y, m.
    """

    hand: np.ndarray
    opening: float
    theta: float
    target: np.ndarray
    door: np.ndarray


class OriginalDoorOpen:
    """door-open-v3 with a visible goal, 500 steps, reset by the task's seeds.

    Attributes:
      simulator: Meta-World's environment; may be read.
      steps: steps since reset, None before the first.
    """

    def __init__(self) -> None:
        """Makes the environment.

        Raises:
          StructjaxError: Meta-World is missing, or is not the pinned version.
        """
        with _quiet():
            self.simulator: Any = import_simulator()()
        self.steps: int | None = None

    def reset(self, seed: int) -> np.ndarray:
        """The first observation `[39]` of a seed.

        MuJoCo's data are reset, so an episode cannot depend on earlier ones.

        Raises:
          StructjaxError: no such seed.
        """
        place = np.array([*door_position(seed), c.DOOR_Z])
        self.simulator.set_task(_task(type(self.simulator), place))
        obs, _ = self.simulator.reset()
        self.steps = 0
        return np.asarray(obs, np.float32)

    def step(self, action: np.ndarray) -> OriginalStep:
        """One step of 12.5 ms with dx, dy, dz and grip `[4]`, each in [-1, 1].

        Raises:
          StructjaxError: an action out of range or not finite, no reset before, or the
            episode is over.
        """
        if self.steps is None:
            raise not_reset("door_open")
        if self.steps >= c.HORIZON:
            raise StructjaxError(
                f"door_open: step {self.steps + 1} of an episode of {c.HORIZON}",
                kind="horizon",
                hint="reset the environment first",
            )
        obs, reward, _, _, info = self.simulator.step(checked_action(action))
        self.steps += 1
        return OriginalStep(
            np.asarray(obs, np.float32),
            float(reward),
            False,
            self.steps >= c.HORIZON,
            self._info(obs, bool(info["success"])),
        )

    def state(self) -> DoorState:
        """The state as it is now."""
        data = self.simulator.data
        claws = [data.body(name).xpos for name in ("rightclaw", "leftclaw")]
        gap = float(np.linalg.norm(claws[0] - claws[1]))
        return DoorState(
            hand=np.array(data.body("hand").xpos),
            opening=min(max(gap / c.OPENING_UNIT, 0.0), 1.0),
            theta=float(data.joint("doorjoint").qpos.item()),
            target=np.array(data.mocap_pos[0]),
            door=np.array(self.simulator.model.body("door").pos[:2]),
        )

    def _info(self, obs: np.ndarray, success: bool) -> dict[str, float]:
        """The named values after a step; the distance is measured, not computed."""
        state = self.state()
        handle = np.array(self.simulator.data.geom("handle").xpos)
        goal = np.array(self.simulator._target_pos)
        places = {"hand": state.hand, "handle": handle, "target": state.target}
        return {
            "distance": float(np.linalg.norm(handle - goal)),
            "success": float(success),
            "theta": state.theta,
            "opening": state.opening,
            "target_lag": float(np.linalg.norm(state.target - state.hand)),
            **{
                f"{name}_{axis}": float(value)
                for name, place in places.items()
                for axis, value in zip(AXES, place, strict=True)
            },
        }


class Episode(NamedTuple):
    """One recorded episode of T steps.

    Attributes:
      observations: `[T + 1, 39]` float32, from the first to what the last step led to.
      actions: `[T, 4]` float32, after clipping.
      rewards: `[T]`.
      info: name -> `[T]`.
      states: the T + 1 states behind the observations.
    """

    observations: np.ndarray
    actions: np.ndarray
    rewards: np.ndarray
    info: dict[str, np.ndarray]
    states: tuple[DoorState, ...]


def run_episode(
    env: OriginalDoorOpen,
    seed: int,
    policy: Callable[[np.ndarray], np.ndarray],
    steps: int = c.HORIZON,
) -> Episode:
    """Plays a seed with `policy`: observation `[39]` -> action `[4]`, clipped.

    Raises:
      StructjaxError: no such seed, an action that cannot be used, or no steps.
    """
    check_steps("door_open", steps)
    observations, states = [env.reset(seed)], [env.state()]
    actions, taken = [], []
    for _ in range(steps):
        action = np.clip(policy(observations[-1]), -1.0, 1.0).astype(np.float32)
        step = env.step(action)
        observations.append(step.obs)
        actions.append(action)
        taken.append(step)
        states.append(env.state())
    return Episode(
        np.array(observations),
        np.array(actions),
        np.array([step.reward for step in taken]),
        {k: np.array([step.info[k] for step in taken]) for k in taken[0].info},
        tuple(states),
    )


def evaluate_original(
    act: Act, seeds: Sequence[int], outcomes: Outcomes
) -> LockstepEpisodes:
    """One episode of 500 steps per seed, all B of them in lockstep.

    Args:
      act: observations `[B, 39]` -> actions `[B, 4]`, called once a step.
      seeds: the task's seeds.
      outcomes: what to report of each episode beside its return.

    Raises:
      StructjaxError: no seeds, or no such seed; see `OriginalDoorOpen`.
    """
    environments = [OriginalDoorOpen() for _ in seeds]
    return play_in_lockstep(environments, act, seeds, outcomes)


def import_simulator() -> Callable[[], Any]:
    """Meta-World's class of the environment.

    Raises:
      StructjaxError: the extra `metaworld` is not installed, or a version that behaves
        otherwise is.
    """
    for package, version in PINNED.items():
        try:
            found = metadata.version(package)
        except metadata.PackageNotFoundError as error:
            raise _missing(f"{package} is not installed") from error
        if found != version:
            raise _missing(f"{package} {version} is needed, {found} is installed")
    try:
        with _quiet():
            from metaworld.env_dict import ALL_V3_ENVIRONMENTS
    except Exception as error:  # of a broken installation also others than ImportError
        raise _missing(str(error)) from error
    return ALL_V3_ENVIRONMENTS[NAME]


def _missing(problem: str) -> StructjaxError:
    return StructjaxError(
        f"the original Door Opening simulator cannot be used ({problem})",
        kind="dependency",
        hint="in a clone, with a virtual environment of its own: `pip install -c "
        'constraints-metaworld.txt ".[metaworld]"`',
    )


def _task(cls: type, position: np.ndarray) -> Any:
    """Meta-World's description of a door at `position` `[3]`, with a visible goal."""
    from metaworld.types import Task

    data = {"rand_vec": position, "env_cls": cls, "partially_observable": False}
    return Task(env_name=NAME, data=pickle.dumps(data))


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the warnings of Meta-World's own imports and of Gymnasium's wrappers."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
