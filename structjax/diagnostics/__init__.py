"""Diagnostics over the rollout table: generated ones run in the sandbox."""
