"""Executes the statements of a function on symbolic tensors."""

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from structjax.language.structure import Variable
from structjax.language.syntax import excerpt, is_docstring
from structjax.language.torch_source.expressions import combine, static_truth
from structjax.language.torch_source.indexing import item
from structjax.language.torch_source.machine import Frame, Machine
from structjax.language.torch_source.python import listed
from structjax.language.torch_source.refusal import Refused, Silent
from structjax.language.torch_source.values import (
    FAULT,
    SELF,
    Extremes,
    Function,
    Tensor,
    Unusable,
    kind,
)

MAX_CALLS = 16


@dataclass(frozen=True, eq=False)
class Returned:
    """What a function returned."""

    value: Any


class _Break(Exception):
    pass


class _Continue(Exception):
    pass


def run_function(
    function: Function, values: list[Any], options: dict[str, Any], machine: Machine
) -> Any:
    """The value of a call of a function of the module.

    Raises:
      Refused: it calls itself, or the arguments do not fit.
      Silent: its result is faulty.
    """
    name = function.node.name
    if name in machine.calling or len(machine.calling) >= MAX_CALLS:
        raise Refused("RECURSION", f"`{name}` calls itself", "write a short loop")
    frame = Frame(_arguments(function, values, options, machine), name)
    machine.calling.append(name)
    try:
        result = run(function.node.body, frame, machine)
    finally:
        machine.calling.pop()
    if result is None:
        return None
    if result.value is FAULT:
        raise Silent
    return result.value


def _arguments(
    function: Function, values: list[Any], options: dict[str, Any], machine: Machine
) -> dict[str, Any]:
    """Parameter -> argument."""
    node = function.node.args
    name = function.node.name
    if node.vararg or node.kwarg:
        raise Refused("SIGNATURE", f"`{name}` takes stars", "name its parameters")
    positional = [a.arg for a in (*node.posonlyargs, *node.args)]
    given = [SELF, *values] if function.bound else list(values)
    bound = dict(zip(positional, given, strict=False))
    known = {*positional, *(a.arg for a in node.kwonlyargs)}
    if len(given) > len(positional) or not set(options) <= known - set(bound):
        text = f"`{name}` takes {', '.join(sorted(known))}"
        raise Refused("ARITY", "the arguments do not fit", text)
    bound |= options
    tail = positional[len(positional) - len(node.defaults) :]
    defaults = [*zip(tail, node.defaults, strict=True)]
    defaults += [
        (a.arg, d) for a, d in zip(node.kwonlyargs, node.kw_defaults, strict=True) if d
    ]
    for parameter, default in defaults:
        if parameter not in bound:
            bound[parameter] = machine.attempt(default, Frame())
    missing = [p for p in known if p not in bound]
    if missing:
        raise Refused("ARITY", f"`{name}` lacks {', '.join(sorted(missing))}")
    return bound


def run(body: Sequence[ast.stmt], frame: Frame, machine: Machine) -> Returned | None:
    """Executes statements until one returns."""
    for statement in body:
        machine.trace.spend()
        machine.trace.line = statement.lineno
        try:
            if statement in machine.refused:
                raise Silent
            returned = _statement(statement, frame, machine)
        except Refused as refusal:
            machine.note(refusal, statement)
            returned = _failed(statement, frame)
        except Silent:
            returned = _failed(statement, frame)
        if returned is not None:
            return returned
    return None


def _failed(statement: ast.stmt, frame: Frame) -> Returned | None:
    """What a faulty statement would have assigned is faulty too."""
    if isinstance(statement, ast.Return):
        return Returned(FAULT)
    for node in ast.walk(statement):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            frame.names[node.id] = FAULT
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            frame.names[node.name] = FAULT
    return None


def _statement(node: ast.stmt, frame: Frame, machine: Machine) -> Returned | None:
    match node:
        case ast.Assign() | ast.AnnAssign():
            _assignment(node, frame, machine)
        case ast.AugAssign():
            _augmented(node, frame, machine)
        case ast.Expr(value=value):
            if not is_docstring(node):
                machine.evaluate(value, frame)
        case ast.If():
            return _branch(node, frame, machine)
        case ast.For():
            return _loop(node, frame, machine)
        case ast.Return(value=value):
            return Returned(None if value is None else machine.attempt(value, frame))
        case _:
            _other(node, frame, machine)
    return None


def _assignment(
    node: ast.Assign | ast.AnnAssign, frame: Frame, machine: Machine
) -> None:
    if node.value is None:
        return
    value = machine.attempt(node.value, frame)
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    for target in targets:
        assign(target, value, frame, machine)


def _other(node: ast.stmt, frame: Frame, machine: Machine) -> None:
    match node:
        case ast.Break():
            raise _Break
        case ast.Continue():
            raise _Continue
        case ast.Assert(test=test):
            if not static_truth(machine.evaluate(test, frame)):
                raise Refused("CONTROL", f"`{excerpt(node)}` fails", "", node.lineno)
        case ast.Raise():
            text = f"`{excerpt(node)}` is reached"
            raise Refused("CONTROL", text, "a policy has an answer always", node.lineno)
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            hint = "write a method, or a function beside the class"
            raise Refused("NODE", f"`{name}` is defined inside", hint, node.lineno)


def assign(target: ast.expr, value: Any, frame: Frame, machine: Machine) -> None:
    """Gives a value a name, or several names their parts.

    Raises:
      Refused: the target is not accepted.
    """
    match target:
        case ast.Name(id=name):
            frame.names[name] = value
            _suggest(name, value, machine)
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            _unpack(target, parts, value, frame, machine)
        case ast.Subscript():
            _entry(target, value, frame, machine)
        case ast.Attribute(attr=name):
            text = f"`{excerpt(target)}` is set"
            hint = "attributes are set in `__init__`: `self.name = ...`"
            raise Refused("BUFFER", text, hint, target.lineno)


def _suggest(name: str, value: Any, machine: Machine) -> None:
    """Notes that a scalar or vector got a name, and where."""
    if not isinstance(value, Tensor):
        return
    trace, elements = machine.trace, list(value.elements.flat)
    whole = elements[0] if len(elements) == 1 else trace.run(elements)
    if whole is None:
        return
    trace.assigned.setdefault(whole, (len(trace.definitions), trace.line))
    if isinstance(whole, Variable) and not trace.of(whole).stem:
        trace.of(whole).stem = name


def _unpack(
    target: ast.expr,
    parts: Sequence[ast.expr],
    value: Any,
    frame: Frame,
    machine: Machine,
) -> None:
    if value is FAULT or isinstance(value, Unusable):
        items: Sequence[Any] = [FAULT] * len(parts)
    elif isinstance(value, Extremes):
        items = [value.values, value.indices]
    else:
        items = listed(value)
    if len(items) != len(parts):
        text = f"{len(items)} values for {len(parts)} names"
        raise Refused("SHAPE", text, "", target.lineno)
    for part, one in zip(parts, items, strict=True):
        assign(part, one, frame, machine)


def _entry(target: ast.Subscript, value: Any, frame: Frame, machine: Machine) -> None:
    """`info["latent_x"] = ...`."""
    container = machine.evaluate(target.value, frame)
    if isinstance(container, Tensor):
        text = f"`{excerpt(target)} = ...` changes a tensor in place"
        hint = "build it with `torch.stack`, `torch.cat` or `torch.diag_embed`"
        raise Refused("IN_PLACE", text, hint, target.lineno)
    key = machine.evaluate(target.slice, frame)
    if isinstance(container, dict) and isinstance(key, str):
        container[key] = value
    elif isinstance(container, list):
        item(container, key)
        container[key] = value
    else:
        text = f"`{excerpt(target)}`: {kind(container)} has no such entry"
        raise Refused("TYPE", text, "", target.lineno)


def _augmented(node: ast.AugAssign, frame: Frame, machine: Machine) -> None:
    if isinstance(node.target, ast.Name):
        current = machine.evaluate(
            ast.Name(node.target.id, ast.Load(), lineno=node.lineno), frame
        )
    else:
        current = None
    if current is None or isinstance(current, Tensor):
        name = excerpt(node.target)
        text = f"`{excerpt(node)}` changes a tensor in place"
        hint = f"write `{name} = {name} + ...`"
        raise Refused("IN_PLACE", text, hint, node.lineno)
    value = combine(node.op, current, machine.evaluate(node.value, frame), machine)
    assign(node.target, value, frame, machine)


def _branch(node: ast.If, frame: Frame, machine: Machine) -> Returned | None:
    try:
        chosen = static_truth(machine.evaluate(node.test, frame))
    except Refused as refusal:
        if refusal.line is None:
            refusal.line = node.lineno
            refusal.message = f"`if {excerpt(node.test)}`: {refusal.message}"
        machine.note(refusal, node)
        for body in (node.body, node.orelse):  # for their problems
            run(body, frame, machine)
        _failed(node, frame)
        return None
    return run(node.body if chosen else node.orelse, frame, machine)


def _loop(node: ast.For, frame: Frame, machine: Machine) -> Returned | None:
    items = machine.evaluate(node.iter, frame)
    try:
        turns = listed(items)
    except Refused as refusal:
        refusal.line = node.lineno
        refusal.message = f"`for ... in {excerpt(node.iter)}`: {refusal.message}"
        raise
    for value in turns:
        assign(node.target, value, frame, machine)
        try:
            returned = run(node.body, frame, machine)
        except _Continue:
            continue
        except _Break:
            return None
        if returned is not None:
            return returned
    return run(node.orelse, frame, machine)
