"""What the expressions of a structure are: their sizes, and which are truth values."""

import math
from collections.abc import Iterable, Mapping

from structjax.errors import StructjaxError
from structjax.language.operators import OPERATORS, Size
from structjax.language.structure import (
    Call,
    Expression,
    Head,
    Index,
    Observation,
    Previous,
    Slice,
    Structure,
    Variable,
)
from structjax.language.usage import leaves, outputs
from structjax.schema import Schema

LEAST = 2.0**-126
"""Smaller numbers are 0 in the compiled policy, which computes in float32."""


def constant(value: float) -> float:
    """A number of a program as the compiled policy has it, but for rounding."""
    return math.copysign(0.0, value) if abs(value) < LEAST else float(value)


class Kinds:
    """Sizes and truth values of the expressions of one structure."""

    def __init__(self, structure: Structure, schema: Schema | None) -> None:
        self._latents = {latent.name: latent for latent in structure.latents}
        self._fields = {f.name: f.size for f in schema.observations} if schema else {}

    def size(self, expression: Expression) -> Size:
        """None for a scalar, n for a vector.

        Raises:
          StructjaxError: a field is not in the schema.
        """
        match expression:
            case Observation(field):
                return self._field(field)
            case Variable(name):
                return self._latents[name].size
            case Slice(_, start, stop):
                return stop - start
            case Call(operator, arguments):
                return OPERATORS[operator].shape(tuple(map(self.size, arguments)))
            case _:
                return None

    def boolean(self, expression: Expression) -> bool:
        """Whether the value is a truth value, or a vector of them."""
        match expression:
            case Variable(name) | Previous(name):
                return self._latents[name].boolean
            case Index(vector) | Slice(vector):
                return self.boolean(vector)
            case Call(operator, arguments):
                row = OPERATORS[operator]
                if row.result != "same":
                    return row.result == "truth"
                values = [a for i, a in enumerate(arguments) if i not in row.truths]
                return all(map(self.boolean, values))
            case _:
                return False

    def _field(self, name: str) -> Size:
        if name not in self._fields:
            raise _unknown_field(name, self._fields)
        return self._fields[name]


def _unknown_field(name: str, known: Iterable[str]) -> StructjaxError:
    fields = ", ".join(known)
    return StructjaxError(
        f"the program reads the observation {name!r}",
        kind="schema",
        hint=f"the task has {fields}" if fields else "give the task's schema",
    )


def fitting_heads(structure: Structure, schema: Schema) -> list[Head]:
    """The heads in the schema's order, of a program that fits the schema.

    Raises:
      StructjaxError: the actions are not those of the schema, or a field is not in it.
    """
    by_action = {head.action: head for head in structure.heads}
    wanted = [action.name for action in schema.actions]
    if set(by_action) != set(wanted):
        raise StructjaxError(
            f"the program returns the actions {sorted(by_action)}",
            kind="schema",
            hint=f"the task has {', '.join(wanted)}",
        )
    known = [field.name for field in schema.observations]
    read = (leaf for e in expressions(structure) for leaf in leaves(e))
    for leaf in read:
        if isinstance(leaf, Observation) and leaf.field not in known:
            raise _unknown_field(leaf.field, known)
    return [by_action[name] for name in wanted]


def expressions(structure: Structure) -> list[Expression]:
    """All expressions of a structure."""
    return [latent.expression for latent in structure.latents] + outputs(structure)


def weight_values(
    structure: Structure, values: Mapping[str, float] | None
) -> dict[str, float]:
    """The value of every weight: the given one, else the written one.

    Raises:
      StructjaxError: a name is not a weight of the program.
    """
    written = {p.name: float(p.initial) for p in structure.parameters}
    unknown = sorted(set(values or {}) - set(written))
    if unknown:
        raise StructjaxError(
            f"no weight {unknown[0]!r} in the program",
            kind="weights",
            hint=f"it has {', '.join(written) or 'none'}",
        )
    return written | {name: float(value) for name, value in (values or {}).items()}
