"""Names that mean something before a program declares anything."""

import difflib
import heapq
from collections.abc import Iterable
from functools import partial
from itertools import takewhile

from structjax.language.operators import CALLS

#: Functions that stand in one place only.
PLACES = {
    "weight": "weights stand at module level: `name = weight(0.5)`",
    "action": "the last statement is `return action(...)`",
    "normal": "heads stand in `return action(name=normal(mean))`",
    "fixed": "it stands in `normal(mean, std=fixed(0.1))`",
    "exact": "it stands in `normal(mean, std=exact(expression))`",
    "truncated_normal": "heads stand in `return action(name=truncated_normal(mean))`",
    "tanh_normal": "heads stand in `return action(name=tanh_normal(mean))`",
    "beta": "heads stand in `return action(name=beta(mean))`",
    "categorical": "heads stand in `return action(name=categorical(a, b))`",
    "range": "it stands in `for i in range(n)`",
}

_NOISE = "noise belongs to the distribution of the action: `normal(mean, std=...)`"

#: Functions that models like to write and the language does not have.
REFUSED_CALLS = {
    "int": "values are real; indices are constants or loop variables",
    "round": "rounding has no derivative",
    "floor": "rounding has no derivative",
    "ceil": "rounding has no derivative",
    "bool": "write a comparison such as `x > 0`",
    "pow": "write `x ** 2`",
    "power": "write `x ** 2`",
    "hypot": "write `norm(stack(x, y))`",
    "logistic": "write `sigmoid(x)`",
    "inv": "write `safe_div(1, x)`, or `1 / x` where x is never 0",
    "reciprocal": "write `safe_div(1, x)`, or `1 / x` where x is never 0",
    "mod": "an angle is wrapped by `wrap_angle(x)`",
    "fmod": "an angle is wrapped by `wrap_angle(x)`",
    "print": "every assigned name is logged without it",
    "random": _NOISE,
    "noise": _NOISE,
    "randn": _NOISE,
    "uniform": _NOISE,
    "array": "write a vector as `stack(a, b, ...)`",
    "tensor": "write a vector as `stack(a, b, ...)`",
    "enumerate": "write `for i in range(n)`",
    "zip": "write `for i in range(n)`",
    "list": "write a vector as `stack(a, b, ...)`",
    "all": "write `a and b`",
    "any": "write `a or b`",
    "param": "write `name = weight(0.5)` at module level",
    "parameter": "write `name = weight(0.5)` at module level",
}

#: Python functions that are accepted besides the operators.
BUILTINS = ("float", "len")

#: Every function name of the language.
FUNCTION_NAMES = frozenset({*CALLS, *PLACES, *BUILTINS, "previous", "policy"})

#: Heads whose names a program may use for itself: `beta` is also an angle.
FREE = {"exact", "truncated_normal", "tanh_normal", "beta"}

#: Names that a program cannot assign.
RESERVED = (FUNCTION_NAMES - FREE) | {"obs", "pi"}

#: Names that a weight cannot have: Flax calls the tree of all weights so.
NO_WEIGHTS = frozenset({"params"})

#: A suggestion is the closest of so many names.
MAX_CANDIDATES = 100


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A suggestion, or the empty string."""
    candidates = sorted(known)
    if len(candidates) > MAX_CANDIDATES:
        # Comparing takes long; what begins or ends alike is the likeliest.
        alike = partial(_alike, name)
        candidates = sorted(heapq.nlargest(MAX_CANDIDATES, candidates, key=alike))
    close = difflib.get_close_matches(name, candidates, 1)
    return f"did you mean `{close[0]}`?" if close else ""


def _alike(name: str, other: str) -> int:
    """Length of the common beginning and end."""
    pairs = (zip(name, other, strict=False), zip(name[::-1], other[::-1], strict=False))
    return sum(sum(1 for _ in takewhile(lambda ab: ab[0] == ab[1], p)) for p in pairs)
