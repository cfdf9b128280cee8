"""A quick, readable refusal of analysis code that the sandbox would stop anyway.

This is a courtesy to the author of the code, not the security boundary. Standard
library only: runs inside the sandbox, because parsing can exhaust the interpreter.
"""

import ast
from collections.abc import Iterator

_MODULES = """
__future__ collections dataclasses functools itertools json math numpy pandas re scipy
sklearn statistics statsmodels typing warnings
"""
_REFUSED = """
__import__ breakpoint compile delattr eval exec exit globals input locals open quit
setattr
"""
IMPORTS = frozenset(_MODULES.split())
_REFUSED_NAMES = frozenset(_REFUSED.split())
_DUNDERS = frozenset({"__name__", "__doc__"})
_ACCEPTED = ", ".join(sorted(IMPORTS - {"__future__"}))


def problems(tree: ast.Module, function: str | None = None) -> list[str]:
    """One line per refused import, call or attribute, in order of lines.

    Args:
      tree: the code.
      function: the check that is about to run; None is the top level. What is refused
        inside one check does not stop the others.
    """
    checks = set(functions(tree))
    found = [
        problem
        for statement in tree.body
        if not _is_other_check(statement, checks, function)
        for node in ast.walk(statement)
        for problem in _node_problems(node)
    ]
    return [f"line {line}: {text}" for line, text in sorted(set(found))]


def _is_other_check(
    statement: ast.stmt, checks: set[str], function: str | None
) -> bool:
    is_check = isinstance(statement, ast.FunctionDef) and statement.name in checks
    return is_check and statement.name != function  # type: ignore[attr-defined]


def functions(tree: ast.Module) -> list[str]:
    """Names of the top-level functions to call, in order of definition."""
    names = [n.name for n in tree.body if isinstance(n, ast.FunctionDef)]
    return [n for n in dict.fromkeys(names) if n.startswith(("check_", "test_"))]


def _node_problems(node: ast.AST) -> Iterator[tuple[int, str]]:
    if isinstance(node, ast.Import):
        for alias in node.names:
            yield from _import_problems(node.lineno, alias.name)
    elif isinstance(node, ast.ImportFrom):
        yield from _import_problems(node.lineno, "." * node.level + (node.module or ""))
    elif isinstance(node, ast.Name) and node.id in _REFUSED_NAMES:
        yield node.lineno, f"`{node.id}` is not available; accepted: work on the table"
    elif isinstance(node, ast.Name | ast.Attribute):
        name = node.id if isinstance(node, ast.Name) else node.attr
        if name.startswith("__") and name.endswith("__") and name not in _DUNDERS:
            yield node.lineno, f"`{name}` is not available; accepted: public attributes"


def _import_problems(line: int, module: str) -> Iterator[tuple[int, str]]:
    if module.split(".")[0] not in IMPORTS:
        yield line, f"import of `{module}`; accepted: {_ACCEPTED}"
