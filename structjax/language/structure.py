"""The Structure: what an LLM writes, as frozen, hashable data. No JAX here.

A program is kept in single-assignment form: an ordered list of latents whose
expressions refer to observation fields, parameters and earlier latents by name. Names
that begin with an underscore are temporaries (locals of inlined helpers, intermediate
values of loops and branches): they are evaluated but not logged.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Number:
    """A constant."""

    value: float


@dataclass(frozen=True)
class Observation:
    """A whole observation field (`speed`, `tiles.x`); elements by the operators."""

    field: str


@dataclass(frozen=True)
class Weight:
    """A reference to a parameter."""

    name: str


@dataclass(frozen=True)
class Variable:
    """A reference to an earlier latent or temporary."""

    name: str


@dataclass(frozen=True)
class Call:
    """An operator of the table applied to expressions."""

    operator: str
    arguments: "tuple[Expression, ...]"


@dataclass(frozen=True)
class Index:
    """One element of a vector, `0 <= position < size`."""

    vector: "Expression"
    position: int


@dataclass(frozen=True)
class Slice:
    """Elements `start <= i < stop` of a vector, bounds resolved and in range."""

    vector: "Expression"
    start: int
    stop: int


@dataclass(frozen=True)
class Previous:
    """The value of a scalar latent one step earlier; `initial` in an episode's first.

    The latent may be defined later than the expression, and may depend on it. The
    initial value of a truth value is a bool.
    """

    latent: str
    initial: float | bool


Expression = Number | Observation | Weight | Variable | Call | Index | Slice | Previous


def children(expression: Expression) -> tuple[Expression, ...]:
    """The expressions directly below one."""
    match expression:
        case Call(_, arguments):
            return arguments
        case Index(vector) | Slice(vector):
            return (vector,)
    return ()


def walk(expression: Expression) -> Iterator[Expression]:
    """The expression and all below it, from left to right; variables stay closed."""
    pending = [expression]
    while pending:
        node = pending.pop()
        yield node
        pending.extend(reversed(children(node)))


def with_leaves(
    expression: Expression, change: Callable[[Expression], Expression]
) -> Expression:
    """The expression with its leaves changed."""
    match expression:
        case Call(operator, arguments):
            return Call(operator, tuple([with_leaves(a, change) for a in arguments]))
        case Index(vector, position):
            return Index(with_leaves(vector, change), position)
        case Slice(vector, start, stop):
            return Slice(with_leaves(vector, change), start, stop)
    return change(expression)


@dataclass(frozen=True)
class Parameter:
    """A trainable scalar. Bounds are None where there is none; docs live elsewhere."""

    name: str
    initial: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Latent:
    """One assignment. `size` is None for a scalar, n for a vector."""

    name: str
    expression: Expression
    size: int | None = None
    boolean: bool = False

    @property
    def logged(self) -> bool:
        """Temporaries (leading underscore) are not logged."""
        return not self.name.startswith("_")

    @property
    def columns(self) -> tuple[str, ...]:
        """`latent_name`, or `latent_name_0 ...` for a vector."""
        if self.size is None:
            return (f"latent_{self.name}",)
        return tuple(f"latent_{self.name}_{i}" for i in range(self.size))


Family = Literal["normal", "truncated_normal", "tanh_normal", "beta", "categorical"]


@dataclass(frozen=True)
class Head:
    """The distribution of one action.

    Continuous families: `arguments = (mean, std)`; the std expression is a `Weight` for
    a trained one (`std_<action>`, or the program's own weight), a `Number` for
    `fixed(x)`, any expression for a state-dependent one. `categorical`: one scalar
    logit per choice.
    """

    action: str
    family: Family
    arguments: tuple[Expression, ...]


@dataclass(frozen=True)
class Structure:
    """A control policy's structure: parameters, latents and action heads.

    `parameters` are in order of declaration, the parameters that heads imply last.
    `coupling` correlates normal heads: expressions for the strictly lower triangle of
    a matrix with unit diagonal, row by row, in the order of the heads; empty when the
    actions are independent.
    """

    parameters: tuple[Parameter, ...]
    latents: tuple[Latent, ...]
    heads: tuple[Head, ...]
    coupling: tuple[Expression, ...] = ()
