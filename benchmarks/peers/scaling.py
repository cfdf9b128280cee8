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
    """One process per number of forced host devices, the seeds spread over them.

    A program's rounding depends on how many seeds it computes at once, so there are two
    references on one device: the same seeds in groups as large as a device's share,
    whose bits must be the same, and all seeds at once.
    """
    whole = _trained(job, kind, devices=1, groups=1)[1]
    for count in counts:
        row, spread = _trained(job, kind, devices=count, groups=1)
        _, grouped = _trained(job, kind, devices=1, groups=count)
        yield {
            "row": "devices",
            "arm": kind,
            **row,
            "same_bits_as_groups": _same(spread, grouped),
            "same_bits_as_whole": _same(spread, whole),
            # Rounding in the first update's episodes; then learning amplifies it.
            "first_update_apart": _apart(spread["first"], whole["first"]),
            "last_update_apart": _apart(spread["last"], whole["last"]),
        }


def _trained(job: Job, kind: str, *, devices: int, groups: int) -> Any:
    """Figures of a child, and what it learned: variables, first and last returns."""
    from peers.pairs import child

    flags = f"--xla_force_host_platform_device_count={devices}"
    environment = {"XLA_FLAGS": f"{os.environ.get('XLA_FLAGS', '')} {flags}"}
    share = replace(job, seeds=job.seeds // groups)
    request = {"kind": kind, "job": asdict(share), "groups": groups}
    row = child("devices", request, environment)
    learned = {name: np.asarray(row.pop(name)) for name in ("weights", "first", "last")}
    return row, learned


def _same(one: dict[str, np.ndarray], other: dict[str, np.ndarray]) -> bool:
    return all(np.array_equal(one[name], other[name]) for name in one)


def _apart(one: np.ndarray, other: np.ndarray) -> float:
    return float(np.max(np.abs(one - other)))


def run_seeds(request: dict[str, Any]) -> dict[str, Any]:
    """In this process: three timed runs of all seeds on one device."""
    trainer, temp_bytes = _trainer(request)
    runs = [timed(lambda: trainer.train(1)) for _ in range(3)]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    memory = None if temp_bytes is None else temp_bytes / 1e6
    return {**_figures(trainer, runs), "temp_mb": memory, "peak_mb": peak / 1e3}


def run_devices(request: dict[str, Any]) -> dict[str, Any]:
    """In this process: the seeds of each group spread over all devices."""
    trainer, _ = _trainer(request)
    size, groups = trainer.job.seeds, request["groups"]
    runs = [timed(lambda: trainer.train(1)) for _ in range(3 if groups == 1 else 0)]
    parts = [
        trainer.train_seeds(np.arange(size) + size * group) for group in range(groups)
    ]
    holders = {len(leaf.sharding.device_set) for leaf in jax.tree.leaves(parts[0][0])}
    weights = [
        np.concatenate([np.asarray(leaf).reshape(size, -1) for leaf in leaves], axis=1)
        for leaves in (jax.tree.leaves(variables) for variables, _ in parts)
    ]
    returns = np.concatenate([part[1]["return"] for part in parts], axis=1)
    return {
        **_figures(trainer, runs),
        "devices": jax.device_count(),
        "devices_that_hold_the_result": max(holders),
        "weights": np.concatenate(weights).astype(float).tolist(),
        "first": returns[0].astype(float).tolist(),
        "last": returns[-1].astype(float).tolist(),
    }


def _trainer(request: dict[str, Any]) -> tuple[Any, int | None]:
    """Our trainer, compiled and warm, and XLA's temporary memory."""
    from peers.structjax_arms import Trainer

    trainer = Trainer(request["kind"], Job(**request["job"]))
    return trainer, trainer.compile()


def _figures(trainer: Any, runs: list[Any]) -> dict[str, Any]:
    return {
        "seeds": trainer.job.seeds,
        "env_steps": trainer.env_steps,
        "wall_s": [run.wall_s for run in runs],
        "cpu_s": [run.cpu_s for run in runs],
        "load": os.getloadavg()[0],
    }
