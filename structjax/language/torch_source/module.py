"""Reads the file: imports, constants, functions, one class and its `__init__`."""

import ast
from typing import Any

import numpy as np

from structjax.language.structure import Number, Weight
from structjax.language.syntax import excerpt, is_docstring
from structjax.language.torch_source.machine import Declared, Frame, Machine
from structjax.language.torch_source.refusal import Refused, Silent
from structjax.language.torch_source.statements import run
from structjax.language.torch_source.values import (
    FAULT,
    SELF,
    Function,
    Namespace,
    NewParameter,
    Tensor,
    Unusable,
    array,
)

MAX_PARAMETER = 64


def read_module(tree: ast.Module, machine: Machine) -> ast.FunctionDef | None:
    """Declares everything; returns `forward`, or None when there is none."""
    classes = []
    for node in tree.body:
        if node in machine.refused:
            continue
        if isinstance(node, ast.Import | ast.ImportFrom):
            _import(node, machine)
        elif isinstance(node, ast.FunctionDef):
            machine.names[node.name] = _function(node, False, machine)
        elif isinstance(node, ast.ClassDef):
            classes.append(node)
        elif not is_docstring(node):
            frame = Frame(machine.names)
            run([node], frame, machine)
    if len(classes) != 1:
        line = classes[1].lineno if classes else 1
        text = f"the file has {len(classes)} classes" if classes else "no class"
        hint = "write one `class Policy(nn.Module):` with `__init__` and `forward`"
        machine.trace.problems.error("NO_ENTRY", line, text, hint)
        return None
    return _class(classes[0], machine)


def _import(node: ast.Import | ast.ImportFrom, machine: Machine) -> None:
    for alias in node.names:
        path = tuple(alias.name.split("."))
        if isinstance(node, ast.ImportFrom):
            path = (*(node.module or "").split("."), *path)
            machine.names[alias.asname or alias.name] = Namespace(path)
        elif alias.asname:
            machine.names[alias.asname] = Namespace(path)
        else:
            machine.names[path[0]] = Namespace(path[:1])


def _function(node: ast.FunctionDef, bound: bool, machine: Machine) -> Function:
    for decorator in node.decorator_list:
        name = excerpt(decorator)
        if bound and name == "staticmethod":
            return Function(node, False)
        training = "no_grad" in name or "inference" in name
        hint = "only `@staticmethod` is accepted"
        code = "TRAINING" if training else "NODE"
        text = f"the decorator `@{name}` is not accepted"
        machine.trace.problems.error(code, decorator.lineno, text, hint)
    return Function(node, bound)


def _class(node: ast.ClassDef, machine: Machine) -> ast.FunctionDef | None:
    bases = [machine.attempt(base, Frame()) for base in node.bases]
    if Namespace(("torch", "nn", "Module")) not in bases or len(bases) > 1:
        text = f"`{node.name}` is not an nn.Module"
        hint = f"write `class {node.name}(nn.Module):`"
        machine.trace.problems.error("NO_ENTRY", node.lineno, text, hint)
    for part in node.body:
        if part in machine.refused or is_docstring(part):
            continue
        if isinstance(part, ast.FunctionDef):
            machine.methods[part.name] = _function(part, True, machine)
        elif isinstance(part, ast.Assign | ast.AnnAssign):
            frame = Frame()
            run([part], frame, machine)
            machine.attributes |= frame.names
    if "__init__" in machine.methods:
        _initialise(machine.methods["__init__"].node, machine)
    if "forward" not in machine.methods:
        text = f"`{node.name}` has no `forward`"
        hint = "write `def forward(self, obs):`"
        machine.trace.problems.error("NO_ENTRY", node.lineno, text, hint)
        return None
    return machine.methods["forward"].node


def _initialise(node: ast.FunctionDef, machine: Machine) -> None:
    """Executes `__init__`; its assignments to `self` declare."""
    frame = Frame({node.args.args[0].arg: SELF} if node.args.args else {}, "__init__")
    parameters = node.args.args[1:]
    defaults = dict(
        zip(
            reversed([p.arg for p in parameters]),
            reversed(node.args.defaults),
            strict=False,
        )
    )
    if node.args.vararg or node.args.kwarg or node.args.kwonlyargs:
        machine.trace.problems.error(
            "SIGNATURE",
            node.lineno,
            "`__init__` takes stars",
            "write `def __init__(self):`",
        )
    for parameter in parameters:
        if parameter.arg in defaults:
            value = machine.attempt(defaults[parameter.arg], Frame())
            frame.names[parameter.arg] = value
        else:
            frame.names[parameter.arg] = FAULT
            text = f"`__init__` needs `{parameter.arg}`"
            hint = "give it a default, or write `def __init__(self):`"
            machine.trace.problems.error("SIGNATURE", parameter.lineno, text, hint)
    machine.initialising = True
    if not any(map(_is_super, node.body)):
        text = "`__init__` does not call `super().__init__()`"
        machine.trace.problems.error("NO_ENTRY", node.lineno, text, "call it first")
    for statement in node.body:
        if statement in machine.refused or _is_super(statement):
            continue
        declared = _declared(statement)
        if declared is None:
            run([statement], frame, machine)
        else:
            _declare(*declared, frame, machine)
    machine.initialising = False


def _is_super(node: ast.stmt) -> bool:
    """Whether a statement is `super().__init__()`."""
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Call)
        and excerpt(node.value).startswith("super(")
        and excerpt(node.value).endswith(").__init__()")
    )


def _declared(node: ast.stmt) -> tuple[ast.Attribute, ast.expr] | None:
    """Target and value of `self.name = value`."""
    if isinstance(node, ast.Assign) and len(node.targets) == 1:
        target, value = node.targets[0], node.value
    elif isinstance(node, ast.AnnAssign) and node.value is not None:
        target, value = node.target, node.value
    else:
        return None
    return (target, value) if isinstance(target, ast.Attribute) else None


def _declare(
    target: ast.Attribute, node: ast.expr, frame: Frame, machine: Machine
) -> None:
    machine.trace.line = target.lineno
    name = target.attr
    machine.attributes[name] = FAULT
    try:
        owner = machine.evaluate(target.value, frame)
        value = machine.evaluate(node, frame)
        if owner is not SELF:
            raise Refused("BUFFER", "an attribute of something other than self")
        machine.attributes[name] = _attribute(name, value, machine)
    except Refused as refusal:
        if refusal.line is None:
            refusal.message = f"`self.{name}`: {refusal.message}"
        machine.note(refusal, target)
    except Silent:
        pass


def _attribute(name: str, value: Any, machine: Machine) -> Any:
    if isinstance(value, NewParameter):
        return _parameters(name, value, machine)
    if isinstance(value, Tensor):
        hint = "a trained tensor is `nn.Parameter`, a constant is a number"
        raise Refused("BUFFER", "a tensor that is not trained", hint)
    plain = (bool, int, float, str, list, tuple, dict, type(None))
    if not isinstance(value, plain) or isinstance(value, Unusable):
        raise Refused("BUFFER", "neither a parameter nor a constant")
    return value


def _parameters(name: str, new: NewParameter, machine: Machine) -> Tensor:
    """The tensor of scalar parameters: `name`, or `name_0`, `name_1`, ..."""
    count = new.initial.size
    if count > MAX_PARAMETER:
        hint = f"at most {MAX_PARAMETER} numbers; every one has a meaning"
        raise Refused("WEIGHT", f"a parameter of {count:,} numbers", hint)
    names = []
    for place in _places(new.initial.shape):
        full = "_".join([name, *map(str, place)]) if count > 1 else name
        number = new.initial[place]
        assert isinstance(number, Number)
        declared = Declared(name, number.value, machine.trace.line)
        if full in machine.parameters:
            raise Refused("SHADOW", f"`{full}` is a parameter already", "rename one")
        machine.parameters[full] = declared
        names.append(Weight(full))
    return Tensor(array(names, new.initial.shape))


def _places(shape: tuple[int, ...]) -> list[tuple[int, ...]]:

    return list(np.ndindex(*shape))
