"""One page that teaches the language, to a model and to a person."""

from collections.abc import Callable

from structjax.language.operators import (
    OPERATORS,
    elementwise,
    joining,
    reduction,
    same_vector,
    stacking,
)

_PAGE = """\
THE LANGUAGE: a small subset of Python about ONE observation (no batch axis).

1. First the weights, one per line, each with a comment that says what it is:
   name = weight(initial, sign="+" or "-", low=..., high=...)  # meaning, unit
   Weights are trained; sign and bounds are optional; the initial value lies strictly \
inside them. `NAME = number` declares a constant; `pi` is one.
2. Then, if useful, helpers: `def f(a, b):`, assignments, one final return. They read \
weights and constants, not `obs`.
3. Then `def policy(obs):`, made of assignments `name = expression`. Every name is a \
meaningful quantity (a latent) and is logged by that name without anyone asking; \
comments become its documentation (a name that begins with `_` is not logged). Every \
name is assigned once, with two exceptions: inside `for i in range(n)` \
(n constant, at most 64) a name may be updated, and `if`/`elif`/`else` may assign \
names, each in both branches or before.
4. Last: `return action(name=normal(mean, std=...), ...)`, every action of the task \
once. std omitted, or a number: a trained weight that starts there; an expression: \
state-dependent; `fixed(x)`: not trained. `truncated_normal` and `beta` (same \
arguments) and `tanh_normal` (squashes a normal) keep samples inside the range; \
`coupling=stack(c10, c20, c21, ...)` correlates normal actions. A discrete action is \
`name=categorical(logit_0, logit_1, ...)`, one logit per choice.

Values are numbers, truth values or vectors of a fixed length. Observation fields \
are `obs.name` or `obs.group.name`; elements `v[0]`, `v[-1]`, slices `v[a:b]`, with \
constants or loop variables. Operators work element by element on equal lengths, or on \
a scalar with a vector. Conditions are comparisons, not numbers: `x > 0`. Nothing else \
of Python: no import, class, list, tuple, lambda, while, keyword argument, method or \
random number. The only state: `previous(name, start=0.0)` is the value that a scalar \
name had one step earlier (start: in the first step; True or False for a truth value).

Operators
{operators}
`a if cond else b` is `where`; both sides are computed. Comparisons chain: `0 < x < 1`.
"""

#: Operators that need no explanation share a line.
_PLAIN = (
    ("add", "sub", "mul", "div", "pow", "neg"),
    ("lt", "le", "gt", "ge", "eq", "ne", "and_", "or_", "not_"),
)


def language_page() -> str:
    """The prompt text that teaches the language, its operators from the table."""
    plain = {name for line in _PLAIN for name in line}
    lines = ["  ".join(OPERATORS[name].spelling for name in line) for line in _PLAIN]
    lines += [
        f"{row.spelling}: {row.meaning}"
        for row in OPERATORS.values()
        if row.name not in plain
    ]
    return _PAGE.format(operators="\n".join(f"- {line}" for line in lines))


_ARGUMENTS: dict[Callable, str] = {
    elementwise: "scalars or vectors of one length",
    reduction: "vectors of one length",
    same_vector: "a vector",
    stacking: "scalars",
    joining: "vectors",
}
_RESULTS: dict[Callable, str] = {
    elementwise: "as the arguments",
    reduction: "a scalar",
    same_vector: "a vector",
    stacking: "a vector",
    joining: "a vector",
}


def operator_rows() -> list[dict[str, str]]:
    """The operator table for people: name, spelling, arguments, result, meaning."""
    return [
        {
            "name": row.name,
            "spelling": row.spelling,
            "arguments": _ARGUMENTS.get(row.shape, "of fixed sizes"),
            "result": "truth value"
            if row.result == "truth"
            else _RESULTS.get(row.shape, "a vector"),
            "meaning": row.meaning,
        }
        for row in OPERATORS.values()
    ]
