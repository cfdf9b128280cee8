"""Statistics of returns: tests, effects, intervals, curves and times to a threshold.

Plain functions of NumPy arrays. Every result says how many units it rests on and what a
unit is: training runs, or the tracks of one fixed policy, which are not the same thing.
"""

from structjax.statistics.aggregates import (
    Band,
    Improvement,
    Interval,
    Profile,
    bootstrap,
    bootstrap_band,
    iqm,
    mean,
    performance_profile,
    probability_of_improvement,
    share_improved,
)
from structjax.statistics.significance import (
    Difference,
    Effect,
    Permutation,
    Summary,
    cohens_d,
    hedges_g,
    holm,
    paired,
    paired_dz,
    paired_from_summary,
    permutation_test,
    summary,
    summary_of_ddof0,
    welch,
    welch_from_summaries,
)
from structjax.statistics.thresholds import (
    Reach,
    Survival,
    ThresholdTimes,
    first_reach,
    kaplan_meier,
    time_to_threshold,
)

__all__ = [
    "Band",
    "Difference",
    "Effect",
    "Improvement",
    "Interval",
    "Permutation",
    "Profile",
    "Reach",
    "Summary",
    "Survival",
    "ThresholdTimes",
    "bootstrap",
    "bootstrap_band",
    "cohens_d",
    "first_reach",
    "hedges_g",
    "holm",
    "iqm",
    "kaplan_meier",
    "mean",
    "paired",
    "paired_dz",
    "paired_from_summary",
    "performance_profile",
    "permutation_test",
    "probability_of_improvement",
    "share_improved",
    "summary",
    "summary_of_ddof0",
    "time_to_threshold",
    "welch",
    "welch_from_summaries",
]
