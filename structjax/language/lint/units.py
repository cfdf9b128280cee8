"""Units of measurement: `100 m/s`, `rad`, products and powers of them."""

import math
import re
from dataclasses import dataclass

_TOLERANCE = 1e-3

#: Names of units that are made of others: scale and text.
_MADE_OF: dict[str, tuple[float, str]] = {
    "deg": (math.pi / 180, "rad"),
    "degree": (math.pi / 180, "rad"),
    "degrees": (math.pi / 180, "rad"),
    "radians": (1.0, "rad"),
    "km": (1e3, "m"),
    "cm": (1e-2, "m"),
    "mm": (1e-3, "m"),
    "ms": (1e-3, "s"),
    "min": (60.0, "s"),
    "h": (3600.0, "s"),
    "g": (1e-3, "kg"),
    "Hz": (1.0, "1/s"),
    "N": (1.0, "kg m/s^2"),
    "J": (1.0, "kg m^2/s^2"),
    "W": (1.0, "kg m^2/s^3"),
    "%": (0.01, ""),
}
_WORD = re.compile(
    r"\s*(?:(?P<operator>[*/])|(?P<number>\d+\.?\d*(?:e[+-]?\d+)?|\.\d+|pi\b)"
    r"|(?P<name>[A-Za-z_%]+)(?:\^|\*\*)?(?P<power>-?\d+)?)"
)


@dataclass(frozen=True)
class Unit:
    """A scale times powers of base units.

    Attributes:
      scale: of one, in base units.
      powers: base unit and exponent, by name; exponents are not 0.
    """

    scale: float
    powers: tuple[tuple[str, float], ...] = ()

    def times(self, other: "Unit", power: float = 1.0) -> "Unit":
        """The product with a power of another unit.

        Raises:
          ArithmeticError: the scale is beyond a float.
        """
        exponents = dict(self.powers)
        for name, exponent in other.powers:
            exponents[name] = exponents.get(name, 0.0) + power * exponent
        kept = tuple(sorted((n, e) for n, e in exponents.items() if abs(e) > 1e-9))
        return Unit(self.scale * other.scale**power, kept)

    def like(self, other: "Unit") -> bool:
        """Whether numbers in both may be added."""
        same = math.isclose(self.scale, other.scale, rel_tol=_TOLERANCE)
        return same and self.powers == other.powers

    def __str__(self) -> str:
        above = [_power(name, e) for name, e in self.powers if e > 0]
        below = [_power(name, -e) for name, e in self.powers if e < 0]
        scale = "pi" if math.isclose(self.scale, math.pi) else f"{self.scale:.4g}"
        numbers = [scale] if scale != "1" or not above else []
        return "/".join([" ".join(numbers + above), *below])


def _power(name: str, exponent: float) -> str:
    return name if exponent == 1 else f"{name}^{exponent:g}"


PURE = Unit(1.0)
RADIAN = Unit(1.0, (("rad", 1.0),))


def parse_unit(text: str) -> Unit | None:
    """The unit of a schema's text, `"100 m/s"`; None where it cannot be read."""
    unit, power, position = PURE, 1.0, 0
    text = text.strip()
    while position < len(text):
        word = _WORD.match(text, position)
        if word is None:
            return None
        position = word.end()
        if word["operator"]:
            power = -1.0 if word["operator"] == "/" else power
            continue
        try:
            unit = unit.times(_factor(word), power)
        except ArithmeticError:
            return None
        power = 1.0
    return unit


def _factor(word: re.Match[str]) -> Unit:
    """One number or named unit with its exponent."""
    if word["number"]:
        value = math.pi if word["number"] == "pi" else float(word["number"])
        return Unit(value)
    name, exponent = word["name"], float(word["power"] or 1)
    if name not in _MADE_OF:
        return PURE.times(Unit(1.0, ((name, 1.0),)), exponent)
    scale, text = _MADE_OF[name]
    base = parse_unit(text) or PURE
    return PURE.times(Unit(scale * base.scale, base.powers), exponent)
