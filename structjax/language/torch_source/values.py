"""What names mean while a module is read: tensors of expressions, and a few objects.

A tensor is an object array of scalar expressions. The batch axis, whose length nobody
knows, has length 1 in the array. Elements are atomic: numbers, weights, observation
fields, names of definitions, and elements of those; so comparing two is cheap.
"""

import ast
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from structjax.language.structure import Expression, Index, Number, Slice
from structjax.language.torch_source.refusal import Refused, Silent

MAX_ELEMENTS = 4096


class Batch:
    """The unknown number of observations of a batch."""

    def __repr__(self) -> str:
        return "B"


BATCH = Batch()


@dataclass(frozen=True, eq=False)
class Tensor:
    """A symbolic tensor.

    Attributes:
      elements: scalar expressions, the batch axis of length 1.
      batch: position of the batch axis; None without one.
      boolean: whether PyTorch would hold truth values.
    """

    elements: np.ndarray
    batch: int | None = None
    boolean: bool = False

    def __post_init__(self) -> None:
        checked(self.elements.shape)

    @property
    def ndim(self) -> int:
        """Number of axes, the batch axis among them."""
        return self.elements.ndim

    @property
    def shape(self) -> tuple[Any, ...]:
        """Lengths of the axes; `BATCH` for the batch axis."""
        lengths: list[Any] = list(self.elements.shape)
        if self.batch is not None:
            lengths[self.batch] = BATCH
        return tuple(lengths)

    @property
    def text(self) -> str:
        """The shape as text: `[B, 12, 4]`."""
        return f"[{', '.join(map(str, self.shape))}]"


@dataclass(frozen=True)
class Namespace:
    """Something imported: `torch`, `torch.nn.functional`, `math`."""

    path: tuple[str, ...]

    @property
    def text(self) -> str:
        """Its dotted name."""
        return ".".join(self.path)


@dataclass(frozen=True, eq=False)
class Method:
    """A method of a tensor, list, dictionary or module, not called yet."""

    receiver: Any
    name: str


@dataclass(frozen=True, eq=False)
class Function:
    """A function or method that the module defines."""

    node: ast.FunctionDef
    bound: bool = False


@dataclass(frozen=True, eq=False)
class Self:
    """The module itself."""


@dataclass(frozen=True, eq=False)
class NewParameter:
    """`nn.Parameter(...)` before it has a name."""

    initial: np.ndarray


@dataclass(frozen=True, eq=False)
class Unusable:
    """A value that exists but that nothing can be done with."""

    what: str
    hint: str


@dataclass(frozen=True, eq=False)
class Extremes:
    """What `x.max(dim=...)` gives: values, and indices that cannot be used."""

    values: Tensor
    indices: Unusable = field(
        default_factory=lambda: Unusable(
            "the indices of a maximum or minimum",
            "they have no derivative; use `.values`",
        )
    )


SELF = Self()
FAULT = Unusable("a faulty value", "")


def tensor(value: Any) -> Tensor:
    """A tensor of a tensor or number.

    Raises:
      Refused: it is neither.
      Silent: it is faulty.
    """
    if isinstance(value, Tensor):
        return value
    if isinstance(value, bool | int | float):
        return filled((), Number(float(value)))
    if value is FAULT:
        raise Silent
    if isinstance(value, Unusable):
        raise Refused("TYPE", f"{value.what} cannot be used", value.hint)
    if isinstance(value, Extremes):
        raise Refused(
            "TYPE", "values and indices of `max` or `min`", "take `.values` first"
        )
    if isinstance(value, Batch):
        raise Refused(
            "TYPE",
            "the batch size used as a number",
            "a policy treats every observation alike",
        )
    raise Refused("TYPE", f"{kind(value)} where a tensor is needed")


def kind(value: Any) -> str:
    """What a value is, for messages."""
    names = {
        Tensor: "a tensor",
        Namespace: "a module",
        Batch: "the batch size",
        Self: "the module itself",
        NewParameter: "a parameter without a name",
        Extremes: "values and indices",
        type(None): "None",
        str: "a text",
        dict: "a dictionary",
        list: "a list",
        tuple: "a tuple",
    }
    return names.get(type(value), "a function" if callable_(value) else "a number")


def callable_(value: Any) -> bool:
    """Whether a value is a function or method."""
    return isinstance(value, Method | Function)


def checked(shape: Iterable[int]) -> tuple[int, ...]:
    """The static shape itself.

    Raises:
      Refused: it is empty or has too many elements.
    """
    shape = tuple(shape)
    count = 1
    for length in shape:
        count *= length
    if count > MAX_ELEMENTS or len(shape) > 8:
        raise Refused(
            "TOO_LONG",
            f"a tensor with {count:,} elements per observation",
            f"at most {MAX_ELEMENTS:,} elements and 8 axes are accepted",
        )
    if any(length < 1 for length in shape):
        raise Refused("SHAPE", "an empty tensor", "every axis needs an element")
    return shape


def filled(
    shape: Sequence[int], expression: Expression, batch: int | None = None
) -> Tensor:
    """A tensor with one expression everywhere."""
    elements = np.empty(checked(shape), object)
    elements[...] = expression
    return Tensor(elements, batch)


def array(values: Sequence[Expression], shape: Sequence[int]) -> np.ndarray:
    """An object array of expressions."""
    elements = np.empty(len(values), object)
    elements[:] = values
    return elements.reshape(tuple(shape))


def axis(dim: Any, ndim: int) -> int:
    """A position of an axis, counted from the front.

    Raises:
      Refused: not an integer, or there is no such axis.
    """
    if isinstance(dim, bool) or not isinstance(dim, int):
        raise Refused("INDEX", f"dim={kind(dim)}", "an axis is an integer")
    if not -ndim <= dim < ndim:
        raise Refused(
            "INDEX",
            f"there is no axis {dim} of {ndim}",
            f"{-ndim} to {ndim - 1} is accepted" if ndim else "a scalar has no axis",
        )
    return dim % ndim


def element(vector: Expression, position: int) -> Expression:
    """One element of a vector, without nested slices."""
    if isinstance(vector, Slice):
        return Index(vector.vector, vector.start + position)
    return Index(vector, position)


def run(line: Sequence[Expression]) -> Expression | None:
    """The vector or slice that a line of elements is; None when it is neither.

    A slice here may be the whole vector; the trace knows its size.
    """
    first = line[0]
    if len(line) < 2 or not isinstance(first, Index):
        return None
    for offset, expression in enumerate(line):
        if not (
            isinstance(expression, Index)
            and expression.position == first.position + offset
            and expression.vector == first.vector
        ):
            return None
    return Slice(first.vector, first.position, first.position + len(line))
