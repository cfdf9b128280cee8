"""Reads `previous(name, start=...)`: the value of a latent one step earlier."""

import ast

from structjax.language.expressions import lower_constant
from structjax.language.scope import Lowering, Scope, Value
from structjax.language.structure import Latent, Previous, Structure
from structjax.language.syntax import excerpt

_SPELLING = "write `previous(name, start=0.0)`"


def read_previous(node: ast.Call, scope: Scope, state: Lowering) -> Value | None:
    """The value of a call; what it names may be assigned later, and is checked last."""
    start = _start(node)
    if start is None or not isinstance(node.args[0], ast.Name):
        text = f"`{excerpt(node)}` does not say what it reads and where it starts"
        state.error("PREVIOUS", node, text, _SPELLING)
        return None
    if scope.function:
        text = f"helper `{scope.function}` reads the step before"
        state.error("PREVIOUS", node, text, "read it in `policy` and pass it")
        return None
    initial = _initial(start, scope, state)
    if initial is None:
        return None
    expression = Previous(node.args[0].id, initial)
    state.previous.append((node, expression))
    return Value(expression, None, isinstance(initial, bool))


def _initial(start: ast.expr, scope: Scope, state: Lowering) -> float | bool | None:
    if isinstance(start, ast.Constant) and isinstance(start.value, bool):
        return start.value
    before = state.problems.count
    value = lower_constant(start, scope, state)
    if value is None and state.problems.count == before:
        text = f"the start `{excerpt(start)}` is not constant"
        state.error("PREVIOUS", start, text, _SPELLING)
    return value


def _start(node: ast.Call) -> ast.expr | None:
    """The start, given by keyword or as second argument."""
    if len(node.args) == 2 and not node.keywords:
        return node.args[1]
    if len(node.args) == 1 and [k.arg for k in node.keywords] == ["start"]:
        return node.keywords[0].value
    return None


def check_previous(structure: Structure, state: Lowering) -> None:
    """Notes what cannot be remembered: only logged scalars can, from one start."""
    latents = {latent.name: latent for latent in structure.latents}
    starts: dict[str, float] = {}
    for node, read in state.previous:
        text, hint = _fault(read, latents.get(read.latent))
        if not text and starts.setdefault(read.latent, read.initial) != read.initial:
            text = f"`previous({read.latent})` has two different starts"
            hint = "write one start everywhere"
        if text:
            state.error("PREVIOUS", node, text, hint)


def _fault(read: Previous, latent: Latent | None) -> tuple[str, str]:
    """What is wrong with one call, and the hint."""
    name = read.latent
    if latent is None:
        text = f"`previous({name})` reads a name that `policy` does not assign"
        return text, "it reads an assigned name, not a weight or an observation"
    if not latent.logged:
        return f"`previous({name})` reads an unlogged name", "drop the leading `_`"
    if latent.size is not None:
        text = f"`previous({name})` reads a vector of {latent.size}"
        return text, "remember its elements by names of their own"
    if latent.boolean != isinstance(read.initial, bool):
        kind, start = ("a truth value", "False") if latent.boolean else ("real", "0.0")
        text = f"`previous({name}, start={read.initial})`: `{name}` is {kind}"
        return text, f"write `start={start}`"
    return "", ""
