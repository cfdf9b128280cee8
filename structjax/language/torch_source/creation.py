"""Constant tensors: `zeros`, `full`, `tensor`, `eye`, `arange`."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from structjax.language.structure import Expression, Number
from structjax.language.torch_source.refusal import Refused
from structjax.language.torch_source.trace import Trace
from structjax.language.torch_source.values import (
    BATCH,
    Batch,
    Tensor,
    array,
    checked,
    filled,
    kind,
    tensor,
)
from structjax.language.torch_source.views import sizes, stack


def _constant(shape: Sequence[Any], value: Any) -> Tensor:
    """A tensor with one number everywhere; the batch size makes its axis."""
    if shape.count(BATCH) > 1:
        raise Refused("SHAPE", "two batch axes")
    batch = shape.index(BATCH) if BATCH in shape else None
    static = [1 if isinstance(n, Batch) else n for n in shape]
    return filled(checked(static), scalar(value), batch)


def scalar(value: Any) -> Expression:
    """The expression of a number or of a tensor with one element.

    Raises:
      Refused: it has several.
    """
    operand = tensor(value)
    if operand.elements.size != 1:
        raise Refused("SHAPE", f"{operand.text} where one number is needed")
    only: Expression = operand.elements.flat[0]
    return only


def _filled(value: float) -> Callable[..., Tensor]:
    def apply(trace: Trace, *size: Any) -> Tensor:
        return _constant(sizes(size), value)

    return apply


def _like(value: float) -> Callable[..., Tensor]:
    def apply(trace: Trace, input: Any) -> Tensor:
        return _constant(tensor(input).shape, value)

    return apply


def _full(trace: Trace, size: Any, fill_value: Any) -> Tensor:
    return _constant(sizes([size]), fill_value)


def _full_like(trace: Trace, input: Any, fill_value: Any) -> Tensor:
    return _constant(tensor(input).shape, fill_value)


def _new(value: float) -> Callable[..., Tensor]:
    """`x.new_zeros(...)`."""

    def apply(trace: Trace, input: Any, *size: Any) -> Tensor:
        return _constant(sizes(size), value)

    return apply


def _new_full(trace: Trace, input: Any, size: Any, fill_value: Any) -> Tensor:
    return _constant(sizes([size]), fill_value)


def make(trace: Trace, data: Any) -> Tensor:
    """`torch.tensor`: nested lists of numbers."""
    if isinstance(data, tuple | list):
        if not data:
            raise Refused("SHAPE", "an empty tensor", "every axis needs an element")
        return stack(trace, [make(trace, part) for part in data])
    operand = tensor(data)
    if not all(isinstance(e, Number) for e in operand.elements.flat):
        raise Refused("CALL", "torch.tensor of tensors", "use `stack` or `cat`")
    return operand


def _new_tensor(trace: Trace, input: Any, data: Any) -> Tensor:
    return make(trace, data)


def _eye(trace: Trace, n: Any, m: Any = None) -> Tensor:
    shape = sizes([n, n if m is None else m])
    if BATCH in shape:
        raise Refused("SHAPE", "an identity matrix of the batch size")
    elements = filled(shape, Number(0.0)).elements
    for i in range(min(shape)):
        elements[i, i] = Number(1.0)
    return Tensor(elements)


def _arange(trace: Trace, start: Any, end: Any = None, step: Any = 1) -> Tensor:
    bounds = (0, start, step) if end is None else (start, end, step)
    for value in bounds:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise Refused("SHAPE", f"{kind(value)} as a bound of arange")
    first, last, width = map(float, bounds)
    count = int(np.ceil((last - first) / width)) if width else 0
    checked([count])
    return _numbers([first + width * i for i in range(count)])


def _linspace(trace: Trace, start: Any, end: Any, steps: Any) -> Tensor:
    if isinstance(steps, bool) or not isinstance(steps, int):
        raise Refused("SHAPE", f"{kind(steps)} as a number of steps")
    first, last = (scalar(v) for v in (start, end))
    if not isinstance(first, Number) or not isinstance(last, Number):
        raise Refused("SHAPE", "linspace between tensors", "its ends are numbers")
    checked([steps])
    return _numbers(list(np.linspace(first.value, last.value, steps)))


def _numbers(values: Sequence[float]) -> Tensor:
    return Tensor(array([Number(float(v)) for v in values], [len(values)]))


CREATION: dict[str, Callable[..., Any]] = {
    "zeros": _filled(0.0),
    "ones": _filled(1.0),
    "full": _full,
    "zeros_like": _like(0.0),
    "ones_like": _like(1.0),
    "full_like": _full_like,
    "new_zeros": _new(0.0),
    "new_ones": _new(1.0),
    "new_full": _new_full,
    "new_tensor": _new_tensor,
    "tensor": make,
    "as_tensor": make,
    "eye": _eye,
    "arange": _arange,
    "linspace": _linspace,
}
"""PyTorch's name -> handler `(trace, arguments)`."""
