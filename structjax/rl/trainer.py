"""Training: updates scanned in chunks, training seeds and settings side by side."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

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


RunMapping = Literal["vmap", "map"]
"""How runs are mapped: all at once, or one after the other on each device. The latter
is about as fast on a CPU, cannot fill a GPU, and rounds in the same way whatever the
number of runs and devices, if XLA has as many threads."""
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


def check_begin(algorithm: Algorithm, stacked: Any) -> None:
    """Begins without computing anything.

    Raises:
      StructjaxError: the algorithm refuses these variables `[S, ...]`.
    """
    jax.eval_shape(
        lambda: algorithm.init(
            jax.random.key(0), jax.tree.map(lambda leaf: leaf[0], stacked)
        )
    )


def better(best: Best, stacked: Any, returns: jax.Array, update: jax.Array) -> Best:
    """The best after one more appraisal `[..., E]`; a NaN is never better."""
    score = jnp.mean(returns, axis=-1)
    wins = score > best.score

    def pick(new: jax.Array, old: jax.Array) -> jax.Array:
        axes = range(wins.ndim, new.ndim)
        return jnp.where(jnp.expand_dims(wins, tuple(axes)), new, old)

    variables = jax.tree.map(pick, stacked, best.variables)
    return Best(
        variables,
        jnp.where(wins, score, best.score),
        jnp.where(wins, update, best.update),
    )


@partial(jax.jit, static_argnames=("algorithm", "policy", "task", "mapping"))
def train_chunk(
    algorithm: Algorithm,
    policy: Policy,
    task: Task,
    state: TrainState,
    training: tuple[Any, Any],
    selection: tuple[Any, Any],
    scalars: Any,
    appraised: jax.Array,
    mapping: RunMapping = "vmap",
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
      mapping: of the runs, see `RunMapping`.

    Returns:
      The state, metrics `[U, S]` by name, and appraisals `[U, S, E]`, NaN where there
      was none.
    """

    def one(run: tuple[_Run, Any], rest: tuple) -> tuple[_Run, Any]:
        start, scalars = run
        update, (params, bank), selection, appraised = rest

        def body(carry: tuple, wanted: jax.Array) -> tuple[tuple, Any]:
            run, update = carry
            inner, metrics = algorithm.update(run.algorithm, params, bank, scalars)
            variables = algorithm.variables(inner)
            appraisal = _appraisal(policy, variables, task, selection, wanted)
            best = better(run.best, variables, appraisal.returns, update + 1)
            score = jnp.mean(appraisal.returns)
            # A policy that could not be played has fallen as deep as any.
            lost = wanted & jnp.isnan(score)
            deficit = jnp.where(lost, jnp.inf, best.score - score)
            inner = algorithm.looked(inner, best.variables, deficit, scalars)
            totals = {name: run.totals[name] + metrics[name] for name in COUNTED}
            return (_Run(inner, best, totals), update + 1), (metrics, appraisal)

        (end, _), found = lax.scan(body, (start, update), appraised)
        return end, found

    runs = _Run(state.algorithm, state.best, state.totals)
    rest = (state.update, training, selection, appraised)
    runs, found = _side_by_side(one, (runs, scalars), rest, mapping)
    metrics, appraisal = jax.tree.map(lambda leaf: jnp.moveaxis(leaf, 0, 1), found)
    done = state.update + appraised.shape[0]
    return TrainState(runs.algorithm, runs.best, done, runs.totals), metrics, appraisal


class _Run(NamedTuple):
    """One of the runs of a `TrainState`, without the leading axis."""

    algorithm: Any
    best: Best
    totals: dict[str, jax.Array]


def _appraisal(
    policy: Policy, variables: Any, task: Task, selection: tuple, wanted: jax.Array
) -> Appraisal:
    """One policy on the selection seeds `[E]`; NaN and no steps if not wanted."""
    params, starts = selection
    episodes = jax.tree.leaves(starts)[0].shape[0]

    def look() -> Appraisal:
        alone = jax.tree.map(lambda leaf: leaf[None], variables)
        found = appraise(policy, alone, task, params, starts, jax.random.key(0))
        return jax.tree.map(lambda leaf: leaf[0], found)

    def skip() -> Appraisal:
        return Appraisal(jnp.full(episodes, jnp.nan), jnp.zeros(episodes, jnp.int32))

    return lax.cond(wanted, look, skip)


@partial(jax.jit, static_argnames=("algorithm", "mapping"))
def current(
    algorithm: Algorithm, state: TrainState, mapping: RunMapping = "vmap"
) -> Any:
    """The variables of all runs as they stand, `[S, ...]`."""
    return _side_by_side(
        lambda run, _: algorithm.variables(run), state.algorithm, (), mapping
    )


def _side_by_side(one: Callable, runs: Any, rest: Any, mapping: RunMapping) -> Any:
    """`one(run, rest)` for all runs `[S, ...]`."""
    if mapping == "vmap":
        return jax.vmap(one, in_axes=(0, None))(runs, rest)

    def share(runs: Any, rest: Any) -> Any:
        return lax.map(lambda run: one(run, rest), runs)

    mesh = _mesh(jax.tree.leaves(runs)[0].shape[0])
    if mesh is None:
        return share(runs, rest)
    axis, same = PartitionSpec("run"), PartitionSpec()
    # Nothing passes between devices, so there is nothing to check.
    laid = jax.shard_map(
        share, mesh=mesh, in_specs=(axis, same), out_specs=axis, check_vma=False
    )
    return laid(runs, rest)


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
    mesh = _mesh(runs)
    if mesh is None:
        return tree

    def place(leaf: jax.Array) -> jax.Array:
        axes = ("run",) if leaf.ndim and leaf.shape[0] == runs else ()
        return jax.device_put(leaf, NamedSharding(mesh, PartitionSpec(*axes)))

    return jax.tree.map(place, tree)


def _mesh(runs: int) -> Mesh | None:
    """All devices in a row; None for one, or where they do not divide the runs."""
    devices = jax.devices()
    if len(devices) == 1 or runs % len(devices):
        return None
    # Explicit axes, the default, would have to be named in every array beside these.
    return jax.make_mesh((len(devices),), ("run",), axis_types=(AxisType.Auto,))
