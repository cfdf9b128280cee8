"""What the arguments of `forward` are, by the fields of the observation.

An input named like a group `g` is `[B, n, k]`: its k fields, in the schema's order, are
the last axis. An input named like a field (`tiles.x` is `tiles_x`) is `[B]` for a
scalar, `[B, n]` for a vector. At most one further input, of any name, is `[B, m]`: the
columns of all fields that no other input takes, in the schema's order; a single input
is thus the whole flat observation.
"""

import ast
from collections.abc import Sequence

import numpy as np

from structjax.language.structure import Expression, Index, Observation
from structjax.language.torch_source.machine import Machine
from structjax.language.torch_source.values import Tensor, array
from structjax.schema import Field, Schema


def read_inputs(forward: ast.FunctionDef, machine: Machine) -> dict[str, Tensor]:
    """Argument -> tensor; problems are noted."""
    schema = machine.trace.schema
    arguments = [*forward.args.posonlyargs, *forward.args.args][1:]
    required = len(arguments) - len(forward.args.defaults)
    names = [a.arg for a in arguments[: max(required, 1)]]
    if forward.args.vararg or forward.args.kwarg or not arguments:
        problem = f"`forward({ast.unparse(forward.args)})` names no inputs"
        machine.trace.problems.error(
            "SIGNATURE", forward.lineno, problem, accepted(schema)
        )
        return {}
    by_name = {name: found for name in names if (found := named(schema, name))}
    rest = [name for name in names if name not in by_name]
    if len(rest) > 1:
        text = f"inputs {', '.join(f'`{name}`' for name in rest)} are no fields"
        machine.trace.problems.error("INPUT", forward.lineno, text, accepted(schema))
        return {}
    inputs = {name: _tensor(name, fields, schema) for name, fields in by_name.items()}
    taken = {field.name for fields in by_name.values() for field in fields}
    left = [f for f in schema.observations if f.name not in taken]
    if rest and not left:
        text = f"nothing is left for the input `{rest[0]}`"
        machine.trace.problems.error("INPUT", forward.lineno, text, accepted(schema))
        return {}
    for name in rest:
        columns = [e for field in left for e in _columns(field)]
        inputs[name] = Tensor(array(columns, [1, len(columns)]), 0)
    return inputs


def named(schema: Schema, name: str) -> list[Field]:
    """The fields of a group, or the one field, that an input is named after."""
    group = [f for f in schema.observations if f.name.startswith(f"{name}.")]
    exact = [f for f in schema.observations if f.name.replace(".", "_") == name]
    return exact or group


def _columns(field: Field) -> list[Expression]:
    whole = Observation(field.name)
    if field.size is None:
        return [whole]
    return [Index(whole, i) for i in range(field.size)]


def _tensor(name: str, fields: Sequence[Field], schema: Schema) -> Tensor:
    columns = [array(_columns(field), [field.width]) for field in fields]
    if "." in fields[0].name and fields[0].name.replace(".", "_") != name:
        elements = np.stack(columns, -1)
        if all(field.size is None for field in fields):
            elements = elements[0]
        return Tensor(elements[None], 0)
    if fields[0].size is None:
        return Tensor(columns[0], 0)
    return Tensor(columns[0][None], 0)


def accepted(schema: Schema) -> str:
    """The inputs that a task offers."""
    groups = dict.fromkeys(
        f.name.partition(".")[0] for f in schema.observations if "." in f.name
    )
    parts = [f"`{g}` {shape_text(schema, g)}" for g in groups]
    parts += [
        f"`{f.name}` {shape_text(schema, f.name)}"
        for f in schema.observations
        if "." not in f.name
    ]
    return (
        f"accepted by name: {', '.join(parts)}; one further input takes the columns of "
        "all other fields"
    )


def shape_text(schema: Schema, name: str) -> str:
    """The shape of an input that is named after a group or field."""
    return _tensor(name, named(schema, name), schema).text


def contents(inputs: dict[str, Tensor]) -> str:
    """What each input holds along its last axis, for messages."""
    return "; ".join(
        f"`{name}` {tensor.text}"
        + (f": {_columns_text(tensor)}" if tensor.ndim > 1 else "")
        for name, tensor in inputs.items()
    )


def _field_name(expression: Expression) -> str:
    whole = expression.vector if isinstance(expression, Index) else expression
    return whole.field if isinstance(whole, Observation) else ""


def _columns_text(tensor: Tensor) -> str:
    """`0-2 tiles.x, 3 speed`."""
    last = tensor.elements.reshape(-1, tensor.elements.shape[-1])[0]
    fields = [_field_name(e) for e in last]
    parts = []
    for field in dict.fromkeys(fields):
        first, count = fields.index(field), fields.count(field)
        place = f"{first}-{first + count - 1}" if count > 1 else str(first)
        parts.append(f"{place} {field}")
    return ", ".join(parts)
