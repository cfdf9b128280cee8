"""`structjax compare`."""

import textwrap
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import tyro

from structjax.cli.output import as_object, print_json, text_table

if TYPE_CHECKING:
    from structjax.comparison import Comparison

_WIDTH = 88


@dataclass(frozen=True)
class Compare:
    """Compare arms: differences with intervals, effects, Holm-adjusted tests.

    An arm is a run directory of `structjax rl` (several joined by commas are one arm,
    each a demonstration), the output of `structjax evaluate --json`, a finished run of
    `structjax refine`, or FILE.csv:ARM; FILE.csv alone gives all its arms. ARM@NAME
    takes the arm at another checkpoint.

    Under `--json`: {"metric", "mode", "seeds", "simulator", "tracks",
    "arms": [{"label", "checkpoint", "mean", "std", "iqm", "worst", "worst_unit",
    "worst_episode", "n", "unit", "runs", "tracks", "episodes", "resets"}],
    "pairs": [{"first", "second", "test": {"difference", "t", "df", "p", "low", "high",
    "confidence", "n", "unit", "paired"}, "holm_p", "significant", "effect",
    "permutation", "improvement", "verdict"}], "notes"}.
    """

    arms: tyro.conf.Positional[tuple[str, ...]]
    """At least two arms."""
    checkpoint: str = "final"
    """Which checkpoint: start, final, best, or a milestone, e.g. resets400."""
    mode: Literal["mean", "sampled"] = "mean"
    """Which action mode."""
    seeds: str | None = None
    """Which set of episodes, or A:B (default: those of an evaluation, test in a
    table)."""
    simulator: str | None = None
    """Which simulator, where several were used."""
    metric: str = "return"
    """What is compared: return, or one of the task's outcomes, e.g. min_distance."""
    against: str | None = None
    """The arm with which the others are compared (default: all pairs)."""
    labels: tuple[str, ...] = ()
    """Names of the arms, in their order."""
    unit: Literal["run", "demonstration", "track"] | None = None
    """Unit of replication (default: runs; tracks where an arm is one policy)."""
    latex: bool = False
    """Print LaTeX tables (package booktabs)."""
    profile: Path | None = None
    """Draw performance profiles of the arms to this file, .png or .svg."""
    json: bool = False
    """Print one JSON object as the last line of stdout."""

    def run_command(self) -> int:
        """Reads, compares and prints."""
        from structjax.comparison import Selection, compare, read_arms

        selection = Selection(
            self.checkpoint, self.mode, self.seeds, self.simulator, self.metric
        )
        arms = read_arms(self.arms, selection, self.labels)
        labels = [arm.label for arm in arms]
        found = compare(arms, against=self._base(labels), unit=self.unit)
        if self.profile is not None:
            from structjax.comparison.charts import draw_profiles

            draw_profiles(arms, self.unit, self.profile)
        if self.json:
            print_json(_as_dict(found))
        elif self.latex:
            _print_latex(found)
        else:
            _print_text(found)
        return 0

    def _base(self, labels: list[str]) -> str | None:
        """The label of `--against`, which may name the arm as the arguments do."""
        from structjax.comparison.sources import parse_name

        if self.against is None or self.against in labels:
            return self.against
        label = parse_name(self.against).label
        return label if label in labels else self.against


def _as_dict(found: "Comparison") -> dict[str, Any]:
    from structjax.comparison.tables import verdicts

    pairs = [
        {**as_object(pair), "verdict": verdict}
        for pair, verdict in zip(found.pairs, verdicts(found), strict=True)
    ]
    return {
        **asdict(found),
        "arms": [as_object(row) for row in found.arms],
        "pairs": pairs,
    }


def _print_text(found: "Comparison") -> None:
    from structjax.comparison.tables import (
        arm_table,
        conditions,
        pair_table,
        verdicts,
    )

    print(conditions(found) + "\n")
    print(text_table(*arm_table(found)) + "\n")
    print(text_table(*pair_table(found)) + "\n")
    print("\n".join(textwrap.fill(line, _WIDTH) for line in verdicts(found)))
    if found.notes:
        print("\n" + "\n".join(textwrap.fill(note, _WIDTH) for note in found.notes))


def _print_latex(found: "Comparison") -> None:
    from structjax.comparison.tables import (
        arm_table,
        conditions,
        latex,
        pair_table,
        verdicts,
    )

    print(latex(arm_table(found), f"Arms: {conditions(found)}."))
    caption = " ".join([*verdicts(found), *found.notes])
    print("\n" + latex(pair_table(found), f"Pairs of arms. {caption}"))
