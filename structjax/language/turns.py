"""Finds the turns of unrolled loops again, so that they compile as one loop.

A structure has its loops unrolled. A planner of 50 turns, each a function of the one
before, is then a chain of hundreds of operations, and compile time grows faster than
the chain. `fold` finds runs of definitions that repeat with a period and says what a
turn takes from earlier turns; results are the same up to float32 rounding.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import NamedTuple

from structjax.language.structure import (
    Call,
    Expression,
    Index,
    Latent,
    Number,
    Slice,
    Variable,
)

LEAST_SAVED = 64
"""Runs that save fewer definitions stay unrolled: as a chain they run faster."""

LEAST_TURNS = 4


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
    def stop(self) -> int:
        return self.start + self.turns * self.period


def fold(latents: Sequence[Latent]) -> tuple[Latent | Turns, ...]:
    """The definitions in order, long repetitions replaced by `Turns`."""
    if len(latents) < LEAST_SAVED:
        return tuple(latents)
    place = {latent.name: i for i, latent in enumerate(latents)}
    shapes = [_shape(latent) for latent in latents]
    operands = [tuple(_operands(latent.expression, place)) for latent in latents]
    return tuple(_fold(latents, shapes, operands, 0, len(latents)))


def _fold(
    latents: Sequence[Latent],
    shapes: Sequence[str],
    operands: "Sequence[_Operands]",
    start: int,
    stop: int,
) -> Iterator[Latent | Turns]:
    """The definitions `start <= i < stop`."""
    runs = _runs(shapes[:stop], operands, start)
    for run in sorted(runs, key=lambda run: -run.saved):
        turns = _turns(latents, operands, run)
        if turns is None and run.turns > LEAST_TURNS:  # a first turn may be special
            run = _Run(run.start + run.period, run.period, run.turns - 1)
            turns = _turns(latents, operands, run)
        if turns is None:
            continue
        yield from _fold(latents, shapes, operands, start, run.start)
        yield turns
        yield from _fold(latents, shapes, operands, run.stop, stop)
        return
    yield from latents[start:stop]


_Operands = tuple[tuple[str, float], ...]


def _shape(latent: Latent) -> str:
    """Everything about a definition but its names, numbers and positions."""
    return f"{latent.size} {latent.boolean} {_skeleton(latent.expression)}"


def _skeleton(expression: Expression) -> str:
    match expression:
        case Variable() | Number():
            return type(expression).__name__
        case Call("pow", (base, exponent)):
            return f"pow({_skeleton(base)}, {exponent})"
        case Call(operator, arguments):
            return f"{operator}({', '.join(map(_skeleton, arguments))})"
        case Index(vector):
            return f"{_skeleton(vector)}[]"
        case Slice(vector, start, stop):
            return f"{_skeleton(vector)}[{start}:{stop}]"
        case _:
            return repr(expression)


def _operands(
    expression: Expression, place: dict[str, int]
) -> Iterator[tuple[str, float]]:
    """What `_shape` leaves out, from left to right."""
    match expression:
        case Variable(name):
            yield "variable", place[name]
        case Number(value):
            yield "number", value
        case Call("pow", (base, _)):
            yield from _operands(base, place)
        case Call(_, arguments):
            for argument in arguments:
                yield from _operands(argument, place)
        case Index(vector, position):
            yield from _operands(vector, place)
            yield "position", position
        case Slice(vector):
            yield from _operands(vector, place)


def _runs(
    shapes: Sequence[str], operands: Sequence[_Operands], start: int
) -> Iterator[_Run]:
    """All runs worth folding, each as long as it can be."""
    stop = len(shapes)
    for period in range(1, (stop - start) // LEAST_TURNS + 1):
        length = 0
        moves = [
            _moves(operands[i], operands[i + period], period)
            if shapes[i] == shapes[i + period]
            else None
            for i in range(start, stop - period)
        ]
        for i in range(len(moves) - period + 1):
            same = i + period < len(moves) and moves[i] == moves[i + period]
            if moves[i] is not None and same:
                length += 1
                continue
            run = _Run(start + i - length, period, length // period + 2)
            if length and run.turns >= LEAST_TURNS and run.saved >= LEAST_SAVED:
                yield run
            length = 0


def _moves(first: _Operands, second: _Operands, period: int) -> tuple[int, ...] | None:
    """How far each variable moves in one turn: 0 or a period; None: it is no turn."""
    found = []
    for (kind, a), (_, b) in zip(first, second, strict=True):
        if kind == "variable":
            if b - a not in (0, period):
                return None
            found.append(int(b - a))
    return tuple(found)


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
