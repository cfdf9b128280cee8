"""Updates on episodes of environments outside JAX, stepped one by one in Python.

The episodes become the same `Batch` that a Task gives, so everything after them is the
same compiled function.
"""

import time
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from structjax.errors import ProgramFailed, StructjaxError
from structjax.memory import Memory, initial_memory, next_memory, respond
from structjax.rl.batch import Batch, draw_starts, update_keys
from structjax.rl.config import Scalars
from structjax.rl.gradient import GradientState, PolicyGradient
from structjax.rl.host_environments import HostEnvironments
from structjax.rollout import Policy, check_finite, clip_action
from structjax.schema import Schema


class HostUpdate(NamedTuple):
    """One update and where its time went.

    Attributes:
      state: the algorithm's.
      metrics: as `PolicyGradient.update` gives them.
      play_seconds: wall time of the episodes.
      learn_seconds: wall time of the gradient steps; the first time with compiling.
    """

    state: GradientState
    metrics: dict[str, jax.Array]
    play_seconds: float
    learn_seconds: float


def host_update(
    algorithm: PolicyGradient,
    state: GradientState,
    environments: HostEnvironments,
    seeds: Sequence[int],
    scalars: Scalars,
) -> HostUpdate:
    """Plays the episodes of one update on the host and learns from them.

    Args:
      algorithm: its task gives the schema and the horizon; it is not stepped.
      state: the algorithm's.
      environments: as many as the algorithm plays episodes per update.
      seeds: the training seeds that initial states are drawn from.
      scalars: hyperparameters.

    Raises:
      StructjaxError: the wrong number of environments, or one seed does not always
        give the same initial state.
      ProgramFailed: an action or a reward is not finite.
    """
    begin = time.perf_counter()
    keys = update_keys(state.key)
    config, task = algorithm.config, algorithm.task
    bank = jnp.asarray(np.asarray(seeds, np.uint32))
    batch = play_host(
        algorithm.policy,
        algorithm.variables(state),
        task.schema,
        environments,
        np.asarray(draw_starts(keys.starts, bank, config)).tolist(),
        horizon=task.horizon,
        key=keys.play,
    )
    played = time.perf_counter()
    state, metrics = jax.block_until_ready(_learn(algorithm, state, batch, scalars))
    learned = time.perf_counter()
    return HostUpdate(state, metrics, played - begin, learned - played)


@partial(jax.jit, static_argnames=("algorithm",))
def _learn(
    algorithm: PolicyGradient, state: GradientState, batch: Batch, scalars: Scalars
) -> tuple[GradientState, dict[str, jax.Array]]:
    return algorithm.update_from(state, batch, scalars)


def play_host(
    policy: Policy,
    variables: Any,
    schema: Schema,
    environments: HostEnvironments,
    seeds: Sequence[int],
    *,
    horizon: int,
    key: jax.Array,
) -> Batch:
    """Plays one episode per seed with sampled actions, all in lockstep.

    Episodes of the same seed form a group: they must begin alike. An environment that
    is stochastic beyond its start repeats its own noise within a group, since the seed
    decides that too.

    Args:
      policy: with or without memory.
      variables: its parameters.
      schema: of observations and actions.
      environments: one per seed.
      seeds: `[B]`, groups next to each other.
      horizon: T; a longer episode is cut there, as truncated.
      key: of the actions.

    Raises:
      StructjaxError: see `host_update`.
      ProgramFailed: an action or a reward is not finite.
    """
    obs = environments.reset(seeds)
    _check_start(obs, seeds, schema)
    rows = _empty(obs, schema, horizon)
    start = initial_memory(policy)
    memory = {name: jnp.full(len(obs), value) for name, value in start.items()}
    running = np.ones(len(obs), bool)
    for now in range(horizon):
        action, wanted, memory = _act(policy, variables, schema, obs, memory, key, now)
        _check_actions(np.asarray(action), running)
        step = environments.step(np.asarray(wanted), running)
        rows.action[now] = action
        rows.reward[now] = np.where(running, step.reward, 0.0)
        rows.valid[now] = running
        rows.terminated[now] = step.terminated & running
        obs = np.where(running[:, None], step.obs, obs)
        # What an ended episode led to stands in all rows behind its end.
        rows.obs[now + 1 :] = obs
        running = running & ~(step.terminated | step.truncated)
        if not running.any():
            break
    _check_rewards(rows.reward)
    return rows.batch()


@partial(jax.jit, static_argnames=("policy", "schema"))
def _act(
    policy: Policy,
    variables: Any,
    schema: Schema,
    obs: ArrayLike,
    memory: Memory,
    key: jax.Array,
    step: ArrayLike,
) -> tuple[jax.Array, jax.Array, Memory]:
    """Sampled actions, the same clipped, and the next memory, for B observations."""

    def one(obs: jax.Array, key: jax.Array, memory: Memory) -> Any:
        distribution, latents = respond(policy, variables, obs, memory)
        action = distribution.sample(key)
        return action, clip_action(action, schema), next_memory(memory, latents)

    keys = jax.random.split(jax.random.fold_in(key, step), jnp.shape(obs)[0])
    return jax.vmap(one)(jnp.asarray(obs), keys, memory)


class _Rows(NamedTuple):
    """What is recorded, as in `Batch`, with the observation after the last step."""

    obs: np.ndarray
    action: np.ndarray
    reward: np.ndarray
    valid: np.ndarray
    terminated: np.ndarray

    def batch(self) -> Batch:
        """The rows on JAX's side."""
        leaves = (self.obs[:-1], *self[1:], self.obs[-1])
        return Batch(*(jnp.asarray(leaf) for leaf in leaves))


def _empty(obs: np.ndarray, schema: Schema, horizon: int) -> _Rows:
    shape = (horizon, len(obs))
    if schema.discrete:
        action = np.zeros(shape, np.int32)
    else:
        action = np.zeros((*shape, len(schema.actions)), np.float32)
    rows = np.repeat(obs[None], horizon + 1, axis=0)
    flags = np.zeros((2, *shape), bool)
    return _Rows(rows, action, np.zeros(shape, np.float32), *flags)


def _check_start(obs: np.ndarray, seeds: Sequence[int], schema: Schema) -> None:
    if obs.shape != (len(seeds), schema.observation_size):
        raise StructjaxError(
            f"the environments give observations of shape {obs.shape}",
            kind="task",
            hint=f"wanted: {len(seeds)} episodes of {schema.observation_size} values",
        )
    first: dict[int, np.ndarray] = {}
    for seed, own in zip(seeds, obs, strict=True):
        if not np.array_equal(first.setdefault(seed, own), own):
            raise StructjaxError(
                f"two environments reset by seed {seed} begin differently",
                kind="task",
                hint="episodes are compared within a group that shares its initial "
                "state: reset(seed=...) must decide it",
            )


def _check_actions(action: np.ndarray, running: np.ndarray) -> None:
    finite = np.isfinite(action.reshape(len(running), -1)).all(axis=1)
    check_finite(int((running & ~finite).sum()), int(running.sum()))


def _check_rewards(reward: np.ndarray) -> None:
    if not np.isfinite(reward).all():
        raise ProgramFailed(
            f"{int((~np.isfinite(reward)).sum())} rewards are not finite",
            kind="task",
            hint="check the reward and the action range of the environment",
        )
