"""The rollout table and what each of its columns means."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import pandas as pd

Kind = Literal[
    "index",
    "observation",
    "latent",
    "weight",
    "action",
    "outcome",
    "next_observation",
    "info",
    "demonstration",
]


@dataclass(frozen=True)
class Column:
    """What one column holds; `low` and `high` are None where nothing is promised."""

    name: str
    unit: str
    low: float | None
    high: float | None
    doc: str
    kind: Kind


@dataclass(frozen=True, eq=False)
class RolloutTable:
    """A data frame with its column descriptions.

    Attributes:
      frame: rows sorted by `episode`, then `step`; float32, except the integers
        `episode`, `step` and discrete actions, and the booleans `terminated` and
        `truncated`.
      columns: one description per column of the frame, in its order.
      task: name of the task.
      metadata: how the rows came about (mode, simulator, hashes); never any seed.
    """

    frame: pd.DataFrame
    columns: tuple[Column, ...]
    task: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def values(self, names: Sequence[str]) -> np.ndarray:
        """The named columns as one array `[rows, len(names)]`, float32."""
        return self.frame[list(names)].to_numpy(np.float32)

    def names(self, kind: Kind) -> tuple[str, ...]:
        """Names of the columns of one kind, in their order."""
        return tuple(column.name for column in self.columns if column.kind == kind)


def column_list(table: RolloutTable | Sequence[Column]) -> str:
    """The columns as text, one a line: `name [unit] low..high: meaning`.

    Elements of a vector share a line (`obs_tiles_x_0..11`), and the `next_obs_*`
    columns, which repeat the observations one step later, are a single line.
    """
    columns = table.columns if isinstance(table, RolloutTable) else tuple(table)
    lines: list[str] = []
    for column in _merged(columns):
        if column.kind != "next_observation":
            lines.append(_line(column))
        elif (line := "next_obs_*: the obs_* columns one step later") not in lines:
            lines.append(line)
    return "\n".join(lines)


def _merged(columns: Sequence[Column]) -> Iterator[Column]:
    """Runs `stem_0, stem_1, ...` that differ in nothing but the number become one."""
    start = 0
    while start < len(columns):
        first, count = columns[start], 1
        if first.name.endswith("_0"):
            stem = first.name[:-1]
            while start + count < len(columns) and columns[start + count] == replace(
                first, name=f"{stem}{count}"
            ):
                count += 1
        name = f"{first.name}..{count - 1}" if count > 1 else first.name
        yield replace(first, name=name)
        start += count


def _line(column: Column) -> str:
    unit = f" [{column.unit}]" if column.unit else ""
    doc = re.sub(r"\s+", " ", column.doc).strip()
    return f"{column.name}{unit}{_range(column)}" + (f": {doc}" if doc else "")


def _range(column: Column) -> str:
    low, high = column.low, column.high
    if low is not None and high is not None:
        return f" {low:.4g}..{high:.4g}"
    if low is not None:
        return f" >= {low:.4g}"
    return "" if high is None else f" <= {high:.4g}"
