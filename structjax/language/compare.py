"""What differs between two programs: wiring, bounds, starts and heads, not text."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from structjax.language.matching import Pairs, inlined, match_programs, rewritten
from structjax.language.render import expression_text, number_text
from structjax.language.structure import (
    Expression,
    Head,
    Parameter,
    Structure,
    Variable,
    Weight,
)

Kind = Literal["weight", "latent"]


@dataclass(frozen=True)
class Entry:
    """A weight or latent that only one of the programs has, with its definition."""

    kind: Kind
    name: str
    text: str


@dataclass(frozen=True)
class Renamed:
    """A weight in the same places, or a latent that computes the same."""

    kind: Kind
    old: str
    new: str


@dataclass(frozen=True)
class Rewired:
    """A latent that computes something else than before."""

    name: str
    before: str
    after: str


@dataclass(frozen=True)
class Reconstrained:
    """A weight with other bounds; None where there is none."""

    name: str
    before: tuple[float | None, float | None]
    after: tuple[float | None, float | None]


@dataclass(frozen=True)
class Restarted:
    """A weight with another initial value."""

    name: str
    before: float
    after: float


@dataclass(frozen=True)
class Refitted:
    """A weight whose fitted value, or the written one where none is, differs."""

    name: str
    before: float
    after: float


@dataclass(frozen=True)
class HeadChanged:
    """Another distribution of an action, or another `coupling`; empty: not there."""

    action: str
    before: str
    after: str


@dataclass(frozen=True)
class Difference:
    """What differs between two programs.

    Changed things have their name in the new program. Texts are in each program's own
    names, with the locals of helpers and loops written out.
    """

    added: tuple[Entry, ...] = ()
    removed: tuple[Entry, ...] = ()
    renamed: tuple[Renamed, ...] = ()
    rewired: tuple[Rewired, ...] = ()
    reconstrained: tuple[Reconstrained, ...] = ()
    restarted: tuple[Restarted, ...] = ()
    heads: tuple[HeadChanged, ...] = ()
    refitted: tuple[Refitted, ...] = ()

    def __bool__(self) -> bool:
        """Whether anything differs."""
        return self != Difference()


def difference(
    old: Structure,
    new: Structure,
    values: tuple[Mapping[str, float], Mapping[str, float]] | None = None,
) -> Difference:
    """What changes from one program to another.

    A latent that computes the same under another name is renamed, and so is a weight
    that appears in the same places with the same bounds. The order of statements and
    the locals of helpers do not matter. With the weights' values of both, those that
    differ otherwise than the written ones do are told too.
    """
    before, after = inlined(old), inlined(new)
    pairs = match_programs(before, after)
    new_weights = {p.name: p for p in new.parameters}
    kept = [
        (p, new_weights[pairs[Weight(p.name)].name])
        for p in old.parameters
        if Weight(p.name) in pairs
    ]
    return Difference(
        added=_lacking(after, set(pairs.values())),
        removed=_lacking(before, set(pairs)),
        renamed=_renamed(before, pairs),
        rewired=_rewired(before, after, pairs),
        reconstrained=tuple(
            Reconstrained(q.name, (p.low, p.high), (q.low, q.high))
            for p, q in kept
            if (p.low, p.high) != (q.low, q.high)
        ),
        restarted=tuple(
            Restarted(q.name, p.initial, q.initial)
            for p, q in kept
            if p.initial != q.initial
        ),
        heads=_heads(before, after, pairs),
        refitted=() if values is None else _refitted(kept, *values),
    )


def _refitted(
    kept: Sequence[tuple[Parameter, Parameter]],
    old: Mapping[str, float],
    new: Mapping[str, float],
) -> tuple[Refitted, ...]:
    """Values are float32 where they were fitted, and compared as such."""
    return tuple(
        Refitted(q.name, old[p.name], new[q.name])
        for p, q in kept
        if np.float32(old[p.name]) != np.float32(new[q.name])
        and (_moved(p, old) or _moved(q, new))
    )


def _moved(parameter: Parameter, values: Mapping[str, float]) -> bool:
    return bool(np.float32(values[parameter.name]) != np.float32(parameter.initial))


def _lacking(structure: Structure, known: set[Weight | Variable]) -> tuple[Entry, ...]:
    """The weights and latents that are not among the known."""
    weights = [
        Entry("weight", p.name, _declared(p))
        for p in structure.parameters
        if Weight(p.name) not in known
    ]
    latents = [
        Entry("latent", latent.name, expression_text(latent.expression))
        for latent in structure.latents
        if latent.logged and Variable(latent.name) not in known
    ]
    return (*weights, *latents)


def _declared(parameter: Parameter) -> str:
    options = [number_text(parameter.initial)]
    for name in ("low", "high"):
        bound = getattr(parameter, name)
        if bound is not None:
            options.append(f"{name}={number_text(bound)}")
    return f"weight({', '.join(options)})"


def _renamed(old: Structure, pairs: Pairs) -> tuple[Renamed, ...]:
    keys: list[tuple[Kind, Weight | Variable]] = [
        *(("weight", Weight(p.name)) for p in old.parameters),
        *(("latent", Variable(v.name)) for v in old.latents if v.logged),
    ]
    return tuple(
        Renamed(kind, key.name, pairs[key].name)
        for kind, key in keys
        if key in pairs and pairs[key].name != key.name
    )


def _rewired(old: Structure, new: Structure, pairs: Pairs) -> tuple[Rewired, ...]:
    after = {latent.name: latent.expression for latent in new.latents}
    found = []
    for latent in old.latents:
        if Variable(latent.name) not in pairs:
            continue
        name = pairs[Variable(latent.name)].name
        if rewritten(latent.expression, pairs) != after[name]:
            texts = expression_text(latent.expression), expression_text(after[name])
            found.append(Rewired(name, *texts))
    return tuple(found)


def _heads(old: Structure, new: Structure, pairs: Pairs) -> tuple[HeadChanged, ...]:
    after = {head.action: head for head in new.heads}
    found = []
    for head in old.heads:
        other = after.pop(head.action, None)
        if other is None:
            found.append(HeadChanged(head.action, _head_text(head), ""))
        elif head.family != other.family or _differ(
            head.arguments, other.arguments, pairs
        ):
            texts = _head_text(head), _head_text(other)
            found.append(HeadChanged(head.action, *texts))
    found += [HeadChanged(h.action, "", _head_text(h)) for h in after.values()]
    if _differ(old.coupling, new.coupling, pairs):
        texts = _listed(old.coupling), _listed(new.coupling)
        found.append(HeadChanged("coupling", *texts))
    return tuple(found)


def _differ(
    old: tuple[Expression, ...], new: tuple[Expression, ...], pairs: Pairs
) -> bool:
    return tuple(rewritten(expression, pairs) for expression in old) != new


def _listed(expressions: tuple[Expression, ...]) -> str:
    return ", ".join(map(expression_text, expressions))


def _head_text(head: Head) -> str:
    if head.family == "categorical":
        return f"categorical({_listed(head.arguments)})"
    mean, std = map(expression_text, head.arguments)
    return f"{head.family}({mean}, std={std})"
