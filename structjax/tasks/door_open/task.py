"""Door Opening as a Task: doors by seed, schema, description, simulators."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Literal, get_args

import jax
import jax.numpy as jnp
import numpy as np

from structjax.errors import StructjaxError
from structjax.outcomes import Outcomes
from structjax.tasks.base import DEFAULT_SEEDS, Step, Task
from structjax.tasks.door_open import constants as c
from structjax.tasks.door_open.analytic import Analytic
from structjax.tasks.door_open.configurations import checked_horizon, door_positions
from structjax.tasks.door_open.environment import (
    DoorOpen,
    Dynamics,
    EnvParams,
    EnvState,
)
from structjax.tasks.door_open.geometry import MIN_DISTANCE, START_DISTANCE
from structjax.tasks.door_open.mjcf import JOINTED, DoorModel
from structjax.tasks.door_open.mjx import Mjx
from structjax.tasks.door_open.scene import door_scene
from structjax.tasks.door_open.schema import DOOR_OPEN_SCHEMA

Backend = Literal["analytic", "mjx"]
BACKENDS: tuple[Backend, ...] = get_args(Backend)
INFO: Mapping[str, str] = {
    "distance": "distance of the handle to its goal, m",
    "success": "1 while the handle is within 0.08 m of its goal along x, else 0",
    "theta": "hinge angle, 0 closed, negative open, rad",
    "opening": "opening of the gripper, 1 open",
    "target_lag": "how far the hand is from the target that the actions move, m",
    "bar_distance": "distance of the hand to the axis of the handle's bar, m",
    "ready": "reward's rating of the hand's place over or behind the handle, 0 to 1",
    "hand_x": "position of the hand, m, to the right of the robot",
    "hand_y": "position of the hand, m, away from the robot",
    "hand_z": "position of the hand, m, up",
    "handle_x": "position of the handle, m, to the right of the robot",
    "handle_y": "position of the handle, m, away from the robot",
    "handle_z": "position of the handle, m, up",
    "target_x": "position of the hand's target, m, to the right of the robot",
    "target_y": "position of the hand's target, m, away from the robot",
    "target_z": "position of the hand's target, m, up",
}
OUTCOMES: Outcomes = {
    "min_distance": ("distance", "min"),
    "final_distance": ("distance", "last"),
    "success_ever": ("success", "max"),
    "success_final": ("success", "last"),
}
_RATE = f"{1 / c.TIME_STEP:.0f}"
_SHUT = f"{START_DISTANCE:.4f}"
_BEST = f"{MIN_DISTANCE:.4f}"
DESCRIPTION = f"""\
Door opening with a robot arm's hand (Meta-World's door-open-v3): pull a cabinet door
open by its handle until the handle is at its goal, and keep it there. Every episode has
another position of the door. There are {_RATE} steps a second and {c.HORIZON}
steps in every episode; it never ends early, so where the handle stays counts, too.
Reward per step: 10 while the handle is within {c.SUCCESS_DISTANCE} m of its goal along
x; else 2 * (hand in place and gripper closing) + 8 * (how far the door is open).
Distance of the handle to its goal: {_SHUT} m when closed, wherever the door
stands; {_BEST} m at best, with the hinge at about 92 degrees, for the goal does not
lie on the handle's arc. Opening the door further leads away from it.
Handle: a horizontal bar of about 0.02 m radius in front of the door, held by one stem
at its left; the bar is 0.12 m from the panel and ends beyond the panel's right edge.
The fingers fit between bar and panel from above, right of the stem; a closed gripper
can pull the bar like a hook. Coming down on the bar or the stem leaves the hand stuck.
Door: it turns freely up to about 75 degrees; from there on the panel presses against
the cabinet and springs back when the hand lets go, so the goal has to be held.
Hand: the actions move a target that the hand follows. A blocked hand does not stop its
target, which may run 0.4 m ahead and has to be brought back first."""


def door_open(
    *,
    backend: Backend = "analytic",
    horizon: int = c.HORIZON,
) -> Task:
    """The Door Opening task; a seed is a position of the door.

    Args:
      backend: `"analytic"`, a few equations, the fastest; `"mjx"`, a MuJoCo model
        whose hand tilts, closer to Meta-World.
      horizon: steps of an episode, at most Meta-World's 500.

    Raises:
      StructjaxError: an unknown backend, a horizon beyond 500, or MJX is missing.
    """
    horizon = checked_horizon(horizon)
    environment = DoorOpen(_dynamics(backend), horizon)

    def initial(seeds: Sequence[int]) -> tuple[EnvParams, jax.Array]:
        doors = door_positions(seeds)
        return environment.params_for(doors), jnp.asarray(doors)

    def step(
        key: jax.Array, state: EnvState, action: jax.Array, params: EnvParams
    ) -> Step:
        obs, state, reward, terminated, info = environment.step_env(
            key, state, action, params
        )
        truncated = environment.is_truncated(state, params)
        return Step(obs, state, reward, terminated, truncated, info)

    return Task(
        name="door_open",
        description=DESCRIPTION,
        schema=DOOR_OPEN_SCHEMA,
        horizon=horizon,
        seeds=DEFAULT_SEEDS,
        initial=initial,
        reset=environment.reset_to,
        step=step,
        info=INFO,
        environment=environment,
        outcomes=OUTCOMES,
        simulators=_simulators(horizon),
        scene=door_scene,
    )


def _dynamics(backend: str) -> Dynamics:
    if not isinstance(backend, str) or backend not in BACKENDS:
        raise StructjaxError(
            f"task 'door_open': backend {backend!r}",
            kind="task",
            hint="accepted: " + ", ".join(BACKENDS),
        )
    return Mjx() if backend == "mjx" else Analytic()


def _simulators(horizon: int) -> Mapping[str, Callable[..., Any]]:
    """The simulators outside JAX, whose episodes have 500 steps."""
    if horizon != c.HORIZON:
        return {}
    return {"c": _c, "c_jointed": partial(_c, model=JOINTED), "metaworld": _metaworld}


def _c(
    act: Callable[[np.ndarray], np.ndarray],
    seeds: Sequence[int],
    model: DoorModel | None = None,
) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]:
    """Returns, lengths and outcomes `[B]` of one episode per seed in C MuJoCo.

    By default of the model that the backend `mjx` runs.
    """
    from structjax.tasks.door_open.simulated import simulate

    return simulate(act, seeds, OUTCOMES, model=model)


def _metaworld(
    act: Callable[[np.ndarray], np.ndarray], seeds: Sequence[int]
) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]:
    """The same in Meta-World."""
    from structjax.original.door_open import evaluate_original

    return evaluate_original(act, seeds, OUTCOMES)
