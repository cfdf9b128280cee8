"""Comments and docstrings become the documentation of names."""

import ast
from collections.abc import Iterable, Iterator

from structjax.language.source import comments


def documentation(
    tree: ast.Module, source: str, names: frozenset[str]
) -> dict[str, str]:
    """Name -> documentation, for these names; `""` is the module's docstring."""
    found = Comments(source)
    docs = {"": ast.get_docstring(tree) or ""}
    for name, node in _named(tree.body):
        if name in names and not docs.get(name):
            docs[name] = _text(node, found)
    return {name: text for name, text in docs.items() if text}


def _named(body: Iterable[ast.stmt]) -> Iterator[tuple[str, ast.stmt]]:
    """Statements that declare or assign a name; locals of helpers excepted."""
    for node in body:
        match node:
            case ast.FunctionDef(name=name):
                yield name, node
                if name == "policy":
                    yield from _named(node.body)
            case ast.Assign(targets=[ast.Name(id=name)]):
                yield name, node
            case ast.AugAssign(target=ast.Name(id=name)):
                yield name, node
            case ast.For() | ast.If():
                yield from _named([*node.body, *node.orelse])


def _text(node: ast.stmt, found: "Comments") -> str:
    if isinstance(node, ast.FunctionDef):
        return ast.get_docstring(node) or found.of(node.lineno, node.lineno)
    return found.of(node.lineno, node.end_lineno or node.lineno)


class Comments:
    """The comments of a program that parses, and what they document."""

    def __init__(self, source: str) -> None:
        self._text: dict[int, str] = {}
        self._whole: set[int] = set()
        self._found: dict[int, str] = {}
        lines = source.split("\n")
        for line, column, text in comments(source):
            self._text[line] = text.lstrip("#").strip()
            if not lines[line - 1][:column].strip():
                self._whole.add(line)

    def of(self, first: int, last: int) -> str:
        """Documentation of the statement in lines `first` to `last`.

        Whole-line comments directly above, then the trailing comments. Lines that
        begin with dashes are section headings.
        """
        trailing = [
            self._text[at]
            for at in dict.fromkeys((first, last))
            if at in self._text and at not in self._whole
        ]
        return " ".join(text for text in (self._above(first), *trailing) if text)

    def _above(self, first: int) -> str:
        """The whole-line comments directly above a line; kept, for it may hold much."""
        if first not in self._found:
            line = first
            while line - 1 in self._whole and not self._text[line - 1].startswith("--"):
                line -= 1
            above = (self._text[at] for at in range(line, first))
            self._found[first] = " ".join(text for text in above if text)
        return self._found[first]
