"""From operations to a Structure: latents named, temporaries inlined or dropped."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from structjax.language.structure import (
    Call,
    Expression,
    Index,
    Latent,
    Observation,
    Parameter,
    Slice,
    Structure,
    Variable,
    Weight,
    children,
    walk,
)
from structjax.language.torch_source.machine import Machine
from structjax.language.torch_source.naming import latent_names, weight_names
from structjax.language.torch_source.outputs import Entry, Outputs
from structjax.language.torch_source.trace import Trace

MAX_DEPTH = 16
"""Temporaries are inlined until an expression is nested this deeply."""


@dataclass(frozen=True)
class Row:
    """A definition on its way to a latent; `name` is empty for temporaries."""

    key: str
    expression: Expression
    size: int | None
    boolean: bool
    line: int
    name: str = ""
    stem: str = ""


def finish(outputs: Outputs, machine: Machine) -> tuple[Structure, dict[str, int]]:
    """The structure, and the line of each of its names."""
    trace = machine.trace
    chosen = latent_names(outputs.entries, machine)
    weights = weight_names(outputs.entries, [name for name, _ in chosen], machine)
    named, aliases = _placed(chosen, trace)
    roots = [e for head in outputs.heads for e in head.arguments]
    roots += outputs.coupling
    rows = _ordered(_needed(named, aliases, roots, trace), aliases, trace)
    renamed = _alias_map(aliases)
    roots = [e if isinstance(e, Weight) else swapped(e, renamed) for e in roots]
    rows, roots = _inlined(rows, roots)
    names = _final(rows, weights)
    table = {**names, **{f"weight {k}": v for k, v in weights.items()}}
    results = iter([_renamed(e, table) for e in roots])
    heads = tuple(
        replace(head, arguments=tuple(next(results) for _ in head.arguments))
        for head in outputs.heads
    )
    latents = tuple(
        Latent(names[r.key], _renamed(r.expression, table), r.size, r.boolean)
        for r in rows
    )
    parameters = tuple(
        Parameter(weights[name], declared.initial)
        for name, declared in machine.parameters.items()
    )
    lines = {weights[n]: d.line for n, d in machine.parameters.items()}
    lines |= {names[row.key]: row.line for row in rows if row.name}
    return Structure(parameters, latents, heads, tuple(results)), lines


def _placed(
    chosen: Sequence[tuple[str, Entry]], trace: Trace
) -> tuple[dict[str, str], list[Row]]:
    """Definitions that are latents themselves, and latents that only point."""
    named: dict[str, str] = {}
    aliases: list[Row] = []
    for name, entry in chosen:
        whole = trace.vector(entry.elements) if entry.vector else entry.elements[0]
        if isinstance(whole, Variable) and whole.name not in named:
            named[whole.name] = name
            continue
        _, line = trace.assigned.get(whole, (0, trace.line))
        kind = (trace.size(whole), trace.boolean(whole))
        aliases.append(Row(f"@{name}", whole, *kind, line, name))
    return named, aliases


def _needed(
    named: Mapping[str, str],
    aliases: Sequence[Row],
    roots: Sequence[Expression],
    trace: Trace,
) -> list[Row]:
    """The definitions that a latent or an action needs, in order."""
    wanted: set[str] = set()
    stack = [*roots, *(row.expression for row in aliases), *map(Variable, named)]
    while stack:
        for variable in variables(stack.pop()):
            if variable.name not in wanted:
                wanted.add(variable.name)
                stack.append(trace.of(variable).expression)
    rows = []
    for i, definition in enumerate(trace.definitions):
        key = f"#{i}"
        if key in wanted:
            kind = (definition.size, definition.boolean, definition.line)
            name = named.get(key, "")
            rows.append(Row(key, definition.expression, *kind, name, definition.stem))
    return rows


def _alias_map(aliases: Sequence[Row]) -> dict[Expression, Variable]:
    """Parts of the observation -> the first latent that points at them."""
    found: dict[Expression, Variable] = {}
    for row in aliases:
        if isinstance(row.expression, Observation | Index | Slice):
            found.setdefault(row.expression, Variable(row.key))
    return found


def _ordered(rows: Sequence[Row], aliases: Sequence[Row], trace: Trace) -> list[Row]:
    """Latents that only point stand where Python assigned them, before their uses."""
    renamed = _alias_map(aliases)
    pending = {row.key: row for row in aliases}
    end = len(trace.definitions)
    places = {r.key: trace.assigned.get(r.expression, (end, 0))[0] for r in aliases}
    result: list[Row] = []
    for row in rows:
        expression = swapped(row.expression, renamed)
        used = {variable.name for variable in variables(expression)}
        at = int(row.key[1:])
        for key in [k for k in pending if k in used or places[k] <= at]:
            result.append(pending.pop(key))
        result.append(replace(row, expression=expression))
    return [*result, *pending.values()]


def swapped(
    expression: Expression, replacements: Mapping[Expression, Expression]
) -> Expression:
    """The expression with some of its parts replaced, outer parts first."""
    if expression in replacements:
        return replacements[expression]
    match expression:
        case Call(operator, arguments):
            return Call(operator, tuple(swapped(a, replacements) for a in arguments))
        case Index(vector, position):
            return Index(swapped(vector, replacements), position)
        case Slice(vector, start, stop):
            return Slice(swapped(vector, replacements), start, stop)
    return expression


def variables(expression: Expression) -> Iterator[Variable]:
    """The definitions that an expression refers to, each time it does."""
    return (node for node in walk(expression) if isinstance(node, Variable))


def _depth(expression: Expression) -> int:
    return 1 + max(map(_depth, children(expression)), default=0)


def _inlined(
    rows: Sequence[Row], roots: Sequence[Expression]
) -> tuple[list[Row], list[Expression]]:
    """Temporaries that are used once disappear into what uses them."""
    uses = Counter(
        variable.name
        for expression in (*(row.expression for row in rows), *roots)
        for variable in variables(expression)
    )
    texts: dict[Expression, Expression] = {}
    kept: list[Row] = []
    for row in rows:
        expression = swapped(row.expression, texts)
        row = replace(row, expression=expression)
        if row.name or uses[row.key] > 1 or _depth(expression) > MAX_DEPTH:
            kept.append(row)
        else:
            texts[Variable(row.key)] = expression
    return kept, [swapped(root, texts) for root in roots]


def _final(rows: Iterable[Row], weights: Mapping[str, str]) -> dict[str, str]:
    """Key -> name in the program; temporaries begin with an underscore."""
    names = {row.key: row.name for row in rows if row.name}
    taken = {*names.values(), *weights.values()}
    counts: Counter[str] = Counter()
    for row in rows:
        if row.name:
            continue
        stem = "_" + (row.stem.strip("_") or "step")
        name = stem
        while name in taken or (name == "_step"):
            counts[stem] += 1
            name = f"{stem}_{counts[stem]}"
        names[row.key] = name
        taken.add(name)
    return names


def _renamed(expression: Expression, names: Mapping[str, str]) -> Expression:
    match expression:
        case Variable(name):
            return Variable(names[name])
        case Weight(name):
            return Weight(names[f"weight {name}"])
        case Call(operator, arguments):
            return Call(operator, tuple(_renamed(a, names) for a in arguments))
        case Index(vector, position):
            return Index(_renamed(vector, names), position)
        case Slice(vector, start, stop):
            return Slice(_renamed(vector, names), start, stop)
    return expression
