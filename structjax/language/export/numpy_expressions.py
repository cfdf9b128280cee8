"""Expressions as NumPy code for one observation."""

from collections.abc import Mapping, Sequence

from structjax.language.export.kinds import Kinds, constant
from structjax.language.operators import OPERATORS
from structjax.language.render import number_text
from structjax.language.structure import (
    Call,
    Expression,
    Index,
    Number,
    Observation,
    Previous,
    Slice,
    Variable,
    Weight,
)

_COMPARE, _SUM, _PRODUCT, _SIGN, _POWER, _ATOM = range(6)

_INFIX = {
    "add": ("+", _SUM),
    "sub": ("-", _SUM),
    "mul": ("*", _PRODUCT),
    "div": ("/", _PRODUCT),
    "lt": ("<", _COMPARE),
    "le": ("<=", _COMPARE),
    "gt": (">", _COMPARE),
    "ge": (">=", _COMPARE),
    "eq": ("==", _COMPARE),
    "ne": ("!=", _COMPARE),
}

NUMPY_NAMES = {
    "and_": "np.logical_and",
    "or_": "np.logical_or",
    "not_": "np.logical_not",
    "abs": "np.abs",
    "exp": "np.exp",
    "square": "np.square",
    "sign": "np.sign",
    "tanh": "np.tanh",
    "sin": "np.sin",
    "cos": "np.cos",
    "minimum": "np.minimum",
    "maximum": "np.maximum",
    "reduce_sum": "np.sum",
    "reduce_mean": "np.mean",
    "reduce_min": "np.min",
    "reduce_max": "np.max",
    "dot": "np.dot",
}
"""Operators that NumPy has as the language means them; `pow` becomes `power`."""


class Writer:
    """Writes expressions as code.

    Attributes:
      names: Python name of every field, weight and latent: keys as in
        `Observation(...)`, `Weight(...)` and `Variable(...)`.
      used: functions of the exported module that the code calls so far.
    """

    def __init__(self, kinds: Kinds, names: Mapping[Expression, str]) -> None:
        self._kinds = kinds
        self.names = names
        self.used: set[str] = set()

    def statement(self, expression: Expression) -> str:
        """The right-hand side of an assignment; a constant as float64."""
        if isinstance(expression, Number):
            return f"np.float64({constant(expression.value)!r})"
        return self._text(expression)[0]

    def real(self, expression: Expression) -> str:
        """The value as a number where it stands alone."""
        if self._kinds.boolean(expression):
            return self._operand(expression, 0)
        return self._argument(expression)

    def _argument(self, expression: Expression) -> str:
        """The value where it stands alone; whole numbers with a point.

        NumPy would compute with integers, which overflow and have no negative powers.
        """
        if isinstance(expression, Number):
            return repr(constant(expression.value))
        return self._within(expression, 0)

    def _operand(self, expression: Expression, least: int) -> str:
        """An operand that counts as a number, of at least this precedence."""
        if self._kinds.boolean(expression):
            text = self._within(expression, _PRODUCT + 1)
            return f"1.0 * {text}" if least <= _PRODUCT else f"(1.0 * {text})"
        return self._within(expression, least)

    def _within(self, expression: Expression, least: int) -> str:
        text, precedence = self._text(expression)
        return text if precedence >= least else f"({text})"

    def _text(self, expression: Expression) -> tuple[str, int]:
        match expression:
            case Number(value):
                text = number_text(constant(value))
                return text, _SIGN if text.startswith("-") else _ATOM
            case Observation() | Weight() | Variable():
                return self.names[expression], _ATOM
            case Previous(latent):
                return f"memory[{latent!r}]", _ATOM
            case Index(vector, position):
                return f"{self._within(vector, _ATOM)}[{position}]", _ATOM
            case Slice(vector, start, stop):
                return f"{self._within(vector, _ATOM)}[{start}:{stop}]", _ATOM
            case Call(operator, arguments):
                return self._call(operator, arguments)

    def _call(self, operator: str, arguments: Sequence[Expression]) -> tuple[str, int]:
        if operator in _INFIX:
            return self._infix(operator, arguments)
        if operator == "neg":
            return f"-{self._first(arguments, _SIGN + 1)}", _SIGN
        if operator == "pow":
            return self._power(*arguments)
        if operator in ("stack", "concat"):
            return self._joined(operator, arguments), _ATOM
        name = NUMPY_NAMES.get(operator, operator)
        if "." not in name:
            self.used.add(name)
        row = OPERATORS[operator]
        as_they_are = row.truths if row.result != "same" else range(len(arguments))
        texts = [
            self._argument(a) if i in as_they_are else self.real(a)
            for i, a in enumerate(arguments)
        ]
        return f"{name}({', '.join(texts)})", _ATOM

    def _first(self, arguments: Sequence[Expression], least: int) -> str:
        """The first operand; as float64 where Python would compute with its numbers.

        Python refuses to divide by zero and to overflow, NumPy gives infinities.
        """
        if all(isinstance(a, Number) for a in arguments):
            return f"np.float64({self._text(arguments[0])[0]})"
        return self._operand(arguments[0], least)

    def _infix(self, operator: str, arguments: Sequence[Expression]) -> tuple[str, int]:
        symbol, precedence = _INFIX[operator]
        # Comparisons chain in Python, so both sides need brackets there.
        least = precedence + 1 if precedence == _COMPARE else precedence
        left = self._first(arguments, least)
        right = self._operand(arguments[1], precedence + 1)
        return f"{left} {symbol} {right}", precedence

    def _power(self, base: Expression, exponent: Expression) -> tuple[str, int]:
        power = exponent.value if isinstance(exponent, Number) else 0.5
        if power.is_integer() and power > 0:
            return f"{self._first([base], _ATOM)} ** {int(power)}", _POWER
        self.used.add("power")
        return f"power({self.real(base)}, {self.real(exponent)})", _ATOM

    def _joined(self, operator: str, arguments: Sequence[Expression]) -> str:
        texts = ", ".join(map(self._argument, arguments))
        name = "np.array" if operator == "stack" else "np.concatenate"
        return f"{name}([{texts}])"
