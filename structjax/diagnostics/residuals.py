"""Where a policy departs from the demonstration."""

from typing import Any

import numpy as np

from structjax.diagnostics.result import (
    InvariantResult,
    number,
    percent,
    warn_if,
    within,
)
from structjax.schema import Schema
from structjax.table import RolloutTable

REGIONS, WORST = 4, 3
# A quarter of the rows that holds this share of the squared error stands out.
CONCENTRATED = 0.6


def residuals(table: RolloutTable, schema: Schema) -> InvariantResult | None:
    """Size and bias of the residuals, and the regions in which they are largest.

    Regions are the quarters (by rank) of every observation and latent column.
    None for a table without a demonstration.
    """
    names = [f"residual_{action.name}" for action in schema.actions]
    if names[0] not in table.frame:
        return None
    columns = [*table.names("observation"), *table.names("latent")]
    features = np.nan_to_num(table.values(columns))
    region, edges = _quarters(features)
    values: dict[str, Any] = {}
    parts, concentrated = [], False
    for action, residual in zip(schema.actions, table.values(names).T, strict=True):
        demo = table.frame[f"demo_action_{action.name}"].to_numpy(np.float64)
        found = _size(residual.astype(np.float64), demo)
        found["regions"] = _worst_regions(residual, region, edges, columns)
        values[action.name] = found
        parts.append(_sentence(action.name, found))
        shares = [place["share"] for place in found["regions"]]
        concentrated = concentrated or max(shares, default=0.0) > CONCENTRATED
    verdict = warn_if(concentrated)
    return InvariantResult("demo_residual", verdict, "; ".join(parts), values)


def _size(residual: np.ndarray, demo: np.ndarray) -> dict[str, Any]:
    total = float(((demo - demo.mean()) ** 2).mean())
    square = float((residual**2).mean())
    explained = 1 - square / total if total > 0 else None
    bias = float(residual.mean())
    return {"rms": square**0.5, "bias": bias, "explained": explained}


def _sentence(action: str, found: dict[str, Any]) -> str:
    text = f"{action}: rms {number(found['rms'])}, bias {number(found['bias'])}"
    if found["explained"] is not None:
        text += f", {percent(found['explained'])} of the variance explained"
    for place in found["regions"]:
        text += (
            f"; where {place['column']} {within(place['low'], place['high'])} rms "
            f"{number(place['rms'])}, bias "
            f"{number(place['bias'])} ({percent(place['share'])} of the squared error)"
        )
    return text


def _quarters(features: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Quarter of each value `[N, C]`, and the edges `[REGIONS + 1, C]`."""
    edges = np.quantile(features, np.linspace(0, 1, REGIONS + 1), axis=0)
    inner = edges[1:-1]
    return (features[None] > inner[:, None]).sum(axis=0), edges


def _worst_regions(
    residual: np.ndarray, region: np.ndarray, edges: np.ndarray, columns: list[str]
) -> list[dict[str, Any]]:
    """At most WORST places whose share of the error is well above their share of rows.

    One per column, the largest share of the squared error first.
    """
    square = residual.astype(np.float64) ** 2
    if not square.sum() > 0:
        return []
    member = region[None] == np.arange(REGIONS)[:, None, None]
    rows = member.sum(axis=1)
    share = np.einsum("n,rnc->rc", square, member) / square.sum()
    excess = np.where(rows > 0, share - rows / len(residual), -1.0)
    worst = excess.argmax(axis=0)
    order = np.argsort(-excess.max(axis=0), kind="stable")[:WORST]
    places = []
    for column in order:
        r = worst[column]
        if excess[r, column] < 0.1:
            continue
        inside = residual[member[r, :, column]]
        places.append(
            {
                "column": columns[column],
                "low": float(edges[r, column]),
                "high": float(edges[r + 1, column]),
                "rows": int(rows[r, column]),
                "rms": float(np.sqrt((inside.astype(np.float64) ** 2).mean())),
                "bias": float(inside.mean()),
                "share": float(share[r, column]),
            }
        )
    return places
