"""Expressions as ONNX nodes: scalars are `[batch, 1]`, vectors `[batch, n]`, float32.

What depends on no observation is `[1, 1]` until it is joined with something or leaves
the graph. Truth values are boolean tensors, cast where they count as numbers.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from structjax.language.export.kinds import Kinds, constant
from structjax.language.operators import OPERATORS
from structjax.language.structure import (
    Call,
    Expression,
    Index,
    Number,
    Observation,
    Previous,
    Slice,
    Variable,
    Weight,
)

#: Operators that are one node of ONNX.
_DIRECT = {
    "add": "Add",
    "sub": "Sub",
    "mul": "Mul",
    "div": "Div",
    "neg": "Neg",
    "lt": "Less",
    "le": "LessOrEqual",
    "gt": "Greater",
    "ge": "GreaterOrEqual",
    "eq": "Equal",
    "and_": "And",
    "or_": "Or",
    "not_": "Not",
    "where": "Where",
    "abs": "Abs",
    "relu": "Relu",
    "softplus": "Softplus",
    "exp": "Exp",
    "sign": "Sign",
    "tanh": "Tanh",
    "sigmoid": "Sigmoid",
    "sin": "Sin",
    "cos": "Cos",
    "minimum": "Min",
    "maximum": "Max",
}
_REDUCTIONS = {
    "reduce_sum": "ReduceSum",
    "reduce_mean": "ReduceMean",
    "reduce_min": "ReduceMin",
    "reduce_max": "ReduceMax",
}


class Builder:
    """Collects the nodes and constants of a graph.

    Attributes:
      nodes: in order of evaluation.
      constants: named tensors, the weights among them.
      values: tensor of every field, weight, latent and remembered latent.
    """

    def __init__(self, onnx: Any, kinds: Kinds) -> None:
        self._onnx = onnx
        self._kinds = kinds
        self._count = 0
        self._numbers: dict[tuple[Any, ...], str] = {}
        self.zeros = ""  # a column [batch, 1] of zeros, once it is known
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.values: dict[Expression, str] = {}

    # --- nodes and constants

    def node(self, kind: str, *inputs: str, name: str = "", **attributes: Any) -> str:
        """Adds a node; returns its output."""
        self._count += 1
        output = name or f"_{self._count}"
        make = self._onnx.helper.make_node
        self.nodes.append(make(kind, list(inputs), [output], **attributes))
        return output

    def tensor(self, value: np.ndarray, name: str) -> str:
        """Adds a named tensor."""
        self.constants.append(self._onnx.numpy_helper.from_array(value, name))
        return name

    def number(self, value: float) -> str:
        """A real constant `[1, 1]`."""
        value = constant(value)
        key = ("real", repr(value))
        if key not in self._numbers:
            array = np.full((1, 1), value, np.float32)
            self._numbers[key] = self.tensor(array, f"number_{len(self._numbers)}")
        return self._numbers[key]

    def whole(self, *values: int) -> str:
        """Integers: axes and positions."""
        key = ("whole", *values)
        if key not in self._numbers:
            array = np.array(values, np.int64)
            self._numbers[key] = self.tensor(array, f"whole_{len(self._numbers)}")
        return self._numbers[key]

    def columns(self, vector: str, start: int, stop: int) -> str:
        """Elements `start <= i < stop`."""
        bounds = self.whole(start), self.whole(stop)
        return self.node("Slice", vector, *bounds, self.whole(1))

    def join(self, parts: Sequence[str]) -> str:
        """Columns side by side, all with the batch's length."""
        full = [self.node("Add", part, self.zeros) for part in parts]
        return self.node("Concat", *full, axis=1)

    def reduced(self, kind: str, vector: str) -> str:
        """A reduction over the elements, `[batch, 1]`.

        ONNX leaves open whether the largest of NaN and 1 is NaN, and whether a sum of
        negative zeros is one; here it is NaN, and a positive zero.
        """
        result = self.node(kind, vector, self.whole(1), keepdims=1)
        if kind in ("ReduceSum", "ReduceMean"):
            # Not `+ 0`, which runtimes optimise away.
            return self.guarded(self.node("Equal", result, self.number(0.0)), result)
        float32 = self._onnx.TensorProto.FLOAT
        flags = self.node("Cast", self.node("IsNaN", vector), to=float32)
        count = self.node("ReduceSum", flags, self.whole(1), keepdims=1)
        any_nan = self.node("Greater", count, self.number(0.0))
        return self.guarded(any_nan, result, math.nan)

    def guarded(self, bad: str, value: str, instead: float = 0.0) -> str:
        """The value, a number where `bad`."""
        return self.node("Where", bad, self.number(instead), value)

    def recall(self, previous: Previous, value: str) -> None:
        """Defines what is remembered by a real tensor."""
        boolean = self._kinds.boolean(previous)
        self.values[previous] = self._as_truth(value) if boolean else value

    # --- expressions

    def real(self, expression: Expression) -> str:
        """The value as float32."""
        value = self.value(expression)
        if self._kinds.boolean(expression):
            return self.node("Cast", value, to=self._onnx.TensorProto.FLOAT)
        return value

    def value(self, expression: Expression) -> str:
        """The value, a boolean tensor for a truth value."""
        match expression:
            case Number(number):
                return self.number(number)
            case Observation() | Weight() | Variable() | Previous():
                return self.values[expression]
            case Index(vector, position):
                return self.columns(self.value(vector), position, position + 1)
            case Slice(vector, start, stop):
                return self.columns(self.value(vector), start, stop)
            case Call(operator, arguments):
                return self._call(operator, arguments)

    def _call(self, operator: str, arguments: Sequence[Expression]) -> str:
        row = OPERATORS[operator]
        inputs = [
            self._truth(a) if i in row.truths else self.real(a)
            for i, a in enumerate(arguments)
        ]
        if operator in _DIRECT:
            return self._direct(operator, arguments, inputs)
        if operator in _REDUCTIONS:
            return self.reduced(_REDUCTIONS[operator], inputs[0])
        if operator == "pow":
            return self._power(inputs[0], arguments[1])
        if operator in ("stack", "concat"):
            joined = self.join(inputs)
            boolean = all(map(self._kinds.boolean, arguments))
            return self._as_truth(joined) if boolean else joined
        return _COMPOSED[operator](self, *inputs)

    def _direct(
        self, operator: str, arguments: Sequence[Expression], inputs: Sequence[str]
    ) -> str:
        result = self.node(_DIRECT[operator], *inputs)
        if operator == "where" and self._kinds.boolean(Call("where", tuple(arguments))):
            return self._as_truth(result)
        return result

    def _truth(self, expression: Expression) -> str:
        value = self.value(expression)
        return value if self._kinds.boolean(expression) else self._as_truth(value)

    def _as_truth(self, value: str) -> str:
        return self.node("Cast", value, to=self._onnx.TensorProto.BOOL)

    def _power(self, base: str, exponent: Expression) -> str:
        power = exponent.value if isinstance(exponent, Number) else math.nan
        if not power.is_integer():
            base = self.floored(base, 0.0 if power > 0 else 1e-6)
        return self.node("Pow", base, self.number(power))

    def floored(self, value: str, floor: float) -> str:
        """The value, at least the floor; NaN stays."""
        low = self.node("LessOrEqual", value, self.number(floor))
        return self.guarded(low, value, floor)

    def clip(self, x: str, low: str, high: str) -> str:
        """`x` kept in [low, high]; `high` where they are crossed."""
        raised = self.node("Where", self.node("Less", x, low), low, x)
        above = self.node("Greater", raised, high)
        return self.node("Where", above, high, raised)

    def divided(self, a: str, b: str) -> str:
        """Quotient, 0 where |b| < 1e-6."""
        small = self.node("Less", self.node("Abs", b), self.number(1e-6))
        quotient = self.node("Div", a, self.guarded(small, b, 1.0))
        return self.guarded(small, quotient)

    def cleaned(self, x: str) -> str:
        """0 for NaN and infinities."""
        bad = self.node("Or", self.node("IsNaN", x), self.node("IsInf", x))
        return self.guarded(bad, x)

    def dot(self, a: str, b: str) -> str:
        """Inner product."""
        return self.reduced("ReduceSum", self.node("Mul", a, b))

    def norm(self, v: str) -> str:
        """Length of a vector."""
        return self.node("Sqrt", self.dot(v, v))

    def atan2(self, y: str, x: str) -> str:
        """Angle of the point; ONNX has the arctangent of a quotient only."""
        zero, half = self.number(0.0), self.number(math.pi / 2)
        # A negative zero is below: its reciprocal is negative.
        reciprocal = self.node("Div", self.number(1.0), y)
        below = self.node(
            "Or", self.node("Less", y, zero), self.node("Less", reciprocal, zero)
        )
        turn = self.node("Where", below, self.number(-math.pi), self.number(math.pi))
        angle = self.node("Atan", self.node("Div", y, x))
        behind = self.node("Less", x, zero)
        angle = self.node("Where", behind, self.node("Add", angle, turn), angle)
        upright = self.node("Equal", x, zero)
        straight = self.node("Mul", self.node("Sign", y), half)
        angle = self.node("Where", upright, straight, angle)
        extent = self.node("Max", self.node("Abs", x), self.node("Abs", y))
        origin = self.node("Less", extent, self.number(1e-15))
        return self.guarded(origin, angle)

    def wrapped(self, x: str) -> str:
        """The angle in [-pi, pi)."""
        shifted = self.node("Add", x, self.number(math.pi))
        turns = self.node(
            "Floor", self.node("Mul", shifted, self.number(0.5 / math.pi))
        )
        return self.node("Sub", x, self.node("Mul", turns, self.number(2 * math.pi)))

    def rotated2d(self, v: str, angle: str) -> str:
        """The plane vector turned."""
        x, y = self.columns(v, 0, 1), self.columns(v, 1, 2)
        cosine, sine = self.node("Cos", angle), self.node("Sin", angle)
        first = self.node("Sub", self._product(cosine, x), self._product(sine, y))
        second = self.node("Add", self._product(sine, x), self._product(cosine, y))
        return self.join([first, second])

    def rotated(self, q: str, v: str, direction: float) -> str:
        """The vector v + 2 u x (u x v + w v) / |q|^2, u = direction * (x, y, z)."""
        axis = self._product(self.columns(q, 0, 3), self.number(direction))
        along = self._product(self.columns(q, 3, 4), v)
        inner = self.node("Add", self._cross(axis, v), along)
        scale = self.divided(self.number(2.0), self.dot(q, q))
        return self.node("Add", v, self._product(scale, self._cross(axis, inner)))

    def _product(self, a: str, b: str) -> str:
        return self.node("Mul", a, b)

    def _cross(self, a: str, b: str) -> str:
        (ax, ay, az), (bx, by, bz) = (
            [self.columns(v, i, i + 1) for i in range(3)] for v in (a, b)
        )
        pairs = ((ay, bz, az, by), (az, bx, ax, bz), (ax, by, ay, bx))
        return self.join(
            [
                self.node("Sub", self._product(p, q), self._product(r, s))
                for p, q, r, s in pairs
            ]
        )


_COMPOSED: Mapping[str, Any] = {
    "ne": lambda b, x, y: b.node("Not", b.node("Equal", x, y)),
    "clip": Builder.clip,
    "sqrt": lambda b, x: b.node("Sqrt", b.floored(x, 0.0)),
    "log": lambda b, x: b.node("Log", b.floored(x, 1e-6)),
    "square": lambda b, x: b.node("Mul", x, x),
    "atan2": Builder.atan2,
    "wrap_angle": Builder.wrapped,
    "safe_div": Builder.divided,
    "nan_clean": Builder.cleaned,
    "weighted_mean": lambda b, v, w: b.divided(b.dot(v, w), b.reduced("ReduceSum", w)),
    "norm": Builder.norm,
    "dot": Builder.dot,
    "normalise": lambda b, v: b.divided(v, b.norm(v)),
    "rotate2d": Builder.rotated2d,
    "rotate": lambda b, q, v: b.rotated(q, v, 1.0),
    "rotate_inverse": lambda b, q, v: b.rotated(q, v, -1.0),
}
