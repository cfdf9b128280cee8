"""Reductions along axes: `sum`, `mean`, `max`, `norm`, ..."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from structjax.language.structure import Expression, Number
from structjax.language.torch_source.elementwise import elementwise, mapped
from structjax.language.torch_source.refusal import Refused
from structjax.language.torch_source.trace import Trace
from structjax.language.torch_source.values import Extremes, Tensor, axis, tensor

Reduce = Callable[[Trace, list[Expression]], Expression]

LONG = 4
"""Lines of scalars up to this length are added up one by one."""


def reduced(
    trace: Trace, value: Any, dim: Any, keepdim: Any, function: Reduce
) -> Tensor:
    """A function of lines of elements along one axis, several, or all."""
    operand = tensor(value)
    dims = _axes(dim, operand)
    if operand.batch in dims:
        raise Refused(
            "SHAPE",
            f"a reduction of {operand.text} over the batch axis",
            "give the axis: `dim=1`, `dim=-1`",
        )
    kept = [i for i in range(operand.ndim) if i not in dims]
    moved = operand.elements.transpose([*kept, *dims])
    trace.spend(moved.size)
    lines = moved.reshape([*moved.shape[: len(kept)], -1])
    result = _added(trace, lines, function)
    if result is None:
        result = np.empty(lines.shape[:-1], object)
        for place in np.ndindex(result.shape):
            result[place] = function(trace, list(lines[place]))
    batch = None if operand.batch is None else kept.index(operand.batch)
    if keepdim:
        shape = [1 if i in dims else n for i, n in enumerate(operand.elements.shape)]
        return Tensor(result.reshape(shape), operand.batch)
    return Tensor(result, batch)


def _added(trace: Trace, lines: np.ndarray, function: Reduce) -> np.ndarray | None:
    """Sums and means of short lines across vectors: the vectors are added up."""
    count = lines.shape[-1]
    if function not in (total, average) or count > LONG or lines.ndim < 2:
        return None
    if any(trace.run(list(lines[p])) for p in np.ndindex(lines.shape[:-1])):
        return None
    result = lines[..., 0]
    for i in range(1, count):
        result = mapped(trace, partial(trace.apply, "add"), [result, lines[..., i]])
    if function is total:
        return result
    divisor = np.full(result.shape, Number(float(count)), object)
    return mapped(trace, partial(trace.apply, "div"), [result, divisor])


def _axes(dim: Any, operand: Tensor) -> list[int]:
    if dim is None:
        return list(range(operand.ndim))
    dims = dim if isinstance(dim, tuple | list) else (dim,)
    return sorted({axis(d, operand.ndim) for d in dims})


def total(trace: Trace, line: list[Expression]) -> Expression:
    """The sum of a line."""
    if len(line) > LONG or trace.run(line) is not None:
        return trace.apply("reduce_sum", trace.vector(line))
    return chained(trace, "add", line)


def average(trace: Trace, line: list[Expression]) -> Expression:
    """The mean of a line."""
    if len(line) > LONG or trace.run(line) is not None:
        return trace.apply("reduce_mean", trace.vector(line))
    return trace.apply("div", chained(trace, "add", line), Number(float(len(line))))


def chained(trace: Trace, operator: str, line: Sequence[Expression]) -> Expression:
    """A binary operator over a line, from the left."""
    result = line[0]
    for expression in line[1:]:
        result = trace.apply(operator, result, expression)
    return result


def length(trace: Trace, line: list[Expression]) -> Expression:
    """The Euclidean norm of a line."""
    if len(line) == 1:
        return trace.apply("abs", line[0])
    return trace.apply("norm", trace.vector(line))


def first_extreme(operator: str) -> Reduce:
    """`max(dim)`: the derivative goes to the first of equal elements."""

    def reduce(trace: Trace, line: list[Expression]) -> Expression:
        if len(line) == 1:
            return line[0]
        return trace.apply(operator, trace.vector(line))

    return reduce


def shared_extreme(operator: str, binary: str) -> Reduce:
    """`amax`, and `max()` of everything: equal elements share the derivative.

    Where no parameter is involved nobody asks for a derivative.
    """
    first = first_extreme(operator)

    def reduce(trace: Trace, line: list[Expression]) -> Expression:
        if not any(map(trace.trainable, line)):
            return first(trace, line)
        if len(line) == 2:
            return trace.apply(binary, *line)
        vector = trace.vector(line)
        equal = trace.apply("eq", vector, first(trace, line))
        chosen = trace.apply("where", equal, vector, Number(0.0))
        count = trace.apply("reduce_sum", equal)
        return trace.apply("div", trace.apply("reduce_sum", chosen), count)

    return reduce


LARGEST = first_extreme("reduce_max")
SMALLEST = first_extreme("reduce_min")
SHARED_LARGEST = shared_extreme("reduce_max", "maximum")
SHARED_SMALLEST = shared_extreme("reduce_min", "minimum")


def _sum(trace: Trace, input: Any, dim: Any = None, keepdim: Any = False) -> Tensor:
    return reduced(trace, input, dim, keepdim, total)


def _mean(trace: Trace, input: Any, dim: Any = None, keepdim: Any = False) -> Tensor:
    return reduced(trace, input, dim, keepdim, average)


def _prod(trace: Trace, input: Any, dim: Any = None, keepdim: Any = False) -> Tensor:
    return reduced(trace, input, dim, keepdim, lambda t, line: chained(t, "mul", line))


def _amax(trace: Trace, input: Any, dim: Any = None, keepdim: Any = False) -> Tensor:
    return reduced(trace, input, dim, keepdim, SHARED_LARGEST)


def _amin(trace: Trace, input: Any, dim: Any = None, keepdim: Any = False) -> Tensor:
    return reduced(trace, input, dim, keepdim, SHARED_SMALLEST)


def extreme(binary: str, first: Reduce, shared: Reduce) -> Callable[..., Any]:
    """`torch.max`: of everything, along an axis, or of two tensors."""

    def apply(
        trace: Trace,
        input: Any,
        dim: Any = None,
        keepdim: Any = False,
        other: Any = None,
    ) -> Any:
        second = other if other is not None else dim
        if isinstance(second, Tensor):
            return elementwise(trace, binary, input, second)
        if dim is None:
            return reduced(trace, input, None, False, shared)
        return Extremes(reduced(trace, input, dim, keepdim, first))

    return apply


def _quantifier(operator: str) -> Callable[..., Tensor]:
    def apply(
        trace: Trace, input: Any, dim: Any = None, keepdim: Any = False
    ) -> Tensor:
        operand = tensor(input)
        if not operand.boolean:
            raise Refused("TYPE", "numbers where truth values are needed", "`x > 0`")
        result = reduced(
            trace, operand, dim, keepdim, lambda t, line: chained(t, operator, line)
        )
        return Tensor(result.elements, result.batch, True)

    return apply


def _norm(
    trace: Trace, input: Any, p: Any = 2, dim: Any = None, keepdim: Any = False
) -> Tensor:
    if p in (2, None, "fro"):
        return reduced(trace, input, dim, keepdim, length)
    if p != 1:
        raise Refused("CALL", f"norm with p={p}", "p=1 and p=2 are accepted")

    def absolute(trace: Trace, line: list[Expression]) -> Expression:
        return total(trace, [trace.apply("abs", e) for e in line])

    return reduced(trace, input, dim, keepdim, absolute)


def _linalg_norm(
    trace: Trace, input: Any, ord: Any = 2, dim: Any = None, keepdim: Any = False
) -> Tensor:
    return _norm(trace, input, ord, dim, keepdim)


def _spread(root: bool) -> Callable[..., Tensor]:
    """`var` and `std`."""

    def apply(
        trace: Trace,
        input: Any,
        dim: Any = None,
        unbiased: Any = True,
        keepdim: Any = False,
        correction: Any = None,
    ) -> Tensor:
        less = int(bool(unbiased)) if correction is None else correction

        def spread(trace: Trace, line: list[Expression]) -> Expression:
            if len(line) <= less:
                raise Refused("SHAPE", "the spread of a single element")
            vector = trace.vector(line)
            centred = trace.apply("sub", vector, average(trace, line))
            squares = trace.apply("reduce_sum", trace.apply("square", centred))
            variance = trace.apply("div", squares, Number(float(len(line) - less)))
            return trace.apply("sqrt", variance) if root else variance

        return reduced(trace, input, dim, keepdim, spread)

    return apply


def _running(trace: Trace, input: Any, dim: Any) -> Tensor:
    """`cumsum`."""
    operand = tensor(input)
    along = axis(dim, operand.ndim)
    if along == operand.batch:
        raise Refused("SHAPE", "a running sum over the batch axis", "give `dim=1`")
    result = np.moveaxis(operand.elements.copy(), along, -1)
    for place in np.ndindex(result.shape[:-1]):
        for i in range(1, result.shape[-1]):
            before, here = result[(*place, i - 1)], result[(*place, i)]
            result[(*place, i)] = trace.apply("add", before, here)
    return Tensor(np.moveaxis(result, -1, along), operand.batch)


REDUCTIONS: dict[str, Callable[..., Any]] = {
    "sum": _sum,
    "mean": _mean,
    "prod": _prod,
    "amax": _amax,
    "amin": _amin,
    "max": extreme("maximum", LARGEST, SHARED_LARGEST),
    "min": extreme("minimum", SMALLEST, SHARED_SMALLEST),
    "any": _quantifier("or_"),
    "all": _quantifier("and_"),
    "norm": _norm,
    "linalg.norm": _linalg_norm,
    "linalg.vector_norm": _linalg_norm,
    "std": _spread(True),
    "var": _spread(False),
    "cumsum": _running,
}
"""PyTorch's name -> handler `(trace, arguments)`."""
