"""Car Racing: Gymnasium's CarRacing-v3 in pure JAX, with named observations."""
