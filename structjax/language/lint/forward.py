"""Reads a structure in a domain other than numbers: units, parities, ranges."""

from collections.abc import Mapping, Sequence
from typing import Generic, Protocol, TypeVar

from structjax.language.structure import (
    Call,
    Expression,
    Index,
    Number,
    Observation,
    Parameter,
    Previous,
    Slice,
    Structure,
    Variable,
    Weight,
)
from structjax.language.usage import memory
from structjax.schema import Field, Schema

T = TypeVar("T")
_ROUNDS = 4


class Domain(Protocol[T]):
    """What stands for values."""

    anything: T
    """Holds for every value."""

    def number(self, value: float) -> T:
        """A constant."""

    def observed(self, field: Field) -> T:
        """A whole observation field."""

    def weight(self, parameter: Parameter) -> T:
        """A parameter."""

    def call(
        self, operator: str, values: Sequence[T], arguments: Sequence[Expression]
    ) -> T:
        """An operator applied to values; `arguments` are their expressions."""

    def element(self, vector: T, position: int) -> T:
        """One element of a vector."""

    def part(self, vector: T, start: int, stop: int) -> T:
        """Some elements of a vector."""

    def either(self, one: T, other: T) -> T:
        """What holds for both."""


class Reading(Generic[T]):
    """The values of a structure's names and expressions in a domain."""

    def __init__(
        self,
        structure: Structure,
        schema: Schema,
        domain: Domain[T],
        before: Mapping[str, T],
    ) -> None:
        self._domain = domain
        self._fields = {field.name: field for field in schema.observations}
        self._weights = {p.name: p for p in structure.parameters}
        self._before = before
        # By identity: hashing an expression walks through all of it.
        self._known: dict[int, tuple[Expression, T]] = {}
        self.variables: dict[str, T] = {}
        for latent in structure.latents:
            self.variables[latent.name] = self.of(latent.expression)

    def of(self, expression: Expression) -> T:
        """The value of an expression of the structure."""
        known = self._known.get(id(expression))
        if known is None:
            known = expression, self._of(expression)
            self._known[id(expression)] = known
        return known[1]

    def _of(self, expression: Expression) -> T:
        match expression:
            case Number(value):
                return self._domain.number(value)
            case Observation(field):
                return self._domain.observed(self._fields[field])
            case Weight(name):
                return self._domain.weight(self._weights[name])
            case Variable(name):
                return self.variables[name]
            case Previous(latent):
                return self._before[latent]
            case Index(vector, position):
                return self._domain.element(self.of(vector), position)
            case Slice(vector, start, stop):
                return self._domain.part(self.of(vector), start, stop)
            case Call(operator, arguments):
                values = [self.of(argument) for argument in arguments]
                return self._domain.call(operator, values, arguments)


def read(structure: Structure, schema: Schema, domain: Domain[T]) -> Reading[T]:
    """The values of a structure, memory included.

    What is remembered is the start, or what the latent came to in some earlier step:
    found by induction, or anything when that does not settle.
    """
    starts = {m.latent: domain.number(float(m.initial)) for m in memory(structure)}
    before = starts
    for _ in range(_ROUNDS):
        reading = Reading(structure, schema, domain, before)
        after = {
            name: domain.either(value, reading.variables[name])
            for name, value in before.items()
        }
        if after == before:
            return reading
        before = after
    reading = Reading(structure, schema, domain, dict.fromkeys(starts, domain.anything))
    bounded = {
        name: domain.either(start, reading.variables[name])
        for name, start in starts.items()
    }
    return Reading(structure, schema, domain, bounded)
