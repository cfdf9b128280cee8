"""A program's graph as one HTML page, with the values of a rollout if there is one."""

import json
from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from structjax.language.matching import inlined
from structjax.language.render import expression_text
from structjax.language.structure import Structure
from structjax.report.graph import drawn, graph_nodes
from structjax.report.graph_layout import Node
from structjax.schema import Schema

_ASSETS = Path(__file__).parent / "assets"


def graph_html(
    structure: Structure,
    docs: Mapping[str, str] | None = None,
    values: Mapping[str, float] | None = None,
    *,
    title: str = "policy",
    schema: Schema | None = None,
    frame: pd.DataFrame | None = None,
) -> str:
    """A self-contained page: boxes show their definition when pointed at.

    With a rollout they show least, mean and largest value of every column over all
    episodes, and the course of one of them (the one of the median return), along which
    a slider moves.

    Args:
      structure: the program.
      docs: documentation by name.
      values: weight values by name.
      title: of the page.
      schema: names the columns of the fields.
      frame: a rollout table's rows.
    """
    nodes = graph_nodes(structure, docs, values)
    columns = {} if frame is None else _columns(structure, schema, frame)
    steps, measured = (0, {}) if frame is None else _measured(frame, columns)
    formulas = _formulas(structure)
    details = {
        name: {
            "kind": node.kind,
            "doc": node.title,
            "weights": node.note,
            "formula": formulas.get(name, ""),
            "columns": [measured[c] for c in columns.get(name, ())],
        }
        for name, node in nodes.items()
    }
    return _page(title, nodes, {"steps": steps, "nodes": details})


def _page(title: str, nodes: Mapping[str, Node], data: Mapping[str, Any]) -> str:
    script = json.dumps(data, allow_nan=False).replace("</", "<\\/")
    controls = (
        "<label class=controls>step <input type=range min=0 value=0> "
        "<output>0</output></label>"
        if data["steps"]
        else ""
    )
    return (
        "<!doctype html>\n<html lang=en><head><meta charset=utf-8>"
        '<meta name=viewport content="width=device-width">'
        f"<title>{escape(title)}</title>"
        f"<style>{(_ASSETS / 'graph.css').read_text()}</style></head>"
        f"<body><header><h1>{escape(title)}</h1>{controls}</header>"
        f"<main>{drawn(nodes)}</main><aside id=details></aside>"
        f'<script type="application/json" id=data>{script}</script>'
        f"<script>{(_ASSETS / 'graph.js').read_text()}</script></body></html>\n"
    )


def _formulas(structure: Structure) -> dict[str, str]:
    """What a program says of each box, with temporaries written out."""
    plain = inlined(structure)
    found = {v.name: expression_text(v.expression) for v in plain.latents}
    for head in plain.heads:
        found[f"-> {head.action}"] = ", ".join(map(expression_text, head.arguments))
    found["-> coupling"] = ", ".join(map(expression_text, plain.coupling))
    return found


def _columns(
    structure: Structure, schema: Schema | None, frame: pd.DataFrame
) -> dict[str, list[str]]:
    """The columns of each box that the table has."""
    wanted: dict[str, tuple[str, ...]] = {}
    for item in schema.observations if schema else ():
        wanted[f"obs.{item.name}"] = item.columns()
    for latent in structure.latents:
        wanted[latent.name] = latent.columns
    for head in structure.heads:
        stem = f"action_{head.action}"
        logits = (c for c in frame.columns if c.startswith(f"{stem}_logit_"))
        wanted[f"-> {head.action}"] = (f"{stem}_mean", f"{stem}_std", stem, *logits)
    return {
        name: [column for column in columns if column in frame.columns]
        for name, columns in wanted.items()
    }


def _measured(
    frame: pd.DataFrame, columns: Mapping[str, list[str]]
) -> tuple[int, dict[str, dict[str, Any]]]:
    """Steps of the episode that is shown, and what each column holds."""
    returns = frame.groupby("episode")["reward"].sum().sort_values(kind="stable")
    episode = frame["episode"] == returns.index[len(returns) // 2]
    found = {}
    for column in (c for names in columns.values() for c in names):
        values = frame[column].to_numpy(float)
        finite = values[np.isfinite(values)]
        found[column] = {
            "name": column,
            "min": _short(finite.min()) if len(finite) else None,
            "mean": _short(finite.mean()) if len(finite) else None,
            "max": _short(finite.max()) if len(finite) else None,
            "values": [_short(value) for value in values[episode]],
        }
    return int(episode.sum()), found


def _short(value: float) -> float | None:
    """Four significant digits; None for what JSON has no number for."""
    return float(f"{value:.4g}") if np.isfinite(value) else None
