"""Values of unlike units that are added, subtracted or compared; angles not in rad.

A weight and a number can carry any unit, so a product with one is of unknown unit and
fits everything. A number that equals a unit's scale converts: 100 times `100 m/s`
is m/s.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from structjax.language.lint.forward import read
from structjax.language.lint.places import Part, definitions_of, text_of
from structjax.language.lint.units import PURE, RADIAN, Unit, parse_unit
from structjax.language.problem import Problem
from structjax.language.structure import (
    Call,
    Expression,
    Parameter,
    Structure,
    walk,
)
from structjax.schema import Field, Schema

_VERBS = {
    "add": "adds",
    "sub": "subtracts",
    "minimum": "compares",
    "maximum": "compares",
    "lt": "compares",
    "le": "compares",
    "gt": "compares",
    "ge": "compares",
    "atan2": "takes the angle of",
}
_JOINING = ("add", "sub", "minimum", "maximum", "stack", "concat", "clip")
_KEEPING = (
    "neg",
    "abs",
    "relu",
    "nan_clean",
    "norm",
    "reduce_sum",
    "reduce_mean",
    "reduce_min",
    "reduce_max",
    "weighted_mean",
    "rotate2d",
)
_POWERS = {"square": 2.0, "sqrt": 0.5}
_ANGLES = ("sin", "cos", "wrap_angle")


@dataclass(frozen=True)
class Quantity:
    """A unit, None where any is possible; the value of a constant."""

    unit: Unit | None
    value: float | None = None


_ANY = Quantity(None)


class Units:
    """The domain of units."""

    anything = _ANY

    def number(self, value: float) -> Quantity:
        """A constant: any unit."""
        return Quantity(None, value)

    def observed(self, field: Field) -> Quantity:
        """The unit that the schema names."""
        return Quantity(parse_unit(field.unit))

    def weight(self, parameter: Parameter) -> Quantity:
        """Any unit."""
        return _ANY

    def element(self, vector: Quantity, position: int) -> Quantity:
        """All elements have one unit."""
        return vector

    def part(self, vector: Quantity, start: int, stop: int) -> Quantity:
        """All elements have one unit."""
        return vector

    def either(self, one: Quantity, other: Quantity) -> Quantity:
        """The common unit, that of one where the other can be any."""
        return _joined([one, other])

    def call(
        self,
        operator: str,
        values: Sequence[Quantity],
        arguments: Sequence[Expression],
    ) -> Quantity:
        """The unit of a result."""
        try:
            return _result(operator, values)
        except ArithmeticError:
            return _ANY


def _result(operator: str, values: Sequence[Quantity]) -> Quantity:
    if operator in _JOINING:
        return _joined(values)
    if operator == "where":
        return _joined(values[1:])
    if operator in _KEEPING:
        return Quantity(values[0].unit)
    if operator in ("rotate", "rotate_inverse"):
        return Quantity(values[1].unit)
    if operator in ("atan2", "wrap_angle"):
        return Quantity(RADIAN)
    if operator in ("mul", "dot"):
        return _product(values[0], values[1])
    if operator in ("div", "safe_div"):
        return _quotient(values[0], values[1])
    exponent = values[1].value if operator == "pow" else _POWERS.get(operator)
    unit = values[0].unit
    if exponent is None or unit is None:
        return _ANY
    return Quantity(PURE.times(unit, exponent))


def _joined(values: Sequence[Quantity]) -> Quantity:
    units = [value.unit for value in values if value.unit is not None]
    if not units or not all(units[0].like(unit) for unit in units):
        return _ANY
    return Quantity(units[0])


def _product(one: Quantity, other: Quantity) -> Quantity:
    if one.unit is not None and other.unit is not None:
        return Quantity(one.unit.times(other.unit))
    return (
        Quantity(_converted(one.unit, other.value, 1.0))
        if one.unit
        else (Quantity(_converted(other.unit, one.value, 1.0)))
    )


def _quotient(one: Quantity, other: Quantity) -> Quantity:
    if one.unit is not None and other.unit is not None:
        return Quantity(one.unit.times(other.unit, -1.0))
    return Quantity(_converted(one.unit, other.value, -1.0))


def _converted(unit: Unit | None, factor: float | None, power: float) -> Unit | None:
    """The unit of a value that was multiplied by a number to this power."""
    if unit is None or factor is None:
        return None
    if abs(factor) == 1:
        return unit
    if power == 1 and math.isclose(abs(factor), unit.scale, rel_tol=1e-3):
        return Unit(1.0, unit.powers)
    return None


def unit_problems(
    structure: Structure, schema: Schema, parts: Sequence[Part]
) -> Iterator[Problem]:
    """Unlike units and wrong angles; the turns of a loop count once."""
    reading = read(structure, schema, Units())
    known = definitions_of(parts)
    seen: set[tuple[object, ...]] = set()
    for part in parts:
        for node in walk(part.expression):
            if not isinstance(node, Call):
                continue
            units = [reading.of(argument).unit for argument in node.arguments]
            place = (part.line, node.operator, *units)
            problem = _problem(node, units, part, known)
            if problem is not None and place not in seen:
                seen.add(place)
                yield problem


def _problem(
    node: Call,
    units: Sequence[Unit | None],
    part: Part,
    known: Mapping[str, Expression],
) -> Problem | None:
    if None in units:
        return None
    found = [unit for unit in units if unit is not None]
    if node.operator in _VERBS and not found[0].like(found[1]):
        return _unlike(node, found, part, known)
    accepted = found[0].like(RADIAN) or found[0].like(PURE) if found else True
    if node.operator in _ANGLES and not accepted:
        return _not_radian(node, found[0], part, known)
    return None


def _unlike(
    node: Call, units: Sequence[Unit], part: Part, known: Mapping[str, Expression]
) -> Problem:
    one, other = (_shown(unit) for unit in units)
    text = (
        f"`{text_of(node, known)}` {_VERBS[node.operator]} unlike units: "
        f"`{text_of(node.arguments[0], known)}` is in {one}, "
        f"`{text_of(node.arguments[1], known)}` in {other}"
    )
    hint = "bring one to the unit of the other, with a weight or a named constant"
    return Problem("UNLIKE_UNITS", "warning", part.line, text, hint)


def _not_radian(
    node: Call, unit: Unit, part: Part, known: Mapping[str, Expression]
) -> Problem:
    name = text_of(node.arguments[0], known)
    text = f"`{node.operator}` takes rad, `{name}` is in {_shown(unit)}"
    factor = "pi" if math.isclose(unit.scale, math.pi) else f"{unit.scale:.4g}"
    hint = "an angle in rad is accepted"
    if unit.powers == RADIAN.powers:
        hint = f"write `{node.operator}({factor} * ...)`"
    return Problem("ANGLE_UNIT", "warning", part.line, text, hint)


def _shown(unit: Unit) -> str:
    return "no unit" if unit == PURE else str(unit)
