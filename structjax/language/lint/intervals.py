"""Ranges: between which bounds a value lies, whatever the observation."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from structjax.language.structure import Expression, Parameter
from structjax.schema import Field

_INF = math.inf


@dataclass(frozen=True)
class Range:
    """All values, of a vector's elements too, lie in [low, high].

    Attributes:
      low, high: bounds, infinite where there are none.
      size: None for a scalar, n for a vector.
    """

    low: float
    high: float
    size: int | None = None

    @property
    def point(self) -> bool:
        """Whether there is only one value."""
        return self.low == self.high

    @property
    def largest(self) -> float:
        """Largest magnitude."""
        return max(abs(self.low), abs(self.high))

    @property
    def smallest(self) -> float:
        """Smallest magnitude."""
        return 0.0 if self.low <= 0 <= self.high else min(abs(self.low), abs(self.high))


ANYTHING = Range(-_INF, _INF)


class Intervals:
    """The domain of ranges.

    Args:
      fixed: weights have their initial value; otherwise anything within their bounds.
    """

    anything = ANYTHING

    def __init__(self, *, fixed: bool = False) -> None:
        self._fixed = fixed

    def number(self, value: float) -> Range:
        """One value."""
        return Range(value, value)

    def observed(self, field: Field) -> Range:
        """The range that the schema expects."""
        if not field.low <= field.high:
            return Range(-_INF, _INF, field.size)
        return Range(float(field.low), float(field.high), field.size)

    def weight(self, parameter: Parameter) -> Range:
        """The bounds, or the initial value."""
        if self._fixed:
            return Range(parameter.initial, parameter.initial)
        low = -_INF if parameter.low is None else parameter.low
        return Range(low, _INF if parameter.high is None else parameter.high)

    def element(self, vector: Range, position: int) -> Range:
        """The range of all elements."""
        return Range(vector.low, vector.high)

    def part(self, vector: Range, start: int, stop: int) -> Range:
        """The range of all elements."""
        return Range(vector.low, vector.high, stop - start)

    def either(self, one: Range, other: Range) -> Range:
        """The hull."""
        return _hull([one, other])

    def call(
        self, operator: str, values: Sequence[Range], arguments: Sequence[Expression]
    ) -> Range:
        """The range of a result."""
        if operator in _SQUARES and arguments[0] == arguments[1]:
            low, high = _bounds(_SQUARES[operator], values[:1])
        else:
            low, high = _bounds(operator, values)
        sizes = [value.size for value in values if value.size is not None]
        size = sizes[0] if sizes and operator not in _REDUCTIONS else None
        if operator in ("stack", "concat"):
            size = sum(value.size or 1 for value in values)
        return Range(low, high, size)


Bounds = tuple[float, float]


def _bounds(operator: str, values: Sequence[Range]) -> Bounds:
    """The bounds of a result, wide where they are not known."""
    try:
        if operator in _MONOTONE:
            function = _MONOTONE[operator]
            return function(values[0].low), function(values[0].high)
        low, high = _RULES[operator](*values)
    except (ArithmeticError, ValueError, KeyError):
        return -_INF, _INF
    if math.isnan(low) or math.isnan(high):
        return -_INF, _INF
    return low, high


def _hull(values: Sequence[Range]) -> Range:
    low, high = min(v.low for v in values), max(v.high for v in values)
    return Range(low, high, values[0].size)


def _hull_of(*values: Range) -> Bounds:
    hull = _hull(values)
    return hull.low, hull.high


def _times(a: float, b: float) -> float:
    """The product, where 0 times anything is 0."""
    return 0.0 if a == 0 or b == 0 else a * b


def _add(a: Range, b: Range) -> Bounds:
    return a.low + b.low, a.high + b.high


def _subtract(a: Range, b: Range) -> Bounds:
    return a.low - b.high, a.high - b.low


def _multiply(a: Range, b: Range) -> Bounds:
    corners = [_times(x, y) for x in (a.low, a.high) for y in (b.low, b.high)]
    return min(corners), max(corners)


def _divide(a: Range, b: Range) -> Bounds:
    if b.low <= 0 <= b.high:
        # A divisor that only touches 0 keeps its sign.
        if b.point or b.low < 0 < b.high:
            return -_INF, _INF
        reciprocal = (1 / b.high, _INF) if b.low == 0 else (-_INF, 1 / b.low)
        return _multiply(a, Range(*reciprocal))
    return _multiply(a, Range(1 / b.high, 1 / b.low))


def _safe_divide(a: Range, b: Range) -> Bounds:
    low, high = _divide(a, b)
    near = b.smallest < 1e-6
    return (min(low, 0.0), max(high, 0.0)) if near else (low, high)


def _power(a: Range, b: Range) -> Bounds:
    exponent = b.low
    if not b.point or (a.low < 0 and exponent % 1):
        return -_INF, _INF
    if exponent < 0:
        return _divide(Range(1.0, 1.0), Range(*_power(a, Range(-exponent, -exponent))))
    if exponent % 2 == 0:
        return a.smallest**exponent, a.largest**exponent
    return a.low**exponent, a.high**exponent


def _absolute(a: Range) -> Bounds:
    return a.smallest, a.largest


def _square(a: Range) -> Bounds:
    return a.smallest**2, a.largest**2


def _negative(a: Range) -> Bounds:
    return -a.high, -a.low


def _clip(x: Range, low: Range, high: Range) -> Bounds:
    return (
        min(max(x.low, low.low), high.low),
        min(max(x.high, low.high), high.high),
    )


def _minimum(a: Range, b: Range) -> Bounds:
    return min(a.low, b.low), min(a.high, b.high)


def _maximum(a: Range, b: Range) -> Bounds:
    return max(a.low, b.low), max(a.high, b.high)


def _sine(a: Range) -> Bounds:
    return (math.sin(a.low), math.sin(a.low)) if a.point else (-1.0, 1.0)


def _cosine(a: Range) -> Bounds:
    return (math.cos(a.low), math.cos(a.low)) if a.point else (-1.0, 1.0)


def _angle(y: Range, x: Range) -> Bounds:
    if y.point and x.point:
        value = math.atan2(y.low, x.low)
        return value, value
    most = math.pi / 2 if x.low >= 0 else math.pi
    return (0.0 if y.low >= 0 else -most), (0.0 if y.high <= 0 and most < 2 else most)


def _wrap(a: Range) -> Bounds:
    if -math.pi <= a.low and a.high < math.pi:
        return a.low, a.high
    if a.point:
        value = (a.low + math.pi) % (2 * math.pi) - math.pi
        return value, value
    return -math.pi, math.pi


def _sum(v: Range) -> Bounds:
    count = float(v.size or 1)
    return _times(count, v.low), _times(count, v.high)


def _weighted_mean(v: Range, w: Range) -> Bounds:
    return (v.low, v.high) if w.low >= 0 else (-_INF, _INF)


def _norm(v: Range) -> Bounds:
    root = math.sqrt(v.size or 1)
    return _times(root, v.smallest), _times(root, v.largest)


def _dot(a: Range, b: Range) -> Bounds:
    low, high = _multiply(a, b)
    return _sum(Range(low, high, a.size))


def _dot_itself(v: Range) -> Bounds:
    low, high = _square(v)
    return _sum(Range(low, high, v.size))


def _unit_vector(v: Range) -> Bounds:
    return (0.0 if v.low >= 0 else -1.0), (0.0 if v.high <= 0 else 1.0)


def _turned(v: Range, angle: Range) -> Bounds:
    longest = _norm(v)[1]
    return -longest, longest


def _turned_by(q: Range, v: Range) -> Bounds:
    # A quaternion of any length: nothing is known.
    return -_INF, _INF


def _truth(always: bool, never: bool) -> Bounds:
    return (1.0 if always else 0.0), (0.0 if never else 1.0)


def _less(a: Range, b: Range) -> Bounds:
    return _truth(a.high < b.low, a.low >= b.high)


def _at_most(a: Range, b: Range) -> Bounds:
    return _truth(a.high <= b.low, a.low > b.high)


def _equal(a: Range, b: Range) -> Bounds:
    return _truth(a.point and a == b, a.high < b.low or b.high < a.low)


def _different(a: Range, b: Range) -> Bounds:
    low, high = _equal(a, b)
    return 1 - high, 1 - low


def _where(condition: Range, one: Range, other: Range) -> Bounds:
    if condition.low > 0:
        return one.low, one.high
    if condition.high <= 0:
        return other.low, other.high
    return _hull_of(one, other)


def _exp(x: float) -> float:
    return math.exp(x) if x < 700 else _INF


def _sigmoid(x: float) -> float:
    return 1 / (1 + _exp(-x))


def _softplus(x: float) -> float:
    return x if x > 30 else math.log1p(_exp(x))


_MONOTONE: dict[str, Callable[[float], float]] = {
    "relu": lambda x: max(x, 0.0),
    "softplus": _softplus,
    "sqrt": lambda x: math.sqrt(max(x, 0.0)),
    "exp": _exp,
    "log": lambda x: math.log(max(x, 1e-6)),
    "sign": lambda x: float((x > 0) - (x < 0)),
    "tanh": math.tanh,
    "sigmoid": _sigmoid,
    "nan_clean": lambda x: x,
    "reduce_mean": lambda x: x,
    "reduce_min": lambda x: x,
    "reduce_max": lambda x: x,
}
_RULES: dict[str, Callable[..., Bounds]] = {
    "add": _add,
    "sub": _subtract,
    "mul": _multiply,
    "div": _divide,
    "pow": _power,
    "neg": _negative,
    "lt": _less,
    "le": _at_most,
    "gt": lambda a, b: _less(b, a),
    "ge": lambda a, b: _at_most(b, a),
    "eq": _equal,
    "ne": _different,
    "and_": _minimum,
    "or_": _maximum,
    "not_": lambda a: (1 - a.high, 1 - a.low),
    "where": _where,
    "abs": _absolute,
    "clip": _clip,
    "square": _square,
    "sin": _sine,
    "cos": _cosine,
    "atan2": _angle,
    "wrap_angle": _wrap,
    "safe_div": _safe_divide,
    "minimum": _minimum,
    "maximum": _maximum,
    "reduce_sum": _sum,
    "weighted_mean": _weighted_mean,
    "norm": _norm,
    "dot": _dot,
    "dot_itself": _dot_itself,
    "normalise": _unit_vector,
    "stack": _hull_of,
    "concat": _hull_of,
    "rotate2d": _turned,
    "rotate": _turned_by,
    "rotate_inverse": _turned_by,
}
#: Products of a value with itself have rules of their own.
_SQUARES = {"mul": "square", "dot": "dot_itself"}
_REDUCTIONS = (
    "reduce_sum",
    "reduce_mean",
    "reduce_min",
    "reduce_max",
    "weighted_mean",
    "norm",
    "dot",
)
