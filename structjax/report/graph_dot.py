"""A program's graph in Graphviz's language."""

import json
from collections.abc import Mapping

from structjax.language.structure import Structure
from structjax.report.graph import graph_nodes
from structjax.report.graph_layout import Node

_COLOURS = {"obs": "#e6f0fa", "latent": "#ffffff", "action": "#e9f7e6"}


def graph_dot(
    structure: Structure,
    docs: Mapping[str, str] | None = None,
    values: Mapping[str, float] | None = None,
) -> str:
    """The graph from left (observations) to right (actions).

    Dashed edges carry the value of the step before; they do not shape the layout.
    """
    nodes = graph_nodes(structure, docs, values)
    lines = [
        "digraph policy {",
        "  rankdir=LR;",
        '  node [shape=box, style="rounded,filled", fontname="sans-serif"];',
        *map(_node, nodes.values()),
    ]
    for node in nodes.values():
        lines += [f"  {_quoted(i)} -> {_quoted(node.name)};" for i in node.inputs]
        lines += [
            f"  {_quoted(i)} -> {_quoted(node.name)} [style=dashed, constraint=false];"
            for i in node.recalled
        ]
    return "\n".join([*lines, "}"]) + "\n"


def _node(node: Node) -> str:
    label = f"{node.name}\n{node.note}" if node.note else node.name
    options = f"label={_quoted(label)}, fillcolor={_quoted(_COLOURS[node.kind])}"
    if node.title:
        options += f", tooltip={_quoted(node.title)}"
    return f"  {_quoted(node.name)} [{options}];"


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
