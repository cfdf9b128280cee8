"""Finds the turns of unrolled loops again, so that they compile as one loop.

A structure has its loops unrolled. A planner of 50 turns, each a function of the one
before, is then a chain of hundreds of operations, and compile time grows faster than
the chain. `fold` finds runs of definitions that repeat with a period and says what a
turn takes from earlier turns; results are the same up to float32 rounding.
"""

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import NamedTuple

import numpy as np

from structjax.language.structure import (
    Call,
    Expression,
    Index,
    Latent,
    Number,
    Observation,
    Slice,
    Variable,
    Weight,
)

LEAST_SAVED = 64
"""Runs that save fewer definitions stay unrolled: as a chain they run faster."""

LEAST_TURNS = 4
MOST_PERIOD = 128


@dataclass(frozen=True)
class Pick(Index):
    """An element at a position that changes: `position` is the column it is in."""


def column_name(column: int) -> str:
    """The variable that holds this turn's value of a column."""
    return f"#{column}"


class History(NamedTuple):
    """What a turn takes from earlier ones: names of a slot 1, 2, ... turns before."""

    slot: int
    before: tuple[str, ...]


@dataclass(frozen=True)
class Turns:
    """Repeated definitions.

    Attributes:
      template: the first turn's definitions, P of them. Numbers that change from turn
        to turn are the variables `#0`, `#1`, ...; positions that do are `Pick`s.
      names: `[R][P]` what each turn's definitions are called.
      histories: what is carried; the template refers to it by the names in `before`.
      columns: `[...][R]` values of `#0`, `#1`, ...; integers are positions.
    """

    template: tuple[Latent, ...]
    names: tuple[tuple[str, ...], ...]
    histories: tuple[History, ...]
    columns: tuple[tuple[float, ...], ...]


class _Run(NamedTuple):
    start: int
    period: int
    turns: int

    @property
    def saved(self) -> int:
        return (self.turns - 1) * self.period

    @property
    def worthy(self) -> bool:
        return self.turns >= LEAST_TURNS and self.saved >= LEAST_SAVED

    @property
    def stop(self) -> int:
        return self.start + self.turns * self.period


def fold(latents: Sequence[Latent]) -> tuple[Latent | Turns, ...]:
    """The definitions in order, long repetitions replaced by `Turns`."""
    if len(latents) < LEAST_SAVED:
        return tuple(latents)
    reader = _Reader({latent.name: i for i, latent in enumerate(latents)})
    shapes, operands = zip(*map(reader.definition, latents), strict=True)
    stretches = _stretches(shapes, operands)
    return tuple(_fold(latents, operands, stretches, 0, len(latents)))


def _fold(
    latents: Sequence[Latent],
    operands: "Sequence[_Operands]",
    stretches: "Sequence[_Stretch]",
    start: int,
    stop: int,
) -> Iterator[Latent | Turns]:
    """The definitions `start <= i < stop`."""
    inside = [s for s in stretches if s.start < stop and s.stop > start]
    runs = [s.run(start, stop) for s in inside]
    for run in sorted((r for r in runs if r.worthy), key=lambda run: -run.saved):
        turns = _turns(latents, operands, run)
        if turns is None and run.turns > LEAST_TURNS:  # a first turn may be special
            run = _Run(run.start + run.period, run.period, run.turns - 1)
            turns = _turns(latents, operands, run)
        if turns is None:
            continue
        yield from _fold(latents, operands, inside, start, run.start)
        yield turns
        yield from _fold(latents, operands, inside, run.stop, stop)
        return
    yield from latents[start:stop]


_Operands = list[tuple[str, float]]


class _Reader:
    """Takes definitions apart: into a shape, and the operands that it leaves out.

    Equal shapes have equal numbers. A shape is everything but names, numbers and
    positions.
    """

    def __init__(self, place: Mapping[str, int]) -> None:
        self._place = place
        self._numbers: dict[Hashable, int] = {}
        self._operands: _Operands = []

    def definition(self, latent: Latent) -> tuple[int, _Operands]:
        """The number of its shape, and its operands from left to right."""
        self._operands = []
        shape = self._shape(latent.expression)
        return self._number((latent.size, latent.boolean, shape)), self._operands

    def _number(self, key: Hashable) -> int:
        return self._numbers.setdefault(key, len(self._numbers))

    def _shape(self, expression: Expression) -> int:
        key: Hashable
        match expression:
            case Variable(name):
                self._operands.append(("variable", self._place[name]))
                key = "variable"
            case Number(value):
                self._operands.append(("number", value))
                key = "number"
            case Call("pow", (base, exponent)):
                key = "pow", self._shape(base), repr(exponent)
            case Call(operator, arguments):
                key = operator, *map(self._shape, arguments)
            case Index(vector, position):
                key = "element", self._shape(vector)
                self._operands.append(("position", position))
            case Slice(vector, start, stop):
                key = "slice", self._shape(vector), start, stop
            case Weight() | Observation():
                key = expression
            case _:  # as text: a start of 0.0, of -0.0 and of False are equal
                key = repr(expression)
        return self._number(key)


class _Stretch(NamedTuple):
    """Definitions `start <= i < stop` that are repeated a period and two later."""

    start: int
    stop: int
    period: int

    def run(self, start: int, stop: int) -> _Run:
        """Its turns among the definitions from `start` to before `stop`."""
        first = max(self.start, start)
        length = min(self.stop, stop - 2 * self.period) - first
        return _Run(first, self.period, max(0, length) // self.period + 2)


def _stretches(shapes: Sequence[int], operands: Sequence[_Operands]) -> list[_Stretch]:
    """All stretches that are worth folding, of each period."""
    places = _Places.of(shapes, operands)
    found = []
    for period in range(1, min(MOST_PERIOD, len(shapes) // LEAST_TURNS) + 1):
        edges = np.diff(np.concatenate([[0], places.repeated(period), [0]]))
        ends = np.flatnonzero(edges).reshape(-1, 2)
        long = ends[:, 1] - ends[:, 0] >= _least_length(period)
        found += [_Stretch(a, b, period) for a, b in ends[long].tolist()]
    return found


def _least_length(period: int) -> int:
    """Length of the shortest stretch whose turns are worth folding."""
    turns = max(LEAST_TURNS, 1 + math.ceil(LEAST_SAVED / period))
    return (turns - 2) * period


class _Places(NamedTuple):
    """Where the variables of N definitions are defined, one after the other.

    Attributes:
      shapes: `[N]` numbers.
      first: `[N]` index of each definition's first variable.
      owners: `[V]` the definition that a variable stands in.
      places: `[V]` the definition that it refers to.
    """

    shapes: np.ndarray
    first: np.ndarray
    owners: np.ndarray
    places: np.ndarray

    @classmethod
    def of(cls, shapes: Sequence[int], operands: Sequence[_Operands]) -> "_Places":
        """Those of these operands."""
        places = [[a for kind, a in o if kind == "variable"] for o in operands]
        counts = [len(row) for row in places]
        return cls(
            np.array(shapes, int),
            np.cumsum([0, *counts[:-1]]),
            np.repeat(np.arange(len(shapes)), counts),
            np.array([place for row in places for place in row], int),
        )

    def repeated(self, period: int) -> np.ndarray:
        """`[N]` whether a definition comes again a period later, and then once more.

        Again means: of equal shape, and each variable refers to the same definition or
        to one a period later; once more: with the same variables moving.
        """
        number = len(self.shapes)
        again = np.zeros(number, int)
        again[:-period] = self.shapes[:-period] == self.shapes[period:]
        if again.sum() < _least_length(period):
            return np.zeros(number, int)
        mine = np.flatnonzero(again[self.owners])
        owners = self.owners[mine]
        later = mine + self.first[owners + period] - self.first[owners]
        moves = self.places[later] - self.places[mine]
        again[owners[(moves != 0) & (moves != period)]] = 0
        more = np.zeros(number, int)
        more[:-period] = again[:-period] & again[period:]
        moving = np.zeros(len(self.places), int)
        moving[mine] = moves
        changed = (moving[later] != moves) & (more[owners] > 0)
        more[owners[changed]] = 0
        return more


def _turns(
    latents: Sequence[Latent], operands: Sequence[_Operands], run: _Run
) -> Turns | None:
    """The run as `Turns`; None where its first turn takes something of another kind."""
    histories = _histories(operands, run)
    if histories is None or not all(
        place >= 0 and _kind(latents[place]) == _kind(latents[run.start + slot])
        for slot, places in histories
        for place in places
    ):
        return None
    bases = range(run.start, run.stop, run.period)
    columns = _changing(operands, run, bases)
    return Turns(
        _template(latents[run.start : run.start + run.period], list(columns)),
        tuple(
            tuple(latent.name for latent in latents[base : base + run.period])
            for base in bases
        ),
        tuple(
            History(slot, tuple(latents[place].name for place in places))
            for slot, places in histories
        ),
        tuple(columns.values()),
    )


def _kind(latent: Latent) -> tuple[int | None, bool]:
    return latent.size, latent.boolean


def _histories(
    operands: Sequence[_Operands], run: _Run
) -> list[tuple[int, list[int]]] | None:
    """Slots carried from turn to turn, with their places 1, 2, ... turns before.

    None where the first turn uses one definition both as carried and as constant, or
    defines what later turns read.
    """
    ages: dict[int, int] = {}
    constant: set[float] = set()
    for i in range(run.start, run.start + run.period):
        later = operands[i + run.period]
        for (kind, a), (_, b) in zip(operands[i], later, strict=True):
            if kind != "variable":
                continue
            if a >= run.start:
                if a == b:  # later turns read what the first one defined
                    return None
                continue
            if a == b:
                constant.add(a)
            else:
                turn, slot = divmod(int(a) - run.start, run.period)
                ages[slot] = max(ages.get(slot, 0), -turn)
    histories = [
        (slot, [run.start + slot - a * run.period for a in range(1, age + 1)])
        for slot, age in sorted(ages.items())
    ]
    if constant.intersection(place for _, places in histories for place in places):
        return None
    return histories


def _changing(
    operands: Sequence[_Operands], run: _Run, bases: Sequence[int]
) -> dict[int, tuple[float, ...]]:
    """Numbers and positions that differ between turns, by their place in a turn."""
    rows = [
        [operand for part in operands[base : base + run.period] for operand in part]
        for base in bases
    ]
    columns = {}
    for i, column in enumerate(zip(*rows, strict=True)):
        values = tuple(value for _, value in column)
        # As text: 0.0 and -0.0 are equal, but not the same.
        if column[0][0] != "variable" and len(set(map(repr, values))) > 1:
            columns[i] = values
    return columns


def _template(turn: Sequence[Latent], columns: Sequence[int]) -> tuple[Latent, ...]:
    """The first turn with references in place of what changes."""
    places = count()
    return tuple(
        replace(latent, expression=_referring(latent.expression, places, columns))
        for latent in turn
    )


def _referring(
    expression: Expression, places: Iterator[int], columns: Sequence[int]
) -> Expression:
    match expression:
        case Variable():
            next(places)
            return expression
        case Number():
            place = next(places)
            if place not in columns:
                return expression
            return Variable(column_name(columns.index(place)))
        case Call("pow", (base, exponent)):
            return Call("pow", (_referring(base, places, columns), exponent))
        case Call(operator, arguments):
            return Call(
                operator, tuple(_referring(a, places, columns) for a in arguments)
            )
        case Index(vector, position):
            elements = _referring(vector, places, columns)
            place = next(places)
            if place in columns:
                return Pick(elements, columns.index(place))
            return Index(elements, position)
        case Slice(vector, start, stop):
            return Slice(_referring(vector, places, columns), start, stop)
        case _:
            return expression
