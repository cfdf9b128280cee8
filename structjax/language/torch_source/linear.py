"""Matrices as sums of products: `@`, `einsum`, `cross`, `diag_embed`, `tril`."""

import string
from collections.abc import Callable
from typing import Any

from structjax.language.structure import Number
from structjax.language.torch_source.elementwise import elementwise
from structjax.language.torch_source.indexing import index
from structjax.language.torch_source.reductions import length, reduced, total
from structjax.language.torch_source.refusal import Refused
from structjax.language.torch_source.trace import Trace
from structjax.language.torch_source.values import Tensor, axis, filled, kind, tensor
from structjax.language.torch_source.views import permute, squeeze, stack, unsqueeze

BEYOND = 1e30
"""An upper bound that nothing reaches, for clamps with a lower bound only."""


def matmul(trace: Trace, input: Any, other: Any) -> Tensor:
    """`a @ b`, as the sum over products."""
    left, right = tensor(input), tensor(other)
    if not left.ndim or not right.ndim:
        raise Refused("SHAPE", f"{left.text} @ {right.text}", "`*` scales a tensor")
    a = unsqueeze(trace, left, 0) if left.ndim == 1 else left
    b = unsqueeze(trace, right, 1) if right.ndim == 1 else right
    inner = (a.shape[-1], b.shape[-2])
    if inner[0] != inner[1] or not isinstance(inner[0], int):
        raise Refused("SHAPE", f"{left.text} @ {right.text} do not combine")
    products = elementwise(
        trace, "mul", unsqueeze(trace, a, -1), unsqueeze(trace, b, -3)
    )
    result = reduced(trace, products, -2, False, total)
    if right.ndim == 1:
        result = squeeze(trace, result, -1)
    return (
        squeeze(trace, result, -2 if right.ndim > 1 else -1)
        if left.ndim == 1
        else result
    )


def einsum(trace: Trace, equation: Any, *operands: Any) -> Tensor:
    """`torch.einsum` with letters, without dots."""
    if len(operands) == 1 and isinstance(operands[0], tuple | list):
        operands = tuple(operands[0])
    tensors = [tensor(operand) for operand in operands]
    inputs, output = _labels(equation, tensors)
    labels = output + sorted(set("".join(inputs)) - set(output))
    product: Tensor | None = None
    for names, operand in zip(inputs, tensors, strict=True):
        order = [names.index(c) for c in labels if c in names]
        spread = permute(trace, operand, *order) if order else operand
        for i, letter in enumerate(labels):
            if letter not in names:
                spread = unsqueeze(trace, spread, i)
        product = (
            spread if product is None else elementwise(trace, "mul", product, spread)
        )
    assert product is not None
    dims = tuple(range(len(output), len(labels)))
    return reduced(trace, product, dims, False, total) if dims else product


def _labels(equation: Any, tensors: list[Tensor]) -> tuple[list[str], list[str]]:
    text = equation.replace(" ", "") if isinstance(equation, str) else ""
    left, arrow, right = text.partition("->")
    inputs = left.split(",")
    letters = set(string.ascii_letters)
    known = (
        bool(arrow)
        and set(left) <= letters | {","}
        and set(right) <= set(left) & letters
        and len(inputs) == len(tensors)
        and all(
            len(set(n)) == len(n) == t.ndim
            for n, t in zip(inputs, tensors, strict=True)
        )
        and len(set(right)) == len(right)
    )
    if not known:
        shapes = ", ".join(t.text for t in tensors)
        hint = "one letter per axis and an arrow: `'bij,bj->bi'`"
        raise Refused("SHAPE", f"einsum of {shapes} by {equation!r}", hint)
    return inputs, list(right)


def dot(trace: Trace, input: Any, other: Any) -> Tensor:
    """Inner product of two vectors."""
    left, right = tensor(input), tensor(other)
    if left.ndim != 1 or right.ndim != 1 or left.shape != right.shape:
        raise Refused("SHAPE", f"the dot product of {left.text} and {right.text}")
    return matmul(trace, left, right)


def cross(trace: Trace, input: Any, other: Any, dim: Any = -1) -> Tensor:
    """Cross product along an axis of length 3."""
    a, b = tensor(input), tensor(other)
    if a.shape != b.shape or a.shape[axis(dim, a.ndim)] != 3:
        raise Refused("SHAPE", f"the cross product of {a.text} and {b.text}")
    along = axis(dim, a.ndim)

    def part(operand: Tensor, i: int) -> Tensor:
        return index(operand, (*(slice(None),) * along, i))

    parts = []
    for i, j in ((1, 2), (2, 0), (0, 1)):
        one = elementwise(trace, "mul", part(a, i), part(b, j))
        other_one = elementwise(trace, "mul", part(a, j), part(b, i))
        parts.append(elementwise(trace, "sub", one, other_one))
    return stack(trace, parts, along)


def diag_embed(trace: Trace, input: Any) -> Tensor:
    """A diagonal matrix of the last axis."""
    operand = tensor(input)
    if not operand.ndim or operand.batch == operand.ndim - 1:
        raise Refused(
            "SHAPE", f"a diagonal of {operand.text}", "its last axis is taken"
        )
    n = operand.elements.shape[-1]
    shape = (*operand.elements.shape, n)
    elements = filled(shape, Number(0.0)).elements
    for i in range(n):
        elements[..., i, i] = operand.elements[..., i]
    return Tensor(elements, operand.batch)


def diag(trace: Trace, input: Any) -> Tensor:
    """`torch.diag`: of a vector a matrix, of a matrix its diagonal."""
    operand = tensor(input)
    if operand.batch is not None or operand.ndim not in (1, 2):
        raise Refused(
            "SHAPE", f"diag of {operand.text}", "use `diag_embed`, `diagonal`"
        )
    if operand.ndim == 1:
        return diag_embed(trace, operand)
    return Tensor(operand.elements.diagonal().copy())


def diagonal(
    trace: Trace, input: Any, offset: Any = 0, dim1: Any = 0, dim2: Any = 1
) -> Tensor:
    """The diagonal of the last two axes."""
    operand = tensor(input)
    dims = {axis(dim1, operand.ndim), axis(dim2, operand.ndim)}
    if offset != 0 or dims != {operand.ndim - 2, operand.ndim - 1}:
        hint = "offset=0, dim1=-2, dim2=-1 is accepted"
        raise Refused("SHAPE", f"a diagonal of {operand.text}", hint)
    if operand.batch in dims:
        raise Refused("SHAPE", f"a diagonal of {operand.text}", "the batch axis stays")
    return Tensor(operand.elements.diagonal(0, -2, -1).copy(), operand.batch)


def _triangle(keep: Callable[[int, int, int], bool]) -> Callable[..., Tensor]:
    """`tril` and `triu`."""

    def apply(trace: Trace, input: Any, diagonal: Any = 0) -> Tensor:
        operand = tensor(input)
        if operand.ndim < 2 or operand.batch in (operand.ndim - 1, operand.ndim - 2):
            raise Refused("SHAPE", f"a triangle of {operand.text}")
        if not isinstance(diagonal, int):
            raise Refused("INDEX", f"{kind(diagonal)} as a diagonal")
        elements = operand.elements.copy()
        for row in range(elements.shape[-2]):
            for column in range(elements.shape[-1]):
                if not keep(row, column, diagonal):
                    elements[..., row, column] = Number(0.0)
        return Tensor(elements, operand.batch, operand.boolean)

    return apply


def normalize(
    trace: Trace, input: Any, p: Any = 2, dim: Any = 1, eps: Any = 1e-12
) -> Tensor:
    """`F.normalize`: divided by the length, which is at least eps."""
    if p != 2 or not isinstance(eps, int | float):
        raise Refused("CALL", f"normalize with p={p}", "p=2 is accepted")
    lengths = reduced(trace, input, dim, True, length)
    floored = elementwise(trace, "clip", lengths, float(eps), BEYOND)
    return elementwise(trace, "div", input, floored)


def softmax(trace: Trace, input: Any, dim: Any) -> Tensor:
    """Shares that add up to 1 along an axis."""
    from structjax.language.torch_source.reductions import LARGEST

    largest = reduced(trace, input, dim, True, LARGEST)
    powers = elementwise(trace, "exp", elementwise(trace, "sub", input, largest))
    return elementwise(trace, "div", powers, reduced(trace, powers, dim, True, total))


LINEAR: dict[str, Callable[..., Any]] = {
    "matmul": matmul,
    "mm": matmul,
    "mv": matmul,
    "bmm": matmul,
    "einsum": einsum,
    "dot": dot,
    "cross": cross,
    "linalg.cross": cross,
    "diag_embed": diag_embed,
    "diag": diag,
    "diagonal": diagonal,
    "tril": _triangle(lambda row, column, k: column - row <= k),
    "triu": _triangle(lambda row, column, k: column - row >= k),
    "normalize": normalize,
    "softmax": softmax,
}
"""PyTorch's name -> handler `(trace, arguments)`."""
