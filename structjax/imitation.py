"""Imitation: fits a policy to a demonstration from several starts, chooses, reports.

Compiled once per policy and configuration; the mathematics is in
`structjax.likelihood` and `structjax.fitting`.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from structjax.errors import ProgramFailed, StructjaxError
from structjax.fit_report import FitReport, fit_report
from structjax.fitting import RACE_FROM, FitResult, fit, race
from structjax.likelihood import (
    PRESETS,
    Anchor,
    ImitationConfig,
    Split,
    nll,
    split,
    squared_distance,
)
from structjax.policy import variables_from, weights
from structjax.schema import Schema
from structjax.starts import floor_values, restart_starts, starts_of, std_parameters

__all__ = [
    "PRESETS",
    "Anchor",
    "AnchorRow",
    "AnchoredFit",
    "Fit",
    "FitReport",
    "FitResult",
    "ImitationConfig",
    "Split",
    "fit",
    "fit_anchored",
    "fit_best",
    "nll",
    "restart_starts",
    "split",
    "std_parameters",
]

STRENGTHS = (0.0, 0.01, 0.1, 1.0, 10.0, math.inf)
"""Anchoring strengths that `fit_anchored` tries; infinity is the unfitted program."""


class Fit(NamedTuple):
    """A fitted policy's variables, and how it went."""

    variables: Any
    report: FitReport


@dataclass(frozen=True)
class AnchorRow:
    """One anchoring strength.

    Attributes:
      strength: infinity is the unfitted program.
      nll: on the whole demonstration, nats per step.
      distance: from the written values, unconstrained space, without the stds.
      selection_return: what `evaluate` said, mean over the selection episodes.
    """

    strength: float
    nll: float
    distance: float
    selection_return: float


class AnchoredFit(NamedTuple):
    """The fit with the best selection return, and all the others.

    Attributes:
      variables: of the chosen strength.
      report: of the chosen strength; None when the unfitted program won.
      rows: one per strength, in the order given.
      chosen: index of the chosen row.
      stacked: variables of all strengths, `[S]`.
    """

    variables: Any
    report: FitReport | None
    rows: tuple[AnchorRow, ...]
    chosen: int
    stacked: Any


def _mask(policy: Any, written: Any) -> Any:
    """1 for the weights that anchoring pulls, 0 for stds."""
    structure = getattr(policy, "structure", None)
    stds = {"std"} if structure is None else std_parameters(structure)

    def weight(path: Sequence[Any], _: Any) -> float:
        return 0.0 if path[-1].key in stds else 1.0

    return jax.tree_util.tree_map_with_path(weight, written)


@partial(jax.jit, static_argnames=("policy", "config"))
def _fit_all(
    policy: Any,
    starts: Any,
    data: Split,
    anchor: Anchor,
    config: ImitationConfig,
    key: jax.Array,
) -> FitResult:
    """Every strength `[S]` from every start `[R]`: results `[S, R, ...]`."""

    def one(strength: jax.Array, start: Any, find: Callable = fit) -> FitResult:
        pulled = anchor._replace(strength=strength)
        return find(policy, start, data, anchor=pulled, config=config, key=key)

    number = jax.tree.leaves(starts)[0].shape[0]
    races = config.race and number >= RACE_FROM and config.num_updates > 1
    rows = partial(one, find=race) if races else jax.vmap(one, in_axes=(None, 0))
    return jax.vmap(rows, in_axes=(0, None))(anchor.strength, starts)


class _Fitted(NamedTuple):
    """What both front ends share; results are `[S, R, ...]`, `best` is `[S]`."""

    policy: Any
    anchor: Anchor
    results: FitResult
    best: np.ndarray
    observations: jax.Array
    actions: jax.Array


def _run(
    policy: Any,
    observations: Any,
    actions: Any,
    strengths: Sequence[float],
    starts: Any,
    config: ImitationConfig,
    key: jax.Array,
) -> _Fitted:
    observations, actions = _arrays(policy.schema, observations, actions)
    structure = getattr(policy, "structure", None)
    if structure is not None and not structure.parameters:
        raise StructjaxError(
            "the program has no weights to fit",
            kind="fit",
            hint="declare some: `name = weight(0.5)`",
        )
    policy = policy.clone(std_floor=max(policy.std_floor, config.std_floor))
    key_split, key_start, key_fit = jax.random.split(key, 3)
    data = split(
        observations,
        actions,
        share=config.validation_share,
        blocks=config.validation_blocks,
        key=key_split,
    )
    drawn, written = starts_of(policy, key_start, config.restarts)
    strength = jnp.asarray(strengths, jnp.float32)
    anchor = Anchor(written, _mask(policy, written), strength)
    starts = drawn if starts is None else starts
    results = _fit_all(policy, starts, data, anchor, config, key_fit)
    objective = np.asarray(results.objective)
    finished = np.asarray(results.updates) == config.num_updates
    comparable = np.isfinite(objective) & finished
    if not comparable.any(axis=1).all():
        raise ProgramFailed(
            "no restart of the fit has a finite likelihood",
            kind="fit",
            hint="look for divisions, exp or large weights in the program, or raise "
            "the std floor",
        )
    best = np.argmin(np.where(comparable, objective, np.inf), axis=1)
    return _Fitted(policy, anchor, results, best, observations, actions)


def _row(tree: Any, index: int) -> Any:
    return jax.tree.map(lambda leaf: leaf[index], tree)


def _saved(fitted: _Fitted, variables: Any) -> Any:
    """The variables with a std floor written into the std weights."""
    policy = fitted.policy
    if getattr(policy, "structure", None) is None or policy.std_floor == 0:
        return variables
    values = {n: np.asarray(v) for n, v in weights(policy, variables).items()}
    return variables_from(policy.structure, floor_values(policy, values))


def _report(fitted: _Fitted, row: int) -> Fit:
    """Variables and report of the best restart of one strength."""
    results, best = _row(fitted.results, row), int(fitted.best[row])
    report = fit_report(
        fitted.policy,
        fitted.anchor.written,
        results,
        best,
        fitted.observations,
        fitted.actions,
    )
    return Fit(_saved(fitted, _row(results.variables, best)), report)


def fit_best(
    policy: Any,
    observations: Any,
    actions: Any,
    *,
    config: ImitationConfig = PRESETS["default"],
    key: jax.Array,
    starts: Any = None,
) -> Fit:
    """Fits from several starts side by side and keeps the best on the held-out steps.

    Args:
      policy: a `StructuredPolicy` or `MLPPolicy`.
      observations: `[N, O]`.
      actions: `[N, A]`, or `[N]` choices.
      config: options; `PRESETS["paper"]` is the recipe of arXiv 2610.01652.
      key: consumed; splits the demonstration, draws the restarts and the minibatches.
      starts: stacked variables `[R]` to start from instead, e.g. of a previous round.

    Raises:
      StructjaxError: the arrays do not fit the schema, or no restart stays finite.
    """
    fitted = _run(policy, observations, actions, [config.anchor], starts, config, key)
    return _report(fitted, 0)


def fit_anchored(
    policy: Any,
    observations: Any,
    actions: Any,
    *,
    strengths: Sequence[float] = STRENGTHS,
    evaluate: Callable[[Any], Any],
    config: ImitationConfig = PRESETS["default"],
    key: jax.Array,
) -> AnchoredFit:
    """Fits with every anchoring strength and keeps the one that drives best.

    Args:
      policy: a `StructuredPolicy`.
      observations: of the demonstration, `[N, O]`.
      actions: of the demonstration, `[N, A]`, or `[N]` choices.
      strengths: factors of the squared distance to the written values; infinity is the
        unfitted program.
      evaluate: stacked variables `[S]` -> mean return on the selection episodes `[S]`.
      config: options of each fit; its `anchor` is not used.
      key: consumed.

    Returns:
      All strengths; of equal returns the strongest anchor is chosen.

    Raises:
      StructjaxError: as `fit_best`; a negative strength, or none.
    """
    if not strengths or min(strengths) < 0:
        raise StructjaxError(
            f"anchoring strengths are {list(strengths)}",
            kind="fit",
            hint="give numbers of at least 0; inf is the unfitted program",
        )
    finite = [s for s in strengths if math.isfinite(s)]
    fitted = _run(policy, observations, actions, finite or [0.0], None, config, key)
    saved = [
        fitted.anchor.written
        if math.isinf(strength)
        else _saved(fitted, _best_variables(fitted, finite.index(strength)))
        for strength in strengths
    ]
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *saved)
    returns = np.asarray(evaluate(stacked), float)
    rows = _anchor_rows(fitted, stacked, strengths, returns)
    comparable = np.where(np.isfinite(returns), returns, -np.inf)
    chosen = max(range(len(rows)), key=lambda i: (comparable[i], strengths[i]))
    report = None
    if math.isfinite(strengths[chosen]):
        report = _report(fitted, finite.index(strengths[chosen])).report
    return AnchoredFit(_row(stacked, chosen), report, rows, chosen, stacked)


def _best_variables(fitted: _Fitted, row: int) -> Any:
    return _row(_row(fitted.results.variables, row), int(fitted.best[row]))


@partial(jax.jit, static_argnames="policy")
def _nll_and_distance(
    policy: Any,
    stacked: Any,
    anchor: Anchor,
    observations: jax.Array,
    actions: jax.Array,
) -> tuple[jax.Array, jax.Array]:
    """NLL and distance from the written values, `[S]` each."""

    def one(variables: Any) -> tuple[jax.Array, jax.Array]:
        squared = squared_distance(variables, anchor.written, anchor.mask)
        return nll(policy, variables, observations, actions), jnp.sqrt(squared)

    return jax.vmap(one)(stacked)


def _anchor_rows(
    fitted: _Fitted, stacked: Any, strengths: Sequence[float], returns: np.ndarray
) -> tuple[AnchorRow, ...]:
    values, distances = _nll_and_distance(
        fitted.policy, stacked, fitted.anchor, fitted.observations, fitted.actions
    )
    return tuple(
        AnchorRow(float(s), float(v), float(d), float(r))
        for s, v, d, r in zip(strengths, values, distances, returns, strict=True)
    )


def _arrays(
    schema: Schema, observations: Any, actions: Any
) -> tuple[jax.Array, jax.Array]:
    """The demonstration as float `[N, O]`, and `[N, A]` or int `[N]`."""
    observations, actions = np.asarray(observations), np.asarray(actions)
    if schema.discrete and actions.ndim == 2 and actions.shape[1] == 1:
        actions = actions[:, 0]
    number, size = len(observations), len(schema.actions)
    wanted = (number, schema.observation_size)
    given = observations.shape, actions.shape
    taken = (number,) if schema.discrete else (number, size)
    if given != (wanted, taken) or number < 2:
        raise StructjaxError(
            f"the demonstration has arrays of shape {given[0]} and {given[1]}",
            kind="demonstration",
            hint=f"the task takes observations [N, {schema.observation_size}] and "
            f"actions {'[N]' if schema.discrete else f'[N, {size}]'}, N >= 2",
        )
    if not (np.isfinite(observations).all() and np.isfinite(actions).all()):
        raise StructjaxError(
            "the demonstration has NaN or infinite values",
            kind="demonstration",
            hint="drop those steps",
        )
    kind = jnp.int32 if schema.discrete else jnp.float32
    return jnp.asarray(observations, jnp.float32), jnp.asarray(actions, kind)
