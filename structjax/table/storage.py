"""Tables on disk: Parquet (zstd) with the column descriptions in its metadata."""

import json
import os.path
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from structjax.errors import StructjaxError
from structjax.files import write_atomic
from structjax.forms import Maybe, mismatch
from structjax.table.column import Column, RolloutTable

_KEY = b"structjax_table"
_VERSION = 1
_COLUMN = {
    "name": str,
    "unit": str,
    "low": Maybe(float),
    "high": Maybe(float),
    "doc": str,
    "kind": str,
}
_DESCRIPTION = {"task": str, "metadata": dict, "columns": [_COLUMN]}


def save_table(table: RolloutTable, path: str | Path) -> None:
    """Writes the table; the file appears complete or not at all.

    Raises:
      StructjaxError: the path cannot be written.
    """
    described = {
        "version": _VERSION,
        "task": table.task,
        "metadata": dict(table.metadata),
        "columns": [asdict(column) for column in table.columns],
    }
    arrow = pa.Table.from_pandas(table.frame, preserve_index=False)
    text = json.dumps(described, sort_keys=True, allow_nan=False)
    own = {**(arrow.schema.metadata or {}), _KEY: text.encode()}
    arrow = arrow.replace_schema_metadata(own)
    content = pa.BufferOutputStream()
    pq.write_table(arrow, content, compression="zstd")
    write_atomic(Path(path), content.getvalue().to_pybytes())


def load_table(path: str | Path) -> RolloutTable:
    """Reads a table that `save_table` wrote.

    Raises:
      StructjaxError: the file is missing, no Parquet file, or no rollout table.
    """
    path = Path(path)
    if not os.path.isfile(path):  # also of a name that no file can have
        raise _refused(path, "there is no such file")
    try:
        arrow = pq.read_table(path)
    except (pa.ArrowException, OSError) as error:
        raise _refused(path, "it is not a Parquet file, or a damaged one") from error
    text = (arrow.schema.metadata or {}).get(_KEY)
    if text is None:
        raise _refused(path, "it is a Parquet file without a structjax description")
    described = _description(text, path)
    columns = tuple(
        Column(**{name: column.get(name) for name in _COLUMN})
        for column in described["columns"]
    )
    return RolloutTable(
        arrow.to_pandas(), columns, described["task"], described["metadata"]
    )


def _description(text: bytes, path: Path) -> dict[str, Any]:
    """The description in the file's metadata."""
    try:
        described: Any = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _refused(path, "its description is damaged") from error
    if problem := mismatch(described, {"version": int}):
        raise _refused(path, f"in its description, {problem}")
    if described["version"] != _VERSION:
        found = described["version"]
        raise _refused(path, f"it is of version {found}, this reads {_VERSION}")
    if problem := mismatch(described, _DESCRIPTION):
        raise _refused(path, f"in its description, {problem}")
    return dict(described)


def _refused(path: Path, why: str) -> StructjaxError:
    return StructjaxError(
        f"cannot read the table {str(path)!r}: {why}",
        kind="table",
        hint="give a .parquet file that structjax wrote, e.g. tables/r0.parquet",
    )
