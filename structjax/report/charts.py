"""Charts of a run as inline SVG."""

import io
from collections.abc import Sequence

import matplotlib as mpl
from matplotlib.figure import Figure

_RC = {"svg.fonttype": "none", "font.size": 10, "svg.hashsalt": "structjax"}


def rounds_chart(
    gate: Sequence[Sequence[float]],
    test: Sequence[Sequence[float]],
    accepted: Sequence[bool],
    *,
    metric: str,
) -> str:
    """The metric per round: gate and test episodes apart, mean and every episode."""
    with mpl.rc_context(_RC):  # type: ignore[arg-type]
        figure = Figure(figsize=(7.5, 3.4), layout="constrained")
        axes = figure.subplots()
        for values, label, colour, shift in (
            (gate, "gate seeds (decide)", "#3182ce", -0.08),
            (test, "test seeds (reported)", "#dd6b20", 0.08),
        ):
            means = [sum(row) / len(row) for row in values]
            rounds = [index + shift for index in range(len(values))]
            axes.plot(rounds, means, "-o", color=colour, label=label, ms=5)
            for place, row in zip(rounds, values, strict=True):
                axes.plot([place] * len(row), row, "_", color=colour, alpha=0.5, ms=9)
        for index, ok in enumerate(accepted):
            if not ok:
                axes.axvspan(index - 0.3, index + 0.3, color="#fed7d7", alpha=0.6)
        axes.set_xticks(range(len(gate)))
        axes.set_xlabel("round (red: refused by the gate)")
        axes.set_ylabel(metric)
        axes.grid(alpha=0.25)
        axes.legend(frameon=False)
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    text = buffer.getvalue()
    return text[text.index("<svg") :]
