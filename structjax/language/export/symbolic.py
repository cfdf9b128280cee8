"""Latents and actions as SymPy expressions."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from structjax.errors import StructjaxError
from structjax.language.export.formula import formula
from structjax.language.export.kinds import Kinds, weight_values
from structjax.language.structure import (
    Call,
    Expression,
    Index,
    Number,
    Observation,
    Previous,
    Slice,
    Structure,
    Variable,
    Weight,
)
from structjax.schema import Schema


def sympy_expression(
    structure: Structure,
    schema: Schema,
    name: str,
    *,
    inline: bool = False,
    values: Mapping[str, float] | None = None,
) -> Any:
    """A latent, or the mean of an action, as a SymPy expression.

    Symbols are real: `obs.speed`, `obs.tiles.x[3]`, weights and other latents under
    their names, `previous(phase)`. Truth values are relations; where they count as
    numbers, 0 and 1. Guards are written out, so the expression computes what the policy
    does, up to rounding, wherever that is finite; `nan_clean` is left out.

    Args:
      structure: the program.
      schema: the task's fields.
      name: a latent; an action where no latent has the name, or after `action.`.
      inline: in terms of observations and weights alone, without other latents.
      values: numbers in place of the weights; those that are not named are as written.

    Returns:
      An expression; a list of them for a vector.

    Raises:
      StructjaxError: the extra `export` is not installed; no such name; a formula that
        is too large.
    """
    sympy = _sympy()
    wanted = formula(structure, name, inline=inline)
    numbers = None if values is None else weight_values(structure, values)
    terms = _Terms(sympy, structure, schema, numbers)
    for latent in wanted.definitions:
        terms.known[latent.name] = terms.value(latent.expression)
    return terms.value(wanted.expression)


def _sympy() -> Any:
    try:
        import sympy
    except ImportError as error:
        raise StructjaxError(
            "a SymPy expression needs the package sympy",
            kind="extra",
            hint="pip install 'structjax[export]'",
        ) from error
    return sympy


class _Terms:
    """Turns expressions into SymPy's; vectors are lists."""

    def __init__(
        self,
        sympy: Any,
        structure: Structure,
        schema: Schema,
        weights: Mapping[str, float] | None,
    ) -> None:
        self.sympy = sympy
        self.known: dict[str, Any] = {}
        self._kinds = Kinds(structure, schema)
        self._weights = weights

    def symbol(self, name: str) -> Any:
        """A real symbol."""
        return self.sympy.Symbol(name, real=True)

    def number(self, value: float) -> Any:
        """A number; whole ones are integers."""
        whole = value == int(value)
        return self.sympy.Integer(int(value)) if whole else self.sympy.Float(value)

    def value(self, expression: Expression) -> Any:
        """The expression, a list for a vector."""
        match expression:
            case Index(Observation(field), position):
                return self.symbol(f"obs.{field}[{position}]")
            case Index(vector, position):
                return self.value(vector)[position]
            case Slice(Observation(field), start, stop):
                return [self.symbol(f"obs.{field}[{i}]") for i in range(start, stop)]
            case Slice(vector, start, stop):
                return self.value(vector)[start:stop]
            case Call(operator, arguments):
                return self._call(operator, arguments)
            case _:
                return self._leaf(expression)

    def _leaf(self, expression: Expression) -> Any:
        match expression:
            case Number(value):
                return self.number(value)
            case Weight(name):
                known = None if self._weights is None else self._weights[name]
                return self.symbol(name) if known is None else self.number(known)
            case Observation(field):
                return self._elements(f"obs.{field}", self._kinds.size(expression))
            case Previous(latent):
                symbol = self.symbol(f"previous({latent})")
                return self._truth_of(symbol, expression)
            case Variable():
                return self._variable(expression)

    def _elements(self, name: str, size: int | None) -> Any:
        if size is None:
            return self.symbol(name)
        return [self.symbol(f"{name}[{i}]") for i in range(size)]

    def _variable(self, variable: Variable) -> Any:
        if variable.name in self.known:
            return self.known[variable.name]
        found = self._elements(variable.name, self._kinds.size(variable))
        return self._truth_of(found, variable)

    def _truth_of(self, symbols: Any, expression: Expression) -> Any:
        """The symbols; those of a truth value stand for its 0 or 1."""
        if not self._kinds.boolean(expression):
            return symbols
        return _mapped(lambda symbol: self.sympy.Ne(symbol, 0), [symbols])

    def _call(self, operator: str, arguments: Sequence[Expression]) -> Any:
        if operator in ("and_", "or_", "not_"):
            rule = getattr(self, operator)
            return _mapped(rule, [self.value(argument) for argument in arguments])
        boolean = self._kinds.boolean(Call(operator, tuple(arguments)))
        if operator == "where":
            branches = self._alike(arguments[1:], boolean=boolean)
            return _mapped(self.where, [self.value(arguments[0]), *branches])
        if operator in _JOINING:
            parts = self._alike(arguments, boolean=boolean)
            return parts if operator == "stack" else [x for part in parts for x in part]
        numbers = [self._real(argument) for argument in arguments]
        if operator in _VECTOR:
            return _VECTOR[operator](self, *numbers)
        return _mapped(lambda *x: _ELEMENT[operator](self, *x), numbers)

    def _alike(self, arguments: Sequence[Expression], *, boolean: bool) -> list[Any]:
        """All of them truth values, or all of them numbers."""
        return [self.value(a) if boolean else self._real(a) for a in arguments]

    def _real(self, expression: Expression) -> Any:
        value = self.value(expression)
        if not self._kinds.boolean(expression):
            return value
        return _mapped(
            lambda truth: self.where(truth, self.number(1), self.number(0)), [value]
        )

    def and_(self, a: Any, b: Any) -> Any:
        """Both."""
        return self.sympy.And(a, b)

    def or_(self, a: Any, b: Any) -> Any:
        """Either."""
        return self.sympy.Or(a, b)

    def not_(self, a: Any) -> Any:
        """Negation."""
        return self.sympy.Not(a)

    def where(self, condition: Any, a: Any, b: Any) -> Any:
        """`a` where the condition holds, else `b`; for truth values too."""
        if getattr(a, "is_Boolean", False) and getattr(b, "is_Boolean", False):
            return self.sympy.ITE(condition, a, b)
        return self.sympy.Piecewise((a, condition), (b, True), evaluate=False)

    def largest(self, *values: Any) -> Any:
        """The largest; not simplified, which takes long for large formulas."""
        return self.sympy.Max(*values, evaluate=False)

    def smallest(self, *values: Any) -> Any:
        """The smallest."""
        return self.sympy.Min(*values, evaluate=False)

    def safe_div(self, a: Any, b: Any) -> Any:
        """Quotient, 0 where |b| < 1e-6."""
        small = self.sympy.Abs(b) < self.number(1e-6)
        return self.where(small, self.number(0), a / b)

    def power(self, x: Any, exponent: Any) -> Any:
        """Power; the base of a fractional exponent is floored."""
        if not exponent.is_Integer:
            x = self.largest(x, self.number(0.0 if exponent > 0 else 1e-6))
        return x**exponent

    def atan2(self, y: Any, x: Any) -> Any:
        """Angle of the point; 0 at the origin."""
        origin = self.sympy.And(self.sympy.Eq(x, 0), self.sympy.Eq(y, 0))
        return self.where(origin, self.number(0), self.sympy.atan2(y, x))

    def length(self, v: Sequence[Any]) -> Any:
        """Length of a vector."""
        return self.sympy.sqrt(sum(x * x for x in v))

    def rotated2d(self, v: Sequence[Any], angle: Any) -> list[Any]:
        """The plane vector turned."""
        c, s = self.sympy.cos(angle), self.sympy.sin(angle)
        return [c * v[0] - s * v[1], s * v[0] + c * v[1]]

    def rotated(self, q: Sequence[Any], v: Sequence[Any], direction: int) -> list[Any]:
        """The vector v + 2 u x (u x v + w v) / |q|^2, u = direction * (x, y, z)."""
        axis = [direction * x for x in q[:3]]
        inner = [c + q[3] * x for c, x in zip(_cross(axis, v), v, strict=True)]
        scale = self.safe_div(self.number(2), sum(x * x for x in q))
        turned = zip(v, _cross(axis, inner), strict=True)
        return [x + scale * c for x, c in turned]


def _mapped(function: Callable[..., Any], values: Sequence[Any]) -> Any:
    """The function of scalars, or element by element where one is a list."""
    sizes = {len(value) for value in values if isinstance(value, list)}
    if not sizes:
        return function(*values)
    rows = [v if isinstance(v, list) else [v] * max(sizes) for v in values]
    return [function(*row) for row in zip(*rows, strict=True)]


def _cross(a: Sequence[Any], b: Sequence[Any]) -> list[Any]:
    (ax, ay, az), (bx, by, bz) = a, b
    return [ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx]


def _dot(a: Sequence[Any], b: Sequence[Any]) -> Any:
    return sum(x * y for x, y in zip(a, b, strict=True))


_JOINING = ("stack", "concat")

_ELEMENT: dict[str, Callable[..., Any]] = {
    "add": lambda t, a, b: a + b,
    "sub": lambda t, a, b: a - b,
    "mul": lambda t, a, b: a * b,
    "div": lambda t, a, b: a / b,
    "pow": _Terms.power,
    "neg": lambda t, x: -x,
    "lt": lambda t, a, b: t.sympy.Lt(a, b),
    "le": lambda t, a, b: t.sympy.Le(a, b),
    "gt": lambda t, a, b: t.sympy.Gt(a, b),
    "ge": lambda t, a, b: t.sympy.Ge(a, b),
    "eq": lambda t, a, b: t.sympy.Eq(a, b),
    "ne": lambda t, a, b: t.sympy.Ne(a, b),
    "abs": lambda t, x: t.sympy.Abs(x),
    "relu": lambda t, x: t.largest(x, t.number(0)),
    "clip": lambda t, x, low, high: t.smallest(t.largest(x, low), high),
    "softplus": lambda t, x: t.sympy.log(1 + t.sympy.exp(x)),
    "sqrt": lambda t, x: t.sympy.sqrt(t.largest(x, t.number(0))),
    "exp": lambda t, x: t.sympy.exp(x),
    "log": lambda t, x: t.sympy.log(t.largest(x, t.number(1e-6))),
    "square": lambda t, x: x**2,
    "sign": lambda t, x: t.sympy.sign(x),
    "tanh": lambda t, x: t.sympy.tanh(x),
    "sigmoid": lambda t, x: 1 / (1 + t.sympy.exp(-x)),
    "sin": lambda t, x: t.sympy.sin(x),
    "cos": lambda t, x: t.sympy.cos(x),
    "atan2": _Terms.atan2,
    "wrap_angle": lambda t, x: (
        x - 2 * t.sympy.pi * t.sympy.floor((x + t.sympy.pi) / (2 * t.sympy.pi))
    ),
    "safe_div": _Terms.safe_div,
    "nan_clean": lambda t, x: x,
    "minimum": _Terms.smallest,
    "maximum": _Terms.largest,
}

_VECTOR: dict[str, Callable[..., Any]] = {
    "reduce_sum": lambda t, v: sum(v),
    "reduce_mean": lambda t, v: sum(v) / len(v),
    "reduce_min": lambda t, v: t.smallest(*v),
    "reduce_max": lambda t, v: t.largest(*v),
    "weighted_mean": lambda t, v, w: t.safe_div(_dot(v, w), sum(w)),
    "norm": _Terms.length,
    "dot": lambda t, a, b: _dot(a, b),
    "normalise": lambda t, v: [t.safe_div(x, t.length(v)) for x in v],
    "rotate2d": _Terms.rotated2d,
    "rotate": lambda t, q, v: t.rotated(q, v, 1),
    "rotate_inverse": lambda t, q, v: t.rotated(q, v, -1),
}
