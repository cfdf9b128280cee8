"""Lower bounds of expressions, to know where a guard can never matter."""

import math
from collections.abc import Sequence

from structjax.language.structure import (
    Call,
    Expression,
    Index,
    Number,
    Slice,
    Variable,
)
from structjax.language.torch_source.trace import Trace

_NEVER_NEGATIVE = {
    *("square", "abs", "exp", "softplus", "relu", "sigmoid", "sqrt", "norm"),
    *("lt", "le", "gt", "ge", "eq", "ne", "and_", "or_", "not_"),
}
MAX_DEPTH = 40


def least(expression: Expression, trace: Trace, depth: int = 0) -> float:
    """A number that the expression is never below; -inf when none is known."""
    if depth > MAX_DEPTH:
        return -math.inf
    match expression:
        case Number(value):
            return value
        case Variable():
            if expression not in trace.bounds:
                inner = trace.of(expression).expression
                trace.bounds[expression] = least(inner, trace, depth + 1)
            return trace.bounds[expression]
        case Index(vector) | Slice(vector):
            return least(vector, trace, depth + 1)
        case Call(operator, arguments):
            return _call(operator, arguments, trace, depth + 1)
    return -math.inf


def _call(
    operator: str, arguments: Sequence[Expression], trace: Trace, depth: int
) -> float:
    if operator in _NEVER_NEGATIVE or _is_square(operator, arguments):
        return 0.0
    if operator == "clip" and all(isinstance(a, Number) for a in arguments[1:]):
        return min(least(bound, trace, depth) for bound in arguments[1:])
    bounds = [least(argument, trace, depth) for argument in arguments]
    match operator:
        case "add":
            return sum(bounds)
        case "mul" | "div" if min(bounds) >= 0:
            return math.prod(bounds) if operator == "mul" else 0.0
        case "maximum":
            return max(bounds)
        case "minimum" | "stack" | "concat" | "reduce_mean" | "reduce_max":
            return min(bounds)
        case "reduce_min":
            return bounds[0]
        case "where":
            return min(bounds[1:])
        case "reduce_sum" if bounds[0] >= 0:
            return bounds[0]
    return -math.inf


def _is_square(operator: str, arguments: Sequence[Expression]) -> bool:
    if operator in ("mul", "dot"):
        return arguments[0] == arguments[1]
    if operator == "pow":
        return isinstance(arguments[1], Number) and arguments[1].value % 2 == 0
    return False
