"""Maximum likelihood of a demonstration, near the program's written values.

Pure functions, to be mapped over restarts, seeds, anchoring strengths and stacked
demonstrations. `structjax.imitation` compiles them, chooses and reports.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from structjax.memory import along, initial_memory
from structjax.ranges import real_number, whole_number

Variables = Any

MAX_RESTARTS = 4096
"""All restarts are held in memory at once."""
MAX_UPDATES = 1_000_000
"""So are the curves of a fit."""
MIN_LEARNING_RATE = 1e-12


@dataclass(frozen=True)
class ImitationConfig:
    """How a policy is fitted to a demonstration."""

    learning_rate: float = 0.03
    """Adam's step size, in the unconstrained space of the weights."""
    final_learning_rate: float = 0.1
    """Share of the step size left at the last update (cosine); 1 keeps it constant."""
    batch_size: int = 512
    """Steps per minibatch; the whole demonstration when it is not longer."""
    num_updates: int = 1000
    """Updates of each restart."""
    restarts: int = 8
    """Starts fitted side by side; the first is the program's written values."""
    validation_share: float = 0.2
    """Share of the demonstration held out, in contiguous blocks; 0: none, and the last
    parameters are kept."""
    validation_blocks: int = 10
    """Number of blocks the demonstration is cut into for the split."""
    validate_every: int = 10
    """Updates between two looks at the held-out blocks."""
    anchor: float = 0.0
    """Strength of the pull towards the written values (unconstrained space)."""
    std_floor: float = 0.0
    """Least standard deviation, in units of the action's half range."""

    def __post_init__(self) -> None:
        """Checks the ranges."""
        for name in ("batch_size", "validate_every"):
            whole_number(self, name, low=1)
        whole_number(self, "num_updates", low=1, high=MAX_UPDATES)
        whole_number(self, "restarts", low=1, high=MAX_RESTARTS)
        whole_number(self, "validation_blocks", low=2)
        real_number(self, "learning_rate", low=MIN_LEARNING_RATE)
        real_number(self, "final_learning_rate", low=0, high=1)
        real_number(self, "validation_share", low=0, high=0.9)
        real_number(self, "anchor", low=0)
        real_number(self, "std_floor", low=0, high=1)


PRESETS: Mapping[str, ImitationConfig] = {
    "default": ImitationConfig(),
    # arXiv 2610.01652: one start from the written values, nothing held out.
    "paper": ImitationConfig(final_learning_rate=1.0, restarts=1, validation_share=0.0),
}


class Split(NamedTuple):
    """A demonstration cut in two; actions are `[N, A]`, choices `[N]`.

    Attributes:
      observations, actions: the training steps.
      held_observations, held_actions: the validation steps, possibly none.
      training, held: places of these steps in the demonstration; a policy with memory
        needs them, to be led along it in order.
    """

    observations: jax.Array
    actions: jax.Array
    held_observations: jax.Array
    held_actions: jax.Array
    training: jax.Array | None = None
    held: jax.Array | None = None


def split(
    observations: jax.Array,
    actions: jax.Array,
    *,
    share: float,
    blocks: int,
    key: jax.Array,
) -> Split:
    """Holds out whole blocks of a demonstration, chosen by the key.

    Neighbouring steps are nearly equal, so single steps drawn at random would be copies
    of training steps and could show no overfitting; contiguous blocks can.

    Args:
      observations: `[N, O]`.
      actions: `[N, A]`, or `[N]` choices.
      share: held-out share; at least one block is held out when it is positive.
      blocks: number of blocks; fewer when there are fewer steps. Steps beyond the last
        whole block stay with the training steps.
      key: consumed.
    """
    number = observations.shape[0]
    blocks = min(blocks, number)
    held = (
        0
        if share == 0 or blocks < 2
        else min(max(1, round(share * blocks)), blocks - 1)
    )
    length = number // blocks
    steps = jnp.arange(blocks * length).reshape(blocks, length)
    steps = jax.random.permutation(key, steps)
    rest = jnp.arange(blocks * length, number)
    validation = steps[:held].reshape(-1)
    training = jnp.concatenate([steps[held:].reshape(-1), rest])
    return Split(
        observations[training],
        actions[training],
        observations[validation],
        actions[validation],
        training,
        validation,
    )


def nll(
    policy: Any, variables: Variables, observations: jax.Array, actions: jax.Array
) -> jax.Array:
    """Mean negative log-likelihood of the actions, in nats per step.

    Args:
      policy: `apply(variables, obs [O]) -> (distribution, latents)`.
      variables: its parameters.
      observations: `[N, O]`, for a policy with memory those of one episode in order.
      actions: `[N, A]` unclipped actions, or `[N]` choices.
    """
    return jnp.mean(step_nll(policy, variables, observations, actions))


def step_nll(
    policy: Any, variables: Variables, observations: jax.Array, actions: jax.Array
) -> jax.Array:
    """Negative log-likelihood of every step, `[N]`; arguments as in `nll`."""
    distribution, _ = along(policy, variables, observations)
    # Steps go to the last axis: there the sum over the few actions is much slower.
    columns = jax.tree.map(lambda x: jnp.moveaxis(x, 0, -1), (distribution, actions))
    return -jax.vmap(lambda d, a: d.log_prob(a), in_axes=-1)(*columns)


def squared_distance(
    variables: Variables, written: Variables, mask: Variables
) -> jax.Array:
    """Squared distance of the unconstrained weights, those with mask 0 left out."""
    parts = jax.tree.map(
        lambda v, w, m: m * jnp.sum((v - w) ** 2), variables, written, mask
    )
    return sum(jax.tree.leaves(parts), jnp.zeros(()))


class Anchor(NamedTuple):
    """Where a fit is pulled to, and how strongly.

    Attributes:
      written: the variables of the written values.
      mask: same tree, 1 for weights that are pulled and 0 for stds.
      strength: factor of the squared distance; 0 is the plain likelihood.
    """

    written: Variables
    mask: Variables
    strength: jax.Array


class FitResult(NamedTuple):
    """One fit. U updates; objectives are NLL + anchoring penalty.

    Attributes:
      variables: the kept parameters: those of the least objective seen on the held-out
        steps if that is clearly less than the last ones', otherwise the last ones.
      objective: what the fit is judged by: on the held-out steps, else on the training
        steps.
      train_nll, validation_nll: of the kept parameters; NaN without held-out steps.
      train_curve: `[U]` minibatch NLL before each update.
      validation_curve: `[U]` held-out NLL after each update (the last known one between
        two looks); NaN without held-out steps.
      gradient_norm: `[U]`.
      nonfinite: number of gradient elements that were not finite (they count as 0).
    """

    variables: Variables
    objective: jax.Array
    train_nll: jax.Array
    validation_nll: jax.Array
    train_curve: jax.Array
    validation_curve: jax.Array
    gradient_norm: jax.Array
    nonfinite: jax.Array


def fit(
    policy: Any,
    start: Variables,
    data: Split,
    *,
    anchor: Anchor,
    config: ImitationConfig,
    key: jax.Array,
) -> FitResult:
    """Minimises NLL + strength * squared distance to the written values by Adam.

    A pure function of its arrays. Mapped over starts or strengths with one key, all see
    the same minibatches.

    Args:
      policy: `apply(variables, obs [O]) -> (distribution, latents)`.
      start: variables to start from.
      data: the demonstration, cut by `split`.
      anchor: the pull; its strength may be mapped over.
      config: step size, updates, batch size, looks at the held-out steps.
      key: chooses the minibatches; consumed.
    """
    step_size = optax.cosine_decay_schedule(
        config.learning_rate, config.num_updates, config.final_learning_rate
    )
    optimiser = optax.adam(step_size)
    held_out = data.held_observations.shape[0] > 0

    def penalty(variables: Variables) -> jax.Array:
        distance = squared_distance(variables, anchor.written, anchor.mask)
        return anchor.strength * distance

    make = _ordered if initial_memory(policy) else _independent
    likelihood = make(policy, data, config.batch_size)

    def loss(variables: Variables, key: jax.Array) -> tuple[jax.Array, jax.Array]:
        value = likelihood.batch(variables, key)
        return value + penalty(variables), value

    def validate(variables: Variables) -> jax.Array:
        return jnp.mean(likelihood.held(variables))

    def update(carry: tuple, x: tuple) -> tuple[tuple, tuple]:
        (variables, state, looked), (key, look) = carry, x
        (_, value), gradient = jax.value_and_grad(loss, has_aux=True)(variables, key)
        gradient, nonfinite = _finite(gradient)
        change, state = optimiser.update(gradient, state, variables)
        variables = optax.apply_updates(variables, change)
        if held_out:
            looked = jax.lax.cond(
                look, partial(_look, validate, penalty), _keep, variables, looked
            )
        curves = (value, looked.latest, optax.tree.norm(gradient), nonfinite)
        return (variables, state, looked), curves

    value = validate(start) if held_out else jnp.full((), jnp.nan)
    looked = _Looked(start, value + penalty(start), value)
    index = jnp.arange(config.num_updates)
    look = (index % config.validate_every == 0) | (index == config.num_updates - 1)
    xs = (jax.random.split(key, config.num_updates), look)
    (variables, _, looked), curves = jax.lax.scan(
        update, (start, optimiser.init(start), looked), xs
    )
    if held_out:
        variables = _clearly_better(
            looked.variables,
            variables,
            lambda v: likelihood.held(v) + penalty(v),
        )
    train_nll = likelihood.training(variables)
    held_nll = validate(variables) if held_out else value
    return FitResult(
        variables=variables,
        objective=(held_nll if held_out else train_nll) + penalty(variables),
        train_nll=train_nll,
        validation_nll=held_nll,
        train_curve=curves[0],
        validation_curve=curves[1],
        gradient_norm=curves[2],
        nonfinite=curves[3].sum(),
    )


class _Likelihood(NamedTuple):
    """Negative log-likelihoods of a demonstration's parts, functions of variables.

    `batch` takes the minibatch's key too; `held` gives `[M]` values, the others means.
    """

    batch: Callable[[Variables, jax.Array], jax.Array]
    training: Callable[[Variables], jax.Array]
    held: Callable[[Variables], jax.Array]


def _independent(policy: Any, data: Split, batch_size: int) -> _Likelihood:
    """Steps stand alone: only those that are asked for are evaluated."""
    return _Likelihood(
        lambda variables, key: nll(
            policy, variables, *_minibatch(key, data, batch_size)
        ),
        lambda variables: nll(policy, variables, data.observations, data.actions),
        lambda variables: step_nll(
            policy, variables, data.held_observations, data.held_actions
        ),
    )


def _ordered(policy: Any, data: Split, batch_size: int) -> _Likelihood:
    """Every evaluation leads the policy along the whole demonstration."""
    training, held = jnp.asarray(data.training), jnp.asarray(data.held)
    order = jnp.argsort(jnp.concatenate([training, held]))
    observations = jnp.concatenate([data.observations, data.held_observations])[order]
    actions = jnp.concatenate([data.actions, data.held_actions])[order]
    number = training.shape[0]

    def steps(variables: Variables) -> jax.Array:
        return step_nll(policy, variables, observations, actions)

    def batch(variables: Variables, key: jax.Array) -> jax.Array:
        if number <= batch_size:
            return jnp.mean(steps(variables)[training])
        index = jax.random.randint(key, (batch_size,), 0, number)
        return jnp.mean(steps(variables)[training[index]])

    return _Likelihood(
        batch,
        lambda variables: jnp.mean(steps(variables)[training]),
        lambda variables: steps(variables)[held],
    )


class _Looked(NamedTuple):
    """The best parameters on the held-out steps so far, and the latest NLL there."""

    variables: Variables
    objective: jax.Array
    latest: jax.Array


def _look(
    validate: Callable, penalty: Callable, variables: Variables, looked: _Looked
) -> _Looked:
    value = validate(variables)
    objective = value + penalty(variables)
    better = (objective < looked.objective) | jnp.isnan(looked.objective)
    kept = jax.tree.map(
        lambda new, old: jnp.where(better, new, old), variables, looked.variables
    )
    return _Looked(kept, jnp.where(better, objective, looked.objective), value)


def _clearly_better(
    best: Variables, last: Variables, objective: Callable[[Variables], jax.Array]
) -> Variables:
    """The best parameters if they beat the last by two standard errors, else the last.

    The best of many looks at few held-out steps is partly luck: without this rule a fit
    of a short demonstration can end at a moment on its way. `objective` gives `[M]`
    values, compared step by step.
    """
    gain = objective(last) - objective(best)
    error = jnp.std(gain) / math.sqrt(gain.shape[0])
    ahead = (jnp.mean(gain) > 2 * error) | ~jnp.isfinite(jnp.mean(gain))
    return jax.tree.map(lambda b, e: jnp.where(ahead, b, e), best, last)


def _keep(variables: Variables, looked: _Looked) -> _Looked:
    return looked


def _minibatch(key: jax.Array, data: Split, size: int) -> tuple[jax.Array, jax.Array]:
    """Steps drawn with replacement; all of them when they are not more than `size`."""
    number = data.observations.shape[0]
    if number <= size:
        return data.observations, data.actions
    index = jax.random.randint(key, (size,), 0, number)
    return data.observations[index], data.actions[index]


def _finite(gradient: Variables) -> tuple[Variables, jax.Array]:
    """The gradient with 0 for NaN and infinities, and how many there were."""
    bad = [jnp.sum(~jnp.isfinite(leaf)) for leaf in jax.tree.leaves(gradient)]
    clean = jax.tree.map(lambda g: jnp.where(jnp.isfinite(g), g, 0.0), gradient)
    return clean, jnp.sum(jnp.stack(bad))
