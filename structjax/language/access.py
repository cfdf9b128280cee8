"""Lowers dots and brackets: observation fields, elements and slices."""

import ast

from structjax.language.expressions import field_list, lower_constant
from structjax.language.operators import CALLS, PREFIXES
from structjax.language.scope import (
    Handler,
    Lowering,
    Scope,
    Value,
    field_value,
    number,
)
from structjax.language.structure import Index, Slice
from structjax.language.syntax import excerpt


def dotted(node: ast.expr) -> tuple[str, ...]:
    """`("obs", "tiles", "x")` for `obs.tiles.x`; empty for anything else."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return (node.id, *reversed(parts)) if isinstance(node, ast.Name) else ()


def lower_attribute(node: ast.Attribute, scope: Scope, state: Lowering) -> Value | None:
    """An observation field; every other dot is an error."""
    root, *path = dotted(node) or ("",)
    if root == "obs" and "obs" not in scope.names:
        return _field(".".join(path), node, scope, state)
    if root in PREFIXES and path[-1] == "pi":
        return number(3.141592653589793)
    hint = "only observation fields are read by a dot: `obs.name`"
    if path and path[-1] in CALLS:
        hint = f"write `{path[-1]}(...)`"
    state.error("ATTR", node, f"`{excerpt(node)}` is not accepted", hint)
    return None


def _field(name: str, node: ast.AST, scope: Scope, state: Lowering) -> Value | None:
    names = [f.name for f in state.schema.observations]
    if scope.function:
        text = f"helper `{scope.function}` reads `obs.{name}`"
        state.error("FIELD", node, text, "pass it to the helper as an argument")
        return None
    if name in names:
        return field_value(state.schema, name)
    members = [f"obs.{n}" for n in names if n.startswith(f"{name}.")]
    parent = name.rpartition(".")[0]
    if members:
        text = f"`obs.{name}` is a group of fields"
        state.error("FIELD", node, text, f"its members are {', '.join(members)}")
    elif parent in names:
        text = f"`obs.{parent}` has no `.{name.rpartition('.')[2]}`"
        state.error("ATTR", node, text, _shape_hint(field_value(state.schema, parent)))
    else:
        guess = state.guess(name, names).replace("`", "`obs.", 1)
        hint = f"the fields are {field_list(state)}"
        text = f"`obs.{name}` is not an observation field"
        state.error("FIELD", node, text, f"{guess} {hint}" if guess else hint)
    return None


def _shape_hint(value: Value) -> str:
    if value.size is None:
        return "it is a single number"
    return f"it is a vector; its elements are `[0]` to `[{value.size - 1}]`"


def lower_subscript(node: ast.Subscript, scope: Scope, state: Lowering) -> Value | None:
    """One element or a slice of a vector, static and in range."""
    root, *path = dotted(node.value) or ("",)
    whole = ".".join(path)
    names = [f.name for f in state.schema.observations]
    if root == "obs" and "obs" not in scope.names and whole not in names:
        _whole_observation(node, whole, names, state)
        return None
    vector = state.lower(node.value, scope)
    if vector is None:
        return None
    if vector.size is None:
        text = f"`{excerpt(node.value)}` is a single number"
        state.error("SHAPE", node, text, "use it without an index")
        return None
    if isinstance(node.slice, ast.Slice):
        return _slice(node, node.slice, vector, scope, state)
    position = _static(node.slice, node, scope, state)
    if position is None:
        return None
    if not -vector.size <= position < vector.size:
        _out_of_range(node, vector.size, state)
        return None
    expression = Index(vector.expression, position % vector.size)
    return Value(expression, None, vector.boolean, None, vector.depth + 1)


def _whole_observation(
    node: ast.Subscript, whole: str, names: list[str], state: Lowering
) -> None:
    members = [f"obs.{n}" for n in names if not whole or n.startswith(f"{whole}.")]
    hint = f"fields are read by name: {', '.join(members)}"
    if not members:
        hint = f"the fields are {field_list(state)}"
    elif isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str):
        name = f"obs.{whole}.{node.slice.value}" if whole else f"obs.{node.slice.value}"
        guess = name if name in members else ""
        hint = f"write `{guess}`" if guess else hint
    state.error("FIELD", node, f"`{excerpt(node)}` is not accepted", hint)


def _slice(
    node: ast.Subscript,
    bounds: ast.Slice,
    vector: Value,
    scope: Scope,
    state: Lowering,
) -> Value | None:
    size = vector.size or 0
    if bounds.step is not None:
        text = f"`{excerpt(node)}` has a step"
        state.error("INDEX", node, text, "slices are `v[a:b]`; join them by concat")
        return None
    start = _static(bounds.lower, node, scope, state) if bounds.lower else 0
    stop = _static(bounds.upper, node, scope, state) if bounds.upper else size
    if start is None or stop is None:
        return None
    if not (-size <= start <= size and -size <= stop <= size):
        _out_of_range(node, size, state)
        return None
    start, stop = (b + size if b < 0 else b for b in (start, stop))
    if start >= stop:
        text = f"`{excerpt(node)}` is empty"
        state.error("INDEX", node, text, f"a slice of 0:{size} has an element")
        return None
    expression = Slice(vector.expression, start, stop)
    return Value(expression, stop - start, vector.boolean, None, vector.depth + 1)


def _static(
    index: ast.expr, node: ast.Subscript, scope: Scope, state: Lowering
) -> int | None:
    """A whole number known before any observation."""
    if isinstance(index, ast.Constant) and isinstance(index.value, str):
        text = f"`{excerpt(node)}` is indexed by a text"
        state.error("INDEX", node, text, "elements are numbered from 0")
        return None
    if index in state.refused:
        return None
    before = state.problems.count
    static = lower_constant(index, scope, state)
    if static is not None and static == int(static):
        return int(static)
    if state.problems.count == before:
        text = f"index `{excerpt(index)}` of `{excerpt(node)}` is not a whole constant"
        hint = "constants, loop variables and their sums and products are accepted"
        state.error("INDEX", node, text, hint)
    return None


def _out_of_range(node: ast.Subscript, size: int, state: Lowering) -> None:
    name = excerpt(node.value)
    state.error(
        "INDEX",
        node,
        f"`{excerpt(node)}` is out of range",
        f"`{name}` has {size} elements, 0 to {size - 1} (or -{size} to -1)",
    )


#: Handlers of the node types of this file.
ACCESS: dict[type, Handler] = {
    ast.Attribute: lower_attribute,
    ast.Subscript: lower_subscript,
}
