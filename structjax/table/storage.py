"""Tables on disk: Parquet (zstd) with the column descriptions in its metadata."""

import json
import os
from dataclasses import asdict
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from structjax.errors import StructjaxError
from structjax.table.column import Column, RolloutTable

_KEY = b"structjax_table"
_VERSION = 1


def save_table(table: RolloutTable, path: str | Path) -> None:
    """Writes the table; the file appears complete or not at all.

    Raises:
      StructjaxError: the path cannot be written.
    """
    path = Path(path)
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
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        pq.write_table(arrow, temporary, compression="zstd")
        os.replace(temporary, path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise StructjaxError(
            f"cannot write the table {str(path)!r}: {error.strerror or error}",
            kind="table",
            hint="free some space or name a directory that can be written",
        ) from error


def load_table(path: str | Path) -> RolloutTable:
    """Reads a table that `save_table` wrote.

    Raises:
      StructjaxError: the file is missing, no Parquet file, or no rollout table.
    """
    path = Path(path)
    if not path.is_file():
        raise _refused(path, "there is no such file")
    try:
        arrow = pq.read_table(path)
    except (pa.ArrowException, OSError) as error:
        raise _refused(path, "it is not a Parquet file, or a damaged one") from error
    text = (arrow.schema.metadata or {}).get(_KEY)
    if text is None:
        raise _refused(path, "it is a Parquet file without a structjax description")
    described = json.loads(text)
    if described["version"] != _VERSION:
        found = described["version"]
        raise _refused(path, f"it is of version {found}, this reads {_VERSION}")
    columns = tuple(Column(**column) for column in described["columns"])
    return RolloutTable(
        arrow.to_pandas(), columns, described["task"], described["metadata"]
    )


def _refused(path: Path, why: str) -> StructjaxError:
    return StructjaxError(
        f"cannot read the table {str(path)!r}: {why}",
        kind="table",
        hint="give a .parquet file that structjax wrote, e.g. tables/r0.parquet",
    )
