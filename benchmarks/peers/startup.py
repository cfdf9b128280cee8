"""From nothing to a trained policy: import, compile and run in a fresh process."""

import importlib
import os
import resource
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import Any

from peers.arm import Job

IMPORTS = {
    "rejax": ("gymnax", "rejax"),
    "purejaxrl": ("gymnax", "distrax", "brax.envs"),
    "brax": ("gymnax", "brax.envs"),
    "evosax": ("gymnax", "evosax"),
    "sb3": (),  # its worker imports, as a part of `prepare`
}
OURS = ("gymnax", "structjax.rl.trainer")


def startup_rows(arms: list[str], job: Job) -> Iterator[dict[str, Any]]:
    """A cold and two warm starts of every arm, each in a process of its own."""
    from peers.pairs import child

    for name in arms:
        with tempfile.TemporaryDirectory() as cache:
            environment = {
                "JAX_COMPILATION_CACHE_DIR": cache,
                "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
                "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
            }
            for state in ("cold", "warm", "warm"):
                request = {"arm": name, "job": asdict(job)}
                row = child("startup", request, environment)
                yield {"row": "startup", "arm": name, "state": state, **row}


def start(request: dict[str, Any]) -> dict[str, Any]:
    """Seconds of each stage in this process, and its peak memory."""
    began = time.perf_counter()
    name, job = request["arm"], Job(**request["job"])
    passes = 3 if name == "brax" else 1  # a run of it trains three times the steps
    for package in IMPORTS.get(name, OURS):
        importlib.import_module(package)
    imported = time.perf_counter()
    from peers.pairs import prepare

    arm = prepare(name, replace(job, steps=job.steps // passes))
    prepared = time.perf_counter()
    done = arm.run(1)
    ended = time.perf_counter()
    return {
        "import_s": imported - began,
        # brax compiles in every run
        "compile_s": ended - imported - done.wall_s * passes,
        "run_s": done.wall_s * passes,
        "prepare_s": prepared - imported,
        "total_s": ended - began,
        "env_steps": arm.env_steps * passes,
        "temp_mb": None if arm.temp_bytes is None else arm.temp_bytes / 1e6,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3,
        "load": os.getloadavg()[0],
    }
