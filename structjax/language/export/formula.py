"""Which definitions a formula consists of, for SymPy and LaTeX."""

from collections.abc import Iterator
from typing import NamedTuple

from structjax.errors import StructjaxError
from structjax.language.names import did_you_mean
from structjax.language.structure import (
    Expression,
    Latent,
    Structure,
    Variable,
    children,
    walk,
)

MAX_NODES = 20_000
"""Formulas with more operators and operands are refused."""

MAX_TEMPORARY = 200
"""Temporaries with more of them keep their names."""

ACTION = "action."


class Formula(NamedTuple):
    """What is to be written.

    Attributes:
      name: of the latent or action.
      expression: its definition; an action's mean (one logit has no formula).
      definitions: what is written in place of a name, each after those it needs.
    """

    name: str
    expression: Expression
    definitions: tuple[Latent, ...]


def formula(structure: Structure, name: str, *, inline: bool) -> Formula:
    """A latent, or the mean of an action, by name.

    Args:
      structure: the program.
      name: a latent; an action where no latent has the name, or after `action.`.
      inline: write the definitions of other latents in place of their names. Those of
        temporaries (locals of helpers, values within loops) are, unless they are long.

    Raises:
      StructjaxError: no such name, or a formula beyond `MAX_NODES`.
    """
    expression = _named(structure, name)
    by_name = {latent.name: latent for latent in structure.latents}
    inlined = _inlined(structure, inline=inline)
    needed: set[str] = set()
    stack = [expression]
    while stack:
        for variable in _variables(stack.pop()):
            if variable in inlined and variable not in needed:
                needed.add(variable)
                stack.append(by_name[variable].expression)
    definitions = tuple(v for v in structure.latents if v.name in needed)
    _check_size(name, expression, definitions)
    return Formula(name, expression, definitions)


def _inlined(structure: Structure, *, inline: bool) -> set[str]:
    """The latents whose definitions stand in place of their names."""
    if inline:
        return {latent.name for latent in structure.latents}
    sizes: dict[str, int] = {}
    for latent in structure.latents:
        size = _nodes(latent.expression, sizes)
        if not latent.logged and size <= MAX_TEMPORARY:
            sizes[latent.name] = size
    return set(sizes)


def formula_names(structure: Structure) -> list[str]:
    """All latents that keep their names, and the actions as `action.NAME`."""
    gone = _inlined(structure, inline=False)
    names = [latent.name for latent in structure.latents if latent.name not in gone]
    means = (head for head in structure.heads if head.family != "categorical")
    return names + [ACTION + head.action for head in means]


def _named(structure: Structure, name: str) -> Expression:
    latents = {latent.name: latent.expression for latent in structure.latents}
    actions = {
        head.action: head.arguments[0]
        for head in structure.heads
        if head.family != "categorical"
    }
    if name in latents:
        return latents[name]
    if name.removeprefix(ACTION) in actions:
        return actions[name.removeprefix(ACTION)]
    logged = [latent.name for latent in structure.latents if latent.logged]
    known = [*logged, *actions]
    guess = did_you_mean(name, known)
    listed = ", ".join(known)
    raise StructjaxError(
        f"no latent or action {name!r} in the program",
        kind="name",
        hint=guess or f"it has {listed}",
    )


def _variables(expression: Expression) -> Iterator[str]:
    """Names that an expression refers to in the same step."""
    return (node.name for node in walk(expression) if isinstance(node, Variable))


def _check_size(
    name: str, expression: Expression, definitions: tuple[Latent, ...]
) -> None:
    sizes: dict[str, int] = {}
    for latent in definitions:
        sizes[latent.name] = _nodes(latent.expression, sizes)
    if (total := _nodes(expression, sizes)) > MAX_NODES:
        raise StructjaxError(
            f"the formula of {name!r} has {total:,} operators and operands",
            kind="size",
            hint=f"up to {MAX_NODES:,} are written; keep the names of latents in it",
        )


def _nodes(expression: Expression, sizes: dict[str, int]) -> int:
    if isinstance(expression, Variable):
        return sizes.get(expression.name, 1)
    return 1 + sum(_nodes(part, sizes) for part in children(expression))
