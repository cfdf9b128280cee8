"""Policies as linen modules: an observation in, an action distribution and latents out.

The only file that imports flax.linen. Both policies share one contract:
`policy.init(key, obs)` and `policy.apply(variables, obs) -> (distribution, latents)`
for ONE observation `[O]`; callers vmap, scan and jit. A policy is hashable, so it can
be a static argument of `jit`.

A parameter lives in the unconstrained space as the scalar `variables["params"][name]`.
Two bounds: a sigmoid between them; one bound: a softplus away from it; none: identity.
The transforms know the bounds only, not the written start, so that programs which
differ in initial values alone compile to the same code.
"""

from collections.abc import Mapping, Sequence
from itertools import repeat
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn
from jax import lax
from jax.typing import ArrayLike

from structjax.bounded import Mixed
from structjax.distributions import Categorical, CoupledNormal, Normal
from structjax.errors import StructjaxError
from structjax.language.declarations import interval
from structjax.language.functions import FUNCTIONS
from structjax.language.heads import std_bounds
from structjax.language.structure import (
    Latent,
    Parameter,
    Structure,
)
from structjax.language.usage import memory as recall
from structjax.lowering import Scope, define, evaluate, fields
from structjax.memory import Memory
from structjax.schema import Schema

Variables = dict[str, Any]
"""A Flax variables tree: `{"params": {name: array}}`."""

INSIDE = 1e-7
"""A value on its bound, as float32 saturation can leave it, is taken this far inside.

As a share of the range between two bounds, in absolute terms at a single one.
"""
LEAST = 1e-37
"""The least distance from a bound that float32 holds with all its digits."""


def _logged(latents: Sequence[Latent], values: dict[str, Any]) -> dict[str, jax.Array]:
    """The latents without temporaries, as float32."""
    return {
        latent.name: jnp.asarray(values[latent.name], jnp.float32)
        for latent in latents
        if latent.logged
    }


Distribution = Normal | CoupledNormal | Mixed | Categorical


def _distribution(
    structure: Structure, schema: Schema, scope: Scope, std_floor: float
) -> Distribution:
    """The heads in the schema's order: `[A]` means and stds, or `[K]` logits."""
    wanted = [action.name for action in schema.actions]
    by_action = {head.action: head for head in structure.heads}
    if set(by_action) != set(wanted):
        raise StructjaxError(
            f"the program returns the actions {sorted(by_action)}",
            kind="schema",
            hint=f"the task has {', '.join(wanted)}",
        )
    heads = [by_action[name] for name in wanted]
    columns = [
        FUNCTIONS["stack"](*map(evaluate, arguments, repeat(scope)))
        for arguments in zip(*(head.arguments for head in heads), strict=True)
    ]
    if schema.discrete:
        return Categorical(jnp.concatenate(columns).astype(jnp.float32))
    mean, std = (column.astype(jnp.float32) for column in columns)
    families = tuple(head.family for head in heads)
    if std_floor > 0:
        pairs = zip(families, schema.actions, strict=True)
        widest = [std_bounds(family, action)[1] for family, action in pairs]
        std = jnp.maximum(std, jnp.asarray(widest, jnp.float32) * std_floor)
    if structure.coupling:
        pairwise = FUNCTIONS["stack"](*map(evaluate, structure.coupling, repeat(scope)))
        return CoupledNormal(mean, std, pairwise.astype(jnp.float32))
    if set(families) == {"normal"}:
        return Normal(mean, std)
    low = tuple(action.low for action in schema.actions)
    high = tuple(action.high for action in schema.actions)
    return Mixed(mean, std, families, low, high)


def _half_range(schema: Schema) -> jax.Array:
    """The half range `[A]` of each action."""
    return jnp.asarray([action.half_range for action in schema.actions], jnp.float32)


def _per_parameter(values: np.ndarray, like: jax.Array) -> jax.Array:
    """Constants `[P]` laid out as `[..., P]`."""
    return jnp.broadcast_to(jnp.asarray(values, jnp.float32), like.shape)


def _between(raw: jax.Array, low: np.ndarray, high: np.ndarray) -> jax.Array:
    """`[..., P]` values between two bounds `[P]`.

    Counted from the bound nearer to 0, so that small values keep their digits.
    """
    from_low = np.abs(low) <= np.abs(high)
    direction = np.where(from_low, 1.0, -1.0)
    start = _per_parameter(np.where(from_low, low, high), raw)
    span = _per_parameter(direction * (high - low), raw)
    return start + span * lax.logistic(_per_parameter(direction, raw) * raw)


def _beyond(raw: jax.Array, low: np.ndarray, high: np.ndarray) -> jax.Array:
    """`[..., P]` values beyond one bound `[P]`; the bound that is not there is NaN."""
    below = np.isnan(low)
    start = _per_parameter(np.where(below, high, low), raw)
    direction = _per_parameter(np.where(below, -1.0, 1.0), raw)
    return start + direction * FUNCTIONS["softplus"](direction * raw)


def _constrain(
    parameters: Sequence[Parameter], raw: Mapping[str, jax.Array]
) -> dict[str, jax.Array]:
    """Unconstrained values `[...]` to constrained ones, by name.

    All parameters of one kind go through one vector operation: a hundred scalar ones
    would dominate the compile time of a small policy.
    """
    values = {parameter.name: raw[parameter.name] for parameter in parameters}
    for bounds, transform in ((2, _between), (1, _beyond)):
        group = [p for p in parameters if (p.low, p.high).count(None) == 2 - bounds]
        if not group:
            continue
        low = np.array([np.nan if p.low is None else p.low for p in group])
        high = np.array([np.nan if p.high is None else p.high for p in group])
        stacked = jnp.stack([raw[p.name] for p in group], axis=-1)
        parts = lax.split(
            transform(stacked, low, high), [1] * len(group), stacked.ndim - 1
        )
        values |= {
            p.name: lax.squeeze(part, (part.ndim - 1,))
            for p, part in zip(group, parts, strict=True)
        }
    return values


def _unconstrain(parameter: Parameter, value: ArrayLike) -> np.ndarray:
    """Inverse of the transform, in double precision, as float32.

    Raises:
      StructjaxError: a value lies outside the bounds.
    """
    exact = np.asarray(value, np.float64)
    low, high = parameter.low, parameter.high
    slack = INSIDE * max(1.0, abs(low or 0.0), abs(high or 0.0)) * 10
    if np.any(exact < (-np.inf if low is None else low - slack)) or np.any(
        exact > (np.inf if high is None else high + slack)
    ):
        raise StructjaxError(
            f"weight {parameter.name!r} is {value}",
            kind="weights",
            hint=f"accepted: values {interval(low, high)}",
        )
    if low is not None and high is not None:
        # As `_between` counts: from the bound nearer to 0.
        near, direction = (low, 1) if abs(low) <= abs(high) else (high, -1)
        share = _distance(direction * (exact - near) / (high - low))
        share = np.minimum(share, 1 - INSIDE)
        exact = direction * (np.log(share) - np.log1p(-share))
    elif low is not None:
        exact = _inverse_softplus(exact - low)
    elif high is not None:
        exact = -_inverse_softplus(high - exact)
    return np.asarray(exact, np.float32)


def _distance(value: np.ndarray) -> np.ndarray:
    """The distance from a bound; one of 0 is made `INSIDE`."""
    return np.where(value > 0, np.maximum(value, LEAST), INSIDE)


def _inverse_softplus(value: np.ndarray) -> np.ndarray:
    positive = _distance(value)
    return positive + np.log(-np.expm1(-positive))


class StructuredPolicy(nn.Module):
    """A structure compiled to JAX.

    Attributes:
      structure: the program.
      schema: the task's observation and action fields.
      std_floor: least std of a normal action, as a share of its half range.
    """

    structure: Structure
    schema: Schema
    std_floor: float = 0.0

    @nn.compact
    def __call__(
        self, obs: jax.Array, memory: Memory | None = None
    ) -> tuple[Distribution, dict[str, jax.Array]]:
        """The action distribution and the logged latents for one observation `[O]`.

        `memory` holds the step before, by latent; None is an episode's first step.
        """
        weights = _constrain(self.structure.parameters, self._raw())
        before = self._before(self.initial_memory() if memory is None else memory)
        scope = Scope(fields(self.schema, obs), weights, {}, before)
        define(self.structure, scope)
        distribution = _distribution(self.structure, self.schema, scope, self.std_floor)
        return distribution, _logged(self.structure.latents, scope.variables)

    def initial_memory(self) -> Memory:
        """What an episode begins with; empty for a program without `previous`."""
        return {
            item.latent: jnp.float32(item.initial) for item in recall(self.structure)
        }

    def _before(self, memory: Memory) -> Memory:
        """The memory in the types of its latents."""
        truths = {latent.name for latent in self.structure.latents if latent.boolean}
        return {
            name: value > 0.5 if name in truths else value
            for name, value in memory.items()
        }

    def _raw(self) -> Mapping[str, jax.Array]:
        """The unconstrained parameters by name."""
        return {
            parameter.name: self.scope.param(  # type: ignore[union-attr]
                parameter.name,
                nn.initializers.constant(_unconstrain(parameter, parameter.initial)),
                (),
            )
            for parameter in self.structure.parameters
        }


class MLPPolicy(nn.Module):
    """The black-box baseline: a tanh network with the same `apply` contract.

    The last layer starts at a hundredth, so the first means are near 0; the std is the
    same for every observation. Latents are empty.

    Attributes:
      schema: the task's observation and action fields.
      hidden: widths of the hidden layers.
      initial_std: starting std, as a share of each action's half range.
      std_floor: least std, as a share of the half range.
    """

    schema: Schema
    hidden: tuple[int, ...] = (64, 64)
    initial_std: float = 0.5
    std_floor: float = 0.0

    @nn.compact
    def __call__(self, obs: jax.Array) -> tuple[Distribution, dict[str, jax.Array]]:
        """The action distribution for one observation `[O]`, and no latents."""
        features = FUNCTIONS["nan_clean"](obs)
        for width in self.hidden:
            layer = nn.Dense(width, kernel_init=nn.initializers.orthogonal(2**0.5))
            features = lax.tanh(layer(features))
        actions = self.schema.actions
        choices = actions[0].choices
        outputs = len(actions) if choices is None else len(choices)
        head = nn.Dense(outputs, kernel_init=nn.initializers.orthogonal(0.01))
        if choices is not None:
            return Categorical(head(features)), {}
        half_range = _half_range(self.schema)
        std = half_range * jnp.maximum(self._std_share(outputs), self.std_floor)
        return Normal(half_range * head(features), std), {}

    def _std_share(self, outputs: int) -> jax.Array:
        """Trainable std `[A]` in units of the half range, bounded as in programs."""
        share = Parameter("std", self.initial_std, low=1e-3, high=1.0)
        start = nn.initializers.constant(_unconstrain(share, share.initial))
        return _constrain([share], {"std": self.param("std", start, (outputs,))})["std"]


def weights(policy: nn.Module, variables: Variables) -> dict[str, jax.Array]:
    """Constrained parameter values by name; empty for a policy without named ones.

    Stacked variables give values with the same leading axes.
    """
    if not isinstance(policy, StructuredPolicy):
        return {}
    return _constrain(policy.structure.parameters, variables["params"])


def initial_values(structure: Structure) -> dict[str, float]:
    """The written starts by name."""
    return {parameter.name: parameter.initial for parameter in structure.parameters}


def variables_from(structure: Structure, values: Mapping[str, ArrayLike]) -> Variables:
    """Variables at which the parameters have these values; others start as written.

    A value may be an array `[...]`, which gives stacked variables.

    Raises:
      StructjaxError: a name is not a parameter, or a value lies outside its bounds.
    """
    unknown = sorted(set(values) - set(initial_values(structure)))
    if unknown:
        raise StructjaxError(
            f"no weight {unknown[0]!r} in the program",
            kind="weights",
            hint=f"it has {', '.join(initial_values(structure))}",
        )
    chosen = initial_values(structure) | dict(values)
    return {
        "params": {
            p.name: jnp.asarray(_unconstrain(p, chosen[p.name]))
            for p in structure.parameters
        }
    }
