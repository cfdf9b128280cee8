"""What a fit did: weights moved, dead weights, saturated actions, sick gradients."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from structjax.fitting import FitResult
from structjax.likelihood import nll, step_nll
from structjax.memory import along, initial_memory
from structjax.policy import weights

GAIN_TOLERANCE = 0.05
"""Nats that a converged fit may still gain after its third quarter."""


@dataclass(frozen=True)
class WeightReport:
    """One weight before and after the fit.

    Attributes:
      name: of the parameter.
      start, fitted: values in the program's units.
      move: signed step in the unconstrained space, where anchoring measures distance.
      live: whether any step of the demonstration has a gradient for it, at the fitted
        values; a dead weight cannot be learnt from this demonstration.
      live_at_start: the same at the written values.
    """

    name: str
    start: float
    fitted: float
    move: float
    live: bool
    live_at_start: bool


@dataclass(frozen=True)
class FitReport:
    """A fit in figures; NLLs in nats per step, NaN where nothing was held out.

    Attributes:
      nll_train, nll_validation: of the kept parameters.
      nll_start: of the written values, on the whole demonstration.
      nll_fitted: of the kept parameters, on the whole demonstration.
      restart_objectives: of every restart, as compared; the kept one is `best_restart`.
        Those that a race stopped: as they stood then.
      converged: `late_gain`, the nats that the training curve gained from its third
        quarter to its end, is below 0.05, within two standard errors.
      saturation: action -> share of the demonstration's steps whose mean lies outside
        the action's range; empty for a discrete action.
      std: action -> mean standard deviation over the demonstration.
      gradient_norm_max: largest gradient norm of all updates of the kept restart.
      gradient_nonfinite: gradient elements of all restarts that were not finite.
      weights: one row per parameter of the structure.
    """

    nll_train: float
    nll_validation: float
    nll_start: float
    nll_fitted: float
    restart_objectives: tuple[float, ...]
    best_restart: int
    converged: bool
    late_gain: float
    saturation: Mapping[str, float]
    std: Mapping[str, float]
    gradient_norm_max: float
    gradient_nonfinite: int
    weights: tuple[WeightReport, ...]

    @property
    def dead(self) -> tuple[str, ...]:
        """Weights without any gradient on the demonstration at the fitted values."""
        return tuple(row.name for row in self.weights if not row.live)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return {**asdict(self), "dead": list(self.dead)}


def late_gain(curve: np.ndarray) -> tuple[float, float]:
    """What the loss still gained late in a fit, and the standard error of that.

    From the mean of the third quarter to that of the last tenth, nats: the third
    quarter still has a large step size, so a decaying one cannot hide a fit that was
    under way.
    """
    curve = np.asarray(curve, float)
    number = len(curve)
    if number < 8:
        return float("nan"), float("nan")
    before = curve[number // 2 : 3 * number // 4]
    after = curve[-max(2, number // 10) :]
    error = np.hypot(before.std() / len(before) ** 0.5, after.std() / len(after) ** 0.5)
    return float(before.mean() - after.mean()), float(error)


class _Look(NamedTuple):
    """A policy on the whole demonstration."""

    nll: jax.Array
    distribution: Any
    live: Any


@partial(jax.jit, static_argnames="policy")
def _look(
    policy: Any, variables: Any, observations: jax.Array, actions: jax.Array
) -> _Look:
    """Likelihood, distributions `[N, A]`, which weights have a gradient anywhere."""

    def one(obs: jax.Array, action: jax.Array) -> Any:
        def log_prob(variables: Any) -> jax.Array:
            return policy.apply(variables, obs)[0].log_prob(action)

        return jax.grad(log_prob)(variables)

    if initial_memory(policy):
        # Forward mode: one pass along the demonstration per weight.
        every = partial(step_nll, policy, observations=observations, actions=actions)
        gradient = jax.jacfwd(every)(variables)
    else:
        gradient = jax.vmap(one)(observations, actions)
    distribution, _ = along(policy, variables, observations)
    return _Look(
        nll=nll(policy, variables, observations, actions),
        distribution=distribution,
        live=jax.tree.map(lambda g: jnp.any((g != 0) & ~jnp.isnan(g)), gradient),
    )


def fit_report(
    policy: Any,
    written: Any,
    results: FitResult,
    best: int,
    observations: jax.Array,
    actions: jax.Array,
) -> FitReport:
    """The report of the kept restart.

    Args:
      policy: the fitted policy.
      written: variables of the written values.
      results: all restarts, stacked `[R, ...]`.
      best: the kept restart.
      observations: of the whole demonstration, `[N, O]`.
      actions: of the whole demonstration, `[N, A]`, or `[N]` choices.
    """
    results = jax.tree.map(np.asarray, results)
    kept = jax.tree.map(lambda leaf: leaf[best], results)
    before = _look(policy, written, observations, actions)
    after = _look(policy, kept.variables, observations, actions)
    gain, error = late_gain(kept.train_curve)
    saturation, std = _action_shares(policy.schema, after.distribution)
    return FitReport(
        nll_train=float(kept.train_nll),
        nll_validation=float(kept.validation_nll),
        nll_start=float(before.nll),
        nll_fitted=float(after.nll),
        restart_objectives=tuple(map(float, results.objective)),
        best_restart=int(best),
        converged=bool(abs(gain) - 2 * error < GAIN_TOLERANCE),
        late_gain=gain,
        saturation=saturation,
        std=std,
        gradient_norm_max=float(kept.gradient_norm.max()),
        gradient_nonfinite=int(results.nonfinite.sum()),
        weights=_weight_rows(policy, written, kept.variables, before, after),
    )


def _action_shares(schema: Any, distribution: Any) -> tuple[dict, dict]:
    """Share of means outside the action range, and mean std, per action."""
    if schema.discrete:
        return {}, {}
    mean = np.asarray(distribution.mean)
    outside = (mean < schema.action_low[None]) | (mean > schema.action_high[None])
    names = [action.name for action in schema.actions]
    std = np.asarray(distribution.std).mean(0)
    return (
        dict(zip(names, outside.mean(0).tolist(), strict=True)),
        dict(zip(names, std.tolist(), strict=True)),
    )


def _weight_rows(
    policy: Any, written: Any, fitted: Any, before: _Look, after: _Look
) -> tuple[WeightReport, ...]:
    """One row per named parameter; none for a network."""
    if getattr(policy, "structure", None) is None:
        return ()
    start, end = weights(policy, written), weights(policy, fitted)
    return tuple(
        WeightReport(
            name=name,
            start=float(start[name]),
            fitted=float(end[name]),
            move=float(fitted["params"][name] - written["params"][name]),
            live=bool(after.live["params"][name]),
            live_at_start=bool(before.live["params"][name]),
        )
        for name in start
    )
