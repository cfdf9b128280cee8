"""Rules that judge a program by its text and schema alone. No JAX here."""
