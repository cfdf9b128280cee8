"""A comparison as tables and sentences, for a terminal or for a paper."""

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from structjax.comparison.compare import LEVEL, ArmSummary, Comparison, Pair

_LATEX = {
    "\\": r"\textbackslash{}",
    "±": r"$\pm$",
    **{c: "\\" + c for c in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": "$<$",
    ">": "$>$",
}


class Table(NamedTuple):
    """Cells as text, the first column being names."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def arm_table(comparison: Comparison) -> Table:
    """One row per arm."""
    digits = decimals(row.mean for row in comparison.arms)
    # Of an outcome it is not known which end is the bad one.
    least = "worst" if comparison.metric == "return" else "lowest"
    header = ("arm", "mean", "sd", "IQM [95 %]", least, "n", "episodes", "resets")
    rows = tuple(_arm_row(row, digits) for row in comparison.arms)
    return Table(header, rows)


def _arm_row(row: ArmSummary, digits: int) -> tuple[str, ...]:
    return (
        row.label,
        f"{row.mean:.{digits}f}",
        f"{row.std:.{digits}f}",
        ranged(row.iqm.estimate, row.iqm.low, row.iqm.high, digits),
        f"{row.worst:.{digits}f}",
        f"{row.n} {row.unit}",
        str(row.episodes),
        "-" if row.resets is None else f"{row.resets:.0f}",
    )


def pair_table(comparison: Comparison) -> Table:
    """One row per pair."""
    digits = decimals(row.mean for row in comparison.arms)
    header = (
        *("pair", "difference [95 %]", "effect", "p", "Holm p", "perm. p"),
        *("P(1st > 2nd)", "n"),
    )
    return Table(header, tuple(_pair_row(pair, digits) for pair in comparison.pairs))


def _pair_row(pair: Pair, digits: int) -> tuple[str, ...]:
    test, better = pair.test, pair.improvement
    counted = f"{test.n[0]}" if test.paired else f"{test.n[0]} + {test.n[1]}"
    return (
        f"{pair.first} - {pair.second}",
        ranged(test.difference, test.low, test.high, digits, sign="+"),
        f"{pair.effect.kind} {_number(pair.effect.value, 2)}",
        p_value(test.p),
        p_value(pair.holm_p),
        p_value(pair.permutation.p),
        ranged(better.probability, better.low, better.high, 2),
        f"{counted} {test.unit}{', paired' if test.paired else ''}",
    )


def verdicts(comparison: Comparison) -> list[str]:
    """One sentence per pair: which is higher, or that nothing was shown."""
    return [_verdict(pair, len(comparison.pairs)) for pair in comparison.pairs]


def _verdict(pair: Pair, family: int) -> str:
    holm = f"Holm p = {p_value(pair.holm_p)} over {_tests(family)}"
    if pair.test.p == 1 and pair.test.difference == 0 and math.isnan(pair.test.t):
        return f"{pair.first} and {pair.second} are equal on every unit."
    if math.isnan(pair.test.p):
        return (
            f"{pair.first} against {pair.second}: no test is possible, the difference "
            "is the same on every unit."
        )
    if not pair.significant:
        return (
            f"{pair.first} and {pair.second} do NOT differ significantly ({holm}); "
            "that does not show that they are equal."
        )
    above = pair.test.difference > 0
    high, low = (pair.first, pair.second) if above else (pair.second, pair.first)
    return f"{high} is higher than {low}, significantly at {LEVEL:.0%} ({holm})."


def _tests(count: int) -> str:
    return "1 test" if count == 1 else f"{count} tests"


def conditions(comparison: Comparison) -> str:
    """What was played, in one line."""
    marks = {row.checkpoint for row in comparison.arms if row.checkpoint}
    parts = [
        f"{comparison.metric} of {comparison.mode} actions",
        f"{len(comparison.tracks)} {comparison.seeds} tracks "
        f"({comparison.tracks[0]} ... {comparison.tracks[-1]})",
    ]
    if comparison.simulator:
        parts.append(f"simulator {comparison.simulator}")
    if marks:
        parts.append(f"checkpoint {', '.join(sorted(marks))}")
    return "; ".join(parts)


def latex(table: Table, caption: str) -> str:
    """The table in LaTeX, with the rules of the package booktabs."""
    columns = "l" + "r" * (len(table.header) - 1)
    lines = [_latex_row(row) for row in table.rows]
    return "\n".join(
        [
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{escaped(caption)}}}",
            rf"\begin{{tabular}}{{{columns}}}",
            r"\toprule",
            _latex_row(table.header),
            r"\midrule",
            *lines,
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
        ]
    )


def _latex_row(cells: Sequence[str]) -> str:
    return " & ".join(map(escaped, cells)) + r" \\"


def escaped(text: str) -> str:
    """The text with LaTeX's own characters spelled out, hyphens before digits minus."""
    spelled = "".join(_LATEX.get(c, c) for c in text)
    spelled = spelled.replace(r"d\_z ", "$d_z$ ")
    words = [f"$-${w[1:]}" if _negative(w) else w for w in spelled.split(" ")]
    return " ".join(words).replace("[-", "[$-$")


def _negative(word: str) -> bool:
    return word[:1] == "-" and word[1:2].isdigit()


def decimals(values: Iterable[float]) -> int:
    """How many decimals show four significant digits of the largest value."""
    largest = max(map(abs, values))
    return next((d for d, least in ((1, 100), (2, 10), (3, 1)) if largest >= least), 4)


def ranged(value: float, low: float, high: float, digits: int, sign: str = "") -> str:
    """`1.2 [0.8, 1.6]`."""
    middle = _number(value, digits, sign)
    if math.isnan(low):
        return middle
    return f"{middle} [{_number(low, digits)}, {_number(high, digits)}]"


def p_value(p: float) -> str:
    """Three decimals, or powers of ten below 0.001."""
    if math.isnan(p):
        return "-"
    return f"{p:.3f}" if p >= 0.001 else f"{p:.1e}"


def _number(value: float, digits: int, sign: str = "") -> str:
    return "-" if math.isnan(value) else f"{value:{sign}.{digits}f}"
