"""All rules that need nothing but the program and the schema."""

from collections.abc import Iterable

from structjax.language.lint.duplicates import duplicate_problems
from structjax.language.lint.gradients import gradient_problems
from structjax.language.lint.numbers import number_problems
from structjax.language.lint.parity_rule import parity_problems
from structjax.language.lint.places import parts
from structjax.language.lint.range_rules import range_problems
from structjax.language.lint.unit_rules import unit_problems
from structjax.language.parse import Program
from structjax.language.problem import Problem
from structjax.schema import Schema


def static_problems(program: Program, schema: Schema) -> tuple[Problem, ...]:
    """The parser's warnings and those of all static rules, by line.

    Args:
      program: an accepted program; what depends on values reads the initial ones.
      schema: of its task.
    """
    structure = program.structure
    places = parts(program)
    return ordered(
        [
            *program.warnings,
            *gradient_problems(structure, schema, places, dict(program.lines)),
            *range_problems(structure, schema, places),
            *unit_problems(structure, schema, places),
            *parity_problems(structure, schema, places),
            *duplicate_problems(places),
            *number_problems(program, schema),
        ]
    )


def ordered(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """Each problem once, by line, then as the rules come."""
    return tuple(sorted(dict.fromkeys(problems), key=lambda problem: problem.line))
