"""`lint`: everything that is suspicious in an accepted program."""

from collections.abc import Mapping
from dataclasses import replace

from structjax.demonstration import Demonstration
from structjax.errors import StructjaxError
from structjax.language.lint.static import ordered, static_problems
from structjax.language.parse import Program
from structjax.language.problem import Problem
from structjax.language.structure import Parameter
from structjax.schema import Schema

_ON_BOUND = 1e-3


def lint(
    program: Program,
    schema: Schema,
    *,
    demonstration: Demonstration | None = None,
    values: Mapping[str, float] | None = None,
) -> tuple[Problem, ...]:
    """Warnings about an accepted program, by line; `LINT_CODES` lists their codes.

    Args:
      program: what `parse` returned, its own warnings included in the answer.
      schema: the task's observation and action fields.
      demonstration: adds the rules that look at the program along an episode.
      values: parameter -> value, e.g. fitted ones, in place of the initial values.

    Raises:
      StructjaxError: a value of no weight or beyond its bounds, or a demonstration
        that does not fit the schema.

    Example:
      >>> for problem in lint(parse(text, task.schema), task.schema):
      ...     print(problem.code, problem)
    """
    valued = _with_values(program, values or {})
    found = [*static_problems(valued, schema), *_on_bounds(valued, values or {})]
    if demonstration is not None:
        # JAX is needed from here on.
        from structjax.linting.demonstrated import demonstrated_problems

        known = frozenset(
            name
            for name in (p.name for p in valued.structure.parameters)
            if any(f"weight `{name}`" in problem.message for problem in found)
        )
        found += demonstrated_problems(valued, schema, demonstration, known)
    return ordered(found)


def _with_values(program: Program, values: Mapping[str, float]) -> Program:
    """The program with these initial values."""
    names = [parameter.name for parameter in program.structure.parameters]
    unknown = sorted(set(values) - set(names))
    if unknown:
        raise StructjaxError(
            f"no weight {unknown[0]!r} in the program",
            kind="weights",
            hint=f"it has {', '.join(names)}",
        )
    parameters = tuple(
        replace(p, initial=float(values.get(p.name, p.initial)))
        for p in program.structure.parameters
    )
    structure = replace(program.structure, parameters=parameters)
    return replace(program, structure=structure)


def _on_bounds(program: Program, values: Mapping[str, float]) -> list[Problem]:
    """Given values at the edge of their bounds: a fit has pushed them there."""
    found = []
    for parameter in program.structure.parameters:
        bound = _bound_at(parameter)
        if parameter.name in values and bound is not None:
            text = f"weight `{parameter.name}` has the value {parameter.initial:.6g}"
            line = program.lines.get(parameter.name, 1)
            text += f", on its bound {bound:g}"
            hint = "widen the bound, or take the weight out"
            found.append(Problem("START_ON_BOUND", "warning", line, text, hint))
    return found


def _bound_at(parameter: Parameter) -> float | None:
    """The bound that a value has practically reached."""
    low, high, value = parameter.low, parameter.high, parameter.initial
    scale = high - low if low is not None and high is not None else 1.0
    for bound in (low, high):
        if bound is not None and abs(value - bound) < _ON_BOUND * scale:
            return bound
    return None
