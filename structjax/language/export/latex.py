"""Latents, actions and whole programs as LaTeX."""

from collections.abc import Callable, Mapping, Sequence

from structjax.language.export.formula import ACTION, formula, formula_names
from structjax.language.export.kinds import Kinds, weight_values
from structjax.language.operators import OPERATORS
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

_OR, _AND, _COMPARE, _SUM, _PRODUCT, _POWER, _ATOM = range(7)

_INFIX = {
    "add": ("+", _SUM),
    "sub": ("-", _SUM),
    "lt": ("<", _COMPARE),
    "le": (r"\leq", _COMPARE),
    "gt": (">", _COMPARE),
    "ge": (r"\geq", _COMPARE),
    "eq": ("=", _COMPARE),
    "ne": (r"\neq", _COMPARE),
    "and_": (r"\wedge", _AND),
    "or_": (r"\vee", _OR),
}

#: Operators written as a function of their arguments.
_FUNCTIONS = {
    "exp": r"\exp",
    "log": r"\log",
    "tanh": r"\tanh",
    "sin": r"\sin",
    "cos": r"\cos",
    "sigmoid": r"\sigma",
    "minimum": r"\min",
    "maximum": r"\max",
    "reduce_min": r"\min",
    "reduce_max": r"\max",
    "stack": "",
}

#: Operators written around their arguments.
_AROUND: dict[str, Callable[..., str]] = {
    "div": lambda a, b: rf"\frac{{{a}}}{{{b}}}",
    "safe_div": lambda a, b: rf"\frac{{{a}}}{{{b}}}",
    "abs": lambda x: rf"\left|{x}\right|",
    "norm": lambda v: rf"\left\| {v} \right\|",
    "dot": lambda a, b: rf"\left\langle {a}, {b} \right\rangle",
    "sqrt": lambda x: rf"\sqrt{{{x}}}",
    "relu": lambda x: rf"\max\left(0, {x}\right)",
    "normalise": lambda v: rf"\frac{{{v}}}{{\left\| {v} \right\|}}",
    "weighted_mean": lambda v, w: (
        rf"\frac{{\left\langle {v}, {w} \right\rangle}}"
        rf"{{\operatorname{{sum}}\left({w}\right)}}"
    ),
    "where": lambda c, a, b: (
        rf"\begin{{cases}} {a} & \text{{if }} {c} \\ {b} & \text{{else}} \end{{cases}}"
    ),
}


def latex(
    structure: Structure,
    name: str | None = None,
    *,
    inline: bool = False,
    values: Mapping[str, float] | None = None,
) -> str:
    r"""An equation for a latent or the mean of an action; all of them without a name.

    For reading: names are upright, the previous step's value has the index t - 1, a
    truth value that counts as a number stands in brackets, and the guards of roots,
    logarithms and divisions are left out.

    Args:
      structure: the program.
      name: a latent; an action where no latent has the name, or after `action.`.
      inline: in terms of observations and weights alone, without other latents.
      values: numbers in place of the weights; those that are not named are as written.

    Returns:
      `name = formula`, for math mode; an `align*` environment for a whole program.

    Raises:
      StructjaxError: no such name, or a formula that is too large.
    """
    if name is not None:
        left, right = _equation(structure, name, inline=inline, values=values)
        return f"{left} = {right}"
    names = formula_names(structure)
    rows = [_equation(structure, n, inline=inline, values=values) for n in names]
    body = " \\\\\n".join(f"  {left} &= {right}" for left, right in rows)
    return f"\\begin{{align*}}\n{body}\n\\end{{align*}}"


def _equation(
    structure: Structure,
    name: str,
    *,
    inline: bool,
    values: Mapping[str, float] | None,
) -> tuple[str, str]:
    wanted = formula(structure, name, inline=inline)
    numbers = None if values is None else weight_values(structure, values)
    text = _Text(Kinds(structure, None), numbers)
    for latent in wanted.definitions:
        text.known[latent.name] = text.parts(latent.expression)
    left = _name(name.removeprefix(ACTION))
    if name.startswith(ACTION):
        left = rf"\operatorname{{mean}}\left({left}\right)"
    return left, text.within(wanted.expression, 0)


def _name(name: str) -> str:
    escaped = name.replace("_", r"\_")
    return rf"\mathrm{{{escaped}}}"


def _number(value: float) -> str:
    digits, _, exponent = f"{value:.4g}".partition("e")
    if not exponent:
        return digits
    power = rf"10^{{{int(exponent)}}}"
    return {"1": power, "-1": f"-{power}"}.get(digits, rf"{digits} \cdot {power}")


class _Text:
    """Writes expressions; each part with how strongly it binds."""

    def __init__(self, kinds: Kinds, weights: Mapping[str, float] | None) -> None:
        self.known: dict[str, tuple[str, int]] = {}
        self._kinds = kinds
        self._weights = weights

    def within(self, expression: Expression, least: int) -> str:
        """The text where only what binds this strongly may stand."""
        text, precedence = self.parts(expression)
        return text if precedence >= least else rf"\left({text}\right)"

    def parts(self, expression: Expression) -> tuple[str, int]:
        """Text and precedence."""
        match expression:
            case Number(value):
                return self._constant(value)
            case Weight(name) if self._weights is not None:
                return self._constant(self._weights[name])
            case Weight(name):
                return _name(name), _ATOM
            case Variable(name):
                return self.known.get(name, (_name(name), _ATOM))
            case Call(operator, arguments):
                return self._call(operator, arguments)
            case _:
                return self._indexed(expression), _ATOM

    def _constant(self, value: float) -> tuple[str, int]:
        text = _number(value)
        if text.startswith("-"):
            return text, _SUM
        return text, _PRODUCT if r"\cdot" in text else _ATOM

    def _indexed(self, expression: Expression) -> str:
        match expression:
            case Observation(field):
                return _name(f"obs.{field}")
            case Previous(latent):
                return f"{_name(latent)}_{{t-1}}"
            case Index(vector, position):
                return f"{self._base(vector)}_{{{position}}}"
            case Slice(vector, start, stop):
                return f"{self._base(vector)}_{{{start}:{stop}}}"
        raise TypeError(f"{expression!r} has no index")

    def _base(self, vector: Expression) -> str:
        text = self.within(vector, _ATOM)
        return rf"\left({text}\right)" if text.endswith("}") and "_{" in text else text

    def _real(self, expression: Expression, least: int = 0) -> str:
        """An operand that counts as a number."""
        if self._kinds.boolean(expression):
            return rf"\left[{self.within(expression, 0)}\right]"
        return self.within(expression, least)

    def _call(self, operator: str, arguments: Sequence[Expression]) -> tuple[str, int]:
        if operator in _INFIX:
            return self._infix(operator, *arguments)
        if operator in ("mul", "neg", "not_", "pow", "square"):
            return _SPECIAL[operator](self, *arguments)
        if operator in ("minimum", "maximum"):
            arguments = _flat(operator, arguments)
        as_they_are = OPERATORS[operator].truths
        if OPERATORS[operator].result == "same":
            as_they_are = tuple(range(len(arguments)))
        texts = [
            self.within(a, 0) if i in as_they_are else self._real(a)
            for i, a in enumerate(arguments)
        ]
        if operator in _AROUND:
            atom = _PRODUCT if operator in ("div", "safe_div", "where") else _ATOM
            return _AROUND[operator](*texts), atom
        call = OPERATORS[operator].call.replace("_", r"\_")
        name = _FUNCTIONS.get(operator, rf"\operatorname{{{call}}}")
        return rf"{name}\left({', '.join(texts)}\right)", _ATOM

    def _infix(
        self, operator: str, left: Expression, right: Expression
    ) -> tuple[str, int]:
        symbol, precedence = _INFIX[operator]
        write = self.within if operator in ("and_", "or_") else self._real
        least = precedence + 1 if precedence == _COMPARE else precedence
        first, second = write(left, least), write(right, precedence + 1)
        return f"{first} {symbol} {second}", precedence

    def mul(self, left: Expression, right: Expression) -> tuple[str, int]:
        """A product: a thin space, or a dot before a number."""
        first, second = self._real(left, _PRODUCT), self._real(right, _PRODUCT + 1)
        dot = r"\cdot" if second[0].isdigit() else r"\,"
        return rf"{first} {dot} {second}", _PRODUCT

    def neg(self, x: Expression) -> tuple[str, int]:
        """A negative."""
        return f"-{self._real(x, _PRODUCT)}", _SUM

    def not_(self, x: Expression) -> tuple[str, int]:
        """A negation."""
        return rf"\neg {self.within(x, _ATOM)}", _COMPARE

    def pow(self, x: Expression, exponent: Expression) -> tuple[str, int]:
        """A power."""
        return f"{self._real(x, _ATOM)}^{{{self.within(exponent, 0)}}}", _POWER

    def square(self, x: Expression) -> tuple[str, int]:
        """A square."""
        return self.pow(x, Number(2.0))


_SPECIAL: dict[str, Callable[..., tuple[str, int]]] = {
    "mul": _Text.mul,
    "neg": _Text.neg,
    "not_": _Text.not_,
    "pow": _Text.pow,
    "square": _Text.square,
}


def _flat(operator: str, arguments: Sequence[Expression]) -> list[Expression]:
    """`min(min(a, b), c)` as `min(a, b, c)`."""
    found: list[Expression] = []
    for argument in arguments:
        if isinstance(argument, Call) and argument.operator == operator:
            found += _flat(operator, argument.arguments)
        else:
            found.append(argument)
    return found
