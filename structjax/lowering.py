"""The values of a structure's definitions, in JAX, for one observation.

Each definition becomes the operations of its expression; long repetitions (the turns of
a loop) become one `lax.scan`.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import repeat
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from structjax.errors import StructjaxError
from structjax.language.functions import FUNCTIONS
from structjax.language.structure import (
    Call,
    Expression,
    Index,
    Latent,
    Number,
    Observation,
    Previous,
    Slice,
    Structure,
    Variable,
    Weight,
)
from structjax.language.turns import Pick, Turns, column_name, fold
from structjax.language.usage import leaves, outputs
from structjax.schema import Schema


class Scope(NamedTuple):
    """What the names of an expression stand for."""

    fields: dict[str, jax.Array]
    weights: Mapping[str, jax.Array]
    variables: dict[str, jax.Array]
    memory: Mapping[str, jax.Array] = {}


def evaluate(expression: Expression, scope: Scope) -> Any:
    """The value of an expression; a number stays a NumPy scalar, so a literal."""
    match expression:
        case Number(value):
            return np.float32(value)
        case Observation(field):
            return _observed(field, scope)
        case Weight(name):
            return scope.weights[name]
        case Variable(name):
            return scope.variables[name]
        case Previous(latent):
            return scope.memory[latent]
        case Pick(vector, column):
            position = scope.variables[column_name(column)]
            elements = evaluate(vector, scope)
            return lax.dynamic_index_in_dim(elements, position, keepdims=False)
        case Index(vector, position):
            elements = evaluate(vector, scope)
            return lax.index_in_dim(elements, position, keepdims=False)
        case Slice(vector, start, stop):
            return lax.slice_in_dim(evaluate(vector, scope), start, stop)
        case Call(operator, arguments):
            # map, not a comprehension: one Python frame per level of nesting
            return FUNCTIONS[operator](*map(evaluate, arguments, repeat(scope)))


def fields(schema: Schema, obs: jax.Array) -> dict[str, jax.Array]:
    """The cleaned observation `[O]` as named scalars `()` and vectors `[n]`."""
    clean = FUNCTIONS["nan_clean"](obs)
    parts = lax.split(clean, [field.width for field in schema.observations])
    return {
        field.name: lax.reshape(part, ()) if field.size is None else part
        for field, part in zip(schema.observations, parts, strict=True)
    }


def _observed(field: str, scope: Scope) -> jax.Array:
    if field not in scope.fields:
        raise StructjaxError(
            f"the program reads the observation {field!r}",
            kind="schema",
            hint=f"the task has {', '.join(scope.fields)}",
        )
    return scope.fields[field]


def define(structure: Structure, scope: Scope) -> None:
    """Adds the values of all definitions to the scope, those inside loops if used."""
    parts = fold(structure.latents)
    used = _used_outside(structure, parts)
    for part in parts:
        if isinstance(part, Turns):
            _take_turns(part, scope, used)
        else:
            scope.variables[part.name] = evaluate(part.expression, scope)


def _used_outside(structure: Structure, parts: Sequence[Latent | Turns]) -> set[str]:
    """Names that something other than the turns of their own loop needs."""
    used = {latent.name for latent in structure.latents if latent.logged}
    used |= _variables(outputs(structure))
    for part in parts:
        if isinstance(part, Latent):
            used |= _variables([part.expression])
            continue
        own = {latent.name for latent in part.template}
        used |= _variables(latent.expression for latent in part.template) - own
        used |= {name for history in part.histories for name in history.before}
    return used


def _variables(expressions: Iterable[Expression]) -> set[str]:
    found = (leaf for expression in expressions for leaf in leaves(expression))
    return {leaf.name for leaf in found if isinstance(leaf, Variable)}


def _take_turns(turns: Turns, scope: Scope, used: set[str]) -> None:
    """Runs a loop; adds those of its values that are used afterwards."""
    slots = [
        slot
        for slot, names in enumerate(zip(*turns.names, strict=True))
        if used.intersection(names)
    ]

    start = [
        [_typed(scope.variables[name], turns.template[slot]) for name in before]
        for slot, before in turns.histories
    ]
    columns = [_column(values) for values in turns.columns]

    def turn(carry: Any, columns: Any) -> tuple[Any, Any]:
        made = _one_turn(turns, carry, columns, scope)
        histories = zip(turns.histories, carry, strict=True)
        later = [[made[slot], *values[:-1]] for (slot, _), values in histories]
        return later, [made[slot] for slot in slots]

    _, made = lax.scan(turn, start, columns, length=len(turns.names))
    for slot, values in zip(slots, made, strict=True):
        for i, names in enumerate(turns.names):
            if names[slot] in used:
                value = lax.index_in_dim(values, i, keepdims=False)
                scope.variables[names[slot]] = value


def _one_turn(
    turns: Turns,
    carry: Sequence[Sequence[jax.Array]],
    columns: Sequence[jax.Array],
    scope: Scope,
) -> list[jax.Array]:
    """The values of one turn's definitions."""
    variables = dict(scope.variables)
    variables |= {column_name(i): column for i, column in enumerate(columns)}
    for history, values in zip(turns.histories, carry, strict=True):
        variables |= zip(history.before, values, strict=True)
    inner = scope._replace(variables=variables)
    for latent in turns.template:
        value = evaluate(latent.expression, inner)
        variables[latent.name] = _typed(value, latent)
    return [variables[latent.name] for latent in turns.template]


def _typed(value: Any, latent: Latent) -> jax.Array:
    """The value in the type that the definition always has."""
    return jnp.asarray(value, jnp.bool_ if latent.boolean else jnp.float32)


def _column(values: tuple[float, ...]) -> np.ndarray:
    """What changes from turn to turn `[R]`: positions, or numbers."""
    whole = all(isinstance(value, int) for value in values)
    return np.asarray(values, np.int32 if whole else np.float32)
