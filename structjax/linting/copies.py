"""Copycat features: observations that repeat the action of the step before."""

from collections.abc import Iterator, Sequence

import numpy as np

from structjax.demonstration import Demonstration
from structjax.language.lint.places import Part
from structjax.language.problem import Problem
from structjax.language.structure import Observation, Structure, walk
from structjax.language.usage import reach
from structjax.schema import Schema

# Share of a column's variance that the previous action explains in a copy.
_COPIED = 0.95
_KNOTS, _ROWS_PER_KNOT = 9, 20


def copy_problems(
    structure: Structure,
    schema: Schema,
    places: Sequence[Part],
    shown: Demonstration,
) -> Iterator[Problem]:
    """Observations that the action of the step before explains, and that are used."""
    now, before = shown.observations[1:], shown.observations[:-1]
    previous = shown.actions[:-1]
    if len(now) <= 2 * (previous.shape[1] + 2):
        return
    means = [head.arguments[0] for head in structure.heads]
    used = {x.field for x in reach(structure, means) if isinstance(x, Observation)}
    columns = schema.columns("")
    for field in schema.observations:
        part = schema.slice_of(field.name)
        for i in range(part.start, part.stop) if field.name in used else ():
            copied = _explained(previous, now[:, i])
            itself = _explained(before[:, i : i + 1], now[:, i])
            if copied <= _COPIED or copied <= itself:
                continue
            line = _line_of(field.name, places)
            text = (
                f"`obs.{field.name}` ({columns[i]}) repeats the previous action: it "
                f"explains {copied:.1%} of it along the demonstration"
            )
            hint = (
                "a policy that reads it can copy itself instead of looking; try it "
                "without"
            )
            yield Problem("COPYCAT", "warning", line, text, hint)


def _line_of(field: str, places: Sequence[Part]) -> int:
    """The first line that reads a field."""
    read = (p for p in places if Observation(field) in set(walk(p.expression)))
    return min((part.line for part in read), default=1)


def _explained(inputs: np.ndarray, output: np.ndarray) -> float:
    """R squared of a regression on a bent line of each input; 0 for a constant.

    Bends let a feature that stops where the action goes on, such as a joint at its
    limit, count as the function of the action that it is.
    """
    output = output.astype(np.float64)
    total = float(((output - output.mean()) ** 2).sum())
    if total <= 1e-12 * max(1.0, float((output**2).sum())):
        return 0.0
    columns = [np.ones(len(output))]
    for values in inputs.astype(np.float64).T:
        columns += [values, *(np.maximum(values - k, 0) for k in _knots(values))]
    design = np.column_stack(columns)
    fitted = design @ np.linalg.lstsq(design, output, rcond=None)[0]
    return 1 - float(((output - fitted) ** 2).sum()) / total


def _knots(values: np.ndarray) -> np.ndarray:
    """Where a line may bend: at quantiles, and evenly over the range."""
    if len(values) < _ROWS_PER_KNOT * _KNOTS:
        return np.zeros(0)
    shares = np.linspace(0, 1, _KNOTS + 2)[1:-1]
    low, high = values.min(), values.max()
    return np.unique([*np.quantile(values, shares), *(low + shares * (high - low))])
