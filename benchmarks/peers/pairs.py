"""Interleaved pairs (ABBA), the machine they ran on, and child processes."""

import importlib
import json
import os
import platform
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any

from rows import median

from peers.arm import Arm, Job

HERE = Path(__file__).parent.parent
PEERS = {
    "rejax": "rejax_ppo",
    "purejaxrl": "purejaxrl_ppo",
    "brax": "brax_ppo",
    "sb3": "sb3_ppo",
    "evosax": "evosax_es",
}
OURS = ("window", "group", "ppo", "es")

PACKAGES = (
    "rejax", "brax", "evosax", "stable-baselines3", "torch", "gymnasium", "distrax",
)  # fmt: skip


def comparable(ours: str, peer: str) -> bool:
    """Whether both follow gradients, or neither does."""
    return (ours == "es") == (peer == "evosax")


def prepare(name: str, job: Job) -> Arm:
    """The arm of that name on the job."""
    if name in OURS:
        from peers import structjax_arms

        return structjax_arms.prepare(name, job)
    return importlib.import_module(f"peers.{PEERS[name]}").prepare(job)


def machine() -> dict[str, Any]:
    """A row on the machine and the peers' versions."""
    found = {}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = None
    return {
        "row": "machine",
        "processor": _processor(),
        "cores": os.cpu_count(),
        "peers": found,
        "environment": {
            name: os.environ.get(name)
            for name in ("XLA_FLAGS", "OMP_NUM_THREADS", "JAX_PLATFORMS")
        },
        "load": os.getloadavg(),
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = [line.split(":")[1].strip() for line in lines if "model name" in line]
    return names[0] if names else platform.machine()


def interleaved(
    arms: dict[str, Arm], first: str, second: str, pairs: int
) -> list[dict[str, Any]]:
    """Rows of `pairs` pairs in the order ABBA, after one run of each as warm-up."""
    for name in (first, second):
        arms[name].run(0)
    rows = []
    for pair in range(pairs):
        order = (first, second) if pair % 2 == 0 else (second, first)
        for name in order:
            arm = arms[name]
            done = arm.run(pair + 1)
            rows.append(
                {
                    "row": "pair",
                    "pair": pair,
                    "of": [first, second],
                    "arm": name,
                    "env_steps": arm.env_steps,
                    "gradient_steps": arm.gradient_steps,
                    "wall_s": done.wall_s,
                    "cpu_s": done.cpu_s,
                    "load": os.getloadavg()[0],
                }
            )
    return rows


def ratios(rows: list[dict[str, Any]], seconds: str = "wall_s") -> list[float]:
    """Steps per second of the first arm over the second's, pair by pair."""
    rates: dict[int, dict[str, float]] = {}
    for row in rows:
        rate = row["env_steps"] / row[seconds]
        rates.setdefault(row["pair"], {})[row["arm"]] = rate
    first, second = rows[0]["of"]
    return [pair[first] / pair[second] for _, pair in sorted(rates.items())]


def rate(rows: list[dict[str, Any]], arm: str) -> float:
    """Median environment steps per wall second of an arm."""
    return median([r["env_steps"] / r["wall_s"] for r in rows if r["arm"] == arm])


def child(
    kind: str, request: dict[str, Any], environment: dict[str, str]
) -> dict[str, Any]:
    """Runs `rl_peers.py --child` in a process of its own; the answer is its last line.

    Raises:
      RuntimeError: it failed; its last words are in the message.
    """
    done = subprocess.run(
        [
            sys.executable,
            str(HERE / "rl_peers.py"),
            "--child",
            json.dumps([kind, request]),
        ],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError("\n".join(done.stderr.splitlines()[-3:]))
    return json.loads(done.stdout.splitlines()[-1])


def job_request(job: Job) -> Callable[..., dict[str, Any]]:
    """A request for a child about this job."""
    return partial(dict, job=asdict(job))
