"""Structure -> program text; parsing the text gives an equal Structure."""

from collections.abc import Mapping, Sequence

from structjax.language.operators import OPERATORS
from structjax.language.structure import (
    Call,
    Expression,
    Head,
    Index,
    Number,
    Observation,
    Parameter,
    Previous,
    Slice,
    Structure,
    Variable,
    Weight,
)
from structjax.language.syntax import MAX_NUMBER

INSIDE = 1e-7

_TERNARY, _OR, _AND, _NOT, _COMPARE, _SUM, _PRODUCT, _SIGN, _POWER, _ATOM = range(10)

#: Infix operator -> symbol and precedence.
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
    "and_": ("and", _AND),
    "or_": ("or", _OR),
}
_ZERO = Number(0.0)
_TRUTHS = {Call("eq", (_ZERO, _ZERO)): "True", Call("ne", (_ZERO, _ZERO)): "False"}


def render(
    structure: Structure,
    docs: Mapping[str, str] | None = None,
    values: Mapping[str, float] | None = None,
) -> str:
    """The program of a structure.

    Args:
      structure: what to print; helpers and loops appear inlined.
      docs: name -> documentation, printed as comments; `""` as the docstring.
      values: parameter -> value, e.g. fitted ones, in place of the initial values;
        one on a bound or beyond is printed just inside.

    Returns:
      Text that `parse` accepts; without `values` its structure is equal.
    """
    docs = docs or {}
    values = {
        p.name: inside(values[p.name], p) if values and p.name in values else p.initial
        for p in structure.parameters
    }
    implied = _implied(structure)
    lines = [f'"""{_docstring(docs[""])}"""', ""] if docs.get("") else []
    weights = [p for p in structure.parameters if p.name not in implied]
    lines += [_commented(_weight(p, values), docs.get(p.name, "")) for p in weights]
    lines += ["", "", "def policy(obs):"] if lines else ["def policy(obs):"]
    for latent in structure.latents:
        text = f"    {latent.name} = {_print(latent.expression, top=True)}"
        lines.append(_commented(text, docs.get(latent.name, "")))
    heads = [_head(head, implied, values) for head in structure.heads]
    if structure.coupling:
        pairs = ", ".join(_print(e, top=True) for e in structure.coupling)
        one = len(structure.coupling) == 1
        heads.append(f"coupling={pairs}" if one else f"coupling=stack({pairs})")
    return "\n".join([*lines, f"    return action({', '.join(heads)})"]) + "\n"


def expression_text(expression: Expression) -> str:
    """One expression as program text."""
    return _print(expression, top=True)


def number_text(value: float) -> str:
    """A number that reads back exactly; whole numbers without a point."""
    value = float(value)
    if value == int(value) and abs(value) < 1e15:
        return str(int(value))
    return repr(value)


def _implied(structure: Structure) -> set[str]:
    """Parameters that heads imply: an std that is the action's own bounded weight."""
    bounded = {p.name for p in structure.parameters if None not in (p.low, p.high)}
    stds = {Weight(f"std_{h.action}"): h for h in structure.heads if h.arguments[1:]}
    return {
        std.name
        for std, head in stds.items()
        if head.arguments[1] == std and std.name in bounded
    }


def inside(value: float, parameter: Parameter) -> float:
    """A fitted value; on a bound, as saturation can leave it, just inside.

    Also inside the numbers that a program may hold.
    """
    value = max(-MAX_NUMBER, min(MAX_NUMBER, value))
    low, high = parameter.low, parameter.high
    margin = INSIDE if low is None or high is None else INSIDE * (high - low)
    if low is not None and value <= low:
        value = low + margin
    return float(high - margin if high is not None and value >= high else value)


def _weight(parameter: Parameter, values: Mapping[str, float]) -> str:
    options = [repr(float(values[parameter.name]))]
    if parameter.low is not None:
        options.append(f"low={float(parameter.low)!r}")
    if parameter.high is not None:
        options.append(f"high={float(parameter.high)!r}")
    return f"{parameter.name} = weight({', '.join(options)})"


def _head(head: Head, implied: set[str], initial: Mapping[str, float]) -> str:
    arguments = [_print(argument, top=True) for argument in head.arguments]
    if head.family == "categorical":
        return f"{head.action}=categorical({', '.join(arguments)})"
    mean, std = arguments
    match head.arguments[1]:
        case Weight(name) if name in implied:
            std = repr(float(initial[name]))
        case Number(value):
            std = f"fixed({value!r})"
        case Call("clip", (inner, Number(), Number())):
            # The action's own bounds, which parsing adds again.
            std = _print(inner, top=True)
        case _:
            std = f"exact({std})"
    return f"{head.action}={head.family}({mean}, std={std})"


def _commented(text: str, doc: str) -> str:
    plain = " ".join(_printable(doc).split())
    return f"{text}  # {plain}" if plain else text


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() or c == "\n" else " " for c in text)


def _docstring(text: str) -> str:
    escaped = _printable(text).replace("\\", "\\\\")
    closing = '"""' in escaped or escaped.endswith('"')
    return escaped.replace('"', '\\"') if closing else escaped


def _print(expression: Expression, *, top: bool = False) -> str:
    text, precedence = _text(expression, top=top)
    return f"({text})" if precedence == _TERNARY and not top else text


def _within(expression: Expression, least: int) -> str:
    """The text as an operand of at least this precedence."""
    text, precedence = _text(expression)
    return text if precedence >= least else f"({text})"


def _text(expression: Expression, *, top: bool = False) -> tuple[str, int]:
    """Text and precedence."""
    match expression:
        case Number(value):
            return number_text(value), _SIGN if str(value).startswith("-") else _ATOM
        case Observation(field):
            return f"obs.{field}", _ATOM
        case Weight(name) | Variable(name):
            return name, _ATOM
        case Index(vector, position):
            return f"{_within(vector, _ATOM)}[{position}]", _ATOM
        case Previous(latent, initial):
            truth = isinstance(initial, bool)
            start = str(initial) if truth else number_text(initial)
            return f"previous({latent}, start={start})", _ATOM
        case Slice(vector, start, stop):
            return f"{_within(vector, _ATOM)}[{start}:{stop}]", _ATOM
        case Call(operator, arguments):
            return _call(expression, operator, arguments, top)


def _call(
    expression: Call, operator: str, arguments: Sequence[Expression], top: bool
) -> tuple[str, int]:
    if expression in _TRUTHS:
        return _TRUTHS[expression], _ATOM
    if operator in _INFIX:
        return _infix(operator, arguments)
    if operator == "neg":
        return f"-{_within(arguments[0], _POWER)}", _SIGN
    if operator == "not_":
        return f"not {_within(arguments[0], _NOT)}", _NOT
    if operator == "pow":
        base, exponent = arguments
        return f"{_within(base, _ATOM)} ** {_print(exponent)}", _POWER
    if operator == "where" and top:
        condition, one, other = (_within(a, _OR) for a in arguments)
        return f"{one} if {condition} else {other}", _TERNARY
    if operator in ("minimum", "maximum"):
        arguments = _flat(operator, arguments)
    name = OPERATORS[operator].call
    return f"{name}({', '.join(_print(a) for a in arguments)})", _ATOM


def _flat(operator: str, arguments: Sequence[Expression]) -> list[Expression]:
    """`min(min(a, b), c)` as `min(a, b, c)`."""
    tail: list[Expression] = []
    first, last = arguments
    while isinstance(first, Call) and first.operator == operator:
        tail.append(last)
        first, last = first.arguments
    return [first, last, *reversed(tail)]


def _infix(operator: str, arguments: Sequence[Expression]) -> tuple[str, int]:
    symbol, precedence = _INFIX[operator]
    left, right = arguments
    # Comparisons chain in Python, so both sides need brackets there.
    least = precedence + 1 if precedence == _COMPARE else precedence
    return (
        f"{_within(left, least)} {symbol} {_within(right, precedence + 1)}",
        precedence,
    )
