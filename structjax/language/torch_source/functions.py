"""Element-wise functions of PyTorch, with its derivatives at kinks."""

from collections.abc import Callable
from typing import Any

from structjax.language.structure import Number
from structjax.language.torch_source.bounds import least
from structjax.language.torch_source.elementwise import elementwise
from structjax.language.torch_source.linear import BEYOND
from structjax.language.torch_source.refusal import Refused
from structjax.language.torch_source.trace import Trace
from structjax.language.torch_source.values import Tensor, kind, tensor

LOG_FLOOR = 1e-6
"""`log` of the language floors its argument here."""


def unary(operator: str) -> Callable[..., Tensor]:
    """A function of one tensor that the language has."""

    def apply(trace: Trace, input: Any) -> Tensor:
        return elementwise(trace, operator, input)

    return apply


def binary(operator: str) -> Callable[..., Tensor]:
    """A function of two tensors that the language has."""

    def apply(trace: Trace, input: Any, other: Any) -> Tensor:
        return elementwise(trace, operator, input, other)

    return apply


def clamp(trace: Trace, input: Any, min: Any = None, max: Any = None) -> Tensor:
    """Kept between bounds, one of which may be missing; derivative 1 at an edge."""
    if min is None and max is None:
        raise Refused("ARITY", "clamp without a bound", "give `min`, `max` or both")
    low = -BEYOND if min is None else min
    high = BEYOND if max is None else max
    return elementwise(trace, "clip", input, low, high)


def clamp_min(trace: Trace, input: Any, min: Any) -> Tensor:
    """At least a bound."""
    return clamp(trace, input, min)


def clamp_max(trace: Trace, input: Any, max: Any) -> Tensor:
    """At most a bound."""
    return clamp(trace, input, None, max)


def softplus(
    trace: Trace, input: Any, beta: Any = 1.0, threshold: Any = 20.0
) -> Tensor:
    """log(1 + exp(beta x)) / beta; the threshold makes no difference in float32."""
    if not isinstance(threshold, int | float) or threshold < 15:
        raise Refused("CALL", f"softplus with threshold={threshold}", "20 is accepted")
    scaled = elementwise(trace, "mul", input, beta)
    return elementwise(trace, "div", elementwise(trace, "softplus", scaled), beta)


def where(trace: Trace, condition: Any, input: Any = None, other: Any = None) -> Tensor:
    """A choice by a truth value."""
    if input is None or other is None:
        raise Refused("ARITY", "where without values", "`torch.where(cond, a, b)`")
    truth(condition)
    return elementwise(trace, "where", condition, input, other)


def truth(value: Any) -> Tensor:
    """A tensor of truth values.

    Raises:
      Refused: it holds numbers.
    """
    operand = tensor(value)
    if not operand.boolean:
        hint = "write a comparison such as `x > 0`"
        raise Refused("TYPE", "numbers where truth values are needed", hint)
    return operand


def logical(operator: str) -> Callable[..., Tensor]:
    """`logical_and`, `&` and the like; numbers count as their being non-zero."""

    def apply(trace: Trace, *operands: Any) -> Tensor:
        tensors = [tensor(operand) for operand in operands]
        truths = [t if t.boolean else elementwise(trace, "ne", t, 0.0) for t in tensors]
        return elementwise(trace, operator, *truths)

    return apply


def sqrt(trace: Trace, input: Any) -> Tensor:
    """Square root; the language's own is guarded at 0 and below."""
    guarded(trace, input, "`sqrt`")
    return elementwise(trace, "sqrt", input)


def log(trace: Trace, input: Any) -> Tensor:
    """Natural logarithm; the language's own floors its argument."""
    guarded(trace, input, "`log`", LOG_FLOOR)
    return elementwise(trace, "log", input)


def log1p(trace: Trace, input: Any) -> Tensor:
    """log(1 + x)."""
    return log(trace, elementwise(trace, "add", input, 1.0))


def guarded(trace: Trace, value: Any, name: str, floor: float = 0.0) -> None:
    """Warns where an argument may come to the guard and the guard would show.

    At the floor itself only the derivative differs, and nobody asks for one unless a
    parameter is involved.
    """
    for expression in dict.fromkeys(tensor(value).elements.flat):
        if isinstance(expression, Number):
            continue
        bound = least(expression, trace)
        if bound > floor or (bound == floor and not trace.trainable(expression)):
            continue
        text = (
            f"{name} has value and derivative 0 where PyTorch's are NaN or infinite"
            if floor == 0
            else f"{name} has its argument floored at {LOG_FLOOR:g}, PyTorch's has not"
        )
        trace.warn("GUARDED", text, "add a small positive number to the argument")
        return


def atan2(trace: Trace, input: Any, other: Any) -> Tensor:
    """Angle of a point; the language's own is 0 at the origin."""
    right = tensor(other).elements.flat
    if not all(least(expression, trace) > 0 for expression in right):
        text = "`atan2` is 0 at the origin, PyTorch's depends on the signs of the zeros"
        trace.warn(
            "GUARDED", text, "add a small positive number to the second argument"
        )
    return elementwise(trace, "atan2", input, other)


def power(trace: Trace, input: Any, exponent: Any) -> Tensor:
    """A power with a constant exponent."""
    if isinstance(exponent, Tensor) and exponent.elements.size == 1:
        only = exponent.elements.flat[0]
        exponent = only.value if isinstance(only, Number) else exponent
    if isinstance(exponent, bool) or not isinstance(exponent, int | float):
        raise Refused("POW", f"{kind(exponent)} as an exponent", "write a constant")
    if not -4 <= exponent <= 4:
        text = f"exponent {exponent:g} is not in [-4, 4]"
        raise Refused("POW", text, "write products")
    if exponent == 0.5:
        return sqrt(trace, input)
    if exponent != int(exponent):
        guarded(trace, input, "a fractional power")
    return elementwise(trace, "pow", input, float(exponent))


def leaky_relu(trace: Trace, input: Any, negative_slope: Any = 0.01) -> Tensor:
    """X above 0, a share of it below."""
    above = elementwise(trace, "gt", input, 0.0)
    return elementwise(
        trace, "where", above, input, elementwise(trace, "mul", input, negative_slope)
    )


def reciprocal(trace: Trace, input: Any) -> Tensor:
    """1 / x."""
    return elementwise(trace, "div", 1.0, input)


def lerp(trace: Trace, input: Any, end: Any, weight: Any) -> Tensor:
    """Input + weight (end - input)."""
    way = elementwise(trace, "mul", weight, elementwise(trace, "sub", end, input))
    return elementwise(trace, "add", input, way)


def isnan(trace: Trace, input: Any) -> Tensor:
    """Whether a value is not a number."""
    return elementwise(trace, "ne", input, input)


def isfinite(trace: Trace, input: Any) -> Tensor:
    """Whether a value is neither NaN nor infinite."""
    return elementwise(trace, "le", elementwise(trace, "abs", input), BEYOND)


def isinf(trace: Trace, input: Any) -> Tensor:
    """Whether a value is infinite."""
    return elementwise(trace, "gt", elementwise(trace, "abs", input), BEYOND)


ELEMENTWISE: dict[str, Callable[..., Any]] = {
    **{
        name: unary(name)
        for name in ("abs", "exp", "relu", "square", "sign", "tanh", "sigmoid")
    },
    **{name: unary(name) for name in ("sin", "cos", "neg")},
    "absolute": unary("abs"),
    "negative": unary("neg"),
    "special.expit": unary("sigmoid"),
    **{name: binary(name) for name in ("add", "sub", "mul", "div")},
    **{name: binary(name) for name in ("lt", "le", "gt", "ge", "eq", "ne")},
    "maximum": binary("maximum"),
    "minimum": binary("minimum"),
    "subtract": binary("sub"),
    "multiply": binary("mul"),
    "divide": binary("div"),
    "true_divide": binary("div"),
    "atan2": atan2,
    "arctan2": atan2,
    "logical_and": logical("and_"),
    "logical_or": logical("or_"),
    "logical_not": logical("not_"),
    "clamp": clamp,
    "clip": clamp,
    "clamp_min": clamp_min,
    "clamp_max": clamp_max,
    "softplus": softplus,
    "where": where,
    "sqrt": sqrt,
    "log": log,
    "log1p": log1p,
    "pow": power,
    "leaky_relu": leaky_relu,
    "reciprocal": reciprocal,
    "lerp": lerp,
    "isnan": isnan,
    "isfinite": isfinite,
    "isinf": isinf,
}
"""PyTorch's name -> handler `(trace, arguments)`."""
