"""The rollout table and what each of its columns means."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
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
