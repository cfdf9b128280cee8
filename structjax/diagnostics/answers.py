"""Asks a policy about rows of a table: its outputs there, and their derivatives."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

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


def evaluate(policy: Any, variables: Any, obs: np.ndarray) -> Answers:
    """What the policy answers to the observations `[N, O]`."""
    return _in_blocks(partial(_forward, policy, variables), obs)


def differentiate(policy: Any, variables: Any, obs: np.ndarray) -> Slopes:
    """How the policy's outputs change around the observations `[S, O]`."""
    return _in_blocks(partial(_slopes, policy, variables), obs)


def spread_rows(count: int, limit: int = BLOCK) -> np.ndarray:
    """At most `limit` row numbers, evenly spread over `count` rows."""
    return np.unique(np.linspace(0, count - 1, min(count, limit)).round().astype(int))


def _in_blocks(function: Any, obs: np.ndarray) -> Any:
    """Applies `[BLOCK, O]` -> pytree to `[N, O]`, padding the last block."""
    padding = -len(obs) % BLOCK
    padded = np.concatenate([obs, np.zeros((padding, obs.shape[1]), obs.dtype)])
    blocks = padded.reshape(-1, BLOCK, obs.shape[1])
    parts = [jax.tree.map(np.asarray, function(block)) for block in blocks]
    return jax.tree.map(lambda *xs: np.concatenate(xs)[: len(obs)], *parts)


def _outputs(policy: Any, variables: Any, obs: jax.Array) -> tuple[dict, jax.Array]:
    distribution, latents = policy.apply(variables, obs)
    return latents, jnp.concatenate([jnp.atleast_1d(x) for x in distribution])


@partial(jax.jit, static_argnums=0)
def _forward(policy: Any, variables: Any, obs: jax.Array) -> Answers:
    latents, outputs = jax.vmap(lambda o: _outputs(policy, variables, o))(obs)
    return Answers(latents, outputs)


@partial(jax.jit, static_argnums=0)
def _slopes(policy: Any, variables: Any, obs: jax.Array) -> Slopes:
    named = {k: v for k, v in variables["params"].items() if jnp.ndim(v) == 0}

    def outputs(scalars: dict[str, jax.Array], obs: jax.Array) -> jax.Array:
        params = {**variables["params"], **scalars}
        return _outputs(policy, {**variables, "params": params}, obs)[1]

    weights, slopes = jax.vmap(lambda o: jax.jacrev(outputs, (0, 1))(named, o))(obs)
    return Slopes(weights, slopes)
