"""Where a finding is shown: lines of latents and heads, expressions as text."""

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from structjax.language.parse import Program
from structjax.language.render import expression_text
from structjax.language.structure import (
    Call,
    Expression,
    Index,
    Latent,
    Slice,
    Structure,
    Variable,
)
from structjax.language.usage import leaves

_LONGEST = 80


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
    last = max(heads.values(), default=1)
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
    """Action -> line of its head."""
    return {
        keyword.arg: keyword.value.lineno
        for node in ast.walk(ast.parse(program.source))
        if isinstance(node, ast.Return) and isinstance(node.value, ast.Call)
        for keyword in node.value.keywords
        if keyword.arg
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


def text_of(expression: Expression, latents: Mapping[str, Latent] | None = None) -> str:
    """The expression as program text of at most 80 characters.

    A temporary stands for its definition where `latents` holds it.
    """
    known = latents or {}
    while isinstance(expression, Variable) and expression.name.startswith("_"):
        if expression.name not in known:
            break
        expression = known[expression.name].expression
    text = expression_text(expression)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."


def children(expression: Expression) -> tuple[Expression, ...]:
    """The expressions directly below one."""
    match expression:
        case Call(_, arguments):
            return arguments
        case Index(vector, _) | Slice(vector, _, _):
            return (vector,)
    return ()


def walk(expression: Expression) -> Iterator[Expression]:
    """The expression and all below it, from left to right; variables stay closed."""
    pending = [expression]
    while pending:
        node = pending.pop()
        yield node
        pending.extend(reversed(children(node)))
