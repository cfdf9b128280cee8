"""Arms of an experiment, and what the difference between them is."""

from structjax.comparison.arms import Arm, Selection, read_arms
from structjax.comparison.compare import ArmSummary, Comparison, Pair, compare
from structjax.comparison.sources import Run

__all__ = [
    "Arm",
    "ArmSummary",
    "Comparison",
    "Pair",
    "Run",
    "Selection",
    "compare",
    "read_arms",
]
