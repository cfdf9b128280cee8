"""Lowers statements: assignments, static loops, branches, inlined helpers."""

import ast
from collections.abc import Callable, Iterable, Sequence

from structjax.language.calls import positional, wrong_count
from structjax.language.expressions import (
    apply,
    combine,
    define_local,
    lower_constant,
    lower_truth,
)
from structjax.language.names import RESERVED
from structjax.language.operators import OPERATORS
from structjax.language.scope import INLINE_DEPTH, Lowering, Scope, TooLong, Value
from structjax.language.syntax import excerpt, is_docstring

MAX_TURNS = 64
MAX_UNROLLED = 512
MAX_HELPER_LEVELS = 16

_RANGE = "write `for i in range(n)` with a constant n of 1 to 64"


def read_body(
    node: ast.FunctionDef, scope: Scope, state: Lowering
) -> ast.Return | None:
    """Lowers the statements of a function; returns its final return statement."""
    body = node.body[1:] if is_docstring(node.body[0]) else node.body
    scope.body = node
    for i, statement in enumerate(body):
        if isinstance(statement, ast.Return):
            if i + 1 < len(body):
                text = "statements after the return are never reached"
                state.error("RETURN", body[i + 1], text, "return last")
            return statement
        _statement(statement, scope, state)
    text = f"`{node.name}` does not end in a return"
    hint = "`return action(...)`" if node.name == "policy" else "`return expression`"
    state.error("NO_RETURN", node, text, f"its last statement is {hint}")
    return None


def _statement(node: ast.stmt, scope: Scope, state: Lowering) -> None:
    handler = _HANDLERS.get(type(node))
    if node in state.refused or handler is None:
        if node not in state.refused:
            text = f"`{excerpt(node)}` is not accepted here"
            hint = "helpers stand at module level, before `policy`"
            state.error("NODE", node, text, hint)
        _forget(node, scope, state)
        return
    handler(node, scope, state)


def _forget(node: ast.AST, scope: Scope, state: Lowering) -> None:
    """Marks the names that a faulty node assigns, so that their uses are silent."""
    _forget_names(state.assigned(node), scope)


def _forget_names(names: Iterable[str], scope: Scope) -> None:
    for name in names:
        scope.names.setdefault(name, None)
        scope.forgotten[name] = None


def _block(body: Sequence[ast.stmt], scope: Scope, state: Lowering) -> None:
    for statement in body:
        _statement(statement, scope, state)


def _assign(node: ast.Assign, scope: Scope, state: Lowering) -> None:
    value = state.lower(node.value, scope)
    target = node.targets[0]
    if len(node.targets) > 1:
        text = f"`{excerpt(node)}` assigns several names"
        state.error("NODE", node, text, "assign one name per line")
    for other in node.targets[1:]:
        _forget(other, scope, state)
    _store(target, value, node, scope, state)


def _augmented(node: ast.AugAssign, scope: Scope, state: Lowering) -> None:
    right = state.lower(node.value, scope)
    left = None
    if isinstance(node.target, ast.Name):
        name = node.target.id
        if name not in scope.names and state.later(name, scope):
            text = f"`{name}` is updated before it is assigned"
            state.error("NAME", node, text, "assign a start before the loop")
        else:
            left = state.lower(node.target, scope)
    if isinstance(node.op, ast.Pow):
        hint = "write `x = y ** 2`"
        state.error("NODE", node, "`**=` is not part of the language", hint)
        value = None
    else:
        value = combine(node.op, left, right, node, state)
    _store(node.target, value, node, scope, state)


def _store(
    target: ast.expr, value: Value | None, node: ast.stmt, scope: Scope, state: Lowering
) -> None:
    """Assigns a value to a name; a faulty value too, so that its uses are silent."""
    if target in state.refused:
        _forget(node, scope, state)
        return
    if not isinstance(target, ast.Name):
        text = f"`{excerpt(target)} = ...` changes part of a value"
        state.error("NODE", node, text, "every name is assigned once, as a whole")
        return
    name = target.id
    if not _assignable(name, node, scope, state):
        return
    scope.lines.setdefault(name, node.lineno)
    if not scope.function:
        state.lines.setdefault(name, node.lineno)
    scope.fresh[name] = None
    scope.names[name] = value and _defined(name, value, scope, state)


def _defined(name: str, value: Value, scope: Scope, state: Lowering) -> Value:
    """The definition of a name; in a branch, a short value waits for the merge."""
    if scope.in_branch and value.depth <= INLINE_DEPTH:
        return value
    return define_local(name, value, scope, state)


def _assignable(name: str, node: ast.stmt, scope: Scope, state: Lowering) -> bool:
    line = scope.lines.get(name)
    branch = scope.in_branch or scope.in_static
    updatable = scope.in_loop or (branch and name not in scope.fresh)
    if name in scope.loops:
        text, code = f"`{name}` is a loop variable", "SHADOW"
    elif name in RESERVED:
        text, code = f"`{name}` has a meaning in the language", "SHADOW"
    elif name in state.parameters or name in state.constants or name in state.helpers:
        where = f"declared in line {state.lines.get(name, 1)}"
        text, code = f"`{name}` is already {where}", "SHADOW"
    elif name in scope.names and not updatable:
        where = f"in line {line}" if line else "as a parameter"
        text, code = f"`{name}` is already assigned {where}", "REASSIGNED"
    else:
        return True
    hint = "choose another name"
    if code == "REASSIGNED":
        hint = "every name is assigned once; choose another name"
    state.error(code, node, text, hint)
    return False


def _for(node: ast.For, scope: Scope, state: Lowering) -> None:
    turns = _turns(node, scope, state)
    target = node.target.id if isinstance(node.target, ast.Name) else ""
    if turns is None or not _loop_name(target, node, scope, state):
        _forget(node, scope, state)
        return
    nested = scope.in_loop
    scope.in_loop = True
    for turn in turns:
        state.unrolled += len(node.body)
        if state.unrolled > MAX_UNROLLED:
            text = f"the loops unroll to more than {MAX_UNROLLED} statements"
            state.error("LOOP", node, text, "use operators on whole vectors")
            raise TooLong
        scope.loops[target] = turn
        _block(node.body, scope, state)
    del scope.loops[target]
    scope.in_loop = nested


def _loop_name(name: str, node: ast.For, scope: Scope, state: Lowering) -> bool:
    if name in scope.names:
        text = f"loop variable `{name}` is already assigned"
        state.error("SHADOW", node, text, "choose another name")
        return False
    return _assignable(name, node, scope, state)


def _turns(node: ast.For, scope: Scope, state: Lowering) -> range | None:
    """The turns of a static loop, or None with the reason noted."""
    call = node.iter
    if node.iter in state.refused or node.target in state.refused:
        return None
    if not (
        isinstance(call, ast.Call)
        and isinstance(call.func, ast.Name)
        and call.func.id == "range"
        and not call.keywords
        and 1 <= len(call.args) <= 3
    ):
        text = f"`for ... in {excerpt(call)}` is not a static loop"
        state.error("LOOP", node, text, _RANGE)
        return None
    if not isinstance(node.target, ast.Name):
        text = f"`{excerpt(node.target)}` is no name for a loop variable"
        state.error("LOOP", node, text, _RANGE)
        return None
    if node.orelse:
        state.error("LOOP", node, "a loop has no else", "delete it")
    before = state.problems.count
    bounds = [lower_constant(argument, scope, state) for argument in call.args]
    whole = [int(b) for b in bounds if b is not None and b == int(b)]
    if len(whole) < len(bounds) or (len(whole) == 3 and whole[2] == 0):
        if state.problems.count == before:
            text = f"`{excerpt(call)}` is not constant"
            state.error("LOOP", node, text, _RANGE)
        return None
    turns = range(*whole)
    length = _length(turns)
    if not 1 <= length <= MAX_TURNS:
        text = f"`{excerpt(call)}` has {length:,} turns"
        state.error("LOOP", node, text, f"1 to {MAX_TURNS} are accepted")
        return None
    return turns


def _length(turns: range) -> int:
    """Number of turns; `len` fails on ranges such as `range(int(1e30))`."""
    return max(0, -((turns.start - turns.stop) // turns.step))


def _if(node: ast.If, scope: Scope, state: Lowering) -> None:
    condition = lower_truth(node.test, scope, state)
    if condition and condition.static is not None:
        # Known from loop variables: only one branch is ever read.
        _read_branch(node.body if condition.static else node.orelse, scope, state)
        return
    branches = [scope.branch(), scope.branch()]
    for branch, body in zip(branches, (node.body, node.orelse), strict=True):
        _block(body, branch, state)
    names = list(branches[0].fresh | branches[1].fresh)
    if condition and len(names) > 1:
        condition = state.bind("condition", condition)
    for name in names:
        _merge(name, condition, branches, node, scope, state)
    for branch in branches:
        _forget_names(branch.forgotten, scope)


def _read_branch(body: Sequence[ast.stmt], scope: Scope, state: Lowering) -> None:
    """The only branch that is read; like any branch it may update outer names."""
    before, inside = scope.fresh, scope.in_static
    scope.fresh, scope.in_static = {}, True
    _block(body, scope, state)
    scope.fresh, scope.in_static = before | scope.fresh, inside


def _merge(
    name: str,
    condition: Value | None,
    branches: Sequence[Scope],
    node: ast.If,
    scope: Scope,
    state: Lowering,
) -> None:
    """One name after both branches."""
    line = next(b.lines[name] for b in branches if name in b.lines)
    scope.lines.setdefault(name, line)
    scope.fresh[name] = None
    if not all(name in branch.names for branch in branches):
        text = f"`{name}` is assigned in only one branch"
        hint = "assign it in the other branch too, or before the `if`"
        state.error("BRANCH", node, text, hint)
        scope.names[name] = None
        return
    values = [branch.names[name] for branch in branches]
    merged = apply(OPERATORS["where"], [condition, *values], node, state)
    scope.names[name] = merged and _defined(name, merged, scope, state)


def _expression(node: ast.Expr, scope: Scope, state: Lowering) -> None:
    if node.value in state.refused:
        return
    before = state.problems.count
    state.lower(node.value, scope)
    if state.problems.count == before:
        text = f"`{excerpt(node)}` has no effect"
        state.error("NODE", node, text, "assign it to a name, or delete it")


def _return(node: ast.Return, scope: Scope, state: Lowering) -> None:
    hint = "assign a name in both branches and return once, at the end"
    state.error("RETURN", node, "a return inside `if` or `for` is not accepted", hint)


def _pass(node: ast.Pass, scope: Scope, state: Lowering) -> None:
    """Nothing to do."""


_HANDLERS: dict[type, Callable[..., None]] = {
    ast.Assign: _assign,
    ast.AugAssign: _augmented,
    ast.For: _for,
    ast.If: _if,
    ast.Expr: _expression,
    ast.Return: _return,
    ast.Pass: _pass,
}


def inline_helper(
    call: ast.Call, values: list[Value | None], state: Lowering
) -> Value | None:
    """The value of a helper's call: its locals become temporaries."""
    name = call.func.id if isinstance(call.func, ast.Name) else ""
    node = state.helpers[name]
    names = [argument.arg for argument in node.args.args]
    spelling = f"{name}({', '.join(names)})"
    if not positional(call, spelling, state):
        return None
    if len(values) != len(names):
        return wrong_count(call, str(len(names)), spelling, state)
    if len(state.calling) >= MAX_HELPER_LEVELS:
        state.too_deep(call, MAX_HELPER_LEVELS)
        return None
    scope = Scope(function=name)
    for argument, value in zip(names, values, strict=True):
        scope.names[argument] = value and state.bind(f"{name}_{argument}", value)
    state.calling.append(name)
    result = _helper_result(node, scope, state)
    state.calling.pop()
    if result and result.depth > INLINE_DEPTH:
        return state.define(name, result)
    return result


def _helper_result(
    node: ast.FunctionDef, scope: Scope, state: Lowering
) -> Value | None:
    final = read_body(node, scope, state)
    if final is None:
        return None
    if final.value is None:
        state.error("NO_RETURN", final, f"`{node.name}` returns nothing", "return it")
        return None
    return state.lower(final.value, scope)
