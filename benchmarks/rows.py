"""Raw rows of a benchmark: what was measured, on what, with which versions."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from structjax.provenance import device, git_commit, versions


def measure(
    work: Callable[[], Any], repeats: int, *, warm: bool = True
) -> list[dict[str, float]]:
    """Wall and CPU seconds of each repeat, after one call that is not counted."""
    if warm:
        work()
    rows = []
    for _ in range(repeats):
        wall, cpu = time.perf_counter(), time.process_time()
        work()
        rows.append(
            {
                "wall_s": time.perf_counter() - wall,
                "cpu_s": time.process_time() - cpu,
            }
        )
    return rows


def median(values: list[float]) -> float:
    """The middle value."""
    return sorted(values)[len(values) // 2]


def write_rows(name: str, rows: list[dict[str, Any]]) -> Path:
    """Writes `benchmarks/results/<name>.jsonl`: one header line, then the rows."""
    path = Path(__file__).parent / "results" / f"{name}.jsonl"
    path.parent.mkdir(exist_ok=True)
    header = {
        "benchmark": name,
        "device": device(),
        "commit": git_commit(),
        "versions": versions(),
    }
    lines = [json.dumps(line) for line in (header, *rows)]
    path.write_text("\n".join(lines) + "\n")
    return path
