"""What a policy carries from step to step: named values of the step before.

A policy with memory has `initial_memory()`, a dictionary of float32 scalars by latent;
its `apply` takes the memory as a third argument, and the latents that it returns hold
the next one. Policies without memory need neither and pay nothing.
"""

from typing import Any

import jax
import jax.numpy as jnp

Memory = dict[str, jax.Array]
"""Latent -> its value one step earlier, float32."""


def initial_memory(policy: Any) -> Memory:
    """The memory in an episode's first step; empty for a policy without one."""
    start = getattr(policy, "initial_memory", None)
    return {} if start is None else start()


def respond(policy: Any, variables: Any, obs: jax.Array, memory: Memory) -> Any:
    """(distribution, latents) for one observation `[O]`."""
    if not memory:
        return policy.apply(variables, obs)
    return policy.apply(variables, obs, memory)


def next_memory(memory: Memory, latents: dict[str, jax.Array]) -> Memory:
    """What the following step remembers of this one."""
    return {name: latents[name] for name in memory}


def along(policy: Any, variables: Any, observations: jax.Array) -> Any:
    """(distribution, latents) `[N, ...]` along the observations `[N, O]` of an episode.

    With memory it is a scan, each step given what the policy itself computed before.
    """
    memory = initial_memory(policy)
    if not memory:
        return jax.vmap(policy.apply, in_axes=(None, 0))(variables, observations)

    def step(memory: Memory, obs: jax.Array) -> tuple[Memory, Any]:
        distribution, latents = respond(policy, variables, obs, memory)
        return next_memory(memory, latents), (distribution, latents)

    return jax.lax.scan(step, memory, observations)[1]


def remembered(
    memory: Memory, latents: dict[str, Any], first: Any
) -> dict[str, jax.Array]:
    """The memory in each of N rows of a table.

    Args:
      memory: the initial memory.
      latents: name -> `[N]` logged values.
      first: `[N]` bool, rows that begin an episode.
    """
    return {
        name: jnp.where(
            jnp.asarray(first),
            start,
            jnp.roll(jnp.asarray(latents[name], jnp.float32), 1),
        )
        for name, start in memory.items()
    }
