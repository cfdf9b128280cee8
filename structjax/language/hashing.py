"""Two identities of a Structure: what it computes, and under which names."""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from structjax.language.structure import (
    Call,
    Expression,
    Index,
    Latent,
    Number,
    Observation,
    Previous,
    Slice,
    Structure,
    Variable,
    Weight,
)
from structjax.language.usage import Leaf, leaves


def semantic_hash(structure: Structure) -> str:
    """Hash of operators, wiring, constraints and heads.

    Names, documentation, order of independent statements and initial values do not
    matter: programs of equal hashes compile to the same code. Parameters and latents
    are numbered by the wiring, beginning at the heads. Temporaries keep their places.
    """
    numbers = _number(structure)
    latents = {Variable(latent.name): latent for latent in structure.latents}
    parameters = {Weight(p.name): p for p in structure.parameters}
    rows: list[Any] = []
    for leaf in numbers:
        if isinstance(leaf, Variable):
            latent = latents[leaf]
            row = _tree(latent.expression, numbers)
            rows.append(["latent", latent.logged, latent.size, latent.boolean, row])
        elif isinstance(leaf, Weight):
            parameter = parameters[leaf]
            rows.append(["weight", _real(parameter.low), _real(parameter.high)])
    heads = [
        [head.action, head.family, [_tree(e, numbers) for e in head.arguments]]
        for head in sorted(structure.heads, key=lambda head: head.action)
    ]
    coupling = [_tree(e, numbers) for e in structure.coupling]
    return _digest([rows, heads, *([coupling] if coupling else [])])


def interface_hash(structure: Structure) -> str:
    """Hash of everything: the semantics, all names and initial values, their order."""
    parameters = [
        [p.name, _real(p.initial), _real(p.low), _real(p.high)]
        for p in structure.parameters
    ]
    latents = [
        [latent.name, latent.size, latent.boolean, _tree(latent.expression)]
        for latent in structure.latents
    ]
    heads = [
        [head.action, head.family, [_tree(e) for e in head.arguments]]
        for head in structure.heads
    ]
    coupling = [_tree(e) for e in structure.coupling]
    facts = [parameters, latents, heads]
    return _digest([*facts, *([coupling] if coupling else [])])


def _digest(value: Any) -> str:
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _real(value: float | None) -> float | None:
    """A float, without a negative zero."""
    return None if value is None else float(value) + 0.0


def _tree(
    expression: Expression, numbers: Mapping[Leaf, int] | None = None
) -> list[Any]:
    """An expression as JSON; names are numbers where numbers are given."""
    match expression:
        case Number(value):
            return ["number", _real(value)]
        case Observation(field):
            return ["obs", field]
        case Weight(name) | Variable(name):
            kind = "weight" if isinstance(expression, Weight) else "latent"
            return [kind, name if numbers is None else numbers[expression]]
        case Call(operator, arguments):
            return [operator, *(_tree(argument, numbers) for argument in arguments)]
        case Index(vector, position):
            return ["index", _tree(vector, numbers), position]
        case Previous(latent, initial):
            place = latent if numbers is None else numbers[Variable(latent)]
            return ["previous", place, _real(initial)]
        case Slice(vector, start, stop):
            return ["slice", _tree(vector, numbers), start, stop]


def _number(structure: Structure) -> dict[Leaf, int]:
    """Parameters and latents, numbered in the order in which the wiring meets them."""
    by_name = {latent.name: latent for latent in structure.latents}
    numbers: dict[Leaf, int] = {}
    heads = sorted(structure.heads, key=lambda head: head.action)
    roots = [e for head in heads for e in head.arguments]
    _visit([*roots, *structure.coupling], by_name, numbers)
    anonymous = _anonymous(structure)
    # Latents that no action depends on: by what they compute.
    for latent in sorted(structure.latents, key=lambda lat: anonymous[lat.name]):
        _visit([Variable(latent.name)], by_name, numbers)
    unused = [p for p in structure.parameters if Weight(p.name) not in numbers]
    for parameter in sorted(unused, key=lambda p: (str(p.low), str(p.high))):
        numbers[Weight(parameter.name)] = len(numbers)
    return numbers


def _visit(
    roots: Iterable[Expression],
    by_name: Mapping[str, Latent],
    numbers: dict[Leaf, int],
) -> None:
    """Numbers what the roots meet; without recursion, chains of latents are long."""
    stack: list[Iterator[Leaf]] = [leaves(root) for root in roots][::-1]
    while stack:
        leaf = next(stack[-1], None)
        if leaf is None:
            stack.pop()
        elif not isinstance(leaf, Observation) and leaf not in numbers:
            numbers[leaf] = len(numbers)
            if isinstance(leaf, Variable):
                stack.append(leaves(by_name[leaf.name].expression))


def _anonymous(structure: Structure) -> dict[str, str]:
    """Latent -> hash of what it computes, parameters known by their bounds only."""
    hashes: dict[str, str] = {}
    bounds = {
        p.name: _digest([_real(p.low), _real(p.high)]) for p in structure.parameters
    }

    def named(tree: list[Any]) -> list[Any]:
        if tree[0] == "latent":
            return ["latent", hashes[tree[1]]]
        if tree[0] == "weight":
            return ["weight", bounds[tree[1]]]
        if tree[0] == "previous":
            return ["previous", tree[2]]
        return [named(part) if isinstance(part, list) else part for part in tree]

    for latent in structure.latents:
        tree = named(_tree(latent.expression))
        hashes[latent.name] = _digest([latent.logged, latent.size, tree])
    return hashes
