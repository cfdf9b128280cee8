"""Where fits begin: the written values, and draws around them."""

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from structjax.language.heads import std_bounds
from structjax.language.structure import (
    Expression,
    Parameter,
    Structure,
    Weight,
)
from structjax.language.usage import reach
from structjax.policy import initial_values, variables_from

SPREAD = 0.3
"""Standard deviation of the logarithm of a restart's factor."""
ZERO_SPREAD = 0.1
"""Standard deviation of a restart's value where the written one is 0."""
INSIDE = 1e-3
"""Least distance from a bound, in units of the range between two bounds."""


def restart_starts(
    structure: Structure, key: jax.Array, restarts: int
) -> dict[str, np.ndarray]:
    """Starting values by name, `[R]`; the first are the written ones.

    The others are the written ones times exp(N(0, 0.3)), zeros get N(0, 0.1); all stay
    inside the bounds.

    Args:
      structure: the program.
      key: consumed.
      restarts: R.
    """
    size = (restarts, len(structure.parameters))
    noise = np.asarray(jax.random.normal(key, size), float)
    values = {}
    for i, parameter in enumerate(structure.parameters):
        written = parameter.initial
        if written == 0:
            drawn = ZERO_SPREAD * noise[:, i]
        else:
            drawn = written * np.exp(SPREAD * noise[:, i])
        drawn = _inside(parameter, drawn)
        drawn[0] = written
        values[parameter.name] = drawn
    return values


def _inside(parameter: Parameter, values: np.ndarray) -> np.ndarray:
    """Values at least 1e-3 of the range from a bound, or as near as the written one."""
    low, high, written = parameter.low, parameter.high, parameter.initial
    span = 1.0 if low is None or high is None else high - low
    if low is not None:
        values = np.maximum(values, low + min(INSIDE * span, written - low))
    if high is not None:
        values = np.minimum(values, high - min(INSIDE * span, high - written))
    return values


def starts_of(policy: Any, key: jax.Array, restarts: int) -> tuple[Any, Any]:
    """Variables of the restarts `[R]` and of the written values."""
    structure = getattr(policy, "structure", None)
    if structure is not None:
        values = restart_starts(structure, key, restarts)
        values = floor_values(policy, values)
        written = floor_values(policy, initial_values(structure))
        return variables_from(structure, values), variables_from(structure, written)
    obs = jnp.zeros(policy.schema.observation_size)
    stacked = jax.vmap(policy.init, in_axes=(0, None))(
        jax.random.split(key, restarts), obs
    )
    return stacked, jax.tree.map(lambda leaf: leaf[0], stacked)


def floor_values(policy: Any, values: Mapping[str, Any]) -> dict[str, Any]:
    """Values with the weights that are an action's std raised to the policy's floor."""
    raised = dict(values)
    for action, least in least_stds(policy).items():
        if (weight := std_weight(policy.structure, action, least)) is not None:
            raised[weight] = np.maximum(raised[weight], least)
    return raised


def least_stds(policy: Any) -> dict[str, float]:
    """Action -> the policy's floor of its std."""
    actions = {action.name: action for action in policy.schema.actions}
    return {
        head.action: policy.std_floor * std_bounds(head.family, actions[head.action])[1]
        for head in policy.structure.heads
        if head.family != "categorical"
    }


def std_weight(structure: Structure, action: str, least: float) -> str | None:
    """The weight that is an action's std and nothing else, if it can be so large."""
    stds = std_parameters(structure)
    head = next(head for head in structure.heads if head.action == action)
    for parameter in structure.parameters:
        if Weight(parameter.name) == head.arguments[-1] and parameter.name in stds:
            fits = parameter.high is None or least <= parameter.high
            return parameter.name if fits else None
    return None


def std_parameters(structure: Structure) -> frozenset[str]:
    """Parameters that only the standard deviations and the coupling depend on."""
    spreads = list(structure.coupling)
    means: list[Expression] = []
    for head in structure.heads:
        mean = head.arguments if head.family == "categorical" else head.arguments[:1]
        means += mean
        spreads += head.arguments[len(mean) :]
    return _weights(structure, spreads) - _weights(structure, means)


def _weights(structure: Structure, roots: Sequence[Expression]) -> frozenset[str]:
    """Names of the parameters that the expressions depend on."""
    found = reach(structure, roots)
    return frozenset(leaf.name for leaf in found if isinstance(leaf, Weight))
