"""Door Opening as a gymnax environment over any of the dynamics."""

from functools import partial
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct
from gymnax.environments import environment, spaces

from structjax.tasks.base import DEFAULT_SEEDS
from structjax.tasks.door_open import constants as c
from structjax.tasks.door_open.actions import clip_action
from structjax.tasks.door_open.configurations import door_positions
from structjax.tasks.door_open.geometry import bar_distance, handle_position
from structjax.tasks.door_open.observation import SIZE, Body, observe, present
from structjax.tasks.door_open.reward import Rating, rate


class Dynamics(Protocol):
    """How hand and door move; pure JAX, one episode."""

    def reset(self, door_xy: jax.Array, /) -> Any:
        """The state with a closed door at `door_xy` `[2]`."""

    def step(self, state: Any, action: jax.Array, /) -> Any:
        """The state 12.5 ms later under `action` `[4]` in [-1, 1]."""

    def body(self, state: Any, /) -> Body:
        """What a state means for the task."""


@struct.dataclass
class EnvState(environment.EnvState):
    """State of one episode.

    Attributes:
      time: `[]` steps taken.
      inner: state of the dynamics.
      door_xy: `[2]` where the door stands.
      now: `[18]` the present part of the last observation.
    """

    time: jax.Array
    inner: Any
    door_xy: jax.Array
    now: jax.Array


@partial(struct.dataclass, kw_only=True)
class EnvParams(environment.EnvParams):
    """What episodes share.

    Attributes:
      max_steps_in_episode: the episode is truncated after so many steps.
      doors: `[K, 2]` door positions that `reset` draws from.
    """

    doors: jax.Array
    max_steps_in_episode: int = c.HORIZON


class DoorOpen(environment.Environment[EnvState, EnvParams]):
    """Meta-World's door-open-v3 with named observations, in JAX.

    Args:
      dynamics: how hand and door move.
      horizon: steps of an episode.
    """

    def __init__(self, dynamics: Dynamics, horizon: int = c.HORIZON) -> None:
        self.dynamics = dynamics
        self.horizon = horizon

    @property
    def default_params(self) -> EnvParams:
        """The doors of the training seeds."""
        return self.params_for(door_positions(DEFAULT_SEEDS["training"]))

    def params_for(self, doors: np.ndarray) -> EnvParams:
        """Parameters whose `reset` draws from `doors` `[K, 2]`."""
        # The environment may be asked while it is being traced.
        with jax.ensure_compile_time_eval():
            return EnvParams(
                doors=jnp.asarray(doors), max_steps_in_episode=self.horizon
            )

    @property
    def name(self) -> str:
        """Environment name."""
        return "DoorOpen"

    def reset_env(
        self, key: jax.Array, params: EnvParams
    ) -> tuple[jax.Array, EnvState]:
        """An episode with a random door of the bank."""
        index = jax.random.randint(key, (), 0, params.doors.shape[0])
        return self.reset_to(params.doors[index], params)

    def reset_to(
        self, door_xy: jax.Array, params: EnvParams
    ) -> tuple[jax.Array, EnvState]:
        """An episode with the door at `door_xy` `[2]`."""
        del params
        inner = self.dynamics.reset(door_xy)
        now = present(self.dynamics.body(inner), door_xy)
        state = EnvState(
            time=jnp.zeros((), jnp.int32), inner=inner, door_xy=door_xy, now=now
        )
        return observe(now, now, door_xy), state

    def step_env(
        self, key: jax.Array, state: EnvState, action: jax.Array, params: EnvParams
    ) -> tuple[jax.Array, EnvState, jax.Array, jax.Array, dict[str, jax.Array]]:
        """One step of 12.5 ms: `(obs, state, reward, terminated, info)`.

        The action is clipped to [-1, 1]. The key is not used; the task is
        deterministic. It never ends early, not even when the door is open.
        """
        del key
        action = clip_action(action)
        inner = self.dynamics.step(state.inner, action)
        body = self.dynamics.body(inner)
        now = present(body, state.door_xy)
        rating = rate(body, state.door_xy, action)
        moved = state.replace(time=state.time + 1, inner=inner, now=now)
        obs = observe(now, state.now, state.door_xy)
        info = describe(body, state.door_xy, rating)
        return obs, moved, rating.reward, jnp.zeros((), bool), info

    @property
    def num_actions(self) -> int:
        """Three directions and the gripper."""
        return 4

    def action_space(self, params: EnvParams | None = None) -> spaces.Box:
        """All in [-1, 1]."""
        return spaces.Box(-1.0, 1.0, (4,))

    def observation_space(self, params: EnvParams | None = None) -> spaces.Box:
        """Unbounded; the schema has the expected ranges."""
        return spaces.Box(-jnp.inf, jnp.inf, (SIZE,))


def describe(body: Body, door_xy: jax.Array, rating: Rating) -> dict[str, jax.Array]:
    """The named values of a step, `[]` each; `task.INFO` says what they mean."""
    handle = handle_position(door_xy, body.theta)
    lag = jnp.linalg.norm(jnp.asarray(body.target) - body.hand)
    places = {"hand": body.hand, "handle": handle, "target": jnp.asarray(body.target)}
    return {
        "distance": rating.distance,
        "success": rating.success,
        "theta": jnp.asarray(body.theta),
        "opening": jnp.asarray(body.opening),
        "target_lag": lag,
        "bar_distance": bar_distance(body.hand, door_xy, body.theta),
        "ready": rating.ready,
        **{
            f"{name}_{axis}": place[i]
            for name, place in places.items()
            for i, axis in enumerate("xyz")
        },
    }
