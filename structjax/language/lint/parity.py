"""Even and odd: what becomes of values in the left-right mirrored world."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from structjax.language.structure import (
    Call,
    Expression,
    Index,
    Number,
    Observation,
    Parameter,
    Variable,
)
from structjax.schema import Field, Schema

Kind = Literal["zero", "even", "odd", "mixed", "unknown"]
_SIGN: dict[Kind, int] = {"even": 1, "odd": -1}
_KIND: dict[int, Kind] = {1: "even", -1: "odd"}

# Odd functions that lose nothing: a mixed argument gives a mixed result.
_ODD = ("neg", "tanh", "nan_clean")
_ODD_LOSSY = ("sin", "sign", "wrap_angle", "normalise", "reduce_sum", "reduce_mean")
_EVEN = ("abs", "square", "cos", "norm")
_ONE_SIDED = ("relu", "softplus", "sqrt", "exp", "log", "sigmoid")
_PRODUCTS = ("mul", "dot")
_QUOTIENTS = ("div", "safe_div")


@dataclass(frozen=True)
class Parity:
    """How a value answers to the mirror.

    Attributes:
      kind: "mixed" has an even and an odd part.
      order: None for a scalar; where the elements of a vector go in the mirror.
      value: of a constant.
    """

    kind: Kind
    order: tuple[int, ...] | None = None
    value: float | None = None


UNKNOWN = Parity("unknown")


class Parities:
    """The domain of parities."""

    anything = UNKNOWN

    def __init__(self, schema: Schema) -> None:
        self._fields = {field.name: field for field in schema.observations}

    def number(self, value: float) -> Parity:
        """Even; zero is both."""
        return Parity("even" if value else "zero", None, value)

    def observed(self, field: Field) -> Parity:
        """What the schema says."""
        if field.mirror not in _KIND:
            return UNKNOWN
        order = None if field.size is None else tuple(range(field.size))
        return Parity(_KIND[field.mirror], field.mirror_order or order)

    def weight(self, parameter: Parameter) -> Parity:
        """Even."""
        return Parity("even")

    def element(self, vector: Parity, position: int) -> Parity:
        """Known where the mirror leaves the element in its place."""
        if vector.order is None or vector.order[position] != position:
            return UNKNOWN
        return Parity(vector.kind)

    def part(self, vector: Parity, start: int, stop: int) -> Parity:
        """Known where the mirror keeps the elements together."""
        if vector.order is None:
            return UNKNOWN
        order = tuple(i - start for i in vector.order[start:stop])
        inside = all(0 <= i < stop - start for i in order)
        return Parity(vector.kind, order) if inside else UNKNOWN

    def either(self, one: Parity, other: Parity) -> Parity:
        """The common kind; a remembered value that differs in kind is unknown."""
        if one == other:
            return one
        kind = _one_of([one, other])
        return Parity(kind)

    def call(
        self, operator: str, values: Sequence[Parity], arguments: Sequence[Expression]
    ) -> Parity:
        """The parity of a result."""
        if operator == "concat":
            return _concatenated(values)
        orders = {value.order for value in values if value.order is not None}
        if len(orders) > 1:
            return UNKNOWN
        kind = self._kind(operator, values, arguments)
        if operator == "stack":
            return Parity(kind, tuple(range(len(values))))
        scalar = operator in _REDUCING or not orders
        return Parity(kind, None if scalar else orders.pop())

    def _kind(
        self, operator: str, values: Sequence[Parity], arguments: Sequence[Expression]
    ) -> Kind:
        kinds = [value.kind for value in values]
        if operator in ("add", "sub", "mul") and "unknown" in kinds:
            return self._twins(operator, arguments)
        if operator in _RULES:
            return _RULES[operator](values)
        if operator == "clip":
            return _clipped(values, arguments)
        # Everything else is a function without a symmetry of its own.
        return "even" if set(kinds) <= {"even", "zero"} else "unknown"

    def _twins(self, operator: str, arguments: Sequence[Expression]) -> Kind:
        """Two elements that the mirror exchanges: left and right wheel."""
        one, other = arguments
        if one == other or self._image(one) != other:
            return "unknown"
        return "odd" if operator == "sub" else "even"

    def _image(self, expression: Expression) -> Expression | None:
        """An expression of even fields in the mirrored world; None if not known."""
        match expression:
            case Index(Observation(name) as vector, position):
                field = self._fields[name]
                order = field.mirror_order
                even = field.mirror == 1 and order is not None
                return Index(vector, order[position]) if even and order else None
            case Call(operator, arguments):
                images = tuple(self._image(argument) for argument in arguments)
                known = tuple(image for image in images if image is not None)
                return Call(operator, known) if len(known) == len(images) else None
            case Variable() | Observation() | Index():
                return None
        return expression


def _one_of(values: Sequence[Parity]) -> Kind:
    """The kind of a value that is one of these."""
    kinds = {value.kind for value in values} - {"zero"}
    if not kinds:
        return "zero"
    return kinds.pop() if len(kinds) == 1 else "unknown"


def _sum(values: Sequence[Parity]) -> Kind:
    kinds = [value.kind for value in values if value.kind != "zero"]
    if "unknown" in kinds or kinds.count("mixed") > 1:
        return "unknown"
    if not kinds:
        return "zero"
    return kinds[0] if len(set(kinds)) == 1 else "mixed"


def _product(values: Sequence[Parity]) -> Kind:
    kinds = [value.kind for value in values]
    if kinds[0] == "zero" or kinds[-1] == "zero":
        return "zero"
    if all(kind in _SIGN for kind in kinds):
        return _KIND[_SIGN[kinds[0]] * _SIGN[kinds[-1]]]
    pure = [kind for kind in kinds if kind in _SIGN]
    return "mixed" if pure and "mixed" in kinds else "unknown"


def _quotient(values: Sequence[Parity]) -> Kind:
    """That of a product; but by 0 nothing can be said."""
    return "unknown" if values[-1].kind == "zero" else _product(values)


def _odd(values: Sequence[Parity]) -> Kind:
    return values[0].kind


def _odd_lossy(values: Sequence[Parity]) -> Kind:
    return "unknown" if values[0].kind == "mixed" else values[0].kind


def _even(values: Sequence[Parity]) -> Kind:
    return "even" if values[0].kind in ("even", "odd", "zero") else "unknown"


def _one_sided(values: Sequence[Parity]) -> Kind:
    kind = values[0].kind
    if kind in ("even", "zero"):
        return "even"
    return "mixed" if kind == "odd" else "unknown"


def _extreme(values: Sequence[Parity]) -> Kind:
    """Element-wise min and max; against 0 an odd value loses one side."""
    kinds = {value.kind for value in values}
    if kinds <= {"even", "zero"}:
        return "even"
    return "mixed" if kinds == {"odd", "zero"} else "unknown"


def _extreme_element(values: Sequence[Parity]) -> Kind:
    return "even" if values[0].kind in ("even", "zero") else "unknown"


def _power(values: Sequence[Parity]) -> Kind:
    base, exponent = values
    if base.kind in ("even", "zero"):
        return "even"
    if base.kind == "odd" and exponent.value is not None:
        if exponent.value % 2 == 0:
            return "even"
        return "odd" if exponent.value % 2 == 1 else "unknown"
    return "unknown"


def _angle(values: Sequence[Parity]) -> Kind:
    """atan2(y, x): odd where only y changes its sign."""
    y, x = (value.kind for value in values)
    if x not in ("even", "zero"):
        return "unknown"
    return "even" if y == "zero" else y if y in _SIGN else "unknown"


def _weighted_mean(values: Sequence[Parity]) -> Kind:
    kind, share = (value.kind for value in values)
    return kind if kind in _SIGN and share in _SIGN else "unknown"


def _chosen(values: Sequence[Parity]) -> Kind:
    """`where`: with an even condition a choice, with another one anything."""
    if values[0].kind not in ("even", "zero"):
        return "unknown"
    kinds = {value.kind for value in values[1:]} - {"zero"}
    return "mixed" if kinds == {"even", "odd"} else _one_of(values[1:])


def _clipped(values: Sequence[Parity], arguments: Sequence[Expression]) -> Kind:
    x, low, high = values
    if {x.kind, low.kind, high.kind} <= {"even", "zero"}:
        return "even"
    if x.kind != "odd" or not {low.kind, high.kind} <= {"even", "zero"}:
        return "unknown"
    if symmetric(arguments[1], arguments[2]):
        return "odd"
    return "mixed" if "zero" in (low.kind, high.kind) else "unknown"


def symmetric(low: Expression, high: Expression) -> bool:
    """Whether the bounds of a clip are one value with both signs."""
    if isinstance(low, Number) and isinstance(high, Number):
        return low.value == -high.value
    return low == Call("neg", (high,)) or high == Call("neg", (low,))


def _concatenated(values: Sequence[Parity]) -> Parity:
    order: list[int] = []
    for value in values:
        if value.order is None:
            return UNKNOWN
        order += [len(order) + i for i in value.order]
    return Parity(_one_of(values), tuple(order))


_REDUCING = (
    "reduce_sum",
    "reduce_mean",
    "reduce_min",
    "reduce_max",
    "weighted_mean",
    "norm",
    "dot",
)
_RULES = {
    **dict.fromkeys(("add", "sub"), _sum),
    **dict.fromkeys(_PRODUCTS, _product),
    **dict.fromkeys(_QUOTIENTS, _quotient),
    **dict.fromkeys(_ODD, _odd),
    **dict.fromkeys(_ODD_LOSSY, _odd_lossy),
    **dict.fromkeys(_EVEN, _even),
    **dict.fromkeys(_ONE_SIDED, _one_sided),
    **dict.fromkeys(("minimum", "maximum"), _extreme),
    **dict.fromkeys(("reduce_min", "reduce_max"), _extreme_element),
    "stack": _one_of,
    "pow": _power,
    "atan2": _angle,
    "weighted_mean": _weighted_mean,
    "where": _chosen,
}
