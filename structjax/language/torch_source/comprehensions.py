"""Reads `[f(x) for x in ...]` over static lists."""

import ast
from collections.abc import Callable, Iterator
from typing import Any

from structjax.language.torch_source.expressions import static_truth
from structjax.language.torch_source.machine import Frame, Machine
from structjax.language.torch_source.python import listed
from structjax.language.torch_source.refusal import Refused
from structjax.language.torch_source.statements import assign


def _turns(
    generators: list[ast.comprehension], frame: Frame, machine: Machine
) -> Iterator[Frame]:
    """One frame per turn."""
    if len(generators) > 1:
        raise Refused("LOOP", "a comprehension of two loops", "write them as loops")
    only = generators[0]
    for value in listed(machine.evaluate(only.iter, frame)):
        inner = Frame(dict(frame.names), frame.function)
        assign(only.target, value, inner, machine)
        if all(static_truth(machine.evaluate(test, inner)) for test in only.ifs):
            yield inner


def _list(
    node: ast.ListComp | ast.GeneratorExp, frame: Frame, machine: Machine
) -> list[Any]:
    turns = _turns(node.generators, frame, machine)
    return [machine.evaluate(node.elt, inner) for inner in turns]


def _dict(node: ast.DictComp, frame: Frame, machine: Machine) -> dict[str, Any]:
    found = {}
    for inner in _turns(node.generators, frame, machine):
        key = machine.evaluate(node.key, inner)
        if not isinstance(key, str):
            raise Refused("TYPE", "a key that is not a text", "keys are texts")
        found[key] = machine.evaluate(node.value, inner)
    return found


COMPREHENSIONS: dict[type, Callable[..., Any]] = {
    ast.ListComp: _list,
    ast.GeneratorExp: _list,
    ast.DictComp: _dict,
}
"""Type of an expression node -> its handler."""
