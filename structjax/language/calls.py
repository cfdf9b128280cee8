"""Lowers calls: operators of the table and helpers."""

import ast
from collections.abc import Sequence

from structjax.language.access import dotted
from structjax.language.expressions import apply, chain, checked_truth
from structjax.language.memory import read_previous
from structjax.language.names import (
    FUNCTION_NAMES,
    PLACES,
    REFUSED_CALLS,
)
from structjax.language.operators import (
    CALL_NAMES,
    CALLS,
    OPERATORS,
    PREFIXES,
    Operator,
)
from structjax.language.scope import Handler, Lowering, Scope, Value, number
from structjax.language.syntax import excerpt

MAX_NESTED = 32

#: Operators of two arguments that programs call with more.
_NESTED = ("minimum", "maximum", "and_", "or_")


def lower_call(node: ast.Call, scope: Scope, state: Lowering) -> Value | None:
    """The value of a call, helpers inlined."""
    if state.holds_refused(node.func):
        return None
    path = dotted(node.func)
    name = path[-1] if path else ""
    if len(path) != 1 and not (path and set(path[:-1]) <= set(PREFIXES)):
        _method(node, path, state)
        return None
    if name in state.calling or name == "policy":
        state.error("RECURSION", node, f"`{name}` calls itself", "write a short loop")
        return None
    if name in state.helpers and len(path) == 1:
        state.called.add(name)
        return state.inline(node, _arguments(node, scope, state), state)
    if name in CALLS:
        return _operator(node, name, scope, state)
    if name == "previous" and len(path) == 1:
        return read_previous(node, scope, state)
    if name in ("float", "len") and len(path) == 1:
        return _builtin(node, name, scope, state)
    _unknown(node, name, scope, state)
    return None


def _arguments(node: ast.Call, scope: Scope, state: Lowering) -> list[Value | None]:
    return [state.lower(argument, scope) for argument in node.args]


def positional(node: ast.Call, spelling: str, state: Lowering) -> bool:
    """Whether a call has no keyword arguments; notes the error otherwise."""
    if not node.keywords:
        return True
    name = node.keywords[0].arg or "**"
    text = f"`{excerpt(node)}` has a keyword argument `{name}`"
    state.error("ARITY", node, text, f"write `{spelling}`")
    return False


def wrong_count(
    node: ast.Call, wanted: str, spelling: str, state: Lowering
) -> Value | None:
    """Notes a wrong number of arguments."""
    text = f"`{excerpt(node)}` has {len(node.args)} arguments, needed {wanted}"
    state.error("ARITY", node, text, f"write `{spelling}`")
    return None


def _operator(node: ast.Call, name: str, scope: Scope, state: Lowering) -> Value | None:
    rows = CALLS[name]
    values = _arguments(node, scope, state)
    if not positional(node, " or ".join(row.spelling for row in rows), state):
        return None
    for row in rows:
        if row.arity[0] <= len(values) <= row.arity[1]:
            return _apply(row, values, node, state)
    # `min` and `max` are listed element-wise first, then as a reduction.
    if rows[0].name in _NESTED and 2 < len(values) <= MAX_NESTED:
        values = _truths(rows[0], values, node, state)
        return chain(rows[0], values, node, state)
    return wrong_count(node, _wanted(rows), rows[0].spelling, state)


def _wanted(rows: Sequence[Operator]) -> str:
    low = min(row.arity[0] for row in rows)
    high = MAX_NESTED if rows[0].name in _NESTED else rows[0].arity[1]
    return str(low) if low == high else f"{low} to {high}"


def _apply(
    row: Operator, values: list[Value | None], node: ast.Call, state: Lowering
) -> Value | None:
    return apply(row, _truths(row, values, node, state), node, state)


def _truths(
    row: Operator, values: list[Value | None], node: ast.Call, state: Lowering
) -> list[Value | None]:
    """The arguments; None where a truth value is needed and a number stands."""
    every = len(row.truths) == row.arity[1]
    return [
        checked_truth(node.args[i], node, value, state)
        if every or i in row.truths
        else value
        for i, value in enumerate(values)
    ]


def _builtin(node: ast.Call, name: str, scope: Scope, state: Lowering) -> Value | None:
    if not positional(node, f"{name}(x)", state):
        return None
    if len(node.args) != 1:
        return wrong_count(node, "1", f"{name}(x)", state)
    value = state.lower(node.args[0], scope)
    if value is None:
        return None
    if name == "float":
        if not value.boolean:
            return value
        choices = [value, number(1.0), number(0.0)]
        return apply(OPERATORS["where"], choices, node, state)
    if value.size is None:
        text = f"`{excerpt(node.args[0])}` is a single number"
        state.error("SHAPE", node, text, "len takes a vector")
        return None
    return number(value.size)


def _method(node: ast.Call, path: tuple[str, ...], state: Lowering) -> None:
    """Notes a call of something that is not a plain name."""
    if path and "random" in path:
        hint = REFUSED_CALLS["random"]
    elif isinstance(node.func, ast.Attribute) and node.func.attr in CALLS:
        hint = f"write `{node.func.attr}({excerpt(node.func.value)})`"
    elif isinstance(node.func, ast.Constant):
        hint = f"a product is `{excerpt(node.func)} * (...)`"
    else:
        hint = "functions are called by their plain name"
    code = "ATTR" if isinstance(node.func, ast.Attribute) else "CALL"
    state.error(code, node, f"`{excerpt(node)}` is not accepted", hint)


def _unknown(node: ast.Call, name: str, scope: Scope, state: Lowering) -> None:
    if name in PLACES:
        text = f"`{name}(...)` is not accepted here"
        state.error("CALL", node, text, PLACES[name])
        return
    hint = REFUSED_CALLS.get(name) or state.guess(
        name, (FUNCTION_NAMES - set(PLACES)) | set(state.helpers)
    )
    if name in scope.names or name in state.parameters or name in state.constants:
        hint = f"it is a value; write `{name} * (...)` for a product"
    hint = hint or f"the functions are {', '.join(CALL_NAMES)}"
    state.error("CALL", node, f"`{name}` is not a function of the language", hint)


#: Handlers of the node types of this file.
CALLED: dict[type, Handler] = {ast.Call: lower_call}
