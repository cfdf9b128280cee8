"""Our trainer with many seeds: vmapped on one device, and sharded over several."""

import os
import resource
from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import Any

import jax
import numpy as np

from peers.arm import Job, timed

LEARNED = ("weights", "first", "last")


def seeds_rows(job: Job, counts: list[int], kind: str) -> Iterator[dict[str, Any]]:
    """One process per number of vmapped seeds: steps per second and memory."""
    from peers.pairs import child

    for count in counts:
        request = {"kind": kind, "job": asdict(replace(job, seeds=count))}
        yield {"row": "seeds", "arm": kind, **child("seeds", request, {})}


def devices_rows(
    job: Job, counts: list[int], kind: str, mapping: str
) -> Iterator[dict[str, Any]]:
    """One process per number of forced host devices, the seeds spread over them.

    Each is compared with one device: bit by bit, and the training returns of the first
    update, which show rounding alone, and of the last, after learning from it. All have
    as many threads, by which XLA cuts its loops.
    """
    from peers.pairs import child

    reference: dict[str, np.ndarray] = {}
    threads = str(max(*counts, os.cpu_count() or 1))
    for count in counts:
        flags = f"--xla_force_host_platform_device_count={count}"
        environment = {
            "XLA_FLAGS": f"{os.environ.get('XLA_FLAGS', '')} {flags}",
            "NPROC": threads,
        }
        request = {"kind": kind, "job": asdict(job), "mapping": mapping}
        row = child("devices", request, environment)
        learned = {name: np.asarray(row.pop(name)) for name in LEARNED}
        reference = reference or learned
        apart = {name: np.abs(learned[name] - reference[name]) for name in LEARNED}
        yield {
            "row": "devices",
            "arm": kind,
            "mapping": mapping,
            **row,
            "same_bits": not any(x.any() for x in apart.values()),
            "first_update_apart": float(apart["first"].max()),
            "last_update_apart": float(apart["last"].max()),
            "last_update_mean": float(learned["last"].mean()),
        }


def run_seeds(request: dict[str, Any]) -> dict[str, Any]:
    """In this process: three timed runs of all seeds on one device."""
    trainer, temp_bytes = _trainer(request)
    runs = [timed(lambda: trainer.train(1)) for _ in range(3)]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    memory = None if temp_bytes is None else temp_bytes / 1e6
    return {**_figures(trainer, runs), "temp_mb": memory, "peak_mb": peak / 1e3}


def run_devices(request: dict[str, Any]) -> dict[str, Any]:
    """In this process: all seeds spread over all devices, and what they learned."""
    trainer, _ = _trainer(request)
    runs = [timed(lambda: trainer.train(1)) for _ in range(3)]
    states, metrics = runs[-1].value
    leaves = jax.tree.leaves(jax.vmap(trainer.recipe.algorithm.variables)(states))
    returns = np.asarray(metrics["return"], float)
    return {
        **_figures(trainer, runs),
        "devices": jax.device_count(),
        "devices_that_hold_the_result": len(leaves[0].sharding.device_set),
        "weights": [float(x) for leaf in leaves for x in np.asarray(leaf).ravel()],
        "first": returns[0].tolist(),
        "last": returns[-1].tolist(),
    }


def _trainer(request: dict[str, Any]) -> tuple[Any, int | None]:
    """Our trainer, compiled and warm, and XLA's temporary memory."""
    from peers.structjax_arms import Trainer

    job = Job(**request["job"])
    trainer = Trainer(request["kind"], job, request.get("mapping", "vmap"))
    return trainer, trainer.compile()


def _figures(trainer: Any, runs: list[Any]) -> dict[str, Any]:
    return {
        "seeds": trainer.job.seeds,
        "env_steps": trainer.env_steps,
        "wall_s": [run.wall_s for run in runs],
        "cpu_s": [run.cpu_s for run in runs],
        "load": os.getloadavg()[0],
    }
