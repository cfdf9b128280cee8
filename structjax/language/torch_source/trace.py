"""The definitions that a module's operations become."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from structjax.language.operators import OPERATORS, ShapeError
from structjax.language.problem import Problems
from structjax.language.structure import (
    Call,
    Expression,
    Index,
    Number,
    Observation,
    Slice,
    Variable,
    Weight,
    children,
)
from structjax.language.syntax import MAX_NUMBER
from structjax.language.torch_source.refusal import Exhausted, Refused
from structjax.language.torch_source.values import run
from structjax.schema import Schema

MAX_DEFINITIONS = 2_000
MAX_STEPS = 20_000


def _softplus(x: float) -> float:
    return max(x, 0.0) + math.log1p(math.exp(-abs(x)))


#: Operators on constants, as PyTorch computes them.
_CONSTANT: dict[str, Callable[..., float]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "pow": lambda a, b: a**b,
    "neg": lambda a: -a,
    "abs": abs,
    "relu": lambda a: max(a, 0.0),
    "clip": lambda a, low, high: min(max(a, low), high),
    "softplus": _softplus,
    "sqrt": math.sqrt,
    "exp": math.exp,
    "log": math.log,
    "square": lambda a: a * a,
    "sign": lambda a: float((a > 0) - (a < 0)),
    "tanh": math.tanh,
    "sigmoid": lambda a: 1 / (1 + math.exp(-a)),
    "sin": math.sin,
    "cos": math.cos,
    "atan2": math.atan2,
    "minimum": min,
    "maximum": max,
}

#: `x + 0`, `x - 0`, `x * 1` and `x / 1` are x; position of the number -> its value.
_NEUTRAL = {
    "add": {0: 0.0, 1: 0.0},
    "sub": {1: 0.0},
    "mul": {0: 1.0, 1: 1.0},
    "div": {1: 1.0},
}


@dataclass
class Definition:
    """One operation.

    Attributes:
      expression: a call of an operator on atomic expressions.
      size, boolean: its type.
      trainable: whether it depends on a parameter.
      line: where it was first computed.
      stem: the Python name that it was first assigned to.
    """

    expression: Expression
    size: int | None
    boolean: bool
    trainable: bool
    line: int
    stem: str = ""


@dataclass
class Trace:
    """Everything that was computed so far; `Variable("#3")` is definition 3.

    Attributes:
      schema: observation and action fields.
      problems: what was found.
      line: of the expression that is read.
      steps: evaluated nodes, against a budget.
      bounds: lower bounds of definitions, as far as they were asked for.
      assigned: values that got a Python name: number of definitions then, and line.
    """

    schema: Schema
    problems: Problems
    definitions: list[Definition] = field(default_factory=list)
    line: int = 1
    steps: int = 0
    assigned: dict[Expression, tuple[int, int]] = field(default_factory=dict)
    bounds: dict[Variable, float] = field(default_factory=dict)
    _known: dict[Expression, Variable] = field(default_factory=dict)

    def spend(self, count: int = 1) -> None:
        """Counts evaluated nodes and computed elements.

        Raises:
          Exhausted: the module expands too far.
        """
        self.steps += count
        if self.steps > MAX_STEPS:
            self._exhausted(f"loops and calls expand to over {MAX_STEPS:,} steps")

    def _exhausted(self, text: str) -> None:
        hint = "use shorter loops, or operations on whole tensors"
        self.problems.error("TOO_LONG", self.line, text, hint)
        raise Exhausted

    def warn(self, code: str, message: str, hint: str = "") -> None:
        """Notes a warning at the current line."""
        self.problems.warn(code, self.line, message, hint)

    def apply(self, operator: str, *arguments: Expression) -> Expression:
        """An operator applied to atomic expressions: constants folded, else defined."""
        simple = _simplified(operator, arguments)
        return self.define(Call(operator, arguments)) if simple is None else simple

    def define(self, expression: Expression) -> Expression:
        """The name of an expression; equal ones share it."""
        if expression in self._known:
            return self._known[expression]
        if len(self.definitions) >= MAX_DEFINITIONS:
            self._exhausted(
                f"the module expands to over {MAX_DEFINITIONS:,} operations"
            )
        name = Variable(f"#{len(self.definitions)}")
        definition = Definition(
            expression,
            self.size(expression),
            self.boolean(expression),
            self.trainable(expression),
            self.line,
        )
        self.definitions.append(definition)
        self._known[expression] = name
        return name

    def of(self, variable: Variable) -> Definition:
        """The definition behind a name."""
        return self.definitions[int(variable.name[1:])]

    def size(self, expression: Expression) -> int | None:
        """None for a scalar, n for a vector."""
        match expression:
            case Observation(name):
                return next(f.size for f in self.schema.observations if f.name == name)
            case Variable():
                return self.of(expression).size
            case Slice(_, start, stop):
                return stop - start
            case Call(operator, arguments):
                try:
                    return OPERATORS[operator].shape(tuple(map(self.size, arguments)))
                except ShapeError as error:
                    raise Refused("SHAPE", str(error)) from error
        return None

    def boolean(self, expression: Expression) -> bool:
        """Whether an expression is a truth value."""
        match expression:
            case Variable():
                return self.of(expression).boolean
            case Index(vector) | Slice(vector):
                return self.boolean(vector)
            case Call(operator, arguments):
                row = OPERATORS[operator]
                kept = arguments[1:] if operator == "where" else arguments
                return row.result == "truth" or (
                    row.result == "same" and all(map(self.boolean, kept))
                )
        return False

    def trainable(self, expression: Expression) -> bool:
        """Whether an expression depends on a parameter."""
        if isinstance(expression, Variable):
            return self.of(expression).trainable
        return isinstance(expression, Weight) or any(
            map(self.trainable, children(expression))
        )

    def vector(self, line: Sequence[Expression]) -> Expression:
        """One vector of a line of elements."""
        whole = self.run(line)
        if whole is not None:
            return whole
        parts = self._parts(line)
        if all(self.size(part) is None for part in parts):
            return self.define(Call("stack", tuple(parts)))
        pieces = [
            part if self.size(part) is not None else self.define(Call("stack", (part,)))
            for part in parts
        ]
        return self.define(Call("concat", tuple(pieces)))

    def run(self, line: Sequence[Expression]) -> Expression | None:
        """The vector or slice that a line of elements is; None when it is neither."""
        found = run(line)
        if isinstance(found, Slice) and self.size(found.vector) == len(line):
            return found.vector
        return found

    def _parts(self, line: Sequence[Expression]) -> list[Expression]:
        """The line as slices and single elements, as few as possible."""
        parts: list[Expression] = []
        start = 0
        while start < len(line):
            stop = start + 1
            while stop < len(line) and run(line[stop - 1 : stop + 1]) is not None:
                stop += 1
            part = self.run(line[start:stop])
            parts.append(line[start] if part is None else part)
            start = stop
        return parts


def _simplified(operator: str, arguments: Sequence[Expression]) -> Expression | None:
    """A constant, or an argument that the operator does not change."""
    for position, neutral in _NEUTRAL.get(operator, {}).items():
        argument = arguments[position]
        if isinstance(argument, Number) and argument.value == neutral:
            return arguments[1 - position]
    numbers = [a.value for a in arguments if isinstance(a, Number)]
    if operator not in _CONSTANT or len(numbers) < len(arguments):
        return None
    try:
        value = _CONSTANT[operator](*numbers)
    except (ValueError, ArithmeticError):
        value = math.inf
    if isinstance(value, complex) or not abs(value) <= MAX_NUMBER:
        raise Refused(
            "CONST",
            "the result is not a finite real number",
            f"constants are numbers up to {MAX_NUMBER:g}",
        )
    return Number(float(value) + 0.0)
