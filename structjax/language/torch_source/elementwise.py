"""Broadcasting, and operators on every element: as vectors where lines are vectors."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from structjax.language.operators import OPERATORS
from structjax.language.structure import Expression
from structjax.language.torch_source.refusal import Refused
from structjax.language.torch_source.trace import Trace
from structjax.language.torch_source.values import (
    Tensor,
    checked,
    element,
    tensor,
)


def align(operands: Sequence[Tensor]) -> tuple[list[np.ndarray], int | None]:
    """The elements in one common shape, and where the batch axis is.

    Raises:
      Refused: the shapes do not combine.
    """
    rank = max(operand.ndim for operand in operands)
    batches = {rank - o.ndim + o.batch for o in operands if o.batch is not None}
    arrays = [
        o.elements.reshape((1,) * (rank - o.ndim) + o.elements.shape) for o in operands
    ]
    texts = " and ".join(o.text for o in operands if o.ndim)
    if len(batches) > 1:
        raise Refused(
            "SHAPE",
            f"{texts} would pair every observation of the batch with every other",
            "keep the batch axis in front: `unsqueeze(-1)`, `squeeze(-1)`, `keepdim`",
        )
    batch = batches.pop() if batches else None
    if batch is not None and any(a.shape[batch] != 1 for a in arrays):
        raise Refused("SHAPE", f"{texts}: an axis meets the batch axis")
    try:
        shape = np.broadcast_shapes(*(a.shape for a in arrays))
    except ValueError:
        raise Refused("SHAPE", f"{texts} do not combine") from None
    checked(shape)
    return [np.broadcast_to(a, shape) for a in arrays], batch


def elementwise(trace: Trace, operator: str, *operands: Any) -> Tensor:
    """A scalar operator of the table on tensors and numbers."""
    tensors = [tensor(operand) for operand in operands]
    arrays, batch = align(tensors)
    row = OPERATORS[operator]
    kept = tensors[1:] if operator == "where" else tensors
    boolean = row.result == "truth" or (
        row.result == "same" and all(t.boolean for t in kept)
    )
    return Tensor(mapped(trace, partial(trace.apply, operator), arrays), batch, boolean)


def mapped(
    trace: Trace,
    function: Callable[..., Expression],
    arrays: Sequence[np.ndarray],
) -> np.ndarray:
    """A function of scalars or of equally long vectors, over arrays of one shape."""
    result = np.empty(arrays[0].shape, object)
    trace.spend(result.size)
    along = _vector_axis(trace, arrays)
    if along is None:
        for place in np.ndindex(result.shape):
            result[place] = function(*(a[place] for a in arrays))
        return result
    moved = [np.moveaxis(a, along, -1) for a in arrays]
    target: Any = np.moveaxis(result, along, -1)
    for place in np.ndindex(target.shape[:-1]):
        arguments = [_argument(trace, list(a[place])) for a in moved]
        vector = function(*arguments)
        if trace.size(vector) is None:
            target[place] = vector
        else:
            for i in range(target.shape[-1]):
                target[place][i] = element(vector, i)
    return result


def _vector_axis(trace: Trace, arrays: Sequence[np.ndarray]) -> int | None:
    """The longest axis along which every line holds a vector, if there is one."""
    shape: tuple[int, ...] = arrays[0].shape
    for along in sorted(range(len(shape)), key=lambda i: -shape[i]):
        if shape[along] > 1 and all(_lines_with_vectors(trace, arrays, along)):
            return along
    return None


def _lines_with_vectors(
    trace: Trace, arrays: Sequence[np.ndarray], along: int
) -> Iterator[bool]:
    moved = [np.moveaxis(a, along, -1) for a in arrays]
    for place in np.ndindex(moved[0].shape[:-1]):
        yield any(trace.run(list(a[place])) is not None for a in moved)


def _argument(trace: Trace, line: list[Expression]) -> Expression:
    """A line as a vector, or as the scalar that it repeats."""
    if all(expression == line[0] for expression in line):
        return line[0]
    return trace.vector(line)
