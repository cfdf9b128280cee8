"""The space that a search without gradients moves in: one axis per weight that acts.

A point x `[D]` is an offset in units that suit each weight: `raw = start + scale * x`,
in the unconstrained space. Weights that only spread sampled actions are not searched:
mean actions do not depend on them, and they keep their values.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from structjax.language.structure import Expression, Structure, Weight
from structjax.language.usage import reach
from structjax.policy import StructuredPolicy
from structjax.rollout import Policy

LEAST_SCALE = 0.1
"""The least unit of a weight without bounds, for one that starts near 0."""
MODE_OF_ALL = ("categorical", "beta")
"""Families whose mode depends on every argument; of others it is the first alone."""


class Coordinates(NamedTuple):
    """Where a search starts, and the unit of each axis.

    Attributes:
      start: `[N]` all weights, flat and unconstrained.
      scale: `[D]` the units of the searched ones.
    """

    start: jax.Array
    scale: jax.Array


def acting(policy: Policy, variables: Any) -> np.ndarray:
    """Positions `[D]` of the flat weights that the mean action can depend on."""
    names = _spread_names(policy)

    def flags(path: Any, leaf: Any) -> np.ndarray:
        return np.full(np.shape(leaf), path[-1].key not in names)

    marked = jax.tree_util.tree_map_with_path(flags, variables)
    flat = [np.ravel(leaf) for leaf in jax.tree.leaves(marked)]
    return np.flatnonzero(np.concatenate(flat))


def coordinates(policy: Policy, variables: Any) -> Coordinates:
    """The search space around a policy's variables."""
    bounds = _bounds(policy)

    def unit(path: Any, leaf: jax.Array) -> jax.Array:
        size = jnp.sqrt(jnp.mean(jnp.square(leaf)))
        known = bounds.get(path[-1].key, 0)
        # Between two bounds a unit is a share of the range; away from one it is the
        # distance from it, which grows like the raw value; else the value's own size.
        scale = (jnp.maximum(size, LEAST_SCALE), jnp.maximum(size, 1.0), 1.0)[known]
        return jnp.full(jnp.shape(leaf), scale, jnp.float32)

    start, _ = ravel_pytree(variables)
    units, _ = ravel_pytree(jax.tree_util.tree_map_with_path(unit, variables))
    return Coordinates(start, units[acting(policy, variables)])


def at(found: Coordinates, policy: Policy, like: Any, x: jax.Array) -> jax.Array:
    """The variables, shaped like others, at a point `[D]`."""
    _, shaped = ravel_pytree(like)
    offset = jnp.zeros_like(found.start).at[acting(policy, like)].set(found.scale * x)
    return shaped(found.start + offset)


def _bounds(policy: Policy) -> Mapping[str, int]:
    """How many bounds each named weight has; empty for a network."""
    if not isinstance(policy, StructuredPolicy):
        return {}
    return {
        parameter.name: 2 - (parameter.low, parameter.high).count(None)
        for parameter in policy.structure.parameters
    }


def _spread_names(policy: Policy) -> set[str]:
    """Names of the weights that no mean action depends on."""
    if not isinstance(policy, StructuredPolicy):
        return {"std"}
    used = reach(policy.structure, _modes(policy.structure))
    names = {parameter.name for parameter in policy.structure.parameters}
    return {name for name in names if Weight(name) not in used}


def _modes(structure: Structure) -> list[Expression]:
    """The expressions that mean actions are made of."""
    return [
        argument
        for head in structure.heads
        for argument in (
            head.arguments if head.family in MODE_OF_ALL else head.arguments[:1]
        )
    ]
