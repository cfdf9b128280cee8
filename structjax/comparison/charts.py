"""Curves and performance profiles as PNG or SVG."""

import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from structjax.comparison.arms import Arm
from structjax.comparison.compare import Unit, own_units
from structjax.comparison.curves import Curve
from structjax.errors import StructjaxError
from structjax.files import write_atomic
from structjax.statistics import Profile, performance_profile

_RC = {"svg.fonttype": "none", "font.size": 10, "svg.hashsalt": "structjax"}
_LINES = ("-", "--", "-.", ":")
FORMATS = (".png", ".svg")


class _Line(NamedTuple):
    """One line `[K]` with its band."""

    label: str
    x: Any
    y: Any
    low: Any
    high: Any


def check_picture(path: Path) -> None:
    """Refuses a file that is to hold a picture and is neither PNG nor SVG.

    Raises:
      StructjaxError: another suffix.
    """
    if path.suffix not in FORMATS:
        raise StructjaxError(
            f"cannot draw to {str(path)!r}",
            kind="options",
            hint=f"its name ends with {' or '.join(FORMATS)}",
        )


def draw_curves(
    curves: Sequence[Curve],
    path: Path,
    *,
    x: str,
    y: str,
    thresholds: Sequence[float] = (),
    log: bool = False,
) -> None:
    """Draws return against compute with the bands, and thresholds as level lines."""

    def finish(axes: Any) -> None:
        for threshold in thresholds:
            axes.axhline(threshold, color="0.5", lw=0.8, ls=":")
        if log:
            axes.set_xscale("symlog" if min(c.x[0] for c in curves) <= 0 else "log")

    lines = [_Line(f"{c.label} (n={c.n})", c.x, c.mean, c.low, c.high) for c in curves]
    _draw(lines, path, x=x, y=y, finish=finish)


def draw_profiles(arms: Sequence[Arm], unit: Unit | None, path: Path) -> None:
    """Draws the share of units above each return, per arm, with the bands."""
    lines = [
        _Line(f"{label} (n={p.n} {p.unit})", p.thresholds, p.share, p.low, p.high)
        for label, p in profiles(arms, unit)
    ]
    _draw(lines, path, x=f"{arms[0].metric} above", y="share of units")


def profiles(arms: Sequence[Arm], unit: Unit | None) -> list[tuple[str, Profile]]:
    """The performance profile of each arm, over the range of all of them."""
    chosen = [own_units(arm, unit) for arm in arms]
    low = min(float(u.values.min()) for u in chosen)
    high = max(float(u.values.max()) for u in chosen)
    levels = np.linspace(low - 0.02 * (high - low), high, 101)
    return [
        (a.label, performance_profile(u.values, levels, unit=u.unit, strata=u.strata))
        for a, u in zip(arms, chosen, strict=True)
    ]


def _draw(
    lines: Sequence[_Line],
    path: Path,
    *,
    x: str,
    y: str,
    finish: Callable[[Any], None] = lambda axes: None,
) -> None:
    check_picture(path)
    with mpl.rc_context(_RC):  # type: ignore[arg-type]
        figure = Figure(figsize=(6.4, 4.0), layout="constrained")
        axes = figure.subplots()
        for index, line in enumerate(lines):
            colour, style = f"C{index % 10}", _LINES[index // 10 % len(_LINES)]
            axes.plot(line.x, line.y, style, color=colour, label=line.label, lw=1.5)
            axes.fill_between(
                line.x, line.low, line.high, color=colour, alpha=0.2, lw=0
            )
        axes.set_xlabel(x)
        axes.set_ylabel(y)
        axes.grid(alpha=0.25)
        axes.legend(frameon=False)
        finish(axes)
        buffer = io.BytesIO()
        metadata = {"Date": None} if path.suffix == ".svg" else None
        figure.savefig(buffer, format=path.suffix[1:], dpi=150, metadata=metadata)
    write_atomic(path, buffer.getvalue())
