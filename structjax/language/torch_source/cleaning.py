"""`nan_to_num`: observations are clean already, other values are cleaned."""

from collections.abc import Callable
from typing import Any

from structjax.language.structure import (
    Expression,
    Index,
    Number,
    Observation,
    Slice,
    Weight,
)
from structjax.language.torch_source.elementwise import elementwise
from structjax.language.torch_source.linear import BEYOND
from structjax.language.torch_source.refusal import Refused
from structjax.language.torch_source.trace import Trace
from structjax.language.torch_source.values import Tensor, kind, tensor


def nan_to_num(
    trace: Trace, input: Any, nan: Any = 0.0, posinf: Any = None, neginf: Any = None
) -> Tensor:
    """Numbers in place of NaN and the infinities.

    Observations are cleaned on entry, to 0, so there it changes nothing.
    """
    operand = tensor(input)
    given = [_number(v) for v in (nan, posinf, neginf)]
    if all(_clean(expression) for expression in operand.elements.flat):
        if any(value != 0 for value in given):
            text = "NaN and infinite observations count as 0"
            trace.warn("CLEANED", text, "write `nan=0.0, posinf=0.0, neginf=0.0`")
        return operand
    if all(value == 0 for value in given):
        return elementwise(trace, "nan_clean", operand)
    return _replaced(trace, operand, given)


def _number(value: Any) -> float | None:
    if value is not None and not isinstance(value, int | float):
        raise Refused("TYPE", f"{kind(value)} in nan_to_num", "write numbers")
    return None if value is None else float(value)


def _clean(expression: Expression) -> bool:
    """Whether an expression is an observation, a weight or a number."""
    while isinstance(expression, Index | Slice):
        expression = expression.vector
    return isinstance(expression, Observation | Weight | Number)


def _replaced(trace: Trace, operand: Tensor, given: list[float | None]) -> Tensor:
    """Each kind of bad value replaced by its own number."""
    nan, high, low = given
    high = BEYOND if high is None else high
    low = -BEYOND if low is None else low
    below = elementwise(trace, "lt", operand, -BEYOND)
    result = elementwise(trace, "where", below, low, operand)
    above = elementwise(trace, "gt", operand, BEYOND)
    result = elementwise(trace, "where", above, high, result)
    missing = elementwise(trace, "ne", operand, operand)
    return elementwise(trace, "where", missing, nan or 0.0, result)


CLEANING: dict[str, Callable[..., Any]] = {"nan_to_num": nan_to_num}
"""PyTorch's name -> handler `(trace, arguments)`."""
