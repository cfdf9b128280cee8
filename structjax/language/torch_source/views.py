"""Shapes: reshape, squeeze, expand, permute, split, stack, cat. No arithmetic here."""

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from structjax.language.torch_source.refusal import Refused
from structjax.language.torch_source.trace import Trace
from structjax.language.torch_source.values import (
    BATCH,
    Batch,
    Tensor,
    axis,
    checked,
    kind,
    tensor,
)

_BATCH_FIRST = "keep the batch axis in front, by itself"


def sizes(arguments: Sequence[Any]) -> tuple[Any, ...]:
    """`(2, 3)` from `view(2, 3)` and from `view((2, 3))`.

    Raises:
      Refused: something other than integers and the batch size.
    """
    if len(arguments) == 1 and isinstance(arguments[0], tuple | list):
        arguments = arguments[0]
    for length in arguments:
        if isinstance(length, bool) or not isinstance(length, int | Batch):
            raise Refused("SHAPE", f"{kind(length)} as a length of an axis")
    return tuple(arguments)


def _moved_batch(operand: Tensor, order: Sequence[int]) -> int | None:
    return None if operand.batch is None else list(order).index(operand.batch)


def reshape(trace: Trace, input: Any, *shape: Any) -> Tensor:
    """`view` and `reshape`; the batch axis stays the first."""
    operand, wanted = tensor(input), list(sizes(shape))
    count = operand.elements.size
    if operand.batch is None:
        return Tensor(
            operand.elements.reshape(_resolved(wanted, count, operand)),
            boolean=operand.boolean,
        )
    if operand.batch != 0 and prod(operand.elements.shape[: operand.batch]) != 1:
        raise Refused("SHAPE", f"a reshape of {operand.text}", _BATCH_FIRST)
    place = _batch_place(wanted, count)
    if place is None or prod([n for n in wanted[:place] if n != -1]) != 1:
        text = f"a reshape of {operand.text} to {_text(wanted)}"
        raise Refused("SHAPE", text, _BATCH_FIRST)
    wanted[place] = 1
    elements = operand.elements.reshape(_resolved(wanted, count, operand))
    return Tensor(elements, place, operand.boolean)


def _batch_place(wanted: Sequence[Any], count: int) -> int | None:
    """Which of the wanted lengths is the batch's."""
    if BATCH in wanted:
        return wanted.index(BATCH)
    if -1 in wanted and prod(n for n in wanted if n != -1) == count:
        return wanted.index(-1)
    return None


def _resolved(wanted: Sequence[Any], count: int, operand: Tensor) -> tuple[int, ...]:
    """The static lengths, -1 resolved."""
    known = prod(n for n in wanted if isinstance(n, int) and n != -1)
    lengths = [count // known if n == -1 and known > 0 else n for n in wanted]
    fits = all(isinstance(n, int) and n > 0 for n in lengths)
    if not fits or wanted.count(-1) > 1 or prod(lengths) != count:
        raise Refused("SHAPE", f"a reshape of {operand.text} to {_text(wanted)}")
    return tuple(lengths)


def _text(shape: Sequence[Any]) -> str:
    return f"[{', '.join(map(str, shape))}]"


def flatten(trace: Trace, input: Any, start_dim: Any = 0, end_dim: Any = -1) -> Tensor:
    """Several axes as one."""
    operand = tensor(input)
    first, last = (axis(d, operand.ndim) for d in (start_dim, end_dim))
    lengths = operand.shape
    if first < last and BATCH in lengths[first : last + 1]:
        text = f"a flattening of {operand.text} together with the batch axis"
        raise Refused("SHAPE", text, "give `start_dim=1`")
    joined = prod(operand.elements.shape[first : last + 1])
    middle = lengths[first : last + 1] if first == last else (joined,)
    return reshape(trace, operand, *lengths[:first], *middle, *lengths[last + 1 :])


def squeeze(trace: Trace, input: Any, dim: Any = None) -> Tensor:
    """Drops axes of length 1; another axis stays, as in PyTorch."""
    operand = tensor(input)
    if dim is None:
        dims = [i for i, n in enumerate(operand.shape) if n == 1]
    else:
        given = dim if isinstance(dim, tuple | list) else (dim,)
        dims = [axis(d, operand.ndim) for d in given]
        dims = [d for d in dims if operand.shape[d] == 1]
    kept = [i for i in range(operand.ndim) if i not in dims]
    elements = operand.elements.reshape([operand.elements.shape[i] for i in kept])
    return Tensor(elements, _moved_batch(operand, kept), operand.boolean)


def unsqueeze(trace: Trace, input: Any, dim: Any) -> Tensor:
    """A new axis of length 1."""
    operand = tensor(input)
    place = axis(dim, operand.ndim + 1)
    batch = operand.batch
    if batch is not None and place <= batch:
        batch += 1
    return Tensor(np.expand_dims(operand.elements, place), batch, operand.boolean)


def expand(trace: Trace, input: Any, *shape: Any) -> Tensor:
    """Axes of length 1 repeated."""
    operand, wanted = tensor(input), sizes(shape)
    extra = len(wanted) - operand.ndim
    if extra < 0:
        raise Refused("SHAPE", f"{operand.text} expanded to {_text(wanted)}")
    elements = operand.elements.reshape((1,) * extra + operand.elements.shape)
    batch = None if operand.batch is None else operand.batch + extra
    target = []
    for i, (length, wish) in enumerate(zip(elements.shape, wanted, strict=True)):
        if isinstance(wish, Batch):
            if batch not in (None, i) or length != 1:
                raise Refused("SHAPE", f"{operand.text} expanded to {_text(wanted)}")
            batch = i
        elif wish not in (-1, length) and (length != 1 or batch == i):
            raise Refused("SHAPE", f"{operand.text} expanded to {_text(wanted)}")
        target.append(length if isinstance(wish, Batch) or wish == -1 else wish)
    return Tensor(np.broadcast_to(elements, checked(target)), batch, operand.boolean)


def expand_as(trace: Trace, input: Any, other: Any) -> Tensor:
    """Expanded to the shape of another tensor."""
    return expand(trace, input, tensor(other).shape)


def repeat(trace: Trace, input: Any, *counts: Any) -> Tensor:
    """Axes repeated a number of times; by the batch size where they have length 1."""
    operand, times = tensor(input), sizes(counts)
    extra = len(times) - operand.ndim
    if extra < 0 or any(isinstance(n, int) and n < 1 for n in times):
        raise Refused("SHAPE", f"{operand.text} repeated {_text(times)} times")
    elements = operand.elements.reshape((1,) * extra + operand.elements.shape)
    batch = None if operand.batch is None else operand.batch + extra
    if (batch is not None and times[batch] != 1) or times.count(BATCH) > 1:
        raise Refused("SHAPE", f"{operand.text} repeated {_text(times)} times")
    if BATCH in times:
        batch = times.index(BATCH)
        if operand.batch is not None or elements.shape[batch] != 1:
            raise Refused("SHAPE", f"{operand.text} repeated {_text(times)} times")
    static = [1 if isinstance(n, Batch) else n for n in times]
    checked(n * m for n, m in zip(elements.shape, static, strict=True))
    return Tensor(np.tile(elements, static), batch, operand.boolean)


def permute(trace: Trace, input: Any, *dims: Any) -> Tensor:
    """Axes in another order."""
    operand = tensor(input)
    order = [axis(d, operand.ndim) for d in sizes(dims)]
    if sorted(order) != list(range(operand.ndim)):
        raise Refused("SHAPE", f"the axes of {operand.text} in the order {order}")
    elements = operand.elements.transpose(order)
    return Tensor(elements, _moved_batch(operand, order), operand.boolean)


def transpose(trace: Trace, input: Any, dim0: Any, dim1: Any) -> Tensor:
    """Two axes exchanged."""
    operand = tensor(input)
    order = list(range(operand.ndim))
    first, second = (axis(d, operand.ndim) for d in (dim0, dim1))
    order[first], order[second] = second, first
    return permute(trace, operand, *order)


def matrix_transpose(trace: Trace, input: Any) -> Tensor:
    """The last two axes exchanged: `.mT`, and `.t()` of a matrix."""
    return transpose(trace, input, -2, -1)


def _same_axes(tensors: Sequence[Tensor], along: int) -> bool:
    """Whether shapes are equal but for one axis."""
    rest = {tuple(n for i, n in enumerate(t.shape) if i != along) for t in tensors}
    return len(rest) == 1 and all(t.ndim == tensors[0].ndim for t in tensors)


def _listed(tensors: Any) -> list[Tensor]:
    if not isinstance(tensors, tuple | list) or not tensors:
        raise Refused("SHAPE", f"{kind(tensors)} where a list of tensors is needed")
    return [tensor(t) for t in tensors]


def cat(trace: Trace, tensors: Any, dim: Any = 0) -> Tensor:
    """Tensors end to end along an axis."""
    parts = _listed(tensors)
    along = axis(dim, parts[0].ndim)
    texts = ", ".join(t.text for t in parts)
    if not _same_axes(parts, along) or along == parts[0].batch:
        raise Refused("SHAPE", f"{texts} do not join along axis {along}")
    checked([sum(t.elements.size for t in parts)])
    elements = np.concatenate([t.elements for t in parts], along)
    return Tensor(elements, parts[0].batch, all(t.boolean for t in parts))


def stack(trace: Trace, tensors: Any, dim: Any = 0) -> Tensor:
    """Equal tensors along a new axis."""
    parts = _listed(tensors)
    if len({t.shape for t in parts}) > 1:
        texts = ", ".join(t.text for t in parts)
        hint = "expand constants and weights first: `w.expand(batch)`"
        raise Refused("SHAPE", f"{texts} do not stack", hint)
    return cat(trace, [unsqueeze(trace, t, dim) for t in parts], dim)


def unbind(trace: Trace, input: Any, dim: Any = 0) -> tuple[Tensor, ...]:
    """The slices along an axis."""
    operand = tensor(input)
    along = axis(dim, operand.ndim)
    parts = split(trace, operand, 1, along)
    return tuple(squeeze(trace, part, along) for part in parts)


def split(
    trace: Trace, tensor_: Any, split_size_or_sections: Any, dim: Any = 0
) -> tuple[Tensor, ...]:
    """Consecutive parts of an axis."""
    operand, sections = tensor(tensor_), split_size_or_sections
    along = axis(dim, operand.ndim)
    count = operand.elements.shape[along]
    if along == operand.batch:
        raise Refused("SHAPE", f"a split of {operand.text} along the batch axis")
    if isinstance(sections, int) and sections > 0:
        sections = [sections] * (count // sections) + [count % sections][
            : count % sections
        ]
    if not isinstance(sections, tuple | list) or sum(sizes(sections)) != count:
        raise Refused("SHAPE", f"axis {along} of {operand.text} split into {sections}")
    stops = list(np.cumsum(checked_sections(sections)))[:-1]
    parts = np.split(operand.elements, stops, along)
    return tuple(Tensor(part, operand.batch, operand.boolean) for part in parts)


def checked_sections(sections: Sequence[int]) -> Sequence[int]:
    """The lengths themselves.

    Raises:
      Refused: one is not positive.
    """
    if any(n < 1 for n in sections):
        raise Refused("SHAPE", "an empty part of a split")
    return sections


def chunk(trace: Trace, input: Any, chunks: Any, dim: Any = 0) -> tuple[Tensor, ...]:
    """An axis in a number of parts."""
    operand = tensor(input)
    along = axis(dim, operand.ndim)
    if not isinstance(chunks, int) or chunks < 1:
        raise Refused("SHAPE", f"{kind(chunks)} of chunks")
    return split(trace, operand, -(-operand.elements.shape[along] // chunks), along)


def flip(trace: Trace, input: Any, *dims: Any) -> Tensor:
    """Axes in reverse."""
    operand = tensor(input)
    along = [axis(d, operand.ndim) for d in sizes(dims)]
    if operand.batch in along:
        raise Refused("SHAPE", "the batch in reverse", _BATCH_FIRST)
    return Tensor(
        np.asarray(np.flip(operand.elements, tuple(along)), object),
        operand.batch,
        operand.boolean,
    )


def same(trace: Trace, input: Any) -> Tensor:
    """`contiguous`, `clone`: the tensor itself."""
    return tensor(input)


VIEWS: dict[str, Callable[..., Any]] = {
    "view": reshape,
    "reshape": reshape,
    "flatten": flatten,
    "squeeze": squeeze,
    "unsqueeze": unsqueeze,
    "expand": expand,
    "expand_as": expand_as,
    "broadcast_to": expand,
    "repeat": repeat,
    "permute": permute,
    "transpose": transpose,
    "swapaxes": transpose,
    "t": matrix_transpose,
    "cat": cat,
    "concat": cat,
    "stack": stack,
    "unbind": unbind,
    "split": split,
    "chunk": chunk,
    "flip": flip,
    "clone": same,
    "contiguous": same,
}
"""PyTorch's name -> handler `(trace, arguments)`."""
