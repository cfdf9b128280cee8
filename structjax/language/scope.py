"""What is known while a program is lowered: values, names and definitions."""

import ast
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from structjax.language.names import did_you_mean
from structjax.language.problem import MAX_PROBLEMS, Problems
from structjax.language.structure import (
    Call,
    Expression,
    Head,
    Index,
    Latent,
    Number,
    Observation,
    Parameter,
    Previous,
    Slice,
    Structure,
    Variable,
    Weight,
    with_leaves,
)
from structjax.language.syntax import walk
from structjax.schema import Schema

MAX_WORK = 20_000
MAX_LEVELS = 150
MAX_EXPRESSION_DEPTH = 64
INLINE_DEPTH = 12


class Value(NamedTuple):
    """A lowered expression.

    Attributes:
      expression: its form in the Structure.
      size: None for a scalar, n for a vector.
      boolean: whether it is a truth value.
      static: its number where that is known before any observation.
      depth: nesting of the expression.
    """

    expression: Expression
    size: int | None = None
    boolean: bool = False
    static: float | None = None
    depth: int = 1

    @property
    def atomic(self) -> bool:
        """Whether repeating it costs nothing: a leaf, or elements of a leaf."""
        inner = self.expression
        while isinstance(inner, Index | Slice):
            inner = inner.vector
        return not isinstance(inner, Call)


class TooLong(Exception):
    """The program expands beyond its budget; the problem is already noted."""


@dataclass
class Scope:
    """Names of one function body while its statements are read.

    Attributes:
      names: name -> value; None where its assignment was faulty.
      lines: name -> line of the first assignment.
      loops: loop variable -> its current turn.
      function: name of the helper, empty in the policy.
      in_loop: whether assigned names may be updated.
      in_branch: whether this is a branch of an `if`, which may update outer names.
      in_static: whether this is the only branch of an `if` that is read.
      fresh: names assigned in this branch.
      forgotten: names that faulty statements would have assigned.
      body: the function.
    """

    names: dict[str, Value | None] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)
    loops: dict[str, int] = field(default_factory=dict)
    function: str = ""
    in_loop: bool = False
    in_branch: bool = False
    in_static: bool = False
    fresh: dict[str, None] = field(default_factory=dict)
    forgotten: dict[str, None] = field(default_factory=dict)
    body: ast.AST | None = None

    def branch(self) -> "Scope":
        """A scope for one branch of an `if`."""
        return replace(
            self,
            names=dict(self.names),
            lines=dict(self.lines),
            in_branch=True,
            fresh={},
            forgotten={},
        )


@dataclass(frozen=True)
class Definition:
    """One assignment, before its final name is known."""

    stem: str
    kept: bool
    value: Value


@dataclass
class Lowering:
    """Everything that one program has declared so far.

    Attributes:
      schema: observation and action fields.
      problems: what was found.
      refused: syntax nodes that are already reported.
      parameters: the weights, by name; None where the declaration was faulty.
      constants: named constants; None where the declaration was faulty.
      helpers: helper functions.
      handlers: how each type of expression node is lowered.
      inline: evaluates a call of a helper.
      lines: line of the first assignment of each name.
      definitions: assignments in order; a `Variable` refers to one as `#i`.
      previous: calls of `previous`, and what each reads.
      called: helpers called so far; `calling`: those being inlined now.
      unrolled, work, depth: what the budgets count.
      assignments, faulty: what is known of syntax nodes, which loops come back to.
    """

    schema: Schema
    problems: Problems
    refused: set[ast.AST]
    handlers: "Mapping[type, Handler]"
    inline: "Callable[[ast.Call, list[Value | None], Lowering], Value | None]"
    parameters: dict[str, Parameter | None] = field(default_factory=dict)
    constants: dict[str, float | None] = field(default_factory=dict)
    helpers: dict[str, ast.FunctionDef] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)
    definitions: list[Definition] = field(default_factory=list)
    previous: list[tuple[ast.Call, Previous]] = field(default_factory=list)
    called: set[str] = field(default_factory=set)
    calling: list[str] = field(default_factory=list)
    unrolled: int = 0
    work: int = 0
    depth: int = 0
    assignments: dict[ast.AST, dict[str, int]] = field(default_factory=dict)
    faulty: dict[ast.AST, bool] = field(default_factory=dict)

    def error(self, code: str, node: ast.AST, message: str, hint: str = "") -> None:
        """Notes an error at a node."""
        self.problems.error(code, getattr(node, "lineno", 1), message, hint)

    def guess(self, name: str, known: Iterable[str]) -> str:
        """A suggestion, or the empty string; none once more are found than shown."""
        return did_you_mean(name, known) if self.problems.count < MAX_PROBLEMS else ""

    def assigned(self, node: ast.AST) -> dict[str, int]:
        """Name -> line of its first assignment, anywhere in a statement."""
        if node not in self.assignments:
            self.assignments[node] = first_assignments(node)
        return self.assignments[node]

    def later(self, name: str, scope: "Scope") -> int | None:
        """The line where a function assigns a name first, wherever that is."""
        return self.assigned(scope.body).get(name) if scope.body else None

    def holds_refused(self, node: ast.AST) -> bool:
        """Whether part of an expression is reported already."""
        if node not in self.faulty:
            self.faulty[node] = any(part in self.refused for part in walk(node))
        return self.faulty[node]

    def lower(self, node: ast.expr, scope: Scope) -> Value | None:
        """The value of an expression, or None when it is faulty (and noted)."""
        self.spend(node)
        if node in self.refused:
            return None
        if self.depth >= MAX_LEVELS:
            self.too_deep(node, MAX_LEVELS)
            return None
        self.depth += 1
        value = self.handlers[type(node)](node, scope, self)
        self.depth -= 1
        if value and value.depth > MAX_EXPRESSION_DEPTH:
            self.too_deep(node, MAX_EXPRESSION_DEPTH)
            return None
        return value

    def too_deep(self, node: ast.AST, levels: int) -> None:
        """Notes that an expression is nested too deeply."""
        hint = "split the expression into several assignments"
        self.error("TOO_DEEP", node, f"nested over {levels} levels", hint)

    def spend(self, node: ast.AST) -> None:
        """Counts one lowered node.

        Raises:
          TooLong: the program expands beyond `MAX_WORK` nodes.
        """
        self.work += 1
        if self.work > MAX_WORK:
            self.error(
                "TOO_LONG",
                node,
                f"loops and helpers expand to more than {MAX_WORK:,} nodes",
                "use shorter loops or operators on whole vectors",
            )
            raise TooLong

    def define(self, stem: str, value: Value, *, kept: bool = False) -> Value:
        """Adds an assignment; returns the reference to it.

        `kept` names belong to the program and keep their name, if this is their last
        assignment; all others become temporaries.
        """
        self.definitions.append(Definition(stem, kept, value))
        reference = Variable(f"#{len(self.definitions) - 1}")
        return Value(reference, value.size, value.boolean, value.static)

    def bind(self, stem: str, value: Value) -> Value:
        """The value itself if it may be repeated, else a temporary that holds it."""
        return value if value.atomic else self.define(stem, value)

    def finish(
        self,
        heads: Sequence[Head],
        implied: Sequence[Parameter],
        coupling: Sequence[Expression] = (),
    ) -> Structure:
        """The structure, its definitions under their final names."""
        names = self._final_names()
        latents = tuple(
            Latent(
                names[f"#{i}"],
                rename(definition.value.expression, names),
                definition.value.size,
                definition.value.boolean,
            )
            for i, definition in enumerate(self.definitions)
        )
        declared = [p for p in self.parameters.values() if p is not None]
        renamed = tuple(
            Head(h.action, h.family, tuple(rename(e, names) for e in h.arguments))
            for h in heads
        )
        coupled = tuple(rename(e, names) for e in coupling)
        return Structure((*declared, *implied), latents, renamed, coupled)

    def _final_names(self) -> dict[str, str]:
        last = {d.stem: i for i, d in enumerate(self.definitions) if d.kept}
        taken = {*last, *self.parameters, *self.constants, *self.helpers}
        taken |= {f"std_{action.name}" for action in self.schema.actions}
        counts: dict[str, int] = {}
        names: dict[str, str] = {}
        for i, definition in enumerate(self.definitions):
            if definition.kept and last[definition.stem] == i:
                names[f"#{i}"] = definition.stem
                continue
            stem = "_" + definition.stem.strip("_")
            name = stem
            while name == stem or name in taken:
                counts[stem] = counts.get(stem, 0) + 1
                name = f"{stem}_{counts[stem]}" if stem != "_" else f"_{counts[stem]}"
            names[f"#{i}"] = name
        return names


def first_assignments(node: ast.AST) -> dict[str, int]:
    """Name -> line of its first assignment, anywhere in a statement."""
    lines: dict[str, int] = {}
    for part in walk(node):
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
            lines[part.id] = min(lines.get(part.id, part.lineno), part.lineno)
    return lines


Handler = Callable[..., Value | None]


def rename(expression: Expression, names: Mapping[str, str]) -> Expression:
    """The expression with its variables renamed."""
    return with_leaves(
        expression,
        lambda leaf: Variable(names[leaf.name]) if isinstance(leaf, Variable) else leaf,
    )


def number(value: float) -> Value:
    """A constant."""
    return Value(Number(float(value)), static=float(value))


def field_value(schema: Schema, name: str) -> Value:
    """An observation field."""
    size = next(f.size for f in schema.observations if f.name == name)
    return Value(Observation(name), size)


def weight_value(name: str) -> Value:
    """A parameter."""
    return Value(Weight(name))
