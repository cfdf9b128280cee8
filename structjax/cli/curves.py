"""`structjax curves`."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import tyro

from structjax.cli.output import as_object, print_json, text_table
from structjax.errors import StructjaxError

if TYPE_CHECKING:
    from structjax.comparison.curves import Curve


@dataclass(frozen=True)
class Curves:
    """Draw return against compute, and tell when a return is reached.

    Bands are pointwise 95 % bootstrap intervals of the mean over training runs. Runs
    that end before they reach a threshold are censored, not dropped.

    Under `--json`: {"x", "y", "curves": [{"label", "x", "mean", "low", "high", "n",
    "unit", "end", "area", "interpolated", "cut"}], "thresholds": [{"label",
    "threshold", "solved", "n", "unit", "restricted_mean", "low", "high", "confidence",
    "median", "horizon"}], "output", "data"}.
    """

    arms: tyro.conf.Positional[tuple[str, ...]]
    """Run directories of `structjax rl` (joined by commas: one arm), or CSV files in
    the format of curve.csv with a column arm: FILE.csv or FILE.csv:ARM."""
    x: Literal["resets", "env_steps", "gradient_steps", "seconds", "flops"] = "resets"
    """The compute, of training only."""
    y: Literal["mean", "worst", "return"] = "mean"
    """Mean or worst return on the selection seeds, or that of the training episodes."""
    threshold: tuple[float, ...] = ()
    """Returns to be reached, e.g. 900."""
    labels: tuple[str, ...] = ()
    """Names of the arms, in their order."""
    output: Path | None = None
    """Where to draw, .png or .svg."""
    log: bool = False
    """Draw the compute on a logarithmic axis."""
    data: Path | None = None
    """Where to write the curves as CSV: arm, compute, mean, low, high, n."""
    json: bool = False
    """Print one JSON object as the last line of stdout."""

    def run_command(self) -> int:
        """Reads, draws, writes and prints."""
        from structjax.comparison.curves import (
            HEIGHTS,
            curve,
            read_curves,
            threshold_times,
        )

        self._check()
        arms = read_curves(self.arms, self.x, self.y, self.labels)
        curves = [curve(arm) for arm in arms]
        labels = [arm.label for arm in arms]
        times = [
            {"label": label, **as_object(row)}
            for threshold in self.threshold
            for label, row in zip(labels, threshold_times(arms, threshold), strict=True)
        ]
        if self.output is not None:
            from structjax.comparison.charts import draw_curves

            draw_curves(
                curves,
                self.output,
                x=self.x,
                y=HEIGHTS[self.y],
                thresholds=self.threshold,
                log=self.log,
            )
        if self.data is not None:
            _write_data(curves, self.x, self.data)
        if self.json:
            self._print_json(curves, times)
        else:
            print(f"{HEIGHTS[self.y]}, against {self.x}\n")
            self._print_text(curves, times)
        return 0

    def _print_json(
        self, curves: "Sequence[Curve]", times: Sequence[dict[str, Any]]
    ) -> None:
        print_json(
            {
                "x": self.x,
                "y": self.y,
                "curves": [as_object(row) for row in curves],
                "thresholds": times,
                "output": self.output and str(self.output),
                "data": self.data and str(self.data),
            }
        )

    def _print_text(
        self, curves: "Sequence[Curve]", times: Sequence[dict[str, Any]]
    ) -> None:
        _print_curves(curves, self.x)
        if times:
            _print_times(times, self.x)
        if written := [str(p) for p in (self.output, self.data) if p is not None]:
            print(f"\nwrote {', '.join(written)}")

    def _check(self) -> None:
        if not self.arms:
            raise StructjaxError(
                "no run is given",
                kind="options",
                hint="name run directories of `structjax rl`",
            )
        if any(not math.isfinite(threshold) for threshold in self.threshold):
            raise StructjaxError(
                "a threshold is not finite",
                kind="options",
                hint="give returns, e.g. --threshold 900",
            )
        if self.output is not None:
            from structjax.comparison.charts import check_picture

            check_picture(self.output)


def _write_data(curves: "Sequence[Curve]", x: str, path: Path) -> None:
    """The curves as tidy CSV; the interval of one run is empty."""
    import pandas as pd

    from structjax.files import write_atomic

    parts = [
        pd.DataFrame(
            {
                "arm": c.label,
                x: c.x,
                "mean": c.mean,
                "low": c.low,
                "high": c.high,
                "n": c.n,
            }
        )
        for c in curves
    ]
    write_atomic(path, pd.concat(parts).to_csv(index=False))


def _print_curves(curves: "Sequence[Curve]", x: str) -> None:
    from structjax.comparison.tables import decimals, ranged

    digits = decimals(c.mean[-1] for c in curves)
    rows = []
    for c in curves:
        ends = [
            ranged(i.estimate, i.low, i.high, digits) if i else ""
            for i in (c.end, c.area)
        ]
        rows.append(
            (
                c.label,
                f"{c.n} {c.unit}",
                str(len(c.x)),
                f"{c.x[-1]:.6g}",
                ends[0] or f"{c.mean[-1]:.{digits}f}",
                ends[1] or "-",
            )
        )
    header = ("arm", "n", "points", x, "return there [95 %]", "normalised AUC [95 %]")
    print(text_table(header, rows))
    print(
        f"\nNormalised AUC: area under the learning curve, divided by its range of {x}."
    )
    _print_curve_notes(curves, x)


def _print_curve_notes(curves: "Sequence[Curve]", x: str) -> None:
    notes = {
        "one run, so no interval": [c.label for c in curves if c.n == 1],
        f"interpolated between evaluations, which are at different {x}": [
            c.label for c in curves if c.interpolated
        ],
        f"drawn up to the end of its shortest run, {x} as above": [
            c.label for c in curves if c.cut
        ],
    }
    lines = [f"{', '.join(labels)}: {note}" for note, labels in notes.items() if labels]
    if lines:
        print("\n" + "\n".join(lines))


def _print_times(times: Sequence[dict[str, Any]], x: str) -> None:
    from structjax.comparison.tables import ranged

    rows = [
        (
            row["label"],
            f"{row['threshold']:g}",
            f"{row['solved']} of {row['n']}",
            ranged(row["restricted_mean"], row["low"], row["high"], 1)
            if row["solved"]
            else f"over {row['horizon']:.6g}",
            f"{row['horizon']:.6g}",
            "not reached" if math.isnan(row["median"]) else f"{row['median']:.6g}",
        )
        for row in times
    ]
    header = (
        *("arm", "return", "runs that reach it", f"mean {x} to it [95 %]"),
        *("within", f"median {x}"),
    )
    print("\n" + text_table(header, rows))
    print(
        "\nIn the mean a run counts with no more than `within`, to which all runs were "
        "followed.\nThe median is Kaplan-Meier's; runs that end earlier are censored."
    )
