"""Door Opening: Meta-World's door-open-v3 with named observations, in JAX."""
