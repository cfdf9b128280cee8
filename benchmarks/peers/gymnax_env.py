"""gymnax environments: as peers before gymnax 1.0 expect them, and as the judge."""

from collections.abc import Callable
from typing import Any

import gymnax
import jax
import jax.numpy as jnp

HELD_OUT = 20_260_101  # the judge's key; training keys are small numbers
EPISODES = 16
HORIZONS = {"Pendulum-v1": 200, "CartPole-v1": 500}


class FiveTuple:
    """A gymnax 1.x environment whose `step` returns one `done`, as before 1.0.

    gymnax's own `LegacyStepAPIWrapper` recurses for ever under `copy.deepcopy`.
    """

    def __init__(self, name: str) -> None:
        self.inner, self.default_params = gymnax.make(name)
        self.name = name

    def reset(self, key: jax.Array, params: Any = None) -> Any:
        """Observation and state of a new episode."""
        return self.inner.reset(key, params)

    def step(self, key: jax.Array, state: Any, action: Any, params: Any = None) -> Any:
        """Observation, state, reward, done, info; a finished episode starts anew."""
        obs, state, reward, terminated, truncated, _ = self.inner.step(
            key, state, action, params
        )
        return obs, state, reward, terminated | truncated, {}

    def action_space(self, params: Any = None) -> Any:
        """The environment's action space."""
        return self.inner.action_space(params or self.default_params)

    def observation_space(self, params: Any = None) -> Any:
        """The environment's observation space."""
        return self.inner.observation_space(params or self.default_params)

    def __deepcopy__(self, memo: Any) -> "FiveTuple":
        return self


def discrete(name: str) -> bool:
    """Whether the environment's action is a choice."""
    return hasattr(FiveTuple(name).action_space(), "n")


def starts(name: str) -> Any:
    """The judge's start observations and states, `[16, ...]`."""
    environment, params = gymnax.make(name)
    keys = jax.random.split(jax.random.PRNGKey(HELD_OUT), EPISODES)
    return jax.vmap(environment.reset_env, in_axes=(0, None))(keys, params)


def episode_returns(name: str, act: Callable[[jax.Array], jax.Array]) -> jax.Array:
    """Returns `[16]` of the policy `act` (observation -> action) from held-out starts.

    Episodes end where the environment says so, at the latest at the horizon.
    """
    environment, params = gymnax.make(name)
    shape = environment.action_space(params).shape

    def step(carry: Any, _: None) -> Any:
        obs, state, alive, total = carry
        action = jnp.reshape(act(obs), shape)
        obs, state, reward, terminated, _ = environment.step_env(
            jax.random.PRNGKey(0), state, action, params
        )
        total = total + jnp.where(alive, jnp.reshape(reward, ()), 0.0)
        return (obs, state, alive & ~terminated, total), None

    def episode(obs: jax.Array, state: Any) -> jax.Array:
        first = jax.eval_shape(
            step, (obs, state, jnp.array(True), jnp.array(0.0)), None
        )
        start = jax.tree.map(
            lambda leaf, like: jnp.asarray(leaf, like.dtype),
            (obs, state, True, 0.0),
            first[0],
        )
        return jax.lax.scan(step, start, length=HORIZONS[name])[0][3]

    return jax.vmap(episode)(*starts(name))
