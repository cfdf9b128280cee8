"""How large a program may become: operations to compile, columns to log."""

from structjax.language.problem import Problems
from structjax.language.structure import Call, Expression, Structure, walk
from structjax.language.turns import Turns, fold
from structjax.language.usage import outputs

MAX_OPERATIONS = 4_000
"""Operations to compile, loops counted once; XLA takes about a minute for them."""
MAX_COLUMNS = 2_048
"""Logged values per step: a table of 8 episodes of 1,000 steps then has 131 MB."""


def operations(structure: Structure) -> int:
    """Operators to compile, those of a loop that is kept as a loop once."""
    expressions = outputs(structure)
    for part in fold(structure.latents):
        turn = part.template if isinstance(part, Turns) else (part,)
        expressions += [latent.expression for latent in turn]
    return sum(map(_operators, expressions))


def _operators(expression: Expression) -> int:
    return sum(isinstance(node, Call) for node in walk(expression))


def check_budget(structure: Structure, problems: Problems) -> None:
    """Notes a program that would take minutes to compile or fill the memory."""
    unrolled = [latent.expression for latent in structure.latents]
    size = sum(map(_operators, unrolled + outputs(structure)))
    if size > MAX_OPERATIONS:  # finding loops takes longer than counting
        size = operations(structure)
    if size > MAX_OPERATIONS:
        text = f"the program expands to {size:,} operations"
        hint = f"at most {MAX_OPERATIONS:,} are accepted; use operators on vectors"
        problems.error("TOO_LONG", 1, text, hint)
    columns = sum(len(latent.columns) for latent in structure.latents if latent.logged)
    if columns > MAX_COLUMNS:
        text = f"the program logs {columns:,} values a step"
        hint = f"at most {MAX_COLUMNS:,} are accepted; long vectors that need no log "
        hint += "get names that begin with `_`"
        problems.error("TOO_LONG", 1, text, hint)
