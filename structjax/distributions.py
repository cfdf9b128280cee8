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

    def moments(self) -> dict[str, jax.Array]:
        """Mean and standard deviation of the action, `[..., A]` each."""
        return {"mean": self.mean, "std": self.std}

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


class CoupledNormal(NamedTuple):
    """Normal actions whose noises are correlated.

    With C the lower triangular matrix of unit diagonal and `coupling` below it, and z
    independent standard normals, action i is mean_i + std_i (C z)_i / |C_i|.

    Attributes:
      mean: `[..., A]`.
      std: `[..., A]`, the standard deviation of each action.
      coupling: `[..., A (A - 1) / 2]`, row by row.
    """

    mean: jax.Array
    std: jax.Array
    coupling: jax.Array

    def moments(self) -> dict[str, jax.Array]:
        """Mean and standard deviation of the action, `[..., A]` each."""
        return {"mean": self.mean, "std": self.std}

    def factor(self) -> list[list[jax.Array]]:
        """The Cholesky factor of the covariance: rows of `[...]`, the diagonal last."""
        rows, begin = [], 0
        for i in range(self.mean.shape[-1]):
            row = [self.coupling[..., begin + j] for j in range(i)]
            begin += i
            length = jnp.sqrt(1.0 + sum((c * c for c in row), jnp.zeros(())))
            scale = self.std[..., i] / length
            rows.append([*(scale * c for c in row), scale])
        return rows

    def mode(self) -> jax.Array:
        """The mean, `[..., A]`."""
        return self.mean

    def sample(self, key: jax.Array) -> jax.Array:
        """One draw `[..., A]`, not clipped; consumes the key."""
        z = jax.random.normal(key, self.mean.shape, self.mean.dtype)
        noise = [
            sum((c * z[..., j] for j, c in enumerate(row)), jnp.zeros(()))
            for row in self.factor()
        ]
        return self.mean + jnp.stack(noise, axis=-1)

    def log_prob(self, action: jax.Array) -> jax.Array:
        """Log-density `[...]` of the unclipped action `[..., A]`."""
        total = jnp.zeros(self.mean.shape[:-1])
        z: list[jax.Array] = []
        for i, (*below, diagonal) in enumerate(self.factor()):
            rest = action[..., i] - self.mean[..., i]
            for coefficient, earlier in zip(below, z, strict=True):
                rest = rest - coefficient * earlier
            z.append(rest / diagonal)
            total = total - 0.5 * (z[i] * z[i] + LOG_TWO_PI) - jnp.log(diagonal)
        return total

    def entropy(self) -> jax.Array:
        """Differential entropy `[...]` in nats."""
        logs = [0.5 * (1 + LOG_TWO_PI) + jnp.log(row[-1]) for row in self.factor()]
        return jnp.sum(jnp.stack(logs, axis=-1), axis=-1)


class Categorical(NamedTuple):
    """One choice among K.

    Attributes:
      logits: `[..., K]`, unnormalised.
    """

    logits: jax.Array

    def moments(self) -> dict[str, jax.Array]:
        """The logits, `[..., K]`."""
        return {"logits": self.logits}

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
