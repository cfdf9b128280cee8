"""Action distributions: plain tuples of arrays, so they cross jit, vmap and scan."""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

LOG_TWO_PI = math.log(2 * math.pi)


class Normal(NamedTuple):
    """Independent normal actions.

    Attributes:
      mean: `[..., A]`.
      std: `[..., A]`, the same shape.
    """

    mean: jax.Array
    std: jax.Array

    def mode(self) -> jax.Array:
        """The mean, `[..., A]`."""
        return self.mean

    def sample(self, key: jax.Array) -> jax.Array:
        """One draw `[..., A]`, not clipped; consumes the key."""
        noise = jax.random.normal(key, self.mean.shape, self.mean.dtype)
        return self.mean + self.std * noise

    def log_prob(self, action: jax.Array) -> jax.Array:
        """Log-density `[...]` of the unclipped action `[..., A]`."""
        z = (action - self.mean) / self.std
        return jnp.sum(-0.5 * (z * z + LOG_TWO_PI) - jnp.log(self.std), axis=-1)

    def entropy(self) -> jax.Array:
        """Differential entropy `[...]` in nats."""
        return jnp.sum(0.5 * (1 + LOG_TWO_PI) + jnp.log(self.std), axis=-1)


class Categorical(NamedTuple):
    """One choice among K.

    Attributes:
      logits: `[..., K]`, unnormalised.
    """

    logits: jax.Array

    def mode(self) -> jax.Array:
        """The likeliest choice, int32 `[...]`; the first of equal ones."""
        return lax.argmax(self.logits, self.logits.ndim - 1, jnp.int32)

    def sample(self, key: jax.Array) -> jax.Array:
        """One draw, int32 `[...]`; consumes the key."""
        return jax.random.categorical(key, self.logits).astype(jnp.int32)

    def log_prob(self, action: jax.Array) -> jax.Array:
        """Log-probability `[...]` of the choice, an integer `[...]`."""
        chosen = jax.nn.one_hot(action, self.logits.shape[-1], dtype=jnp.bool_)
        log_p = jax.nn.log_softmax(self.logits)
        return jnp.sum(jnp.where(chosen, log_p, 0.0), axis=-1)

    def entropy(self) -> jax.Array:
        """Entropy `[...]` in nats."""
        log_p = jax.nn.log_softmax(self.logits)
        return -jnp.sum(jnp.exp(log_p) * log_p, axis=-1)
