"""Python's own functions and the methods of lists and dictionaries."""

import math
from collections.abc import Callable, Sequence
from typing import Any

from structjax.language.syntax import MAX_NUMBER
from structjax.language.torch_source.elementwise import elementwise
from structjax.language.torch_source.refusal import Refused
from structjax.language.torch_source.trace import Trace
from structjax.language.torch_source.values import Tensor, kind, tensor

MAX_TURNS = 256
MAX_LIST = 1024


def listed(value: Any) -> list[Any]:
    """The items of a static list, tuple or dictionary.

    Raises:
      Refused: it is a tensor, or nothing that has items.
    """
    if isinstance(value, Tensor):
        hint = "reduce it (`sum(dim=1)`), or write `for i in range(12)` and `x[:, i]`"
        raise Refused("CONTROL", "a loop over a tensor", hint)
    if not isinstance(value, list | tuple | dict | range):
        raise Refused("LOOP", f"a loop over {kind(value)}", "`for i in range(n)`")
    if (isinstance(value, range) and value[MAX_TURNS:]) or len(value) > MAX_TURNS:
        text = f"a loop of more than {MAX_TURNS} turns"
        raise Refused("LOOP", text, f"at most {MAX_TURNS} turns are accepted")
    return list(value)


def _number(value: Any) -> float:
    if not isinstance(value, int | float):
        tensor(value)
        raise Refused("CONTROL", "a tensor where a number is needed")
    return value


def _range(trace: Trace, *bounds: Any) -> range:
    if not 1 <= len(bounds) <= 3 or not all(type(b) is int for b in bounds):
        text = f"range of {', '.join(map(kind, bounds))}"
        raise Refused("LOOP", text, "`range(n)` with constant integers")
    if len(bounds) == 3 and bounds[2] == 0:
        raise Refused("LOOP", "range with step 0")
    return range(*bounds)


def _absolute(trace: Trace, value: Any) -> Any:
    return (
        abs(value)
        if isinstance(value, int | float)
        else elementwise(trace, "abs", value)
    )


def _extreme(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    def apply(trace: Trace, *values: Any) -> Any:
        items = listed(values[0]) if len(values) == 1 else list(values)
        if any(isinstance(v, Tensor) for v in items):
            hint = f"write `torch.{name}imum(a, b)`"
            raise Refused("CONTROL", f"Python's {name} of tensors", hint)
        if not items:
            raise Refused("ARITY", f"{name} of nothing")
        return function([_number(v) for v in items])

    return apply


def _sum(trace: Trace, values: Any, start: Any = 0) -> Any:
    result = start
    for value in listed(values):
        both = all(isinstance(v, int | float) for v in (result, value))
        result = result + value if both else elementwise(trace, "add", result, value)
    return result


def _length(trace: Trace, value: Any) -> int:
    if isinstance(value, Tensor):
        if value.ndim and value.batch != 0:
            return int(value.elements.shape[0])
        raise Refused("SHAPE", f"the length of {value.text}")
    return len(listed(value))


def _enumerate(trace: Trace, values: Any, start: Any = 0) -> list[tuple[int, Any]]:
    return list(enumerate(listed(values), int(_number(start))))


def _zip(trace: Trace, *values: Any) -> list[tuple[Any, ...]]:
    return list(zip(*map(listed, values), strict=False))


def _list(trace: Trace, values: Any = ()) -> list[Any]:
    return listed(values)


def _dict(trace: Trace, *values: Any, **entries: Any) -> dict[str, Any]:
    if len(values) > 1 or any(not isinstance(v, dict) for v in values):
        raise Refused("ARITY", "dict of something other than entries")
    return {**(values[0] if values else {}), **entries}


def _convert(function: Callable[..., Any]) -> Callable[..., Any]:
    def apply(trace: Trace, value: Any) -> Any:
        return function(_number(value))

    return apply


def _math(function: Callable[..., float]) -> Callable[..., float]:
    def apply(trace: Trace, *values: Any) -> float:
        if any(isinstance(v, Tensor) for v in values):
            raise Refused(
                "TYPE", "a function of math takes no tensor", "use torch's own"
            )
        try:
            result = float(function(*map(_number, values)))
        except (ValueError, ArithmeticError, TypeError) as error:
            raise Refused("CONST", f"{error}") from error
        if not abs(result) <= MAX_NUMBER:
            raise Refused("CONST", "the result is not a finite real number")
        return result

    return apply


PYTHON: dict[str, Callable[..., Any]] = {
    "abs": _absolute,
    "min": _extreme(min, "min"),
    "max": _extreme(max, "max"),
    "sum": _sum,
    "len": _length,
    "range": _range,
    "enumerate": _enumerate,
    "zip": _zip,
    "list": _list,
    "tuple": lambda trace, values=(): tuple(listed(values)),
    "reversed": lambda trace, values: listed(values)[::-1],
    "dict": _dict,
    "float": _convert(float),
    "int": _convert(int),
    "bool": _convert(bool),
    "str": lambda trace, value: str(_number(value)),
}
"""Python's functions that are accepted."""

MATH: dict[str, Callable[..., float]] = {
    name: _math(getattr(math, name))
    for name in (
        *("exp", "expm1", "log", "log1p", "sqrt", "sin", "cos", "tan", "tanh", "atan2"),
        *("radians", "degrees", "fabs", "pow", "hypot", "atan"),
    )
}
"""Functions of the module `math`, on numbers."""


def list_method(receiver: Any, name: str, values: Sequence[Any], entries: Any) -> Any:
    """A method of a list or dictionary.

    Raises:
      Refused: it is none that is accepted.
    """
    if isinstance(receiver, list) and name == "append" and len(values) == 1:
        receiver.append(values[0])
        return None
    if isinstance(receiver, list) and name == "extend" and len(values) == 1:
        more = listed(values[0])
        if len(receiver) + len(more) > MAX_LIST:
            raise Refused("TOO_LONG", f"a list of more than {MAX_LIST} items")
        receiver.extend(more)
        return None
    if isinstance(receiver, dict):
        if name == "update" and all(isinstance(v, dict) for v in values):
            for more in (*values, entries):
                receiver.update(more)
            return None
        views = {"items": receiver.items, "keys": receiver.keys}
        views["values"] = receiver.values  # type: ignore[assignment]
        if name in views and not values:
            return list(views[name]())
    raise Refused("CALL", f"{kind(receiver)} has no method `{name}` here")
