"""Weights that no gradient can reach: only in conditions, at a kink, divided out."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from structjax.language.lint.forward import read
from structjax.language.lint.places import Part
from structjax.language.problem import Problem
from structjax.language.structure import (
    Call,
    Expression,
    Number,
    Parameter,
    Structure,
    Variable,
    Weight,
)
from structjax.language.usage import outputs, reach
from structjax.schema import Field, Schema

Names = frozenset[str]
_NONE: Names = frozenset()
# Results that do not change, or jump, with their arguments.
_STEPS = ("lt", "le", "gt", "ge", "eq", "ne", "and_", "or_", "not_", "sign")
# A bare weight at exactly 0 has derivative 0 inside these (relu below 0 as well).
_KINKS = ("abs", "square", "relu", "sqrt")


@dataclass(frozen=True)
class Lost:
    """A place where a weight loses its gradient."""

    weight: str
    reason: str


class Gradients:
    """The domain of gradients: the weights whose gradient can pass."""

    anything: Names = _NONE

    def __init__(self, structure: Structure) -> None:
        self._latents = {latent.name: latent for latent in structure.latents}
        self._starts = {p.name: p.initial for p in structure.parameters}
        self.lost: dict[Lost, None] = {}

    def number(self, value: float) -> Names:
        """None."""
        return _NONE

    def observed(self, field: Field) -> Names:
        """None."""
        return _NONE

    def weight(self, parameter: Parameter) -> Names:
        """Itself."""
        return frozenset((parameter.name,))

    def element(self, vector: Names, position: int) -> Names:
        """Those of the vector."""
        return vector

    def part(self, vector: Names, start: int, stop: int) -> Names:
        """Those of the vector."""
        return vector

    def either(self, one: Names, other: Names) -> Names:
        """Those of both."""
        return one | other

    def call(
        self, operator: str, values: Sequence[Names], arguments: Sequence[Expression]
    ) -> Names:
        """Those of the arguments, without the lost ones."""
        if operator in _STEPS:
            self._note(_NONE.union(*values), "it only decides conditions or signs")
            return _NONE
        if operator == "where":
            return values[1] | values[2]
        if operator in _KINKS and isinstance(arguments[0], Weight):
            return self._at_kink(operator, arguments[0].name)
        if operator == "mul" and Number(0.0) in arguments:
            return _NONE
        kept = _NONE.union(*values)
        if operator in ("sub", "div", "safe_div") and arguments[0] == arguments[1]:
            self._note(kept, "it cancels out")
            return _NONE
        if operator in ("normalise", "div", "safe_div"):
            scales = self._divided_out(operator, arguments)
            self._note(scales, "it only scales what is normalised")
            kept -= scales
        return kept

    def _note(self, names: Names, reason: str) -> None:
        """Notes lost weights."""
        for name in sorted(names):
            self.lost[Lost(name, reason)] = None

    def _at_kink(self, operator: str, name: str) -> Names:
        start = self._starts[name]
        if start == 0 or (start < 0 and operator in ("relu", "sqrt")):
            reason = f"`{operator}({name})` has derivative 0 at its value {start:g}"
            self._note(frozenset((name,)), reason)
            return _NONE
        return frozenset((name,))

    def _divided_out(self, operator: str, arguments: Sequence[Expression]) -> Names:
        """Weights that scale a vector and its length alike."""
        vector = arguments[0]
        if operator != "normalise" and not self._is_length(arguments[1], vector):
            return _NONE
        return self._factors(vector)

    def _is_length(self, divisor: Expression, vector: Expression) -> bool:
        """Whether a divisor is the length of a vector, or that and a small number."""
        divisor = self._opened(divisor)
        match divisor:
            case Call("norm", (inside,)):
                return self._opened(inside) == self._opened(vector)
            case Call("add" | "maximum", (inside, Number())):
                return self._is_length(inside, vector)
        return False

    def _opened(self, expression: Expression) -> Expression:
        """What a name stands for."""
        while isinstance(expression, Variable):
            expression = self._latents[expression.name].expression
        return expression

    def _factors(self, expression: Expression) -> Names:
        """Weights that multiply the whole of an expression."""
        match self._opened(expression):
            case Weight(name):
                return frozenset((name,))
            case Call("mul", (left, right)):
                return self._factors(left) | self._factors(right)
            case Call("neg", (inside,)) | Call("div", (inside, _)):
                return self._factors(inside)
            case Call("stack", elements):
                factors = [self._factors(element) for element in elements]
                return frozenset.intersection(*factors)
        return _NONE


def gradient_problems(
    structure: Structure, schema: Schema, parts: Sequence[Part], lines: dict[str, int]
) -> Iterator[Problem]:
    """Weights that actions depend on, but not smoothly."""
    domain = Gradients(structure)
    reading = read(structure, schema, domain)
    used = reach(structure, outputs(structure))
    alive = _NONE.union(*(reading.of(output) for output in outputs(structure)))
    for parameter in structure.parameters:
        name = parameter.name
        if Weight(name) not in used or name in alive:
            continue
        reasons = [lost.reason for lost in domain.lost if lost.weight == name]
        why = f": {reasons[0]}" if reasons else ""
        text = f"no gradient reaches weight `{name}`{why}"
        hint = "no fit can change it; make its effect smooth, or make it a constant"
        if "derivative 0" in why:
            hint = "start it away from 0, or bound it with `sign` in place of the kink"
        yield Problem("NO_GRADIENT", "warning", lines.get(name, 1), text, hint)
