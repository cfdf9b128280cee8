"""Expressions that are written several times, where a name would do."""

from collections.abc import Iterator, Sequence

from structjax.language.lint.places import Part, definitions_of, text_of
from structjax.language.operators import OPERATORS
from structjax.language.problem import Problem
from structjax.language.structure import (
    Call,
    Expression,
    Observation,
    Variable,
    children,
    walk,
)

# Operators that a name would save, over all repetitions.
_WORTH = 2


def duplicate_problems(parts: Sequence[Part]) -> Iterator[Problem]:
    """The largest repeated expressions; temporaries of loops and helpers left out."""
    places: dict[Expression, list[Part]] = {}
    inside: dict[Expression, set[Expression]] = {}
    for part in parts:
        if part.name.startswith("_"):
            continue
        for node in walk(part.expression):
            if children(node) and _reads(node):
                places.setdefault(node, []).append(part)
                for child in children(node):
                    inside.setdefault(child, set()).add(node)
    for node, found in places.items():
        if _operators(node) * (len(found) - 1) < _WORTH:
            continue
        # A part of one repeated expression, and of nothing else, is no news.
        if any(len(places[outer]) == len(found) for outer in inside.get(node, ())):
            continue
        lines = sorted({part.line for part in found})
        where = ", ".join(map(str, lines))
        noun = "line" if len(lines) == 1 else "lines"
        shown = text_of(node, definitions_of(parts))
        text = f"`{shown}` is written {len(found)} times, in {noun} {where}"
        hint = f"name it once, e.g. `{_name(node)} = ...`"
        yield Problem("DUPLICATE", "warning", lines[0], text, hint)


def _operators(expression: Expression) -> int:
    return sum(isinstance(node, Call) for node in walk(expression))


def _reads(expression: Expression) -> bool:
    """Whether it holds more than weights and numbers."""
    return any(isinstance(node, Observation | Variable) for node in walk(expression))


def _name(expression: Expression) -> str:
    """A name made of the function and the first two names inside."""
    operator = expression.operator if isinstance(expression, Call) else ""
    function = "" if operator not in OPERATORS else OPERATORS[operator].call
    words = [
        (node.field if isinstance(node, Observation) else node.name).split(".")[-1]
        for node in walk(expression)
        if isinstance(node, Observation | Variable)
    ]
    unique = list(dict.fromkeys(word.strip("_") for word in words))
    return "_".join([function, *unique[:2]]).strip("_")
