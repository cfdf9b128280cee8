"""`structjax diagnose`: one file of analysis code over one table."""

from pathlib import Path
from typing import Any

from structjax.diagnostics.sandbox import Sandbox


def diagnose(
    code: str,
    table_path: str | Path,
    *,
    level: str = "strict",
    wall: float = 10.0,
    memory_mb: int = 1024,
) -> dict[str, Any]:
    """Runs the code in a sandbox of its own.

    Args:
      code: Python text with functions `check_...(df)` or `test_...(df)`.
      table_path: the rollout table, a Parquet file.
      level: as for `Sandbox`.
      wall: seconds for each function.
      memory_mb: MiB for each function.

    Returns:
      `{"findings": [{"name", "status", "text", "seconds"}], "sandbox": {...}}`.

    Raises:
      SandboxUnavailable: this system cannot confine the code.
      StructjaxError: the table cannot be read, or `level` is unknown.
    """
    with Sandbox(table_path, level=level) as sandbox:
        findings = sandbox.run(code, wall=wall, memory_mb=memory_mb)
        return {"findings": [f.to_json() for f in findings], "sandbox": sandbox.level}
