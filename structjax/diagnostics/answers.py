"""Asks a policy about rows of a table: its outputs there, and their derivatives."""

from functools import partial
from operator import itemgetter
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from structjax.memory import Memory, respond

# Rows are evaluated in blocks of one size, so that a table of any length reuses the
# compiled program.
BLOCK = 1024


class Answers(NamedTuple):
    """`latents`: name -> `[N]` or `[N, n]`; `outputs`: `[N, D]`.

    D are the means, then the stds; or the logits.
    """

    latents: dict[str, Any]
    outputs: Any


class Slopes(NamedTuple):
    """Derivatives of the D outputs at S rows.

    Attributes:
      weights: parameter name -> `[S, D]`, in the unconstrained space; empty for a
        policy whose parameters are not named scalars.
      obs: `[S, D, O]`.
    """

    weights: dict[str, Any]
    obs: Any


def evaluate(
    policy: Any, variables: Any, obs: np.ndarray, memory: Memory | None = None
) -> Answers:
    """What the policy answers to the observations `[N, O]` with memories `[N]`."""
    return _in_blocks(partial(_forward, policy, variables), obs, memory or {})


def differentiate(
    policy: Any, variables: Any, obs: np.ndarray, memory: Memory | None = None
) -> Slopes:
    """How the policy's outputs change around observations `[S, O]`, memories kept."""
    return _in_blocks(partial(_slopes, policy, variables), obs, memory or {})


def spread_rows(count: int, limit: int = BLOCK) -> np.ndarray:
    """At most `limit` row numbers, evenly spread over `count` rows."""
    return np.unique(np.linspace(0, count - 1, min(count, limit)).round().astype(int))


def _in_blocks(function: Any, obs: np.ndarray, memory: Memory) -> Any:
    """Applies a function of `[BLOCK, ...]` to `[N, ...]`, padding the last block."""
    count = len(obs)

    def blocks(values: Any) -> np.ndarray:
        values = np.asarray(values)
        padding = np.zeros((-count % BLOCK, *values.shape[1:]), values.dtype)
        return np.concatenate([values, padding]).reshape(-1, BLOCK, *values.shape[1:])

    cut = jax.tree.map(blocks, (obs, memory))
    parts = [
        jax.tree.map(np.asarray, function(*jax.tree.map(itemgetter(i), cut)))
        for i in range(len(cut[0]))
    ]
    return jax.tree.map(lambda *xs: np.concatenate(xs)[:count], *parts)


def _outputs(
    policy: Any, variables: Any, obs: jax.Array, memory: Memory
) -> tuple[dict, jax.Array]:
    distribution, latents = respond(policy, variables, obs, memory)
    return latents, jnp.concatenate(list(distribution.moments().values()), axis=-1)


@partial(jax.jit, static_argnums=0)
def _forward(policy: Any, variables: Any, obs: jax.Array, memory: Memory) -> Answers:
    outputs = partial(_outputs, policy, variables)
    return Answers(*jax.vmap(outputs)(obs, memory))


@partial(jax.jit, static_argnums=0)
def _slopes(policy: Any, variables: Any, obs: jax.Array, memory: Memory) -> Slopes:
    named = {k: v for k, v in variables["params"].items() if jnp.ndim(v) == 0}

    def outputs(
        scalars: dict[str, jax.Array], obs: jax.Array, memory: Memory
    ) -> jax.Array:
        params = {**variables["params"], **scalars}
        return _outputs(policy, {**variables, "params": params}, obs, memory)[1]

    derivative = jax.vmap(jax.jacrev(outputs, (0, 1)), (None, 0, 0))
    weights, slopes = derivative(named, obs, memory)
    return Slopes(weights, slopes)
