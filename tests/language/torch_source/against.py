"""Runs a fixture in PyTorch and its Structure in JAX, on the same numbers."""

import jax
import jax.numpy as jnp
import numpy as np

from structjax.language.structure import Structure
from structjax.language.torch_source.inputs import named
from structjax.lowering import Scope, define, evaluate, fields
from structjax.schema import Schema


def cholesky(stds, coupling, count):
    """L from marginal stds [A] and the strict lower triangle of a unit C."""
    matrix = jnp.eye(count)
    below = [(i, j) for i in range(count) for j in range(i)]
    for (i, j), value in zip(below, coupling, strict=bool(coupling)):
        matrix = matrix.at[i, j].set(value)
    lengths = jnp.sqrt(jnp.sum(matrix**2, axis=1))
    return matrix * (stds / lengths)[:, None]


def compute(structure: Structure, schema: Schema, weights, obs):
    """Outputs (mean and L, or logits) and latents of one observation."""
    scope = Scope(fields(schema, obs), weights, {})
    define(structure, scope)
    latents = {
        v.name: jnp.asarray(scope.variables[v.name], jnp.float32)
        for v in structure.latents
        if v.logged
    }
    columns = [
        jnp.stack([jnp.asarray(evaluate(a, scope), jnp.float32) for a in arguments])
        for arguments in zip(*(h.arguments for h in structure.heads), strict=True)
    ]
    if schema.discrete:
        return {"logits": jnp.concatenate(columns)}, latents
    coupling = [evaluate(e, scope) for e in structure.coupling]
    mean, std = columns
    return {"mean": mean, "L": cholesky(std, coupling, len(mean))}, latents


def runner(structure: Structure, schema: Schema):
    """(weights, observations `[N, O]`, cotangents) -> values, derivatives by weight.

    The values are outputs and latents; the derivatives those of the sum of values
    times cotangents, of the values that have one.
    """

    def loss(weights, obs, cotangents):
        results = jax.vmap(lambda o: compute(structure, schema, weights, o))(obs)
        flat = {**results[0], **results[1]}
        return sum(jnp.sum(flat[k] * c) for k, c in cotangents.items()), flat

    run = jax.jit(jax.value_and_grad(loss, has_aux=True))

    def call(values, obs, cotangents):
        weights = {k: jnp.float32(v) for k, v in values.items()}
        (_, flat), found = run(weights, jnp.asarray(obs), cotangents)
        return jax.tree.map(np.asarray, flat), {k: float(v) for k, v in found.items()}

    return call


def split(schema: Schema, names, obs):
    """The flat batch as the inputs of `forward`, by the documented rule, in NumPy."""
    inputs, taken = {}, set()
    for name in names:
        found = named(schema, name)
        if not found:
            continue
        taken |= {f.name for f in found}
        parts = [obs[:, schema.slice_of(f.name)] for f in found]
        if len(found) > 1:
            inputs[name] = np.stack(parts, -1)
        else:
            inputs[name] = parts[0] if found[0].size else parts[0][:, 0]
    for name in names:
        if name not in inputs:
            rest = [f for f in schema.observations if f.name not in taken]
            inputs[name] = np.concatenate(
                [obs[:, schema.slice_of(f.name)] for f in rest], 1
            )
    return [inputs[name] for name in names]
