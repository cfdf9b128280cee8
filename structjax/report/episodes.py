"""Episodes for the page's player: path, scene and time series of a few of them."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from structjax.tasks.base import Task

_SERIES = ("latent_", "action_", "info_")
_FIXED = ("reward",)
_POSE = ("info_position_x", "info_position_y", "info_heading")


def episode_data(
    frame: pd.DataFrame, task: Task, seeds: Sequence[int]
) -> list[dict[str, Any]]:
    """The worst, the median and the best episode, JSON-ready.

    Args:
      frame: table of the evaluation; `episode` is the index into `seeds`.
      task: gives the scene behind the path, when it has one.
      seeds: initial conditions of the episodes.

    Returns:
      Per episode `{"label", "seed", "return", "steps", "series": {column: values},
      "scene": {...} | None, "path": {"x", "y", "heading"} | None}`.
    """
    returns = frame.groupby("episode")["reward"].sum().sort_values(kind="stable")
    order = list(returns.index)
    chosen = {"worst": order[0], "median": order[len(order) // 2], "best": order[-1]}
    return [
        _episode(label, int(number), frame, task, seeds)
        for label, number in chosen.items()
    ]


def _episode(
    label: str, number: int, frame: pd.DataFrame, task: Task, seeds: Sequence[int]
) -> dict[str, Any]:
    rows = frame[frame["episode"] == number]
    columns = [c for c in rows.columns if c.startswith(_SERIES) or c in _FIXED]
    seed = int(seeds[number])
    return {
        "label": label,
        "seed": seed,
        "return": round(float(rows["reward"].sum()), 2),
        "steps": len(rows),
        "series": {c: _rounded(rows[c]) for c in columns if c not in _POSE},
        "scene": task.scene(seed) if task.scene else None,
        "path": _path(rows),
    }


def _path(rows: pd.DataFrame) -> Mapping[str, list[float]] | None:
    if not set(_POSE) <= set(rows.columns):
        return None
    return {
        name: np.round(rows[column].to_numpy(float), 3).tolist()
        for name, column in zip(("x", "y", "heading"), _POSE, strict=True)
    }


def _rounded(values: pd.Series) -> list[float]:
    """Four significant digits: the page stays small."""
    array = values.to_numpy(float)
    array = np.nan_to_num(array, nan=0.0, posinf=0.0, neginf=0.0)
    return [float(f"{value:.4g}") for value in array]
