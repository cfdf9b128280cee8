"""Strict JAX settings for the whole suite."""

import jax

jax.config.update("jax_numpy_rank_promotion", "raise")
