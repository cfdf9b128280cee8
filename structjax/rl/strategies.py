"""evosax's evolution strategies behind three functions: begin, ask, tell.

They minimise, by rank alone: a cost is as good as its place in its generation.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any, Literal

import jax
import jax.numpy as jnp
import optax
from jax import lax

Strategy = Literal["open_es", "pgpe", "snes", "sep_cma_es", "cma_es"]
MIRRORED = ("open_es", "pgpe")
"""Strategies that draw members in pairs around the mean, and step with Adam."""


@cache
def make_strategy(name: Strategy, population: int, size: int) -> Any:
    """A strategy for points `[size]`; the rate of its own step is 1."""
    # Imported here: only those who evolve wait for it.
    from evosax.algorithms import CMA_ES, PGPE, SNES, Open_ES, Sep_CMA_ES

    classes: Mapping[str, Any] = {
        "open_es": Open_ES,
        "pgpe": PGPE,
        "snes": SNES,
        "sep_cma_es": Sep_CMA_ES,
        "cma_es": CMA_ES,
    }
    options = {"optimizer": optax.adam(1.0)} if name in MIRRORED else {}
    # A strategy holds arrays and outlives the trace that it is first made in.
    with jax.ensure_compile_time_eval():
        return classes[name](population, jnp.zeros(size), **options)


def begin_search(strategy: Any) -> Any:
    """The state with `mean` 0 `[D]` and `std` 1, `[]` or `[D]`."""
    zero = jnp.zeros(strategy.num_dims)
    # Nothing is drawn for a search that begins at a given mean.
    state = strategy.init(jax.random.key(0), zero, strategy.default_params)
    return jax.tree.map(_strong, state)


def ask(strategy: Any, key: jax.Array, state: Any) -> tuple[jax.Array, Any]:
    """The members of a generation, `[P, D]`, and the state to tell."""
    with jax.numpy_rank_promotion("allow"):  # evosax adds `[D]` to `[P, D]`
        members, state = strategy.ask(key, state, strategy.default_params)
    return members, state


def tell(
    strategy: Any, members: jax.Array, costs: jax.Array, state: Any, rate: jax.Array
) -> Any:
    """The state after a generation with costs `[P]`, infinite ones for broken members.

    Its mean takes `rate` times the strategy's step; with no finite cost nothing moves.
    """
    with jax.numpy_rank_promotion("allow"):
        # The key is asked for, and none of these strategies uses it.
        told, _ = strategy.tell(
            jax.random.key(0), members, costs, state, strategy.default_params
        )
    told = told.replace(mean=state.mean + rate * (told.mean - state.mean))
    useful = jnp.isfinite(costs).any()
    return jax.tree.map(
        lambda new, old: _strong(jnp.where(useful, new, old)), told, state
    )


def _strong(leaf: Any) -> jax.Array:
    """The array without JAX's weak type, which would compile a scan's caller twice."""
    array = jnp.asarray(leaf)
    return lax.convert_element_type(array, array.dtype)
