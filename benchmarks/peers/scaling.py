"""Our trainer with many seeds: vmapped on one device, and sharded over several."""

import os
import resource
from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import Any

import jax
import numpy as np

from peers.arm import Job, timed


def seeds_rows(job: Job, counts: list[int], kind: str) -> Iterator[dict[str, Any]]:
    """One process per number of vmapped seeds: steps per second and memory."""
    from peers.pairs import child

    for count in counts:
        request = {"kind": kind, "job": asdict(replace(job, seeds=count))}
        yield {"row": "seeds", "arm": kind, **child("seeds", request, {})}


def devices_rows(job: Job, counts: list[int], kind: str) -> Iterator[dict[str, Any]]:
    """One process per number of forced host devices, the seeds sharded over them."""
    from peers.pairs import child

    reference: dict[str, Any] | None = None
    for count in counts:
        flags = f"--xla_force_host_platform_device_count={count}"
        environment = {"XLA_FLAGS": f"{os.environ.get('XLA_FLAGS', '')} {flags}"}
        request = {"kind": kind, "job": asdict(job)}
        row = child("devices", request, environment)
        trained = np.asarray(row.pop("trained"), np.float32)
        reference = reference or {"trained": trained}
        same, apart = compared(reference["trained"], trained)
        yield {
            "row": "devices",
            "arm": kind,
            **row,
            "same_bits": same,
            "largest_difference": apart,
        }


def compared(first: np.ndarray, second: np.ndarray) -> tuple[bool, float]:
    """Whether two arrays are equal bit by bit, and their largest difference."""
    same = first.tobytes() == second.tobytes()
    return same, float(np.max(np.abs(first - second)))


def run_seeds(request: dict[str, Any]) -> dict[str, Any]:
    """In this process: three timed runs of all seeds on one device."""
    from peers.structjax_arms import Trainer

    job = Job(**request["job"])
    trainer = Trainer(request["kind"], job)
    program, temp_bytes = trainer.compiled(job.seeds)
    keys = trainer.keys(0, job.seeds)
    timed(lambda: program(keys))
    runs = [timed(lambda: program(keys)) for _ in range(3)]
    return {
        "seeds": job.seeds,
        "env_steps": job.seeds * trainer.updates * trainer.batch,
        "wall_s": [run.wall_s for run in runs],
        "cpu_s": [run.cpu_s for run in runs],
        "temp_mb": None if temp_bytes is None else temp_bytes / 1e6,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3,
        "load": os.getloadavg()[0],
    }


def run_devices(request: dict[str, Any]) -> dict[str, Any]:
    """In this process: all seeds sharded over all devices, and what they learned."""
    from jax.sharding import NamedSharding, PartitionSpec

    from peers.structjax_arms import Trainer

    job = Job(**request["job"])
    trainer = Trainer(request["kind"], job)
    mesh = jax.make_mesh((jax.device_count(),), ("seed",))
    split = NamedSharding(mesh, PartitionSpec("seed"))
    keys = jax.device_put(trainer.keys(0, job.seeds), split)
    program = jax.jit(trainer.train, in_shardings=split, out_shardings=None)
    lowered = program.lower(keys).compile()
    timed(lambda: lowered(keys))
    runs = [timed(lambda: lowered(keys)) for _ in range(3)]
    variables, metrics = runs[-1].value
    leaves = [np.asarray(leaf).ravel() for leaf in jax.tree.leaves(variables)]
    leaves.append(np.asarray(metrics["return"]).ravel())
    return {
        "devices": jax.device_count(),
        "seeds": job.seeds,
        "env_steps": job.seeds * trainer.updates * trainer.batch,
        "wall_s": [run.wall_s for run in runs],
        "cpu_s": [run.cpu_s for run in runs],
        "load": os.getloadavg()[0],
        "trained": np.concatenate(leaves).astype(float).tolist(),
    }
