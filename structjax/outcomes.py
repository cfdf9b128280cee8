"""Outcomes of an episode beside its return, e.g. a least distance or a success.

An outcome is a value of the environment's info, reduced over the steps that were taken.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, get_args

import jax
import jax.numpy as jnp
import numpy as np

Reduction = Literal["min", "max", "last", "mean"]
Outcomes = Mapping[str, tuple[str, Reduction]]
"""Outcome -> (info value, how its steps are reduced to one figure)."""

OUTCOME = "outcome_"
"""What the columns of a table that hold outcomes begin with."""
REDUCTIONS: tuple[str, ...] = get_args(Reduction)


def reduce_outcomes(
    outcomes: Outcomes, info: Mapping[str, Any], valid: Any
) -> dict[str, jax.Array]:
    """The outcomes `[B]` of B episodes; works in a compiled function, too.

    Args:
      outcomes: what is wanted.
      info: name -> `[T, B]`, as the steps left it; behind an episode's end anything.
      valid: `[T, B]` bool, the steps that were taken.
    """
    taken = jnp.asarray(valid)
    return {
        name: _REDUCED[reduction](jnp.asarray(info[value], jnp.float32), taken)
        for name, (value, reduction) in outcomes.items()
    }


def _min(values: jax.Array, taken: jax.Array) -> jax.Array:
    return jnp.where(taken, values, jnp.inf).min(0)


def _max(values: jax.Array, taken: jax.Array) -> jax.Array:
    return jnp.where(taken, values, -jnp.inf).max(0)


def _last(values: jax.Array, taken: jax.Array) -> jax.Array:
    last = jnp.maximum(taken.sum(0) - 1, 0)
    return jnp.take_along_axis(values, last[None], axis=0)[0]


def _mean(values: jax.Array, taken: jax.Array) -> jax.Array:
    return jnp.where(taken, values, 0.0).sum(0) / taken.sum(0)


_REDUCED: Mapping[str, Callable[[jax.Array, jax.Array], jax.Array]] = {
    "min": _min,
    "max": _max,
    "last": _last,
    "mean": _mean,
}


def problem(outcomes: Any, info: Mapping[str, str]) -> tuple[str, str] | None:
    """What is wrong with a task's outcomes and what is accepted; None if nothing."""
    if not isinstance(outcomes, Mapping):
        return f"its outcomes are {outcomes!r:.60}", "a mapping"
    for name, rule in outcomes.items():
        if not (isinstance(name, str) and re.fullmatch(r"[A-Za-z]\w{0,59}", name)):
            return f"an outcome is called {name!r:.60}", "letters, digits, _"
        if not (isinstance(rule, tuple) and len(rule) == 2):
            return f"its outcome {name!r} is {rule!r:.60}", "(info value, reduction)"
        value, reduction = rule
        if not (isinstance(value, str) and value in info):
            known = ", ".join(info) or "none"
            return f"its outcome {name!r} is of info value {value!r:.60}", known
        if not (isinstance(reduction, str) and reduction in REDUCTIONS):
            return (
                f"its outcome {name!r} has the reduction {reduction!r:.60}",
                ", ".join(REDUCTIONS),
            )
    return None


def summarised(outcomes: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """JSON-ready: `{name: {"values", "mean", "std_ddof0"}}`."""
    with np.errstate(invalid="ignore"):  # of infinite values
        return {
            name: {
                "values": [float(value) for value in values],
                "mean": float(np.mean(values)),
                "std_ddof0": float(np.std(values)),
            }
            for name, values in outcomes.items()
        }


def read_back(outcomes: Mapping[str, Any] | None) -> dict[str, list[float]]:
    """Outcomes per episode from JSON, where NaN is null."""
    return {
        name: [math.nan if value is None else value for value in values]
        for name, values in (outcomes or {}).items()
    }


def table_rows(evaluations: Sequence[Mapping[str, Any]]) -> list[tuple[str, ...]]:
    """(outcome, `mean +- std` in each of some JSON evaluations), for people."""
    tables = [found.get("outcomes") or {} for found in evaluations]
    names = dict.fromkeys(name for table in tables for name in table)
    return [(name, *(_told(table.get(name)) for table in tables)) for name in names]


def _told(summary: Mapping[str, Any] | None) -> str:
    if summary is None:
        return "-"
    mean, std = summary["mean"], summary["std_ddof0"]
    if mean is None or std is None or not math.isfinite(mean):
        return "not finite"
    return f"{mean:.4g} +- {std:.4g}"
