"""Terms that break the mirror symmetry of their action: `-abs(w) * abs(omega)`."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from structjax.language.lint.forward import Reading, read
from structjax.language.lint.parity import Parities, Parity, symmetric
from structjax.language.lint.places import Part, definitions_of, text_of
from structjax.language.problem import Problem
from structjax.language.structure import (
    Call,
    Expression,
    Observation,
    Structure,
    Variable,
)
from structjax.language.usage import reach
from structjax.schema import Schema

_SIGN = {"even": 1, "odd": -1}
_NAME = {1: "even", -1: "odd"}
# Of even arguments these give an even result, so an odd part inside is what breaks it.
_TRANSPARENT = (
    "relu",
    "clip",
    "softplus",
    "sqrt",
    "exp",
    "log",
    "sigmoid",
    "tanh",
    "nan_clean",
    "minimum",
    "maximum",
)


@dataclass(frozen=True)
class Term:
    """A term, the sign it should have in the mirror, and the part that holds it."""

    expression: Expression
    wanted: int
    part: Part


def parity_problems(
    structure: Structure, schema: Schema, parts: Sequence[Part]
) -> Iterator[Problem]:
    """Terms of the wrong parity; one problem per term, with all its actions."""
    if schema.discrete:
        return
    reading = read(structure, schema, Parities(schema))
    known = definitions_of(parts)
    by_name = {part.name: part for part in parts}
    broken: dict[Term, list[str]] = {}
    for action in schema.actions:
        wanted = {"mean": action.mirror, "std": 1 if action.mirror else None}
        for kind, sign in wanted.items():
            name = f"{kind} of `{action.name}`"
            if sign in _NAME and name in by_name:
                terms = _terms(by_name[name], sign, reading, by_name)
                for term in _wrong(terms, structure, reading):
                    broken.setdefault(term, []).append(name)
    for term, names in broken.items():
        kind = reading.of(term.expression).kind
        yield _problem(term, kind, names, text_of(term.expression, known))


def _problem(term: Term, kind: str, names: Sequence[str], text: str) -> Problem:
    where = "" if term.part.owner in names else f" of `{term.part.owner}`"
    found = "neither even nor odd" if kind == "mixed" else kind
    needs = "needs" if len(names) == 1 else "need"
    message = (
        f"term `{text}`{where} is {found} in the mirrored world; the "
        f"{' and the '.join(names)} {needs} it {_NAME[term.wanted]}"
    )
    hint = "use its size, e.g. `abs(...)`"
    if term.wanted == -1:
        hint = "let a signed quantity in, e.g. `yaw` in place of `abs(yaw)`"
    return Problem("PARITY", "warning", term.part.line, message, hint)


def _wrong(
    terms: Sequence[Term], structure: Structure, reading: Reading[Parity]
) -> Iterator[Term]:
    """Terms of the other parity, and a mixed one that nothing can make up for.

    A term that reads no observation is an offset, written on purpose.
    """
    kinds = {term: reading.of(term.expression).kind for term in terms}
    unclear = [t for t, kind in kinds.items() if kind in ("mixed", "unknown")]
    for term, kind in kinds.items():
        wrong = kind in _SIGN and _SIGN[kind] != term.wanted
        alone = kind == "mixed" and unclear == [term]
        if (wrong or alone) and _observes(structure, term.expression):
            yield term


def _observes(structure: Structure, expression: Expression) -> bool:
    found = reach(structure, [expression])
    return any(isinstance(leaf, Observation) for leaf in found)


def _terms(
    part: Part, wanted: int, reading: Reading[Parity], by_name: dict[str, Part]
) -> tuple[Term, ...]:
    """What is added up, each with the sign that it should have.

    Sums are opened wherever they stand: behind names, under factors of known parity,
    inside functions that pass a symmetry on. What has the right sign stays closed.
    """
    terms: dict[Term, None] = {}
    pending, seen = [Term(part.expression, wanted, part)], set()
    while pending:
        term = pending.pop()
        kind = reading.of(term.expression).kind
        if kind == "zero" or _SIGN.get(kind) == term.wanted:
            continue
        if isinstance(term.expression, Variable):
            name = term.expression.name
            if (name, term.wanted) not in seen:
                seen.add((name, term.wanted))
                below = by_name[name]
                pending.append(Term(below.expression, term.wanted, below))
            continue
        opened = _opened(term, reading)
        if opened is None:
            terms[term] = None
            continue
        pending += [Term(e, sign, term.part) for e, sign in reversed(opened)]
    return tuple(terms)


def _opened(
    term: Term, reading: Reading[Parity]
) -> list[tuple[Expression, int]] | None:
    """The terms below and their signs; None for a term that cannot be opened."""
    wanted = term.wanted
    match term.expression:
        case Call("add" | "sub", arguments):
            return [(argument, wanted) for argument in arguments]
        case Call("neg" | "tanh" | "nan_clean", (inside,)):
            return [(inside, wanted)]
        case Call("mul" | "div" as operator, (left, right)):
            return _factors(operator, left, right, wanted, reading)
        case Call("clip", (inside, low, high)) if symmetric(low, high):
            return [(inside, wanted)]
        case Call(operator, arguments) if wanted == 1 and operator in _TRANSPARENT:
            return [(argument, 1) for argument in arguments]
        case Call("where", (condition, one, other)):
            known = reading.of(condition).kind in ("even", "zero")
            return [(one, wanted), (other, wanted)] if known else None
    return None


def _factors(
    operator: str,
    left: Expression,
    right: Expression,
    wanted: int,
    reading: Reading[Parity],
) -> list[tuple[Expression, int]] | None:
    """The factor that is a sum; a product of pure factors is one term."""
    signs = [_SIGN.get(reading.of(factor).kind) for factor in (left, right)]
    match signs:
        case [None, int(sign)]:
            return [(left, wanted * sign)]
        case [int(sign), None] if operator == "mul" or wanted * sign == 1:
            return [(right, wanted * sign)]
    return None
