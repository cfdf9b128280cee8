"""Training: updates scanned in chunks, training seeds and settings side by side."""

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import AxisType, NamedSharding, PartitionSpec

from structjax.outcomes import reduce_outcomes
from structjax.rl.algorithm import Algorithm
from structjax.rollout import Mode, Policy, rollout
from structjax.tasks.base import Task


class Best(NamedTuple):
    """The best variables so far by the mean-action return on the selection seeds.

    Attributes:
      variables: `[S, ...]`.
      score: `[S]` their return.
      update: `[S]` after how many updates.
    """

    variables: Any
    score: jax.Array
    update: jax.Array


class TrainState(NamedTuple):
    """S runs side by side.

    Attributes:
      algorithm: the algorithm's state, `[S, ...]`.
      best: best variables so far.
      update: updates done, int32 `[]`.
      totals: `resets`, `env_steps`, `gradient_steps` so far, int32 `[S]`.
    """

    algorithm: Any
    best: Best
    update: jax.Array
    totals: dict[str, jax.Array]


class Appraisal(NamedTuple):
    """Episodes played to judge S policies on E starts, `[S, E]` each.

    Attributes:
      returns: NaN where an action was not finite.
      steps: episode lengths, int32.
    """

    returns: jax.Array
    steps: jax.Array


COUNTED = ("resets", "env_steps", "gradient_steps")


@partial(jax.jit, static_argnames=("policy", "task", "mode"))
def appraise(
    policy: Policy,
    stacked: Any,
    task: Task,
    params: Any,
    starts: Any,
    key: jax.Array,
    mode: Mode = "mean",
) -> Appraisal:
    """Plays the stacked variables `[S, ...]` on the starts `[E, ...]`.

    Every policy gets the same key: sampled actions have the same noise.
    """
    return examine(policy, stacked, task, params, starts, key, mode)[0]


@partial(jax.jit, static_argnames=("policy", "task", "mode"))
def examine(
    policy: Policy,
    stacked: Any,
    task: Task,
    params: Any,
    starts: Any,
    key: jax.Array,
    mode: Mode = "mean",
) -> tuple[Appraisal, dict[str, jax.Array]]:
    """The same with the task's outcomes `[S, E]` by name, NaN where the return is."""

    def one(variables: Any) -> tuple[Appraisal, dict[str, jax.Array]]:
        run = rollout(policy, variables, task, params, starts, key=key, mode=mode)
        fine = (jnp.isfinite(run.log_prob) | ~run.valid).all(0)
        returns = jnp.where(fine, run.reward.sum(0), jnp.nan)
        outcomes = {
            name: jnp.where(fine, values, jnp.nan)
            for name, values in reduce_outcomes(
                task.outcomes, run.info, run.valid
            ).items()
        }
        return Appraisal(returns, run.valid.sum(0, dtype=jnp.int32)), outcomes

    return jax.vmap(one)(stacked)


@partial(jax.jit, static_argnames=("algorithm",))
def begin(algorithm: Algorithm, keys: jax.Array, stacked: Any) -> TrainState:
    """The state before the first update of S runs with keys `[S]`."""
    state = jax.vmap(algorithm.init)(keys, stacked)
    runs = keys.shape[0]
    none = jnp.full(runs, -jnp.inf, jnp.float32), jnp.zeros(runs, jnp.int32)
    totals = {name: jnp.zeros(runs, jnp.int32) for name in COUNTED}
    start = jax.vmap(algorithm.variables)(state)
    return TrainState(state, Best(start, *none), jnp.int32(0), totals)


def better(best: Best, stacked: Any, returns: jax.Array, update: jax.Array) -> Best:
    """The best after one more appraisal `[S, E]`; a NaN is never better."""
    score = jnp.mean(returns, axis=1)
    wins = score > best.score

    def pick(new: jax.Array, old: jax.Array) -> jax.Array:
        return jnp.where(wins.reshape(-1, *[1] * (new.ndim - 1)), new, old)

    variables = jax.tree.map(pick, stacked, best.variables)
    return Best(
        variables,
        jnp.where(wins, score, best.score),
        jnp.where(wins, update, best.update),
    )


@partial(jax.jit, static_argnames=("algorithm", "policy", "task"))
def train_chunk(
    algorithm: Algorithm,
    policy: Policy,
    task: Task,
    state: TrainState,
    training: tuple[Any, Any],
    selection: tuple[Any, Any],
    scalars: Any,
    appraised: jax.Array,
) -> tuple[TrainState, dict[str, jax.Array], Appraisal]:
    """Runs as many updates as `appraised` `[U]` has flags.

    Args:
      algorithm: the update rule.
      policy: whose variables are appraised.
      task: the task.
      state: of S runs.
      training: environment parameters and bank of initial states to train on.
      selection: the same for the selection seeds, `[E, ...]` starts.
      scalars: hyperparameters, `[S]` each.
      appraised: bool `[U]`, after which updates to play the selection seeds.

    Returns:
      The state, metrics `[U, S]` by name, and appraisals `[U, S, E]`, NaN where there
      was none.
    """
    params, starts = selection
    episodes = jax.tree.leaves(starts)[0].shape[0]

    def body(state: TrainState, wanted: jax.Array) -> tuple[TrainState, Any]:
        step = jax.vmap(algorithm.update, in_axes=(0, None, None, 0))
        inner, metrics = step(state.algorithm, *training, scalars)
        update = state.update + 1
        stacked = jax.vmap(algorithm.variables)(inner)

        def look() -> Appraisal:
            return appraise(policy, stacked, task, params, starts, jax.random.key(0))

        def skip() -> Appraisal:
            shape = (metrics["resets"].shape[0], episodes)
            return Appraisal(jnp.full(shape, jnp.nan), jnp.zeros(shape, jnp.int32))

        appraisal = lax.cond(wanted, look, skip)
        best = better(state.best, stacked, appraisal.returns, update)
        score = jnp.mean(appraisal.returns, axis=1)
        # A policy that could not be played has fallen as deep as any.
        lost = wanted & jnp.isnan(score)
        deficit = jnp.where(lost, jnp.inf, best.score - score)
        react = jax.vmap(algorithm.looked)
        inner = react(inner, best.variables, deficit, scalars)
        totals = {name: state.totals[name] + metrics[name] for name in COUNTED}
        return TrainState(inner, best, update, totals), (metrics, appraisal)

    state, (metrics, appraisal) = lax.scan(body, state, appraised)
    return state, metrics, appraisal


def stack(variables: Sequence[Any]) -> Any:
    """Variables of S runs as one tree `[S, ...]`."""
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *variables)


def repeat(variables: Any, runs: int) -> Any:
    """The same variables for S runs, `[S, ...]`."""
    return jax.tree.map(
        lambda leaf: jnp.broadcast_to(leaf, (runs, *jnp.shape(leaf))), variables
    )


def spread(tree: Any, runs: int) -> Any:
    """Lays the leading axis `[S]` over the devices, if they divide it.

    Runs do not talk to each other, so neither do the devices.
    """
    devices = jax.devices()
    if len(devices) == 1 or runs % len(devices):
        return tree
    # Explicit axes, the default, would have to be named in every array beside these.
    mesh = jax.make_mesh((len(devices),), ("run",), axis_types=(AxisType.Auto,))

    def place(leaf: jax.Array) -> jax.Array:
        axes = ("run",) if leaf.ndim and leaf.shape[0] == runs else ()
        return jax.device_put(leaf, NamedSharding(mesh, PartitionSpec(*axes)))

    return jax.tree.map(place, tree)
