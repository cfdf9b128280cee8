"""Hand and door in MJX: the MJCF of our own as JAX dynamics."""

import contextlib
import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from importlib import metadata
from typing import Any, Final, NamedTuple

import jax
import jax.numpy as jnp

from structjax.errors import StructjaxError
from structjax.tasks.door_open import constants as c
from structjax.tasks.door_open.actions import moved_target
from structjax.tasks.door_open.engine import (
    Compiled,
    compile_model,
    import_mujoco,
    release,
)
from structjax.tasks.door_open.mjcf import DOOR, DoorModel
from structjax.tasks.door_open.observation import Body, opening_of

OLDEST: Final = (3, 8)  # earlier ones call `jax.numpy.clip` with names it has dropped

_WARP: Final = tuple(
    f"Failed to import {name}: No module named 'warp'"
    for name in ("warp", "mujoco_warp")
)


class MjxState(NamedTuple):
    """State of one episode.

    Attributes:
      qpos, qvel: `[nq]`, `[nv]` of the model, relative to the door.
      warmstart: `[nv]` accelerations from which the solver starts.
      target: `[3]` what the actions move.
      door_xy: `[2]` where the door stands.
    """

    qpos: jax.Array
    qvel: jax.Array
    warmstart: jax.Array
    target: jax.Array
    door_xy: jax.Array


class Mjx:
    """The model of `mjcf.py` stepped by MJX.

    In MJX what is fixed to a mocap body does not move with it. So the door stays and
    the hand starts elsewhere instead, which is the same: the world holds nothing else.
    Only what changes is state; the rest of MJX's data is computed anew in every step.

    Args:
      model: what is simulated; not with `arm="joints"`, which compiles for minutes.
    """

    def __init__(self, model: DoorModel | None = None) -> None:
        """Imports MuJoCo and MJX.

        Raises:
          StructjaxError: they are not installed, or the model has the jointed arm.
        """
        self.model = model or DoorModel()
        if self.model.arm == "joints":
            raise StructjaxError(
                "door_open: the jointed arm does not run in MJX",
                kind="task",
                hint='accepted: arm="tilting" or "slides"; C MuJoCo takes all',
            )
        self._mjx = import_mjx()

    @cached_property
    def compiled(self) -> Compiled:
        """The model as MuJoCo has it."""
        return compile_model(self.model)

    @cached_property
    def _constants(self) -> tuple[Any, Any]:
        """MJX's model and data that steps fill in."""
        # Built once, perhaps while an environment is being traced.
        with jax.ensure_compile_time_eval(), jax.numpy_rank_promotion("allow"):
            model = self.compiled.model
            return self._mjx.put_model(model), self._mjx.make_data(model)

    def reset(self, door_xy: jax.Array) -> MjxState:
        """The closed door at `door_xy` `[2]`, the hand at its start."""
        k = self.compiled
        qpos = jnp.asarray(k.qpos, jnp.float32)
        return MjxState(
            qpos=qpos.at[:2].add(-_away(door_xy)[:2]),
            qvel=jnp.asarray(k.qvel, jnp.float32),
            warmstart=jnp.zeros(len(k.qvel)),
            target=jnp.array(c.TARGET_START),
            door_xy=jnp.asarray(door_xy, jnp.float32),
        )

    def step(self, state: MjxState, action: jax.Array) -> MjxState:
        """One control step of 12.5 ms under `action` `[4]` in [-1, 1]."""
        target = moved_target(state.target, action)
        model, blank = self._constants
        place = target - _away(state.door_xy)
        data = blank.replace(
            mocap_pos=blank.mocap_pos.at[self.compiled.target].set(place),
            ctrl=jnp.stack([action[3], -action[3]]),
        )

        def substep(_: int, moved: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
            qpos, qvel, warmstart = moved
            after = self._mjx.step(
                model, data.replace(qpos=qpos, qvel=qvel, qacc_warmstart=warmstart)
            )
            return after.qpos, after.qvel, after.qacc_warmstart

        # MJX relies on rank promotion. A loop, not copies, compiles twice as fast.
        with jax.numpy_rank_promotion("allow"):
            qpos, qvel, warmstart = jax.lax.fori_loop(
                0,
                self.compiled.substeps,
                substep,
                (state.qpos, state.qvel, state.warmstart),
            )
        return state._replace(qpos=qpos, qvel=qvel, warmstart=warmstart, target=target)

    def body(self, state: MjxState) -> Body:
        """What the state means for the task."""
        k = self.compiled
        opening = opening_of(state.qpos[k.right], -state.qpos[k.left])
        # The hinges turn about the hand, so its place is that of the slides.
        hand = jnp.array(c.TARGET_START) + state.qpos[:3] + _away(state.door_xy)
        return Body(hand, opening, state.qpos[k.hinge], state.target)


def _away(door_xy: jax.Array) -> jax.Array:
    """From the model's door to the episode's, `[3]`."""
    return jnp.append(door_xy - jnp.array(DOOR), 0.0)


def import_mjx() -> Any:
    """The module `mujoco.mjx`.

    Raises:
      StructjaxError: it is not installed, does not fit the installed MuJoCo, or is too
        old for the JAX of this package.
    """
    mujoco = import_mujoco()
    try:
        with _without_warp():
            from mujoco import mjx

        found = metadata.version("mujoco-mjx")
    except Exception as error:  # one for another MuJoCo lacks some of its names
        beside = f"{error}; beside MuJoCo {mujoco.__version__}"
        raise _unusable(f"cannot be imported ({beside})") from error
    if release(found) < OLDEST:
        raise _unusable(f"{found} is too old: it does not run on this JAX")
    return mjx


@contextmanager
def _without_warp() -> Iterator[None]:
    """Drops MJX's two lines on stdout about a back end that is not installed."""
    told = io.StringIO()
    try:
        with contextlib.redirect_stdout(told):
            yield
    finally:
        rest = (x for x in told.getvalue().splitlines(True) if x.strip() not in _WARP)
        sys.stdout.write("".join(rest))


def _unusable(problem: str) -> StructjaxError:
    return StructjaxError(
        f"MJX {problem}",
        kind="dependency",
        hint='install it with `pip install --upgrade mujoco "mujoco-mjx>=3.8"`; '
        "Meta-World pins an older one, so not in its environment",
    )
