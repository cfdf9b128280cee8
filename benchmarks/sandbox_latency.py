"""Latency of a warm generated check: pandas groupby on a table of 8,000 x 90.

    python benchmarks/sandbox_latency.py [--rows FILE.jsonl]

Prints the median, the 95th percentile and the server's start; with `--rows`, writes one
JSON line per job. Target: a median of at most 60 ms.
"""

import argparse
import json
import os
import platform
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

from structjax.diagnostics.sandbox import Sandbox

ROWS, COLUMNS, EPISODES = 8000, 90, 8
CODE = """
def check_groups(df):
    columns = [c for c in df.columns if c.startswith("obs_")]
    print(df.groupby("episode")[columns[:8]].agg(["mean", "std"]))
"""


def write_table(path: Path) -> None:
    """A table of the size of a debug rollout."""
    values = np.random.default_rng(0).normal(size=(ROWS, COLUMNS - 1))
    columns = [f"obs_field_{i}" for i in range(COLUMNS - 1)]
    table = pd.DataFrame(values.astype(np.float32), columns=columns)
    table.insert(0, "episode", np.repeat(np.arange(EPISODES), ROWS // EPISODES))
    table.to_parquet(path)


def measure(jobs: int) -> tuple[float, list[float], list[float]]:
    """Seconds of the start, of each check's own job, and of each whole `run`."""
    own, whole = [], []
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "table.parquet"
        write_table(path)
        start = time.perf_counter()
        with Sandbox(path) as sandbox:
            started = time.perf_counter() - start
            for _ in range(jobs):
                begin = time.perf_counter()
                findings = sandbox.run(CODE)
                whole.append(time.perf_counter() - begin)
                if [f.status for f in findings] != ["ok", "ok"]:
                    raise SystemExit(f"unexpected findings: {findings}")
                own.append(findings[1].seconds)
    return started, own, whole


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=50)
    parser.add_argument("--rows", type=Path)
    arguments = parser.parse_args()
    started, own, whole = measure(arguments.jobs)
    print(f"start {started * 1e3:.0f} ms")
    for name, seconds in (("check", own), ("run: top level and check", whole)):
        median, late = np.percentile(seconds, [50, 95]) * 1e3
        print(f"{name}: median {median:.1f} ms, p95 {late:.1f} ms, n {len(seconds)}")
    print(f"ratio of the run's median to the target of 60 ms: {_ratio(whole):.2f}")
    if arguments.rows:
        lines = (
            json.dumps({**_context(), "check_s": a, "run_s": b})
            for a, b in zip(own, whole, strict=True)
        )
        arguments.rows.write_text("\n".join(lines) + "\n")


def _ratio(seconds: list[float]) -> float:
    return float(np.median(seconds)) / 0.060


def _context() -> dict[str, str | int | None]:
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True
    )
    return {
        "benchmark": "sandbox_latency",
        "commit": commit.stdout.strip(),
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "pandas": pd.__version__,
    }


if __name__ == "__main__":
    main()
