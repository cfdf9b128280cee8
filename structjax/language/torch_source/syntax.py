"""What of Python a module may hold; refused nodes are noted at once."""

import ast
import math
from collections.abc import Iterator

from structjax.language.problem import Problems
from structjax.language.syntax import MAX_NUMBER, excerpt, is_docstring

_ALLOWED = (
    *(ast.Module, ast.ClassDef, ast.FunctionDef, ast.arguments, ast.arg, ast.Return),
    *(ast.Assign, ast.AugAssign, ast.AnnAssign, ast.For, ast.If, ast.Expr, ast.Pass),
    *(ast.Assert, ast.Raise, ast.Break, ast.Continue),
    *(ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.Call),
    *(ast.keyword, ast.Attribute, ast.Subscript, ast.Slice, ast.Name, ast.Constant),
    *(ast.Tuple, ast.List, ast.Dict, ast.JoinedStr, ast.FormattedValue),
    *(ast.ListComp, ast.GeneratorExp, ast.DictComp, ast.comprehension),
)
_PARTS = (ast.expr_context, ast.operator, ast.unaryop, ast.boolop, ast.cmpop)

_NODES: dict[type[ast.AST], tuple[str, str, str]] = {
    ast.While: ("NODE", "a while loop", "write `for i in range(n)` with a constant n"),
    ast.Lambda: ("NODE", "a lambda", "write a method"),
    ast.SetComp: ("NODE", "a set", "write a list"),
    ast.Set: ("NODE", "a set", "write a list"),
    ast.NamedExpr: ("NODE", "an assignment inside an expression", "assign before"),
    ast.AsyncFunctionDef: ("NODE", "an async function", "write a method"),
    ast.Global: ("NODE", "global", "a policy has no state"),
    ast.Nonlocal: ("NODE", "nonlocal", "a policy has no state"),
    ast.Delete: ("NODE", "del", "delete it"),
    ast.Try: ("NODE", "try", "delete it"),
    ast.With: (
        "TRAINING",
        "a with block",
        "delete `with`; the policy is differentiated",
    ),
    ast.Match: ("NODE", "match", "write `torch.where`"),
    ast.Yield: ("NODE", "yield", "return the mean, the Cholesky factor and info"),
    ast.YieldFrom: ("NODE", "yield", "return the mean, the Cholesky factor and info"),
    ast.Await: ("NODE", "await", "delete it"),
    ast.Starred: ("NODE", "a star", "write the arguments one by one"),
}

#: Modules that a file may import; nothing of them is executed.
_IMPORTS = ("torch", "math", "typing", "__future__", "collections.abc")


def check_nodes(tree: ast.Module, problems: Problems) -> set[ast.AST]:
    """Notes every node that is not accepted; returns those nodes."""
    refused: set[ast.AST] = set()
    stack: list[ast.AST] = list(tree.body)
    while stack:
        node = stack.pop()
        if isinstance(node, _PARTS) or (
            isinstance(node, ast.stmt) and is_docstring(node)
        ):
            continue
        if isinstance(node, ast.Import | ast.ImportFrom):
            _check_import(node, node in tree.body, problems)
        elif _accepted(node, node in tree.body, problems):
            stack += _children(node)
        else:
            refused.add(node)
    return refused


def _children(node: ast.AST) -> Iterator[ast.AST]:
    """The parts of a node that mean something: no annotations, no errors' texts."""
    if isinstance(node, ast.Raise):
        return
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "type_params"):
            continue
        if isinstance(node, ast.Assert) and name == "msg":
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield child


def _check_import(
    node: ast.Import | ast.ImportFrom, top: bool, problems: Problems
) -> None:
    if isinstance(node, ast.ImportFrom):
        names = [node.module or "."]
    else:
        names = [alias.name for alias in node.names]
    for name in names:
        if not any(name == m or name.startswith(f"{m}.") for m in _IMPORTS):
            problems.error(
                "IMPORT",
                node.lineno,
                f"`{excerpt(node)}` is not accepted",
                "torch, math and typing may be imported",
            )
            return
    if not top or any(alias.name == "*" for alias in node.names):
        problems.error(
            "IMPORT",
            node.lineno,
            f"`{excerpt(node)}` is not accepted here",
            "imports stand at the top, without a star",
        )


def _accepted(node: ast.AST, top: bool, problems: Problems) -> bool:
    line = getattr(node, "lineno", 1)
    if top and not isinstance(
        node, ast.ClassDef | ast.FunctionDef | ast.Assign | ast.AnnAssign
    ):
        text = f"`{excerpt(node)}` stands beside the class"
        hint = "imports, constants, functions and one class are accepted"
        problems.error("TOPLEVEL", line, text, hint)
        return False
    if not isinstance(node, _ALLOWED):
        name = type(node).__name__
        code, what, hint = _NODES.get(type(node), ("NODE", name, "delete it"))
        problems.error(code, line, f"{what} is not accepted in a policy", hint)
        return False
    if isinstance(node, ast.Constant):
        return _accepted_constant(node, problems)
    name = getattr(node, "attr", "") or getattr(node, "id", "")
    if name.startswith("__") and name != "__init__":
        text = f"`{name}` begins with two underscores"
        problems.error("DUNDER", line, text, "choose another name")
        return False
    return True


def _accepted_constant(node: ast.Constant, problems: Problems) -> bool:
    value = node.value
    if value is None or value is ... or isinstance(value, bool | str):
        return True
    if isinstance(value, int | float) and abs(value) <= MAX_NUMBER:
        return math.isfinite(value)
    shown = "bytes" if isinstance(value, bytes) else excerpt(node)
    hint = f"constants are finite numbers up to {MAX_NUMBER:g}"
    problems.error("CONST", node.lineno, f"{shown} is not accepted", hint)
    return False
