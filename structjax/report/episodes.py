"""Episodes for the page's player: scene, outcomes and time series of a few of them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from structjax.outcomes import reduce_outcomes
from structjax.tasks.base import Task
from structjax.tasks.probing import scene_of
from structjax.tasks.scene import Scene, Shape

_SERIES = ("latent_", "action_", "info_")
_FIXED = ("reward",)
_DECIMALS = 4  # of lengths in scenes: 0.1 mm


def episode_data(
    frame: pd.DataFrame, task: Task, seeds: Sequence[int]
) -> list[dict[str, Any]]:
    """The worst, the median and the best episode, JSON-ready.

    Args:
      frame: table of the evaluation; `episode` is the index into `seeds`.
      task: gives the scene and the outcomes, when it has them.
      seeds: initial conditions of the episodes.

    Returns:
      Per episode `{"label", "seed", "return", "steps", "outcomes": {name: value},
      "first": columns to show first, "series": {column: values}, "scene": {"views",
      "shapes"} | None}`.

    Raises:
      StructjaxError: the scene cannot be drawn.
    """
    returns = frame.groupby("episode")["reward"].sum().sort_values(kind="stable")
    order = list(returns.index)
    chosen = {"worst": order[0], "median": order[len(order) // 2], "best": order[-1]}
    return [
        _episode(label, frame[frame["episode"] == number], task, int(seeds[number]))
        for label, number in chosen.items()
    ]


def _episode(label: str, rows: pd.DataFrame, task: Task, seed: int) -> dict[str, Any]:
    columns = [c for c in rows.columns if c.startswith(_SERIES) or c in _FIXED]
    scene = _recorded(scene_of(task, seed), columns) if task.scene else None
    placed = {f"info_{name}" for name in scene.values} if scene else set()
    told = (f"info_{value}" for value, _ in task.outcomes.values())
    return {
        "label": label,
        "seed": seed,
        "return": round(float(rows["reward"].sum()), 2),
        "steps": len(rows),
        "outcomes": _outcomes(rows, task),
        "first": [c for c in dict.fromkeys(told) if c in columns],
        "series": {
            c: _places(rows[c]) if c in placed else _rounded(rows[c]) for c in columns
        },
        "scene": scene_data(scene) if scene else None,
    }


def _recorded(scene: Scene, columns: Sequence[str]) -> Scene | None:
    """The scene without the shapes that follow a value an older table lacks.

    None where nothing that moves remains.
    """
    known = {name for name in scene.values if f"info_{name}" in columns}
    shapes = tuple(shape for shape in scene.shapes if shape.values <= known)
    return replace(scene, shapes=shapes) if known or not scene.values else None


def scene_data(scene: Scene) -> dict[str, Any]:
    """A scene, JSON-ready; info values have the names of their columns."""
    views = [{"title": v.title, "right": v.right, "up": v.up} for v in scene.views]
    return {"views": views, "shapes": [_shape_data(shape) for shape in scene.shapes]}


def _shape_data(shape: Shape) -> dict[str, Any]:
    return {
        "kind": shape.kind,
        "points": np.round(np.asarray(shape.points, float), _DECIMALS).tolist(),
        "colour": shape.colour,
        "width": float(shape.width),
        "dashed": bool(shape.dashed),
        "origin": _vector(shape.origin),
        "turn": f"info_{shape.turn}" if shape.turn else None,
        "label": shape.label,
        "moves": {f"info_{name}": _vector(v) for name, v in shape.moves.items()},
    }


def _vector(place: Any) -> list[float]:
    return np.asarray(place, float).tolist()


def _outcomes(rows: pd.DataFrame, task: Task) -> Mapping[str, str]:
    """The episode's own outcomes, four digits each."""
    present = {n: r for n, r in task.outcomes.items() if f"info_{r[0]}" in rows.columns}
    info = {
        value: rows[f"info_{value}"].to_numpy(np.float32)[:, None]
        for value, _ in present.values()
    }
    found = reduce_outcomes(present, info, np.ones((len(rows), 1), bool))
    return {name: f"{float(value[0]):.4g}" for name, value in found.items()}


def _finite(values: pd.Series) -> np.ndarray:
    return np.nan_to_num(values.to_numpy(float), nan=0.0, posinf=0.0, neginf=0.0)


def _places(values: pd.Series) -> list[float]:
    return np.round(_finite(values), _DECIMALS).tolist()


def _rounded(values: pd.Series) -> list[float]:
    """Four significant digits: the page stays small."""
    return [float(f"{value:.4g}") for value in _finite(values)]
