"""Text of a PyTorch module -> Program. The text is parsed, never executed."""

import ast

from structjax.language.documentation import Comments
from structjax.language.parse import Program
from structjax.language.problem import Problems, StructureError
from structjax.language.source import check, normalise
from structjax.language.structure import Structure
from structjax.language.syntax import parse_tree
from structjax.language.torch_source.calls import lower_call
from structjax.language.torch_source.comprehensions import COMPREHENSIONS
from structjax.language.torch_source.expressions import EXPRESSIONS
from structjax.language.torch_source.finish import finish
from structjax.language.torch_source.inputs import contents, read_inputs
from structjax.language.torch_source.machine import Machine
from structjax.language.torch_source.module import read_module
from structjax.language.torch_source.outputs import read_outputs, spelling
from structjax.language.torch_source.refusal import Exhausted, Refused, Silent
from structjax.language.torch_source.statements import run_function
from structjax.language.torch_source.syntax import check_nodes
from structjax.language.torch_source.trace import Trace
from structjax.language.torch_source.values import FAULT, Function
from structjax.language.usage import warn_unused
from structjax.schema import Schema

_ENTRY = "write one `class Policy(nn.Module):` with `__init__` and `forward`"


def parse_torch(text: str, schema: Schema) -> Program:
    """Reads an `nn.Module` whose `forward` gives an action distribution.

    The inputs of `forward` are matched with the fields of the observation as
    `torch_source.inputs` says. Parameters are unconstrained; entries `latent_x` of the
    info dictionary are latents, `weight_x` names parameters.

    Args:
      text: the file.
      schema: the task's observation and action fields.

    Raises:
      StructureError: the module is refused; every problem is in it.
    """
    problems = Problems()
    source = normalise(text)
    check(source, problems)
    parsed = None if problems.failed else parse_tree(source, problems)
    if parsed is None:
        raise StructureError(_reworded(problems).found)
    tree = parsed.module
    handlers = {**EXPRESSIONS, **COMPREHENSIONS, ast.Call: lower_call}
    trace = Trace(schema, problems)
    machine = Machine(trace, check_nodes(tree, problems), handlers, run_function)
    found = _read(tree, machine)
    problems.raise_errors()
    if found is None:  # unreachable while every fault is noted; never a crash
        problems.error("NO_ENTRY", 1, "the module has no forward that can be read")
        raise StructureError(problems.found)
    structure, lines = found
    forward = machine.methods["forward"].node
    warn_unused(structure, {**lines, "policy": forward.lineno}, problems)
    docs = _documentation(tree, source, lines)
    return Program(structure, source, docs, lines, problems.warnings)


def _reworded(problems: Problems) -> Problems:
    """The same problems, with hints that fit a module."""
    changed = Problems()
    for p in problems.found:
        hint = _ENTRY if p.code in ("EMPTY", "SYNTAX") else p.hint
        changed.error(p.code, p.line, p.message, hint)
    return changed


def _read(
    tree: ast.Module, machine: Machine
) -> tuple[Structure, dict[str, int]] | None:
    """The structure and the lines of its names, or None when the module is faulty."""
    problems = machine.trace.problems
    try:
        forward = read_module(tree, machine)
        if forward is None:
            return None
        inputs = read_inputs(forward, machine)
        if not inputs:
            return None
        machine.inputs = contents(inputs)
        value = run_function(Function(forward, True), [], dict(inputs), machine)
        machine.trace.line = forward.lineno
        if value is FAULT:
            return None
        if value is None:
            hint = spelling(machine.trace.schema)
            problems.error("NO_RETURN", forward.lineno, "forward returns nothing", hint)
            return None
        outputs = read_outputs(value, machine)
        if problems.failed:
            return None
        structure, lines = finish(outputs, machine)
        _check_columns(structure, lines, problems)
        return structure, lines
    except Refused as refusal:
        machine.note(refusal, machine.methods["forward"].node)
    except (Silent, Exhausted):
        pass
    except RecursionError:
        problems.error("TOO_DEEP", 1, "functions and expressions are nested too deeply")
    return None


def _check_columns(
    structure: Structure, lines: dict[str, int], problems: Problems
) -> None:
    """A vector `x` and a scalar `x_0` would share a column of the table."""
    owner: dict[str, str] = {}
    for latent in structure.latents:
        for column in latent.columns if latent.logged else ():
            other = owner.setdefault(column, latent.name)
            if other != latent.name:
                text = f"`{latent.name}` and `{other}` would share column `{column}`"
                line = lines.get(latent.name, 1)
                problems.error("NAME", line, text, "rename one of them")


def _documentation(
    tree: ast.Module, source: str, lines: dict[str, int]
) -> dict[str, str]:
    """Name -> the comment beside or above it; `""` is the class's docstring."""
    comments = Comments(source)
    docs = {"": ""}
    for node in (tree, *tree.body):
        if isinstance(node, ast.Module | ast.ClassDef):
            docs[""] = ast.get_docstring(node) or docs[""]
    docs |= {name: comments.of(line, line) for name, line in lines.items()}
    return {name: text for name, text in docs.items() if text}
