"""The critic: a small tanh network that values observations."""

import itertools
from typing import NamedTuple

import jax
import jax.numpy as jnp

HIDDEN = (64, 64)


class Layer(NamedTuple):
    """A dense layer: kernel `[in, out]`, bias `[out]`."""

    kernel: jax.Array
    bias: jax.Array


Critic = tuple[Layer, ...]


def init_critic(key: jax.Array, observation_size: int) -> Critic:
    """Orthogonal weights; the last layer has gain 1, so first values are small."""
    widths = (observation_size, *HIDDEN, 1)
    keys = jax.random.split(key, len(widths) - 1)
    layers = []
    for subkey, (rows, columns) in zip(keys, itertools.pairwise(widths), strict=True):
        gain = 1.0 if columns == 1 else 2**0.5
        kernel = jax.nn.initializers.orthogonal(gain)(subkey, (rows, columns))
        layers.append(Layer(kernel, jnp.zeros(columns)))
    return tuple(layers)


def values(critic: Critic, obs: jax.Array) -> jax.Array:
    """The value `[...]` of observations `[..., O]`."""
    features = obs.reshape(-1, obs.shape[-1])
    for layer in critic[:-1]:
        features = jnp.tanh(features @ layer.kernel + layer.bias[None])
    last = critic[-1]
    return (features @ last.kernel + last.bias[None]).reshape(obs.shape[:-1])
