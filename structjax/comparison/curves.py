"""Return against compute: curves over training runs, and times to a threshold."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from structjax.comparison.compare import WORDS
from structjax.comparison.sources import (
    Run,
    Source,
    chosen_labels,
    named,
    numbers,
    parse_name,
    read_sources,
    runs_of,
)
from structjax.errors import StructjaxError
from structjax.statistics import (
    Interval,
    ThresholdTimes,
    bootstrap,
    bootstrap_band,
    first_reach,
    time_to_threshold,
)

Compute = Literal["resets", "env_steps", "gradient_steps", "seconds", "flops"]
Height = Literal["mean", "worst", "return"]
HEIGHTS: dict[Height, str] = {
    "mean": "mean return on the selection seeds, mean actions",
    "worst": "worst return on the selection seeds, mean actions",
    "return": "return of the training episodes, sampled actions",
}
_POINTS = 300
UNIT = WORDS["run"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class CurveArm:
    """The evaluations of the training runs of one arm.

    Attributes:
      x: compute per run, each `[K_r]` and ascending.
      y: return per run, each `[K_r]`.
    """

    label: str
    runs: tuple[Run, ...]
    x: tuple[Array, ...]
    y: tuple[Array, ...]


class Curve(NamedTuple):
    """The mean over runs against compute, `[K]`, with pointwise 95 % intervals.

    Attributes:
      low: NaN for one run, as is `high`.
      end: the mean at the last point; None for one run.
      area: the normalised area under the curve, its mean over the whole range; None
        for one run.
      interpolated: whether runs were evaluated at different x, and are interpolated.
      cut: whether some runs went on after the last point.
    """

    label: str
    x: Array
    mean: Array
    low: Array
    high: Array
    n: int
    unit: str
    end: Interval | None
    area: Interval | None
    interpolated: bool
    cut: bool


def read_curves(
    names: Sequence[str], x: Compute, y: Height, labels: Sequence[str] = ()
) -> list[CurveArm]:
    """The arms that the arguments of `structjax curves` name.

    Raises:
      StructjaxError: one cannot be read, its numbers are not curves, or the arms are of
        different tasks.
    """
    columns = ("training_seed", "update", x, y)
    sources = [
        source
        for name in names
        for source in read_sources(parse_name(name), "curve.csv", columns)
    ]
    for source in sources:
        if source.checkpoint is not None:
            raise StructjaxError(
                f"a curve has no checkpoint, {source.checkpoint!r} is given",
                kind="checkpoint",
                hint="leave out @CHECKPOINT",
            )
    if len(tasks := sorted({s.task for s in sources if s.task})) > 1:
        raise StructjaxError(
            f"the arms differ in their task: {', '.join(tasks)}",
            kind="task",
            hint="draw arms of the same task",
        )
    chosen = chosen_labels([source.label for source in sources], labels)
    arms = [_arm(source, x, y) for source in sources]
    return [replace(a, label=label) for a, label in zip(arms, chosen, strict=True)]


def _arm(source: Source, x: Compute, y: Height) -> CurveArm:
    rows = _with_start(source.rows, x, y)
    runs = runs_of(rows)
    columns = [numbers(rows, c, source.path) for c in ("update", x, y)]
    values = np.stack(columns, axis=1)
    order = tuple(dict.fromkeys(runs))
    if not order:
        raise StructjaxError(
            f"arm {source.label} ({source.path}) has no update with a {y}",
            kind="curve",
            hint="train it first",
        )
    tables = [_ordered(values[[r == run for r in runs]]) for run in order]
    for run, table in zip(order, tables, strict=True):
        if (np.diff(table[:, 0]) == 0).any() or (np.diff(table[:, 1]) < 0).any():
            raise StructjaxError(
                f"arm {source.label} ({source.path}): {named(run)} has an update "
                f"twice, or its {x} decrease",
                kind="curve",
                hint="give one curve per training run, with cumulative counts",
            )
    return CurveArm(
        source.label,
        order,
        tuple(t[:, 1] for t in tables),
        tuple(t[:, 2] for t in tables),
    )


def _with_start(rows: pd.DataFrame, x: Compute, y: Height) -> pd.DataFrame:
    """The rows, those of before the first update completed or left out.

    No compute is used by then, and no training episode played.
    """
    start = rows["update"].isin(["0", "0.0"])
    rows = rows.assign(**{x: rows[x].where(~start | rows[x].ne(""), "0")})
    return rows[~(start & rows[y].eq(""))]


def _ordered(table: Array) -> Array:
    return table[np.argsort(table[:, 0], kind="stable")]


def curve(arm: CurveArm) -> Curve:
    """The mean over the runs, resampled within demonstrations for the intervals.

    Runs that were evaluated at the same x are taken as they are. Otherwise, e.g. over
    seconds, they are interpolated linearly between their evaluations, over the range
    that all of them cover.

    Raises:
      StructjaxError: their ranges do not overlap.
    """
    first, last = max(x[0] for x in arm.x), min(x[-1] for x in arm.x)
    if last < first:
        raise StructjaxError(
            f"the runs of arm {arm.label} have no range in common: one begins at "
            f"{first:g}, another ends at {last:g}",
            kind="curve",
            hint="give runs of the same budget",
        )
    grid = np.unique(np.concatenate(arm.x))
    grid = grid[(grid >= first) & (grid <= last)]
    same = all(np.isin(grid, x).all() for x in arm.x)
    if not same and len(grid) > _POINTS:
        grid = np.linspace(first, last, _POINTS)
    heights = np.stack(
        [np.interp(grid, x, y) for x, y in zip(arm.x, arm.y, strict=True)]
    )
    cut = any(x[-1] > last for x in arm.x)
    return _banded(arm, grid, heights, interpolated=not same, cut=cut)


def _banded(
    arm: CurveArm, grid: Array, heights: Array, *, interpolated: bool, cut: bool
) -> Curve:
    """The curve of heights `[R, K]` on a grid `[K]`."""
    mean, n = heights.mean(0), len(heights)
    low = high = np.full_like(mean, np.nan)
    end = area = None
    if n > 1:
        strata = [run.demonstration for run in arm.runs]
        band = bootstrap_band(heights, unit=UNIT, strata=strata)
        low, high = band.low, band.high
        end = bootstrap(heights[:, -1], unit=UNIT, strata=strata)
        area = bootstrap(_height(grid, heights), unit=UNIT, strata=strata)
    return Curve(
        arm.label, grid, mean, low, high, n, UNIT, end, area, interpolated, cut
    )


def _height(grid: Array, heights: Array) -> Array:
    """The area under each curve divided by the width (normalised AUC), `[R]`."""
    width = grid[-1] - grid[0]
    if width == 0:
        return heights[:, -1]
    return np.asarray(np.trapezoid(heights, grid, axis=1) / width)


def threshold_times(arms: Sequence[CurveArm], threshold: float) -> list[ThresholdTimes]:
    """Per arm the time to a threshold, means restricted to one horizon for all."""
    reaches = [
        [first_reach(x, y, threshold) for x, y in zip(arm.x, arm.y, strict=True)]
        for arm in arms
    ]
    every = [reach for arm in reaches for reach in arm]
    censored = [reach.time for reach in every if not reach.reached]
    horizon = min(censored or [max(float(x[-1]) for arm in arms for x in arm.x)])
    return [
        time_to_threshold(arm, threshold, unit=UNIT, horizon=horizon) for arm in reaches
    ]
