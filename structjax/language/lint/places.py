"""Where a finding is shown: lines of latents and heads, expressions as text."""

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from structjax.language.parse import Program
from structjax.language.render import expression_text
from structjax.language.structure import (
    Call,
    Expression,
    Index,
    Slice,
    Structure,
    Variable,
)
from structjax.language.usage import leaves

_LONGEST = 80
_OPENINGS = 3


@dataclass(frozen=True)
class Part:
    """One expression of a program.

    Attributes:
      name: the latent that it defines, `mean of `steer`` or the like for a head.
      line: 1-based line of the source.
      expression: what stands there.
      owner: the logged latent, or the name itself.
    """

    name: str
    line: int
    expression: Expression
    owner: str


def parts(program: Program) -> tuple[Part, ...]:
    """All latents in order, then the arguments of the heads, then the coupling."""
    structure = program.structure
    owners = _owners(structure)
    heads = head_lines(program)
    # A program in another language has no heads in its text: the end of it.
    last = max(heads.values() or program.lines.values(), default=1)
    found = []
    for latent in structure.latents:
        owner = owners.get(latent.name, latent.name)
        line = program.lines.get(owner, last)
        found.append(Part(latent.name, line, latent.expression, owner))
    for head in structure.heads:
        logits = [f"logit {i}" for i in range(len(head.arguments))]
        kinds = logits if head.family == "categorical" else ["mean", "std"]
        for kind, argument in zip(kinds, head.arguments, strict=True):
            name = f"{kind} of `{head.action}`"
            line = heads.get(head.action, last)
            found.append(Part(name, line, argument, name))
    found += [Part("coupling", last, e, "coupling") for e in structure.coupling]
    return tuple(found)


def head_lines(program: Program) -> dict[str, int]:
    """Action -> line of its head; empty for a program in another language."""
    actions = {head.action for head in program.structure.heads}
    return {
        keyword.arg: keyword.value.lineno
        for node in ast.walk(ast.parse(program.source))
        if isinstance(node, ast.Return) and isinstance(node.value, ast.Call)
        for keyword in node.value.keywords
        if keyword.arg in actions
    }


def _owners(structure: Structure) -> dict[str, str]:
    """Temporary -> the first logged latent that depends on it."""
    owners: dict[str, str] = {}
    for latent in reversed(structure.latents):
        owner = latent.name if latent.logged else owners.get(latent.name)
        for leaf in leaves(latent.expression):
            if owner and isinstance(leaf, Variable) and leaf.name.startswith("_"):
                owners[leaf.name] = owner
    return owners


def text_of(
    expression: Expression, definitions: Mapping[str, Expression] | None = None
) -> str:
    """The expression as program text of at most 80 characters.

    Temporaries are replaced by their definitions while the text is short.
    """
    known = definitions or {}
    while isinstance(expression, Variable) and _temporary(expression, known):
        expression = known[expression.name]
    text = expression_text(expression)
    for _ in range(_OPENINGS):
        expression = _opened(expression, known)
        opened = expression_text(expression)
        if len(opened) > _LONGEST:
            break
        text = opened
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."


def _temporary(variable: Variable, known: Mapping[str, Expression]) -> bool:
    return variable.name.startswith("_") and variable.name in known


def _opened(expression: Expression, known: Mapping[str, Expression]) -> Expression:
    """The expression with each temporary replaced by its definition."""
    match expression:
        case Variable(name) if _temporary(expression, known):
            return known[name]
        case Call(operator, arguments):
            return Call(operator, tuple(_opened(a, known) for a in arguments))
        case Index(vector, position):
            return Index(_opened(vector, known), position)
        case Slice(vector, start, stop):
            return Slice(_opened(vector, known), start, stop)
    return expression


def definitions_of(parts: Sequence[Part]) -> dict[str, Expression]:
    """Name -> expression, for `text_of`."""
    return {part.name: part.expression for part in parts}
