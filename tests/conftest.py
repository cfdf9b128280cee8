"""Strict JAX settings for the whole suite, and a bound on its memory."""

import gc
from pathlib import Path

import jax
import pytest

jax.config.update("jax_numpy_rank_promotion", "raise")

RESIDENT = Path("/proc/self/statm")
PAGES = 400_000  # of 4 kB: 1.6 GB


@pytest.fixture(autouse=True, scope="module")
def compiled_programs_are_dropped():
    """Thousands of compiled programs of earlier files would fill the memory."""
    yield
    if RESIDENT.exists() and int(RESIDENT.read_text().split()[1]) > PAGES:
        jax.clear_caches()
        gc.collect()
