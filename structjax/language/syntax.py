"""From normalised text to a syntax tree that holds nothing but the language.

The text is parsed, never executed. Nodes that are not part of the language are
reported here once; what comes later skips them.
"""

import ast
import warnings
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from structjax.language.problem import Problems

MAX_NODES = 12_000
MAX_DEPTH = 100
MAX_NUMBER = 1e30

_SPLIT = "split the expression into several assignments"

_HARMLESS = {
    ast.Module,
    ast.FunctionDef,
    ast.arguments,
    ast.arg,
    ast.Return,
    ast.Assign,
    ast.AugAssign,
    ast.For,
    ast.If,
    ast.Expr,
    ast.Pass,
    ast.BinOp,
    ast.UnaryOp,
    ast.BoolOp,
    ast.Compare,
    ast.IfExp,
    ast.Call,
    ast.keyword,
    ast.Slice,
}
#: Fields of syntax nodes that hold no expression or statement.
_PLAIN = {"op", "ops", "ctx", "id", "attr", "kind", "type_comment"}

MEMORY_HINT = "what a policy remembers is `previous(name, start=0.0)`"
_NODES = {
    ast.While: ("a while loop", "write `for i in range(n)` with a constant n"),
    ast.Lambda: ("a lambda", "write a helper: `def f(x):`"),
    ast.ListComp: ("a comprehension", "operators work on whole vectors: `sum(v)`"),
    ast.GeneratorExp: ("a generator", "operators work on whole vectors: `sum(v)`"),
    ast.SetComp: ("a comprehension", "operators work on whole vectors: `sum(v)`"),
    ast.DictComp: ("a comprehension", "operators work on whole vectors: `sum(v)`"),
    ast.List: ("a list", "write a vector as `stack(a, b, ...)`"),
    ast.Tuple: ("a tuple", "assign one name per line; a vector is `stack(a, b, ...)`"),
    ast.Dict: ("a dictionary", "every assigned name is logged without one"),
    ast.Set: ("a set", "write a vector as `stack(a, b, ...)`"),
    ast.JoinedStr: ("an f-string", "programs hold no text"),
    ast.NamedExpr: ("an assignment inside an expression", "assign on its own line"),
    ast.AnnAssign: ("an annotated assignment", "write `name = expression`"),
    ast.ClassDef: ("a class", "write `def policy(obs):`"),
    ast.AsyncFunctionDef: ("an async function", "write `def policy(obs):`"),
    ast.Global: ("global", MEMORY_HINT),
    ast.Nonlocal: ("nonlocal", MEMORY_HINT),
    ast.Delete: ("del", "every name is assigned once and stays"),
    ast.Assert: ("assert", "delete it"),
    ast.Raise: ("raise", "delete it"),
    ast.Try: ("try", "use safe operators: sqrt, norm, safe_div"),
    ast.With: ("with", "delete it"),
    ast.Match: ("match", "write `if`, `elif` and `else`"),
    ast.Break: ("break", "use `where` or `if` and `else`"),
    ast.Continue: ("continue", "use `where` or `if` and `else`"),
    ast.Yield: ("yield", "write `return action(...)`"),
    ast.YieldFrom: ("yield", "write `return action(...)`"),
    ast.Await: ("await", "delete it"),
    ast.Starred: ("a star", "write the arguments one by one"),
}


class Tree(NamedTuple):
    """A syntax tree, and all its nodes, level by level."""

    module: ast.Module
    nodes: list[ast.AST]


def parse_tree(source: str, problems: Problems) -> Tree | None:
    """The syntax tree, or None with the reason noted."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            module = ast.parse(source)
    except SyntaxError as error:
        line = min(max(error.lineno or 1, 1), source.count("\n"))
        hint = "write one complete program: weights, helpers, `def policy(obs):`"
        if error.msg == "invalid decimal literal":
            hint = "a product is `2 * x`; names do not begin with a digit"
        problems.error("SYNTAX", line, f"invalid Python: {error.msg}", hint)
        return None
    except (MemoryError, RecursionError):
        problems.error("TOO_DEEP", 1, "the program is nested too deeply", _SPLIT)
        return None
    except ValueError as error:
        problems.error("SYNTAX", 1, f"unreadable text: {error}", "write plain text")
        return None
    nodes = _nodes(module, problems)
    return Tree(module, nodes) if nodes else None


class _Fields(dict[type[ast.AST], tuple[str, ...]]):
    """Type of a node -> its fields that may hold expressions and statements."""

    def __missing__(self, kind: type[ast.AST]) -> tuple[str, ...]:
        self[kind] = tuple(name for name in kind._fields if name not in _PLAIN)
        return self[kind]


_FIELDS = _Fields()


def children(node: ast.AST) -> Sequence[ast.AST]:
    """The nodes directly below one, in order, without operators and contexts.

    Several times as fast as `ast.iter_child_nodes`, which was most of reading a text.
    """
    names = _FIELDS[type(node)]
    if not names:
        return ()
    found: list[ast.AST] = []
    for name in names:
        value = getattr(node, name, None)
        if isinstance(value, list):
            found += [part for part in value if isinstance(part, ast.AST)]
        elif isinstance(value, ast.AST):
            found.append(value)
    return found


def walk(node: ast.AST) -> Iterator[ast.AST]:
    """A node and all below it, in no particular order."""
    pending = [node]
    while pending:
        node = pending.pop()
        yield node
        pending += children(node)


def _nodes(module: ast.Module, problems: Problems) -> list[ast.AST]:
    """All nodes level by level; none, with the reason noted, if they are too many."""
    found: list[ast.AST] = []
    level: list[ast.AST] = [module]
    for _ in range(MAX_DEPTH + 1):
        found += level
        level = [child for node in level for child in children(node)]
    if level:
        line = max(map(line_of, level))
        problems.error("TOO_DEEP", line, f"nested over {MAX_DEPTH} levels", _SPLIT)
        return []
    if len(found) > MAX_NODES:
        text = f"the program has {len(found):,} syntax nodes"
        problems.error("TOO_LONG", 1, text, f"at most {MAX_NODES:,} are accepted")
        return []
    return found


def check_nodes(tree: Tree, problems: Problems) -> set[ast.AST]:
    """Notes every node that is not part of the language; returns those nodes.

    What is below a refused node is not looked at.
    """
    refused: set[ast.AST] = set()
    skipped = _docstrings(tree.module)
    for node in tree.nodes:
        if type(node) in _HARMLESS or node in skipped:
            continue
        if not _accepted(node, problems):
            refused.add(node)
            skipped.update(walk(node))
        elif isinstance(node, ast.Subscript) and is_text(node.slice):
            skipped.add(node.slice)  # the lowering explains a text between brackets
    return refused


def _docstrings(tree: ast.Module) -> set[ast.AST]:
    """The docstrings of the module and its functions, with their statements."""
    found: set[ast.AST] = set()
    for node in (tree, *tree.body):
        if isinstance(node, ast.Module | ast.FunctionDef):
            found.update(
                *(walk(first) for first in node.body[:1] if is_docstring(first))
            )
    return found


def is_docstring(statement: ast.stmt) -> bool:
    """Whether a statement is a string on its own."""
    return isinstance(statement, ast.Expr) and is_text(statement.value)


def is_text(node: ast.AST) -> bool:
    """Whether a node is a string."""
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _accepted(node: ast.AST, problems: Problems) -> bool:
    match node:
        case ast.Constant():
            return _accepted_constant(node, problems)
        case ast.Name(id=name) | ast.Attribute(attr=name):
            if name.startswith("__"):
                text = f"`{name}` begins with two underscores"
                problems.error("DUNDER", line_of(node), text, "choose another name")
                return False
        case ast.Subscript():
            pass
        case _:
            _refuse(node, problems)
            return False
    return True


def _refuse(node: ast.AST, problems: Problems) -> None:
    """Notes a node that is not part of the language."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        code, text = "IMPORT", f"`{excerpt(node)}` is not accepted"
        hint = "every operator is there without an import"
    else:
        kind = type(node)
        what, hint = _NODES.get(kind, (kind.__name__, "delete it"))
        code, text = "NODE", f"{what} is not part of the language"
    problems.error(code, line_of(node), text, hint)


def line_of(node: ast.AST) -> int:
    """1-based line; 1 where a node has none."""
    return getattr(node, "lineno", 1)


def _accepted_constant(node: ast.Constant, problems: Problems) -> bool:
    value = node.value
    if isinstance(value, str) and value in ("+", "-"):
        return True  # sign="+"; elsewhere the lowering refuses it
    if value is None or isinstance(value, bool):
        return True  # None as a bound; elsewhere the lowering refuses it
    if isinstance(value, int | float) and abs(value) <= MAX_NUMBER:
        return True
    shown = "a text" if isinstance(value, str | bytes) else excerpt(node)
    hint = f"constants are finite numbers up to {MAX_NUMBER:g}"
    if value is ...:
        hint = "write the whole program, without placeholders"
    problems.error("CONST", node.lineno, f"{shown} is not accepted here", hint)
    return False


def excerpt(node: ast.AST) -> str:
    """The node as text, shortened for a message."""
    # Kept with the node: loops come back to it.
    kept: str | None = getattr(node, "excerpt", None)
    if kept is None:
        kept = _excerpt(node)
        node.excerpt = kept  # type: ignore[attr-defined]
    return kept


def _excerpt(node: ast.AST, limit: int = 60) -> str:
    value = node.value if isinstance(node, ast.Constant) else None
    if isinstance(value, int) and value.bit_length() > 256:
        return "a number of this size"
    try:
        text = ast.unparse(node).split("\n")[0]
    except (RecursionError, ValueError):
        return "this expression"
    return text if len(text) <= limit else text[: limit - 4] + " ..."
