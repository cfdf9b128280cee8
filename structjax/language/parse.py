"""Program text -> Structure. The text is parsed, never executed."""

import ast
import gc
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from structjax.language.access import ACCESS
from structjax.language.budget import check_budget
from structjax.language.calls import CALLED
from structjax.language.declarations import read_module
from structjax.language.documentation import documentation
from structjax.language.expressions import EXPRESSIONS
from structjax.language.heads import read_heads
from structjax.language.memory import check_previous
from structjax.language.problem import Problem, Problems, StructureError
from structjax.language.scope import Lowering, Scope, TooLong
from structjax.language.source import check, normalise
from structjax.language.statements import inline_helper, read_body
from structjax.language.structure import Structure
from structjax.language.syntax import check_nodes, parse_tree
from structjax.language.usage import warn_unused
from structjax.schema import Schema

__all__ = ["Problem", "Program", "StructureError", "parse"]


@dataclass(frozen=True)
class Program:
    """An accepted program.

    Attributes:
      structure: what it computes.
      source: the normalised text.
      docs: name -> documentation; `""` is the module's own.
      lines: name -> line of its declaration or first assignment.
      warnings: problems that do not refuse it.
    """

    structure: Structure
    source: str
    docs: Mapping[str, str]
    lines: Mapping[str, int]
    warnings: tuple[Problem, ...]


def parse(text: str, schema: Schema) -> Program:
    """Reads a program of the structure language.

    Args:
      text: the program; line ends, trailing space and a byte order mark do not matter.
      schema: the task's observation and action fields.

    Raises:
      StructureError: the program is refused; every problem is in it.

    Example:
      >>> program = parse(text, task.schema)
      >>> [parameter.name for parameter in program.structure.parameters]
    """
    with _uncollected():
        return _parse(text, schema)


@contextmanager
def _uncollected() -> Iterator[None]:
    """Keeps the garbage collector from running.

    What is made while a text is read lives until the end and holds no cycles. A large
    program makes so much that the collector would walk through the whole process, which
    with JAX in it takes as long as reading.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _parse(text: str, schema: Schema) -> Program:
    problems = Problems()
    source = normalise(text)
    check(source, problems)
    problems.raise_errors()
    tree = parse_tree(source, problems)
    if tree is None:
        raise StructureError(problems.found)
    handlers = {**EXPRESSIONS, **ACCESS, **CALLED}
    refused = check_nodes(tree, problems)
    state = Lowering(schema, problems, refused, handlers, inline_helper)
    structure = _lower(tree.module, state)
    problems.raise_errors()
    if structure is None:  # unreachable while every fault is noted; never a crash
        problems.error("NO_ENTRY", 1, "the program has no policy that can be read")
        raise StructureError(problems.found)
    warn_unused(structure, state.lines, problems)
    docs = documentation(tree.module, source, frozenset(state.lines))
    return Program(structure, source, docs, dict(state.lines), problems.warnings)


def _lower(tree: ast.Module, state: Lowering) -> Structure | None:
    """The structure, or None when the program is faulty."""
    try:
        policy = read_module(tree, state)
        if policy is None:
            return None
        scope = Scope()
        final = read_body(policy, scope, state)
        if final is None:
            return None
        heads, parameters, coupling = read_heads(final, scope, state)
    except TooLong:
        return None
    except RecursionError:
        state.error("TOO_DEEP", tree, "helpers and expressions are nested too deeply")
        return None
    for name in state.helpers:
        if name not in state.called:
            text = f"helper `{name}` is never called"
            state.problems.warn("UNUSED_HELPER", state.lines[name], text, "delete it")
    if state.problems.failed:
        return None
    structure = state.finish(heads, parameters, coupling)
    check_previous(structure, state)
    check_budget(structure, state.problems)
    _check_columns(structure, state)
    return structure


def _check_columns(structure: Structure, state: Lowering) -> None:
    """A vector `x` and a scalar `x_0` would share a column of the table."""
    owner: dict[str, str] = {}
    for latent in structure.latents:
        for column in latent.columns if latent.logged else ():
            other = owner.setdefault(column, latent.name)
            if other != latent.name:
                line = state.lines.get(latent.name, 1)
                text = f"`{latent.name}` and `{other}` would share column `{column}`"
                state.problems.error("NAME", line, text, "rename one of them")
