"""Lowers expressions: names, types, shapes, constant folding."""

import ast
import math
import operator
from collections.abc import Callable, Iterable
from itertools import chain as chain_names

from structjax.language.names import FUNCTION_NAMES
from structjax.language.operators import OPERATORS, Operator, ShapeError
from structjax.language.scope import (
    Handler,
    Lowering,
    Scope,
    Value,
    number,
    weight_value,
)
from structjax.language.structure import Call, Number
from structjax.language.syntax import MAX_NUMBER, MEMORY_HINT, excerpt

_BINARY: dict[type[ast.operator], str] = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.Div: "div",
}
_REFUSED_BINARY: dict[type[ast.operator], tuple[str, str]] = {
    ast.BitXor: ("^", "a power is `x ** 2`"),
    ast.MatMult: ("@", "write `dot(a, b)`"),
    ast.FloorDiv: ("//", "write `/`"),
    ast.Mod: ("%", "an angle is wrapped by `wrap_angle(x)`"),
    ast.BitAnd: ("&", "write `and`"),
    ast.BitOr: ("|", "write `or`"),
    ast.LShift: ("<<", "write `* 2 ** n`"),
    ast.RShift: (">>", "write `/ 2 ** n`"),
}
_COMPARE: dict[type[ast.cmpop], str] = {
    ast.Lt: "lt",
    ast.LtE: "le",
    ast.Gt: "gt",
    ast.GtE: "ge",
    ast.Eq: "eq",
    ast.NotEq: "ne",
}
_FOLDED: dict[str, Callable[..., float]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": operator.truediv,
    "pow": operator.pow,
    "neg": operator.neg,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
    "eq": operator.eq,
    "ne": operator.ne,
}


def truth(value: bool) -> Value:
    """A constant truth value; the Structure has no node of its own for it."""
    name = "eq" if value else "ne"
    zero = Number(0.0)
    return Value(Call(name, (zero, zero)), None, True, float(value), 2)


def lower_truth(node: ast.expr, scope: Scope, state: Lowering) -> Value | None:
    """The truth value of an expression, or None when it is faulty (and noted)."""
    return checked_truth(node, node, state.lower(node, scope), state)


def lower_constant(node: ast.expr, scope: Scope, state: Lowering) -> float | None:
    """The number of an expression that is constant, or None (silently)."""
    value = state.lower(node, scope)
    return value.static if value and not value.boolean else None


def checked_truth(
    operand: ast.expr, node: ast.AST, value: Value | None, state: Lowering
) -> Value | None:
    """The value of an operand of `node` if it is a truth value; notes the error."""
    if value is None or value.boolean:
        return value
    text = excerpt(operand)
    state.error(
        "TYPE",
        node,
        f"`{text}` is a number where a truth value is needed",
        f"write a comparison such as `{text} > 0`",
    )
    return None


def apply(
    row: Operator, values: Iterable[Value | None], node: ast.AST, state: Lowering
) -> Value | None:
    """The operator applied to values: shapes checked, constants folded."""
    known: list[Value] = []
    for value in values:
        if value is None:
            return None
        known.append(value)
    try:
        size = row.shape(tuple([value.size for value in known]))
    except ShapeError as error:
        hint = f"written `{row.spelling}`: {row.meaning}"
        state.error("SHAPE", node, f"`{excerpt(node)}`: {error}", hint)
        return None
    kept = known[1:] if row.name == "where" else known
    boolean = row.result == "truth" or (
        row.result == "same" and all(value.boolean for value in kept)
    )
    expression = Call(row.name, tuple([value.expression for value in known]))
    depth = 1 + max([value.depth for value in known])
    result = Value(expression, size, boolean, None, depth)
    return _fold(result, known, node, state) if row.name in _FOLDED else result


def _fold(
    result: Value, known: list[Value], node: ast.AST, state: Lowering
) -> Value | None:
    """The result as a constant, when every argument is one."""
    statics = [value.static for value in known]
    if any(static is None for static in statics) or not isinstance(
        result.expression, Call
    ):
        return result
    try:
        folded = _FOLDED[result.expression.operator](*statics)
    except (ZeroDivisionError, OverflowError):
        folded = math.inf
    literal = all(isinstance(value.expression, Number) for value in known)
    if isinstance(folded, bool):
        return truth(folded) if literal else result
    if isinstance(folded, complex) or not abs(folded) <= MAX_NUMBER:
        text = f"`{excerpt(node)}` is not a finite real number"
        state.error("CONST", node, text, f"constants are numbers up to {MAX_NUMBER:g}")
        return None
    if literal:
        return number(folded)
    return Value(result.expression, result.size, False, folded, result.depth)


def _constant(node: ast.Constant, scope: Scope, state: Lowering) -> Value | None:
    if isinstance(node.value, bool):
        return truth(node.value)
    if isinstance(node.value, int | float):
        return number(node.value)
    state.error(
        "CONST", node, f"`{excerpt(node)}` is not a number", "programs hold no text"
    )
    return None


def _name(node: ast.Name, scope: Scope, state: Lowering) -> Value | None:
    name = node.id
    if name in scope.loops:
        return number(scope.loops[name])
    if name in scope.names:
        return _local(name, scope, state)
    if name in state.constants:
        constant = state.constants[name]
        return None if constant is None else number(constant)
    if name in state.parameters:
        return weight_value(name) if state.parameters[name] else None
    if name == "pi":
        return number(math.pi)
    _unknown_name(node, scope, state)
    return None


def _local(name: str, scope: Scope, state: Lowering) -> Value | None:
    """A local name; the value of a branch gets its definition when first read."""
    value = scope.names[name]
    if value is not None and not value.atomic:
        value = define_local(name, value, scope, state)
        scope.names[name] = value
    return value


def define_local(name: str, value: Value, scope: Scope, state: Lowering) -> Value:
    """Defines a local of the policy (kept) or of a helper (a temporary)."""
    if scope.function:
        return state.define(f"{scope.function}_{name}", value)
    return state.define(name, value, kept=True)


def _unknown_name(node: ast.Name, scope: Scope, state: Lowering) -> None:
    name = node.id
    if name == "obs":
        hint = (
            "pass the fields it needs as arguments"
            if scope.function
            else f"the fields are {field_list(state)}"
        )
        what = "a helper does not read `obs`" if scope.function else "`obs` is no value"
        state.error("FIELD", node, what, hint)
        return
    if name in FUNCTION_NAMES or name in state.helpers:
        text = f"`{name}` is a function, not a value"
        state.error("NAME", node, text, f"call it: `{name}(...)`")
        return
    if line := state.later(name, scope):
        text = f"`{name}` is used before its assignment in line {line}"
        state.error("NAME", node, text, "assign a name before its first use")
        return
    known = chain_names(scope.names, scope.loops, state.parameters, state.constants)
    hint = state.guess(name, known) or "names are weights and earlier assignments"
    if name.startswith(("prev", "last_")):
        hint = MEMORY_HINT
    state.error("NAME", node, f"`{name}` is not defined", hint)


def field_list(state: Lowering) -> str:
    """All observation fields, for a message."""
    return ", ".join(
        f"obs.{f.name}" if f.size is None else f"obs.{f.name}[{f.size}]"
        for f in state.schema.observations
    )


def _unary(node: ast.UnaryOp, scope: Scope, state: Lowering) -> Value | None:
    if isinstance(node.op, ast.Invert):
        state.error("NODE", node, "`~` is not part of the language", "write `not`")
        return None
    if isinstance(node.op, ast.Not):
        value = lower_truth(node.operand, scope, state)
        return apply(OPERATORS["not_"], [value], node, state)
    value = state.lower(node.operand, scope)
    if isinstance(node.op, ast.UAdd):
        return value
    return apply(OPERATORS["neg"], [value], node, state)


def _binary(node: ast.BinOp, scope: Scope, state: Lowering) -> Value | None:
    left = state.lower(node.left, scope)
    if isinstance(node.op, ast.Pow):
        return _power(node, left, scope, state)
    right = state.lower(node.right, scope)
    return combine(node.op, left, right, node, state)


def combine(
    op: ast.operator,
    left: Value | None,
    right: Value | None,
    node: ast.AST,
    state: Lowering,
) -> Value | None:
    """Two values combined by an infix operator other than a power."""
    if type(op) in _REFUSED_BINARY:
        sign, hint = _REFUSED_BINARY[type(op)]
        state.error("NODE", node, f"`{sign}` is not part of the language", hint)
        return None
    return apply(OPERATORS[_BINARY[type(op)]], [left, right], node, state)


def _power(
    node: ast.BinOp, base: Value | None, scope: Scope, state: Lowering
) -> Value | None:
    exponent = state.lower(node.right, scope)
    if exponent is None:
        return None
    static = exponent.static
    if static is None or exponent.boolean or not -4 <= static <= 4:
        state.error(
            "POW",
            node,
            f"exponent `{excerpt(node.right)}` is not a constant in [-4, 4]",
            "write `x ** 2`, or products",
        )
        return None
    value = apply(OPERATORS["pow"], [base, number(static)], node, state)
    if static != int(static) and value and value.static is None:
        floor = "0" if static > 0 else "1e-6"
        state.problems.warn(
            "FRACTIONAL_POWER",
            node.lineno,
            f"`{excerpt(node)}` takes a base below {floor} as {floor}",
            f"a power that keeps the sign is `sign(x) * abs(x) ** {static:g}`",
        )
    return value


def _logic(node: ast.BoolOp, scope: Scope, state: Lowering) -> Value | None:
    row = OPERATORS["and_" if isinstance(node.op, ast.And) else "or_"]
    values = [lower_truth(operand, scope, state) for operand in node.values]
    return chain(row, values, node, state)


def chain(
    row: Operator, values: list[Value | None], node: ast.AST, state: Lowering
) -> Value | None:
    """A binary operator over several values, from the left."""
    result = values[0]
    for value in values[1:]:
        result = apply(row, [result, value], node, state)
    return result


def _compare(node: ast.Compare, scope: Scope, state: Lowering) -> Value | None:
    values = [state.lower(operand, scope) for operand in (node.left, *node.comparators)]
    if len(values) > 2:
        # The inner operands are used twice.
        values[1:-1] = [v and state.bind("between", v) for v in values[1:-1]]
    parts: list[Value | None] = []
    for op, left, right in zip(node.ops, values[:-1], values[1:], strict=True):
        if type(op) not in _COMPARE:
            text = "`is` and `in` are not part of the language"
            state.error("NODE", node, text, "write `==`, `<` or `>`")
            return None
        row = OPERATORS[_COMPARE[type(op)]]
        parts.append(apply(row, [left, right], node, state))
    return chain(OPERATORS["and_"], parts, node, state)


def _ternary(node: ast.IfExp, scope: Scope, state: Lowering) -> Value | None:
    condition = lower_truth(node.test, scope, state)
    values = [state.lower(branch, scope) for branch in (node.body, node.orelse)]
    return apply(OPERATORS["where"], [condition, *values], node, state)


#: Handlers of the node types of this file.
EXPRESSIONS: dict[type, Handler] = {
    ast.Constant: _constant,
    ast.Name: _name,
    ast.UnaryOp: _unary,
    ast.BinOp: _binary,
    ast.BoolOp: _logic,
    ast.Compare: _compare,
    ast.IfExp: _ternary,
}
