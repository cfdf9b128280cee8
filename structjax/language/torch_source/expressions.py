"""Reads expressions: arithmetic of tensors, and Python's own on static values."""

import ast
import operator
from collections.abc import Callable
from typing import Any

from structjax.language.names import did_you_mean
from structjax.language.syntax import MAX_NUMBER
from structjax.language.torch_source.elementwise import elementwise
from structjax.language.torch_source.functions import logical, power, truth
from structjax.language.torch_source.indexing import index, item
from structjax.language.torch_source.linear import matmul
from structjax.language.torch_source.machine import Frame, Machine
from structjax.language.torch_source.python import MAX_LIST
from structjax.language.torch_source.refusal import Refused
from structjax.language.torch_source.values import (
    BATCH,
    SELF,
    Batch,
    Extremes,
    Method,
    Namespace,
    Self,
    Tensor,
    Unusable,
    kind,
    tensor,
)
from structjax.language.torch_source.views import matrix_transpose

_STATIC = "Python decides before it sees an observation; use `torch.where`"

_TENSOR: dict[type[ast.AST], str] = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.Div: "div",
    ast.Lt: "lt",
    ast.LtE: "le",
    ast.Gt: "gt",
    ast.GtE: "ge",
    ast.Eq: "eq",
    ast.NotEq: "ne",
}
_LOGICAL = {ast.BitAnd: "and_", ast.BitOr: "or_"}
_PYTHON: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: lambda left, right: _power(left, right),
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
}


def _constant(node: ast.Constant, frame: Frame, machine: Machine) -> Any:
    return node.value


def _name(node: ast.Name, frame: Frame, machine: Machine) -> Any:
    return machine.name(node.id, frame)


def _tuple(node: ast.Tuple, frame: Frame, machine: Machine) -> Any:
    return tuple(machine.attempt(e, frame) for e in node.elts)


def _list(node: ast.List, frame: Frame, machine: Machine) -> Any:
    return [machine.attempt(e, frame) for e in node.elts]


def _dict(node: ast.Dict, frame: Frame, machine: Machine) -> Any:
    found: dict[str, Any] = {}
    for key, value in zip(node.keys, node.values, strict=True):
        if key is None:
            more = machine.evaluate(value, frame)
            if not isinstance(more, dict):
                raise Refused("TYPE", f"{kind(more)} where a dictionary is needed")
            found |= more
        else:
            found[_key(key, frame, machine)] = machine.attempt(value, frame)
    return found


def _key(node: ast.expr, frame: Frame, machine: Machine) -> str:
    key = machine.evaluate(node, frame)
    if not isinstance(key, str):
        raise Refused("TYPE", f"{kind(key)} as a key", "keys are texts")
    return key


def _text(node: ast.JoinedStr, frame: Frame, machine: Machine) -> str:
    parts = []
    for part in node.values:
        known: Any = None
        if isinstance(part, ast.FormattedValue):
            known = machine.evaluate(part.value, frame)
        elif isinstance(part, ast.Constant):
            known = part.value
        if not isinstance(known, str | int):
            raise Refused("TYPE", f"{kind(known)} in a text", "integers and texts")
        parts.append(str(known))
    text = "".join(parts)
    if len(text) > MAX_LIST:
        raise Refused("TOO_LONG", f"a text of {len(text):,} characters")
    return text


def _slice(node: ast.Slice, frame: Frame, machine: Machine) -> slice:
    bounds = (node.lower, node.upper, node.step)
    return slice(*(None if b is None else machine.evaluate(b, frame) for b in bounds))


def _subscript(node: ast.Subscript, frame: Frame, machine: Machine) -> Any:
    value = machine.evaluate(node.value, frame)
    key = machine.evaluate(node.slice, frame)
    if isinstance(value, Tensor):
        return index(value, key)
    if isinstance(value, Extremes):
        return item((value.values, value.indices), key)
    if isinstance(value, list | tuple):
        return item(value, key)
    if isinstance(value, dict):
        if not isinstance(key, str) or key not in value:
            raise Refused("NAME", "there is no such entry")
        return value[key]
    raise Refused("INDEX", f"{kind(value)} has no elements")


def _attribute(node: ast.Attribute, frame: Frame, machine: Machine) -> Any:
    value = machine.evaluate(node.value, frame)
    return attribute(value, node.attr, machine)


def attribute(value: Any, name: str, machine: Machine) -> Any:
    """An attribute of a value.

    Raises:
      Refused: there is none that is accepted.
    """
    if isinstance(value, Namespace):
        return _of_namespace(value, name)
    if isinstance(value, Self):
        return _of_self(name, machine)
    if isinstance(value, Extremes):
        return {"values": value.values, "indices": value.indices}.get(
            name, Method(value, name)
        )
    if isinstance(value, Tensor) and name in _PROPERTIES:
        return _PROPERTIES[name](value, machine)
    if isinstance(value, Unusable):
        tensor(value)
    return Method(value, name)


_PROPERTIES: dict[str, Callable[..., Any]] = {
    "shape": lambda value, machine: value.shape,
    "ndim": lambda value, machine: value.ndim,
    "dtype": lambda value, machine: Namespace(("torch", "float32")),
    "device": lambda value, machine: Namespace(("torch", "device")),
    "mT": lambda value, machine: matrix_transpose(machine.trace, value),
    "T": lambda value, machine: matrix_transpose(machine.trace, value),
}

_MATH = {"pi": 3.141592653589793, "e": 2.718281828459045, "tau": 6.283185307179586}


def _of_namespace(value: Namespace, name: str) -> Any:
    if value.path in (("math",), ("torch",)) and name in _MATH:
        return _MATH[name]
    return Namespace((*value.path, name))


def _of_self(name: str, machine: Machine) -> Any:
    if name in machine.attributes:
        return machine.attributes[name]
    if name in machine.methods:
        return machine.methods[name]
    if name == "training":
        hint = "a policy is the same in training and in use"
        raise Refused("TRAINING", "the training flag", hint)
    if name in (
        "register_buffer",
        "parameters",
        "named_parameters",
        "register_parameter",
    ):
        return Method(SELF, name)
    known = (*machine.attributes, *machine.methods)
    guess = did_you_mean(name, known)
    hint = guess or "parameters and constants are set in `__init__`"
    raise Refused("ATTR", f"the module has no `{name}`", hint)


def _unary(node: ast.UnaryOp, frame: Frame, machine: Machine) -> Any:
    value = machine.evaluate(node.operand, frame)
    if isinstance(node.op, ast.Not):
        return not static_truth(value)
    if isinstance(value, int | float) and not isinstance(node.op, ast.Invert):
        return -value if isinstance(node.op, ast.USub) else +value
    if isinstance(node.op, ast.Invert):
        return elementwise(machine.trace, "not_", truth(value))
    if isinstance(node.op, ast.UAdd):
        return tensor(value)
    return elementwise(machine.trace, "neg", value)


def static_truth(value: Any) -> bool:
    """A truth value that is known without an observation.

    Raises:
      Refused: it is not.
    """
    if isinstance(value, Tensor):
        raise Refused("CONTROL", "Python control flow depends on a tensor", _STATIC)
    if isinstance(value, Batch):
        raise Refused("CONTROL", "Python control flow depends on the batch size")
    if isinstance(value, Unusable | Extremes):
        tensor(value)
    return bool(value)


def _binary(node: ast.BinOp, frame: Frame, machine: Machine) -> Any:
    left = machine.evaluate(node.left, frame)
    right = machine.evaluate(node.right, frame)
    return combine(node.op, left, right, machine)


def combine(op: ast.operator, left: Any, right: Any, machine: Machine) -> Any:
    """Two values combined by an infix operator.

    Raises:
      Refused: the operator does not take them.
    """
    if not isinstance(left, Tensor) and not isinstance(right, Tensor):
        return _python(op, left, right)
    if isinstance(op, ast.Pow):
        return power(machine.trace, left, right)
    if isinstance(op, ast.MatMult):
        return matmul(machine.trace, left, right)
    if type(op) in _LOGICAL:
        truth(left)
        truth(right)
        return logical(_LOGICAL[type(op)])(machine.trace, left, right)
    if type(op) not in _TENSOR:
        hint = "`+ - * / ** @ & |` are accepted"
        raise Refused("NODE", "the operator is not accepted for tensors", hint)
    return elementwise(machine.trace, _TENSOR[type(op)], left, right)


def _python(op: ast.operator, left: Any, right: Any) -> Any:
    """Arithmetic on numbers; lists and texts join."""
    joined = _joined(op, left, right)
    if joined is not None:
        return joined
    for value in (left, right):
        if not isinstance(value, int | float):
            tensor(value)
    try:
        result = _PYTHON[type(op)](left, right)
    except KeyError:
        raise Refused("NODE", "the operator is not accepted for numbers") from None
    except ArithmeticError:
        result = float("inf")
    if isinstance(result, complex) or not abs(result) <= MAX_NUMBER:
        hint = f"constants are numbers up to {MAX_NUMBER:g}"
        raise Refused("CONST", "the result is not a finite real number", hint)
    return result


def _joined(op: ast.operator, left: Any, right: Any) -> Any:
    """Two lists or texts end to end, or a list repeated; None for anything else."""
    if isinstance(left, list | tuple | str) and type(left) is type(right):
        fits = len(left) + len(right) <= MAX_LIST
        return operator.add(left, right) if fits and isinstance(op, ast.Add) else None
    if isinstance(left, list | tuple) and type(right) is int:
        fits = 0 <= right * len(left) <= MAX_LIST
        return left * right if fits and isinstance(op, ast.Mult) else None
    return None


def _power(left: float, right: float) -> float:
    """A power without huge integers."""
    result: Any = float(left) ** float(right)
    whole = isinstance(left, int) and isinstance(right, int) and right >= 0
    return int(result) if whole and abs(result) < 1e15 else result


def _logic(node: ast.BoolOp, frame: Frame, machine: Machine) -> Any:
    stop = isinstance(node.op, ast.Or)
    value: Any = None
    for operand in node.values:
        value = machine.evaluate(operand, frame)
        if isinstance(value, Tensor):
            sign = "|" if stop else "&"
            hint = f"write `{sign}`, or torch.logical_{'or' if stop else 'and'}"
            raise Refused("CONTROL", "`and` and `or` of tensors", hint)
        if static_truth(value) == stop:
            return value
    return value


def _compare(node: ast.Compare, frame: Frame, machine: Machine) -> Any:
    values = [machine.evaluate(v, frame) for v in (node.left, *node.comparators)]
    results = [
        _compared(op, left, right, machine)
        for op, left, right in zip(node.ops, values[:-1], values[1:], strict=True)
    ]
    if len(results) == 1:
        return results[0]
    if any(isinstance(result, Tensor) for result in results):
        hint = "write `(a < b) & (b < c)`"
        raise Refused("CONTROL", "a chain of comparisons of tensors", hint)
    return all(results)


def _compared(op: ast.cmpop, left: Any, right: Any, machine: Machine) -> Any:
    if isinstance(op, ast.Is | ast.IsNot):
        return (left is right) == isinstance(op, ast.Is)
    if isinstance(op, ast.In | ast.NotIn):
        if not isinstance(right, dict | list | tuple) or not isinstance(
            left, str | int
        ):
            raise Refused("NODE", "`in` is accepted for keys and lists of constants")
        return (left in right) == isinstance(op, ast.In)
    if isinstance(left, Tensor) or isinstance(right, Tensor):
        return elementwise(machine.trace, _TENSOR[type(op)], left, right)
    if BATCH in (left, right):
        raise Refused("CONTROL", "a comparison with the batch size")
    plain = all(isinstance(v, int | float) for v in (left, right))
    if not plain and not isinstance(op, ast.Eq | ast.NotEq):
        raise Refused("TYPE", f"{kind(left)} compared with {kind(right)}")
    return _PYTHON[type(op)](left, right)


def _ternary(node: ast.IfExp, frame: Frame, machine: Machine) -> Any:
    chosen = static_truth(machine.evaluate(node.test, frame))
    return machine.evaluate(node.body if chosen else node.orelse, frame)


EXPRESSIONS: dict[type, Callable[..., Any]] = {
    ast.Constant: _constant,
    ast.Name: _name,
    ast.Tuple: _tuple,
    ast.List: _list,
    ast.Dict: _dict,
    ast.JoinedStr: _text,
    ast.Slice: _slice,
    ast.Subscript: _subscript,
    ast.Attribute: _attribute,
    ast.UnaryOp: _unary,
    ast.BinOp: _binary,
    ast.BoolOp: _logic,
    ast.Compare: _compare,
    ast.IfExp: _ternary,
}
"""Type of an expression node -> its handler."""
