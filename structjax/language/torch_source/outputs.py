"""What `forward` returns: heads, coupling, and the entries of the info dictionary."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from structjax.language.structure import Call, Expression, Head, Number, Weight
from structjax.language.torch_source.machine import Machine
from structjax.language.torch_source.refusal import Refused
from structjax.language.torch_source.trace import Trace
from structjax.language.torch_source.values import FAULT, Tensor, kind, tensor
from structjax.schema import Schema


@dataclass(frozen=True)
class Entry:
    """An entry of the info dictionary: its key and its scalar or vector."""

    key: str
    elements: tuple[Expression, ...]
    vector: bool


@dataclass(frozen=True)
class Outputs:
    """What a module computes, before its names are chosen.

    Attributes:
      heads: one per action, in the schema's order.
      coupling: strictly lower triangle; empty for independent actions.
      entries: of the info dictionary, in its order.
    """

    heads: tuple[Head, ...]
    coupling: tuple[Expression, ...]
    entries: tuple[Entry, ...]


def spelling(schema: Schema) -> str:
    """What `forward` should return."""
    names = ", ".join(action.name for action in schema.actions)
    if schema.discrete:
        return f"return `logits, info` with one logit per choice of {names}"
    return f"return `mean, L, info`, mean [B, {len(schema.actions)}] for {names}"


def read_outputs(value: Any, machine: Machine) -> Outputs:
    """The outputs of a returned value.

    Raises:
      Refused: it is not a distribution of the task's actions.
    """
    schema = machine.trace.schema
    parts = list(value) if isinstance(value, tuple | list) else [value]
    info = parts.pop() if parts and isinstance(parts[-1], dict) else {}
    wanted = 1 if schema.discrete else 2
    if len(parts) != wanted or not all(
        p is FAULT or isinstance(p, Tensor) for p in parts
    ):
        given = ", ".join(map(kind, parts)) or "nothing"
        raise Refused("OUTPUT", f"forward returns {given}", spelling(schema))
    entries = tuple(_entries(info, machine))
    tensors = [part for part in parts if isinstance(part, Tensor)]
    if len(tensors) < wanted:
        return Outputs((), (), entries)
    if schema.discrete:
        return Outputs(_logits(tensors[0], schema), (), entries)
    means = _per_action(tensors[0], "mean", schema)
    stds, coupling = _spread(tensors[1], machine.trace)
    heads = tuple(
        Head(action.name, "normal", pair)
        for action, pair in zip(
            schema.actions, zip(means, stds, strict=True), strict=True
        )
    )
    return Outputs(heads, coupling, entries)


def _inner(value: Tensor) -> np.ndarray:
    """The elements without the batch axis.

    Raises:
      Refused: the batch axis is not the first.
    """
    if value.batch is None:
        return value.elements
    if value.batch != 0:
        hint = "keep the batch axis in front"
        raise Refused("OUTPUT", f"{value.text} is returned", hint)
    return np.asarray(value.elements[0], object)


def _per_action(value: Tensor, what: str, schema: Schema) -> list[Expression]:
    inner = _inner(value)
    count = len(schema.actions)
    if inner.shape != (count,) and not (count == 1 and inner.ndim == 0):
        names = ", ".join(action.name for action in schema.actions)
        text = f"the {what} is {value.text}; the task has {count} actions ({names})"
        raise Refused("OUTPUT", text, spelling(schema))
    return list(inner.reshape(-1))


def _logits(value: Tensor, schema: Schema) -> tuple[Head, ...]:
    action = schema.actions[0]
    choices = action.choices or ()
    inner = _inner(value)
    if inner.shape != (len(choices),):
        text = (
            f"the logits are {value.text}; `{action.name}` has {len(choices)} choices "
            f"({', '.join(choices)})"
        )
        raise Refused("OUTPUT", text, f"[B, {len(choices)}] is accepted")
    return (Head(action.name, "categorical", tuple(inner)),)


def _spread(
    value: Tensor, trace: Trace
) -> tuple[list[Expression], tuple[Expression, ...]]:
    """Standard deviations, and how the actions are coupled."""
    inner = _inner(value)
    count = len(trace.schema.actions)
    alone = value.ndim == 1 and value.batch == 0  # [B]: no axis for the actions
    if inner.shape in ((), (1,)) and not (alone and count > 1):
        return [inner.reshape(-1)[0]] * count, ()
    if inner.shape == (count,):
        return list(inner), ()
    if inner.shape != (count, count):
        hint = f"[B, {count}, {count}] (Cholesky) or [B, {count}] (std) is accepted"
        raise Refused("OUTPUT", f"the spread is {value.text}", hint)
    return _cholesky(inner, trace)


def _cholesky(
    matrix: np.ndarray, trace: Trace
) -> tuple[list[Expression], tuple[Expression, ...]]:
    zero = Number(0.0)
    count = len(matrix)
    for i in range(count):
        if matrix[i, i] == zero or any(
            matrix[i, j] != zero for j in range(i + 1, count)
        ):
            text = f"row {i} of the Cholesky factor is not lower triangular"
            hint = "its diagonal is positive and all above it are zeros: `torch.tril`"
            raise Refused("OUTPUT", text, hint)
    stds = [_row_length(trace, list(matrix[i, : i + 1])) for i in range(count)]
    below = [(i, j) for i in range(count) for j in range(i)]
    if all(matrix[place] == zero for place in below):
        return stds, ()
    return stds, tuple(
        zero if matrix[i, j] == zero else trace.apply("div", matrix[i, j], matrix[i, i])
        for i, j in below
    )


def _row_length(trace: Trace, row: Sequence[Expression]) -> Expression:
    """The std that a row of the Cholesky factor gives its action."""
    parts = [e for e in row if e != Number(0.0)]
    if len(parts) == 1:
        return parts[0]
    return trace.apply("norm", trace.define(Call("stack", tuple(parts))))


def _entries(info: dict[str, Any], machine: Machine) -> list[Entry]:
    entries = []
    for key, value in info.items():
        if value is FAULT:
            continue
        try:
            entries.append(_entry(key, value, machine))
        except Refused as refusal:
            refusal.message = f"info[{key!r}]: {refusal.message}"
            machine.note(refusal, machine.methods["forward"].node)
    return entries


def _entry(key: str, value: Any, machine: Machine) -> Entry:
    operand = tensor(value)
    inner = _inner(operand)
    inner = inner.reshape([n for n in inner.shape if n > 1])
    weights = all(isinstance(e, Weight) for e in inner.flat)
    if inner.ndim > 1 and not weights:
        hint = "log its columns one by one"
        raise Refused("INFO", f"a table {operand.text}", hint)
    if not key.startswith(("latent_", "weight_")):
        text = f"info entry {key!r} is logged as `latent_{key}`"
        machine.trace.warn("RENAMED", text, "keys begin with `latent_` or `weight_`")
    return Entry(key, tuple(inner.reshape(-1)), inner.ndim > 0)
