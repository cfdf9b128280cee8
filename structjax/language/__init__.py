"""The structure language: text in, frozen structures out; no JAX in front."""
