"""Warnings about a program that is accepted: what is never used."""

from collections.abc import Iterable, Iterator, Mapping

from structjax.language.problem import Problems
from structjax.language.structure import (
    Expression,
    Observation,
    Previous,
    Structure,
    Variable,
    Weight,
    walk,
)

Leaf = Observation | Weight | Variable


def leaves(expression: Expression) -> Iterator[Leaf]:
    """Fields, weights and variables of an expression, from left to right."""
    for node in walk(expression):
        match node:
            case Observation() | Weight() | Variable():
                yield node
            case Previous(latent):
                yield Variable(latent)


def reach(structure: Structure, expressions: Iterable[Expression]) -> set[Leaf]:
    """Everything that expressions depend on, through latents."""
    by_name = {latent.name: latent.expression for latent in structure.latents}
    found: set[Leaf] = set()
    stack = list(expressions)
    while stack:
        for leaf in leaves(stack.pop()):
            if leaf not in found:
                found.add(leaf)
                if isinstance(leaf, Variable):
                    stack.append(by_name[leaf.name])
    return found


def outputs(structure: Structure) -> list[Expression]:
    """The expressions that the action distribution is made of."""
    heads = [argument for head in structure.heads for argument in head.arguments]
    return [*heads, *structure.coupling]


def memory(structure: Structure) -> tuple[Previous, ...]:
    """What a program carries from step to step, each latent once."""
    expressions = [latent.expression for latent in structure.latents]
    nodes = (node for e in expressions + outputs(structure) for node in walk(e))
    found = {node for node in nodes if isinstance(node, Previous)}
    return tuple(sorted(found, key=lambda previous: previous.latent))


def warn_unused(
    structure: Structure, lines: Mapping[str, int], problems: Problems
) -> None:
    """Warns of latents and weights without effect and of blind actions."""
    used = reach(structure, outputs(structure))
    for latent in structure.latents:
        if latent.logged and Variable(latent.name) not in used:
            text = f"no action depends on `{latent.name}`"
            line = lines.get(latent.name, 1)
            problems.warn("UNUSED_LATENT", line, text, "use it or delete it")
    implied = {f"std_{head.action}" for head in structure.heads}
    for parameter in structure.parameters:
        if Weight(parameter.name) not in used:
            text = f"no action depends on weight `{parameter.name}`"
            line = lines.get(parameter.name, 1)
            problems.warn("UNUSED_WEIGHT", line, text, "use it or delete it")
    if all(p.name in implied and p.name not in lines for p in structure.parameters):
        text = "the program has no weight"
        hint = "numbers that are guesses become `name = weight(0.5)`"
        problems.warn("NO_WEIGHT", lines.get("policy", 1), text, hint)
    for head in structure.heads:
        means = head.arguments if head.family == "categorical" else head.arguments[:1]
        seen = reach(structure, means)
        if not any(isinstance(leaf, Observation) for leaf in seen):
            text = f"action `{head.action}` does not depend on the observation"
            problems.warn("BLIND_ACTION", lines.get("policy", 1), text)
