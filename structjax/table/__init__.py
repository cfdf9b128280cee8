"""The rollout table: one row per (episode, step), with a description of every column.

Analysis code, human or generated, reads this table and nothing else, so all that a
policy saw, thought and did is in it under a name that says what it is.
"""

from structjax.table.build import build_table, demonstration_table
from structjax.table.column import Column, Kind, RolloutTable
from structjax.table.storage import load_table, save_table

__all__ = [
    "Column",
    "Kind",
    "RolloutTable",
    "build_table",
    "demonstration_table",
    "load_table",
    "save_table",
]
