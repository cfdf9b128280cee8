"""Quick compiling: these programs run for milliseconds."""

import jax
import pytest


@pytest.fixture(autouse=True, scope="module")
def compiled_without_optimising():
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", False)
