"""A program's text with other numbers in it: comments, helpers and loops stay."""

import ast
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from structjax.language.parse import Program
from structjax.language.render import inside
from structjax.language.source import code_only


def with_values(program: Program, values: Mapping[str, float]) -> str:
    """The program's own text with these values where they differ from the written.

    Args:
      program: the program.
      values: parameter -> value; one on a bound or beyond is written just inside.

    Returns:
      Text that `parse` accepts; its structure differs in the initial values alone.
    """
    parameters = [p for p in program.structure.parameters if p.name in values]
    new = {p: inside(values[p.name], p) for p in parameters}
    changed = {p.name: repr(value) for p, value in new.items() if value != p.initial}
    text = _Text(program.source)
    return text.edited([*_of_weights(text, changed), *_of_own_stds(text, changed)])


def with_least_stds(program: Program, least: Mapping[str, float]) -> str:
    """The program's own text with the written stds of these actions at least so high.

    For expressions: a std that is a number, or not written, is a weight, and
    `with_values` sets it.
    """
    text = _Text(program.source)
    heads = text.heads()
    return text.edited(
        edit
        for action, value in least.items()
        if (std := _std(heads[action])) is not None
        for edit in _raised(text, std, value)
    )


class _Edit(NamedTuple):
    """Characters `start` to `stop` of a text become `new`."""

    start: int
    stop: int
    new: str


class _Text:
    """A program's text and its syntax tree."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.code = code_only(source)
        self.tree = ast.parse(source)
        self._lines = source.split("\n")
        self._starts = [0]
        for line in self._lines:
            self._starts.append(self._starts[-1] + len(line) + 1)

    def span(self, node: ast.expr) -> tuple[int, int]:
        """The characters of an expression."""
        last, end = node.end_lineno or node.lineno, node.end_col_offset or 0
        return self._place(node.lineno, node.col_offset), self._place(last, end)

    def _place(self, line: int, column: int) -> int:
        """The character at a column, which the tree counts in bytes."""
        before = self._lines[line - 1].encode()[:column].decode()
        return self._starts[line - 1] + len(before)

    def replaced(self, node: ast.expr, new: str) -> _Edit:
        """The edit that replaces an expression."""
        return _Edit(*self.span(node), new)

    def edited(self, edits: Iterable[_Edit]) -> str:
        """The text after edits that do not overlap."""
        text = self.source
        for edit in sorted(edits, reverse=True):
            text = text[: edit.start] + edit.new + text[edit.stop :]
        return text

    def weights(self) -> dict[str, ast.Call]:
        """The declarations of weights."""
        return {
            node.targets[0].id: node.value
            for node in self.tree.body
            if isinstance(node, ast.Assign)
            and isinstance(node.targets[0], ast.Name)
            and _calls(node.value, "weight")
            and isinstance(node.value, ast.Call)
        }

    def heads(self) -> dict[str, ast.Call]:
        """The distribution of each action: the policy ends in their return."""
        for node in self.tree.body:
            if isinstance(node, ast.FunctionDef) and node.name == "policy":
                final = node.body[-1]
                assert isinstance(final, ast.Return)
                assert isinstance(final.value, ast.Call)
                return {
                    keyword.arg or "": keyword.value
                    for keyword in final.value.keywords
                    if isinstance(keyword.value, ast.Call)
                }
        raise AssertionError("the program was accepted without a policy")


def _calls(node: ast.expr, name: str) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == name
    )


def _of_weights(text: _Text, changed: Mapping[str, str]) -> Iterator[_Edit]:
    for name, call in text.weights().items():
        if name in changed:
            by_name = {keyword.arg: keyword.value for keyword in call.keywords}
            written = call.args[0] if call.args else by_name["init"]
            yield text.replaced(written, changed[name])


def _of_own_stds(text: _Text, changed: Mapping[str, str]) -> Iterator[_Edit]:
    """Stds that are no declared weight but a number, or not written at all."""
    declared = text.weights()
    for action, head in text.heads().items():
        name = f"std_{action}"
        if name not in changed or name in declared:
            continue
        if (std := _std(head)) is not None:
            yield text.replaced(std, changed[name])
            continue
        end = text.span(head)[1] - 1
        comma = text.code[text.span(head.args[-1])[1] : end].count(",")
        yield _Edit(end, end, f"{'' if comma else ', '}std={changed[name]}")


def _std(head: ast.Call) -> ast.expr | None:
    """The std of a continuous head, if it is written."""
    by_name = {keyword.arg: keyword.value for keyword in head.keywords}
    return by_name.get("std") or (head.args[1] if len(head.args) == 2 else None)


def _raised(text: _Text, std: ast.expr, least: float) -> Iterator[_Edit]:
    """A std expression with a lower limit; one that has it already stays."""
    if isinstance(std, ast.Call) and _calls(std, "fixed"):
        yield text.replaced(std.args[0], repr(least))
        return
    inner = std.args[0] if isinstance(std, ast.Call) and _calls(std, "exact") else std
    if isinstance(inner, ast.Call) and _calls(inner, "max"):
        limit = inner.args[-1]
        if isinstance(limit, ast.Constant) and limit.value == least:
            return
    first, last = text.span(inner)
    yield _Edit(first, last, f"max({text.source[first:last]}, {least!r})")
