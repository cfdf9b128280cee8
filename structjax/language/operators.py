"""The operator table: one row per operator, for parser, policy, prompt and docs."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

Size = int | None
Sizes = tuple[Size, ...]

MAX_VECTOR = 1024


class ShapeError(ValueError):
    """Arguments of sizes that an operator does not take; the text says which."""


def describe(size: Size) -> str:
    """`a scalar`, or `a vector of 12`."""
    return "a scalar" if size is None else f"a vector of {size}"


def elementwise(sizes: Sizes) -> Size:
    """Equal lengths, or scalars with vectors."""
    length = None
    for size in sizes:
        if size is None or size == length:
            continue
        if length is not None:
            raise ShapeError(f"vectors of {length} and {size} do not combine")
        length = size
    return length


def _vectors(sizes: Sizes) -> None:
    for size in sizes:
        if size is None:
            raise ShapeError("a vector is needed, not a scalar")


def reduction(sizes: Sizes) -> Size:
    """Vectors of equal length to one scalar."""
    _vectors(sizes)
    elementwise(sizes)
    return None


def same_vector(sizes: Sizes) -> Size:
    """One vector to a vector of the same length."""
    _vectors(sizes)
    return sizes[0]


def stacking(sizes: Sizes) -> Size:
    """Scalars to a vector."""
    if any(size is not None for size in sizes):
        raise ShapeError("scalars are needed, not a vector; concat joins vectors")
    return _bounded(len(sizes))


def joining(sizes: Sizes) -> Size:
    """Vectors to one vector."""
    _vectors(sizes)
    return _bounded(sum(size or 0 for size in sizes))


def _bounded(length: int) -> int:
    if length > MAX_VECTOR:
        raise ShapeError(f"a vector of {length} is longer than {MAX_VECTOR}")
    return length


def fixed(wanted: Sizes, result: Size) -> Callable[[Sizes], Size]:
    """A rule for exactly these sizes."""

    def rule(sizes: Sizes) -> Size:
        for i, (size, want) in enumerate(zip(sizes, wanted, strict=True)):
            if size != want:
                raise ShapeError(
                    f"argument {i + 1} is {describe(size)}, needed is {describe(want)}"
                )
        return result

    return rule


@dataclass(frozen=True)
class Operator:
    """One row of the table.

    Attributes:
      name: key of the table, used in the Structure and by the JAX functions.
      arity: fewest and most arguments in the Structure.
      shape: sizes of the arguments -> size of the result; raises `ShapeError`.
      meaning: half a sentence.
      spelling: how a program writes it.
      result: `real`, `truth`, or `same` (a truth value if every value argument is).
      truths: positions of the arguments that must be truth values.
    """

    name: str
    arity: tuple[int, int]
    shape: Callable[[Sizes], Size]
    meaning: str
    spelling: str
    result: Literal["real", "truth", "same"] = "real"
    truths: tuple[int, ...] = ()

    @property
    def call(self) -> str:
        """Name of the function in a program; empty for infix operators."""
        return self.spelling.partition("(")[0] if "(" in self.spelling else ""


def _unary(name: str, meaning: str, spelling: str = "") -> Operator:
    return Operator(name, (1, 1), elementwise, meaning, spelling or f"{name}(x)")


def _binary(name: str, meaning: str, spelling: str) -> Operator:
    return Operator(name, (2, 2), elementwise, meaning, spelling)


def _compare(name: str, meaning: str, spelling: str) -> Operator:
    return Operator(name, (2, 2), elementwise, meaning, spelling, "truth")


def _reduce(name: str, meaning: str, spelling: str, count: int = 1) -> Operator:
    return Operator(name, (count, count), reduction, meaning, spelling)


_ROWS = (
    _binary("add", "sum of two", "a + b"),
    _binary("sub", "difference", "a - b"),
    _binary("mul", "product", "a * b"),
    _binary("div", "plain quotient", "a / b"),
    _binary("pow", "power, constant exponent in [-4, 4]", "a ** 2"),
    _unary("neg", "negative", "-x"),
    _compare("lt", "less than", "a < b"),
    _compare("le", "at most", "a <= b"),
    _compare("gt", "greater than", "a > b"),
    _compare("ge", "at least", "a >= b"),
    _compare("eq", "equal", "a == b"),
    _compare("ne", "different", "a != b"),
    Operator("and_", (2, 2), elementwise, "both", "a and b", "truth", (0, 1)),
    Operator("or_", (2, 2), elementwise, "either", "a or b", "truth", (0, 1)),
    Operator("not_", (1, 1), elementwise, "negation", "not a", "truth", (0,)),
    Operator(
        "where",
        (3, 3),
        elementwise,
        "a where the condition holds, else b; `a if cond else b` is the same",
        "where(cond, a, b)",
        "same",
        (0,),
    ),
    _unary("abs", "magnitude"),
    _unary("relu", "x above 0, else 0"),
    Operator("clip", (3, 3), elementwise, "x kept in [lo, hi]", "clip(x, lo, hi)"),
    _unary("softplus", "smooth relu"),
    _unary("sqrt", "root, 0 below 0"),
    _unary("exp", "exponential"),
    _unary("log", "natural logarithm, x floored at 1e-6"),
    _unary("square", "x * x"),
    _unary("sign", "-1, 0 or 1"),
    _unary("tanh", "smooth bound to [-1, 1]"),
    _unary("sigmoid", "smooth bound to [0, 1]"),
    _unary("sin", "sine (rad)"),
    _unary("cos", "cosine (rad)"),
    _binary("atan2", "angle of the point (x, y), in rad", "atan2(y, x)"),
    _unary("wrap_angle", "angle in rad, wrapped to [-pi, pi)"),
    _binary("safe_div", "a / b, 0 where |b| < 1e-6", "safe_div(a, b)"),
    _unary("nan_clean", "0 for NaN and infinities"),
    _binary("minimum", "smaller of two or more, element-wise", "min(a, b)"),
    _binary("maximum", "larger of two or more, element-wise", "max(a, b)"),
    _reduce("reduce_sum", "sum of a vector", "sum(v)"),
    _reduce("reduce_mean", "mean of a vector", "mean(v)"),
    _reduce("reduce_min", "smallest element of a vector", "min(v)"),
    _reduce("reduce_max", "largest element of a vector", "max(v)"),
    _reduce("weighted_mean", "sum(v * w) / sum(w)", "weighted_mean(v, w)", 2),
    _reduce("norm", "length of a vector, safe at 0", "norm(v)"),
    _reduce("dot", "scalar product", "dot(a, b)", 2),
    Operator("normalise", (1, 1), same_vector, "v / norm(v), safe", "normalise(v)"),
    Operator(
        "stack",
        (1, MAX_VECTOR),
        stacking,
        "vector of scalars",
        "stack(a, b, ...)",
        "same",
    ),
    Operator(
        "concat",
        (1, MAX_VECTOR),
        joining,
        "joined vectors",
        "concat(v, w, ...)",
        "same",
    ),
    Operator(
        "rotate2d",
        (2, 2),
        fixed((2, None), 2),
        "plane vector turned by an angle (rad)",
        "rotate2d(v, angle)",
    ),
    Operator(
        "rotate",
        (2, 2),
        fixed((4, 3), 3),
        "space vector turned by a quaternion (x, y, z, w)",
        "rotate(q, v)",
    ),
    Operator(
        "rotate_inverse",
        (2, 2),
        fixed((4, 3), 3),
        "space vector turned back by a quaternion",
        "rotate_inverse(q, v)",
    ),
)

OPERATORS: dict[str, Operator] = {row.name: row for row in _ROWS}

#: Other spellings that are accepted: call -> name of the table.
ALIASES = {
    "minimum": "min",
    "maximum": "max",
    "normalize": "normalise",
    "clamp": "clip",
    "arctan2": "atan2",
    "fabs": "abs",
    "amin": "min",
    "amax": "max",
    "concatenate": "concat",
    "nan_to_num": "nan_clean",
    "wrap_to_pi": "wrap_angle",
}

#: Infix operators that are accepted as calls too.
LOGICAL_CALLS = {"logical_and": "and_", "logical_or": "or_", "logical_not": "not_"}

#: Modules whose prefix on an operator is dropped.
PREFIXES = ("jnp", "np", "numpy", "jax", "nn", "torch", "math", "F", "linalg")


def _calls() -> dict[str, tuple[Operator, ...]]:
    calls: dict[str, tuple[Operator, ...]] = {}
    for row in _ROWS:
        if row.call:
            calls[row.call] = (*calls.get(row.call, ()), row)
    for call, name in LOGICAL_CALLS.items():
        calls[call] = (OPERATORS[name],)
    for alias, call in ALIASES.items():
        calls[alias] = calls[call]
    return calls


#: Function name in a program -> the operators it may mean (`min` has two).
CALLS: dict[str, tuple[Operator, ...]] = _calls()

#: The same without other spellings, in the order of the table.
CALL_NAMES = tuple(dict.fromkeys(row.call for row in _ROWS if row.call))
