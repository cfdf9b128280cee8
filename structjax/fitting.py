"""Fits of a policy to a demonstration by Adam: one, or a race of many.

Pure functions, to be mapped over restarts, seeds, anchoring strengths and stacked
demonstrations. `structjax.imitation` compiles them, chooses and reports.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from structjax.likelihood import (
    Anchor,
    ImitationConfig,
    Split,
    Variables,
    nll,
    squared_distance,
    step_nll,
)
from structjax.memory import initial_memory

RACE_FROM = 32
"""Fewer restarts all go to the end: there is little to save."""
ONE_IN = 4
"""One restart in so many goes on, after one update in so many."""


class FitResult(NamedTuple):
    """One fit. U updates; objectives are NLL + anchoring penalty.

    Attributes:
      variables: the kept parameters: those of the least objective seen on the held-out
        steps if that is clearly less than the last ones', otherwise the last ones.
      objective: what the fit is judged by: on the held-out steps, else on the training
        steps.
      updates: number done; less than U where a race was lost, the curves being NaN from
        there on.
      train_nll, validation_nll: of the kept parameters; NaN without held-out steps.
      train_curve: `[U]` minibatch NLL before each update.
      validation_curve: `[U]` held-out NLL after each update (the last known one between
        two looks); NaN without held-out steps.
      gradient_norm: `[U]`.
      nonfinite: number of gradient elements that were not finite (they count as 0).
    """

    variables: Variables
    objective: jax.Array
    updates: jax.Array
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
    descent = _Descent(policy, data, anchor, config)
    steps = descent.plan(key)
    reached, curves = descent.advance(descent.begin(start), steps)
    return descent.finish(reached, curves)


def race(
    policy: Any,
    starts: Variables,
    data: Split,
    *,
    anchor: Anchor,
    config: ImitationConfig,
    key: jax.Array,
) -> FitResult:
    """Fits from many starts; those behind after a quarter of the updates stop there.

    The best quarter by `FitResult.objective` goes on, and ends as the same starts end
    in `fit`: the race changes which fits are finished, not what they find.

    Args:
      policy: `apply(variables, obs [O]) -> (distribution, latents)`.
      starts: stacked variables `[R]`.
      data: the demonstration, cut by `split`.
      anchor: the pull; its strength may be mapped over.
      config: as for `fit`; at least two updates.
      key: chooses the minibatches, the same for all; consumed.

    Returns:
      All starts, `[R, ...]`; what stopped has fewer `updates`.
    """
    descent = _Descent(policy, data, anchor, config)
    steps = descent.plan(key)
    cut = max(config.num_updates // ONE_IN, 1)
    first, second = (
        jax.tree.map(lambda x: x[:cut], steps),
        jax.tree.map(lambda x: x[cut:], steps),
    )
    advance = jax.vmap(descent.advance, in_axes=(0, None))
    reached, curves = advance(jax.vmap(descent.begin)(starts), first)
    stopped = jax.vmap(descent.finish)(reached, curves)
    kept = jnp.argsort(stopped.objective)[: max(len(stopped.objective) // ONE_IN, 1)]
    reached, before = jax.tree.map(lambda leaf: leaf[kept], (reached, curves))
    reached, after = advance(reached, second)
    curves = jax.tree.map(lambda a, b: jnp.concatenate([a, b], axis=1), before, after)
    finished = jax.vmap(descent.finish)(reached, curves)
    return jax.tree.map(
        lambda old, new: _padded(old, new).at[kept].set(new), stopped, finished
    )


def _padded(old: jax.Array, new: jax.Array) -> jax.Array:
    """The rows of `old`, as long as those of `new`, NaN where nothing was done."""
    if old.shape[1:] == new.shape[1:]:
        return old
    missing = new.shape[1] - old.shape[1]
    return jnp.pad(old, ((0, 0), (0, missing)), constant_values=jnp.nan)


class _Steps(NamedTuple):
    """Per update: the minibatch's key, and whether the held-out steps are looked at."""

    key: jax.Array
    look: jax.Array


class _Reached(NamedTuple):
    """Where a fit stands."""

    variables: Variables
    state: optax.OptState
    looked: "_Looked"


class _Curves(NamedTuple):
    """Per update; see `FitResult`."""

    train: jax.Array
    validation: jax.Array
    gradient_norm: jax.Array
    nonfinite: jax.Array


class _Descent:
    """Adam on one demonstration, in pieces: `begin`, `advance` and `finish`."""

    def __init__(
        self, policy: Any, data: Split, anchor: Anchor, config: ImitationConfig
    ) -> None:
        self.anchor = anchor
        self.config = config
        step_size = optax.cosine_decay_schedule(
            config.learning_rate, config.num_updates, config.final_learning_rate
        )
        self.optimiser = optax.adam(step_size)
        self.held_out = data.held_observations.shape[0] > 0
        make = _ordered if initial_memory(policy) else _independent
        self.likelihood = make(policy, data, config.batch_size)

    def plan(self, key: jax.Array) -> _Steps:
        """All updates, `[U]`."""
        number = self.config.num_updates
        index = jnp.arange(number)
        look = (index % self.config.validate_every == 0) | (index == number - 1)
        return _Steps(jax.random.split(key, number), look)

    def begin(self, start: Variables) -> _Reached:
        """Before the first update."""
        value = self._validate(start) if self.held_out else jnp.full((), jnp.nan)
        looked = _Looked(start, value + self._penalty(start), value)
        return _Reached(start, self.optimiser.init(start), looked)

    def advance(self, reached: _Reached, steps: _Steps) -> tuple[_Reached, _Curves]:
        """Some updates on."""
        return jax.lax.scan(self._update, reached, steps)

    def finish(self, reached: _Reached, curves: _Curves) -> FitResult:
        """The result, were this the end."""
        variables = reached.variables
        if self.held_out:
            variables = _clearly_better(
                reached.looked.variables,
                variables,
                lambda v: self.likelihood.held(v) + self._penalty(v),
            )
        train = self.likelihood.training(variables)
        held = self._validate(variables) if self.held_out else jnp.full((), jnp.nan)
        return FitResult(
            variables=variables,
            objective=(held if self.held_out else train) + self._penalty(variables),
            updates=jnp.int32(curves.train.shape[0]),
            train_nll=train,
            validation_nll=held,
            train_curve=curves.train,
            validation_curve=curves.validation,
            gradient_norm=curves.gradient_norm,
            nonfinite=curves.nonfinite.sum(),
        )

    def _update(self, reached: _Reached, step: _Steps) -> tuple[_Reached, _Curves]:
        variables, state, looked = reached
        gradient, value = jax.grad(self._loss, has_aux=True)(variables, step.key)
        gradient, nonfinite = _finite(gradient)
        change, state = self.optimiser.update(gradient, state, variables)
        variables = optax.apply_updates(variables, change)
        if self.held_out:
            look = partial(_look, self._validate, self._penalty)
            looked = jax.lax.cond(step.look, look, _keep, variables, looked)
        norm = optax.tree.norm(gradient)
        curves = _Curves(value, looked.latest, norm, nonfinite)
        return _Reached(variables, state, looked), curves

    def _loss(
        self, variables: Variables, key: jax.Array
    ) -> tuple[jax.Array, jax.Array]:
        value = self.likelihood.batch(variables, key)
        return value + self._penalty(variables), value

    def _penalty(self, variables: Variables) -> jax.Array:
        distance = squared_distance(variables, self.anchor.written, self.anchor.mask)
        return self.anchor.strength * distance

    def _validate(self, variables: Variables) -> jax.Array:
        return jnp.mean(self.likelihood.held(variables))


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
