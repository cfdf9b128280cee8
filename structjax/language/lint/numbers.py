"""Numbers without a name in the policy and its helpers."""

import ast
import math
from collections.abc import Iterator, Sequence

from structjax.language.lint.units import parse_unit
from structjax.language.parse import Program
from structjax.language.problem import Problem
from structjax.language.syntax import excerpt
from structjax.schema import Schema

_PLAIN = (0.0, 1.0, 2.0, 0.5, math.pi)
# A number that only keeps a divisor away from 0.
_TINY = 1e-3
_TABLE = 3


def number_problems(program: Program, schema: Schema) -> Iterator[Problem]:
    """One problem per line that holds numbers of unknown origin."""
    allowed = {*_PLAIN, *_of_schema(schema)}
    lines: dict[int, dict[float, None]] = {}
    for node in ast.parse(program.source).body:
        if isinstance(node, ast.FunctionDef):
            for line, _, value in sorted(_numbers(node)):
                if abs(value) > _TINY and abs(value) not in allowed:
                    lines.setdefault(line, {})[value] = None
    source = program.source.split("\n")
    for line, values in sorted(lines.items()):
        shown = ", ".join(f"{value:g}" for value in values)
        noun = "number" if len(values) == 1 else "numbers"
        text = f"unnamed {noun} {shown} in `{_statement(source[line - 1])}`"
        hint = "name it above: `NAME = number`, or `name = weight(number)` for a guess"
        yield Problem("MAGIC_NUMBER", "warning", line, text, hint)


def _statement(line: str) -> str:
    plain = line.strip()
    try:
        return excerpt(ast.parse(plain).body[0])
    except (SyntaxError, IndexError):
        return plain[:60]


def _of_schema(schema: Schema) -> Iterator[float]:
    """Bounds of actions and scales of units: their origin is known."""
    for action in schema.actions:
        yield from (abs(action.low), abs(action.high))
    for field in schema.observations:
        unit = parse_unit(field.unit)
        if unit is not None:
            yield unit.scale


def _numbers(function: ast.FunctionDef) -> Iterator[tuple[int, int, float]]:
    """(line, column, value) of numbers other than positions, exponents and stds."""
    pending: list[ast.AST] = list(function.body)
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Constant):
            if isinstance(node.value, int | float) and not isinstance(node.value, bool):
                yield node.lineno, node.col_offset, float(node.value)
            continue
        pending += _worth_reading(node)


def _worth_reading(node: ast.AST) -> Sequence[ast.AST]:
    match node:
        case ast.Subscript(value=value):
            return (value,)
        case ast.BinOp(op=ast.Pow(), left=left):
            return (left,)
        case ast.BinOp(op=ast.Div(), left=left, right=ast.Call() as right):
            return (left, *_divisor(right))
        case ast.Call(func=ast.Name("range" | "previous" | "fixed" | "weight")):
            return ()
        case ast.Call(func=ast.Name("stack"), args=args) if _table(args):
            return ()
        case ast.Call(args=args, keywords=keywords):
            return [*args, *(k.value for k in keywords if k.arg != "std")]
    return tuple(ast.iter_child_nodes(node))


def _divisor(call: ast.Call) -> Sequence[ast.AST]:
    """A call without the floor that keeps it away from 0: `max(x, 0.01)`."""
    if isinstance(call.func, ast.Name) and call.func.id in ("max", "maximum"):
        return [a for a in call.args if not isinstance(a, ast.Constant)]
    return (call,)


def _table(arguments: Sequence[ast.expr]) -> bool:
    """A vector of numbers: 0, 1, 2 ... number the elements of another."""
    numbers = [a for a in arguments if isinstance(a, ast.Constant)]
    return len(numbers) == len(arguments) >= _TABLE
