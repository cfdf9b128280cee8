"""Reads `return action(...)`: one distribution for each action of the task."""

import ast
from collections.abc import Sequence
from typing import cast

from structjax.language.calls import wrong_count
from structjax.language.declarations import bounded_parameter
from structjax.language.expressions import apply
from structjax.language.names import did_you_mean
from structjax.language.operators import OPERATORS, describe
from structjax.language.scope import Lowering, Scope, Value, number
from structjax.language.structure import (
    Call,
    Expression,
    Family,
    Head,
    Index,
    Number,
    Parameter,
    Weight,
)
from structjax.language.syntax import excerpt
from structjax.schema import ActionField, Schema

MIN_STD = 1e-3
START_STD = 0.1
COUPLING = "coupling"
FAMILIES: tuple[Family, ...] = ("normal", "truncated_normal", "tanh_normal", "beta")
"""Families of continuous actions."""


def std_bounds(family: Family, action: ActionField) -> tuple[float, float]:
    """The range that an action's std is kept in; tanh_normal's is that before tanh."""
    half = 1.0 if family == "tanh_normal" else action.half_range
    return MIN_STD * half, half


def action_spelling(schema: Schema) -> str:
    """How a program for this schema ends."""
    heads = ", ".join(
        f"{a.name}=normal(mean)"
        if a.choices is None
        else f"{a.name}=categorical({', '.join(f'logit_{c}' for c in a.choices)})"
        for a in schema.actions
    )
    return f"return action({heads})"


def read_heads(
    node: ast.Return, scope: Scope, state: Lowering
) -> tuple[list[Head], list[Parameter], tuple[Expression, ...]]:
    """Heads in the schema's order, the parameters of their stds, and the coupling."""
    call = node.value
    if call in state.refused:
        return [], [], ()
    if not (
        isinstance(call, ast.Call)
        and isinstance(call.func, ast.Name)
        and call.func.id == "action"
        and not call.args
    ):
        text = f"`{excerpt(node)}` does not return the actions"
        state.error("RETURN", node, text, f"write `{action_spelling(state.schema)}`")
        return [], [], ()
    by_name = _by_name(call, state)
    coupling = by_name.pop(COUPLING, None)
    heads: list[Head] = []
    parameters: list[Parameter] = []
    for action in state.schema.actions:
        if action.name in by_name:
            read = _head(action, by_name[action.name], scope, state)
            if read:
                heads.append(read[0])
                parameters += read[1]
    coupled = () if coupling is None else _coupling(coupling, heads, scope, state)
    return heads, parameters, coupled


def _by_name(call: ast.Call, state: Lowering) -> dict[str, ast.expr]:
    """Action name -> head; every action once."""
    wanted = [action.name for action in state.schema.actions]
    found: dict[str, ast.expr] = {}
    for keyword in call.keywords:
        name = keyword.arg or "**"
        if name in found:
            text = f"action `{name}` is returned twice"
            state.error("HEAD", keyword, text, "return each action once")
        elif name not in wanted and name != COUPLING:
            guess = did_you_mean(name, wanted)
            hint = f"the actions are {', '.join(wanted)}"
            text = f"`{name}` is not an action of this task"
            state.error("HEAD", keyword, text, f"{guess} {hint}" if guess else hint)
        found[name] = keyword.value
    missing = [name for name in wanted if name not in found]
    if missing:
        text = f"the return lacks {', '.join(f'`{name}`' for name in missing)}"
        state.error("HEAD", call, text, f"write `{action_spelling(state.schema)}`")
    return found


def _coupling(
    node: ast.expr, heads: Sequence[Head], scope: Scope, state: Lowering
) -> tuple[Expression, ...]:
    """One expression per pair of actions: (1, 0), (2, 0), (2, 1), ..."""
    if node in state.refused:
        return ()
    pairs = [
        f"{later.action} with {earlier.action}"
        for i, later in enumerate(heads)
        for earlier in heads[:i]
    ]
    spelling = f"write `coupling=stack(...)` of {', '.join(pairs)}"
    if any(head.family != "normal" for head in heads) or not pairs:
        text = f"`coupling={excerpt(node)}` needs two or more actions, all normal"
        state.error("HEAD", node, text, "delete it")
        return ()
    value = state.lower(node, scope)
    if value is None:
        return ()
    if value.size is None and len(pairs) == 1:
        return (value.expression,)
    if value.size != len(pairs):
        text = f"`{excerpt(node)}` is {describe(value.size)} for {len(pairs)} pairs"
        state.error("HEAD", node, text, spelling)
        return ()
    if isinstance(value.expression, Call) and value.expression.operator == "stack":
        return value.expression.arguments
    vector = state.bind("coupling", value).expression
    return tuple(Index(vector, i) for i in range(len(pairs)))


def _head(
    action: ActionField, node: ast.expr, scope: Scope, state: Lowering
) -> tuple[Head, list[Parameter]] | None:
    if node in state.refused:
        return None
    accepted = FAMILIES if action.choices is None else ("categorical",)
    if not (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in accepted
    ):
        kind = "continuous" if action.choices is None else "discrete"
        text = f"`{action.name}={excerpt(node)}`: `{action.name}` is {kind}"
        spelling = action_spelling(Schema((), (action,)))
        hint = spelling.removeprefix("return action(").removesuffix(")")
        state.error("HEAD", node, text, f"write `{hint}`{_others(action)}")
        return None
    if action.choices is not None:
        return _categorical(action, node, scope, state)
    return _continuous(action, node, scope, state)


def _others(action: ActionField) -> str:
    return "" if action.choices else f" (or {', '.join(FAMILIES[1:])})"


def _continuous(
    action: ActionField, node: ast.Call, scope: Scope, state: Lowering
) -> tuple[Head, list[Parameter]] | None:
    family = cast(Family, cast(ast.Name, node.func).id)
    options = {keyword.arg: keyword.value for keyword in node.keywords}
    given = len(node.args) + len(options)
    if not node.args or given > 2 or not set(options) <= {"std"}:
        text = f"`{excerpt(node)}` is not a {family} head"
        hint = f"write `{family}(mean)` or `{family}(mean, std=s)`"
        state.error("HEAD", node, text, hint)
        return None
    mean = _scalar(node.args[0], scope, state)
    std = options.get("std") or (node.args[1] if len(node.args) == 2 else None)
    read = _std(action, family, std, node, scope, state)
    if mean is None or read is None:
        return None
    value, parameters = read
    return Head(action.name, family, (mean.expression, value.expression)), parameters


def _scalar(node: ast.expr, scope: Scope, state: Lowering) -> Value | None:
    value = state.lower(node, scope)
    if value is None or value.size is None:
        return value
    text = f"`{excerpt(node)}` is {describe(value.size)}"
    state.error("SHAPE", node, text, "an action takes a scalar")
    return None


def _std(
    action: ActionField,
    family: Family,
    node: ast.expr | None,
    head: ast.Call,
    scope: Scope,
    state: Lowering,
) -> tuple[Value, list[Parameter]] | None:
    """The std of an action, and the parameter that it implies."""
    low, high = std_bounds(family, action)
    if node is None:
        return _implied(action, family, START_STD * high, head, state)
    if node in state.refused:
        return None
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        if node.func.id == "fixed":
            return _fixed(node, low, high, scope, state)
        if node.func.id == "exact":
            return _exact(node, scope, state)
    value = _scalar(node, scope, state)
    if value is None:
        return None
    if isinstance(value.expression, Number):
        return _implied(action, family, value.expression.value, node, state)
    bounds = [value, number(low), number(high)]
    clipped = apply(OPERATORS["clip"], bounds, node, state)
    return None if clipped is None else (clipped, [])


def _implied(
    action: ActionField,
    family: Family,
    initial: float,
    node: ast.AST,
    state: Lowering,
) -> tuple[Value, list[Parameter]] | None:
    name = f"std_{action.name}"
    if name in state.parameters:
        text = f"the head of `{action.name}` needs the name `{name}` for its own weight"
        hint = f"write `{family}(mean, std={name})`, or rename the weight `{name}`"
        state.error("SHADOW", node, text, hint)
        return None
    low, high = std_bounds(family, action)
    parameter = bounded_parameter(name, initial, low, high, node, state)
    return None if parameter is None else (Value(Weight(name)), [parameter])


def _fixed(
    node: ast.Call, low: float, high: float, scope: Scope, state: Lowering
) -> tuple[Value, list[Parameter]] | None:
    if len(node.args) != 1 or node.keywords:
        wrong_count(node, "1", "fixed(0.1)", state)
        return None
    before = state.problems.count
    value = state.lower(node.args[0], scope)
    if value is None or value.static is None or value.boolean:
        if state.problems.count == before:
            text = f"`{excerpt(node)}` is not constant"
            state.error("HEAD", node, text, "write `std=expression` without fixed")
        return None
    if not low <= value.static <= high:
        text = f"std {value.static:g} is out of range"
        state.error("HEAD", node, text, f"{low:g} to {high:g} is accepted")
        return None
    return number(value.static), []


def _exact(
    node: ast.Call, scope: Scope, state: Lowering
) -> tuple[Value, list[Parameter]] | None:
    """A std that is taken as written, without floor and ceiling."""
    if len(node.args) != 1 or node.keywords:
        wrong_count(node, "1", "exact(expression)", state)
        return None
    value = _scalar(node.args[0], scope, state)
    if value is not None and isinstance(value.expression, Number):
        text = f"`{excerpt(node)}` is a number"
        state.error("HEAD", node, text, "write `std=fixed(number)`")
        return None
    return None if value is None else (value, [])


def _categorical(
    action: ActionField, node: ast.Call, scope: Scope, state: Lowering
) -> tuple[Head, list[Parameter]] | None:
    choices = action.choices or ()
    spelling = f"categorical({', '.join(f'logit_{c}' for c in choices)})"
    values = [state.lower(argument, scope) for argument in node.args]
    if node.keywords:
        text = f"`{excerpt(node)}` has a keyword argument"
        state.error("HEAD", node, text, f"write `{spelling}`")
        return None
    known = [value for value in values if value]
    if len(known) < len(values):
        return None
    if len(known) == 1 and known[0].size == len(choices):
        vector = state.bind(f"logits_{action.name}", known[0]).expression
        parts = tuple(Index(vector, i) for i in range(len(choices)))
        return Head(action.name, "categorical", parts), []
    if len(known) != len(choices) or any(v.size is not None for v in known):
        sizes = ", ".join(describe(value.size) for value in known) or "nothing"
        text = f"`{excerpt(node)}` gives {sizes} for {len(choices)} choices"
        state.error("HEAD", node, text, f"write `{spelling}`")
        return None
    logits = tuple(value.expression for value in known)
    return Head(action.name, "categorical", logits), []
