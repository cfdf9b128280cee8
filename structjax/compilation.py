"""The persistent compile cache, and how long compiling took."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import jax

_COMPILE_EVENTS = (
    "/jax/core/compile/jaxpr_trace_duration",
    "/jax/core/compile/jaxpr_to_mlir_module_duration",
    "/jax/core/compile/backend_compile_duration",
)


def cache_directory() -> Path:
    """`$STRUCTJAX_CACHE`, or `structjax` below the user's cache directory."""
    if explicit := os.environ.get("STRUCTJAX_CACHE"):
        return Path(explicit)
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "structjax"


def enable_compile_cache() -> None:
    """Keeps compiled programs on disk, so that a second run starts warm.

    A cache that cannot be written only costs time.
    """
    jax.config.update("jax_compilation_cache_dir", str(cache_directory() / "xla"))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.2)
    jax.config.update("jax_raise_persistent_cache_errors", False)


@dataclass
class CompileClock:
    """Seconds spent tracing, lowering and compiling (or reading the cache)."""

    seconds: float = 0.0


@contextmanager
def compile_clock() -> Iterator[CompileClock]:
    """Measures compile seconds inside the block."""
    clock = CompileClock()

    def listen(event: str, duration_secs: float, **_: str | int) -> None:
        if event in _COMPILE_EVENTS:
            clock.seconds += duration_secs

    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        yield clock
    finally:
        jax.monitoring.unregister_event_duration_listener(listen)
