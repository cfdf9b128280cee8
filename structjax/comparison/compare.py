"""Compares arms: per arm a summary, per pair a test within one declared family."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from structjax.comparison.arms import Arm
from structjax.errors import StructjaxError
from structjax.statistics import (
    Difference,
    Effect,
    Improvement,
    Interval,
    Permutation,
    bootstrap,
    hedges_g,
    holm,
    iqm,
    paired,
    paired_dz,
    permutation_test,
    probability_of_improvement,
    share_improved,
    summary,
    welch,
)

Unit = Literal["run", "demonstration", "track"]
WORDS: dict[Unit, str] = {
    "run": "training runs",
    "demonstration": "demonstrations",
    "track": "tracks",
}
LEVEL = 0.05


class ArmSummary(NamedTuple):
    """One arm over its units.

    Attributes:
      std: sample standard deviation over units (ddof 1).
      worst: the lowest unit; worst_unit says which.
      worst_episode: the lowest single return.
      resets: of training, mean over runs; None if not recorded.
    """

    label: str
    checkpoint: str
    mean: float
    std: float
    iqm: Interval
    worst: float
    worst_unit: str
    worst_episode: float
    n: int
    unit: str
    runs: int
    tracks: int
    episodes: int
    resets: float | None


class Pair(NamedTuple):
    """The difference first - second, and how sure one can be of it.

    Attributes:
      holm_p: adjusted within the family of all pairs of the comparison.
      significant: whether it is below 5 %.
    """

    first: str
    second: str
    test: Difference
    holm_p: float
    significant: bool
    effect: Effect
    permutation: Permutation
    improvement: Improvement


@dataclass(frozen=True)
class Comparison:
    """Arms under the same conditions, and the family of pairs that was tested."""

    metric: str
    mode: str
    seeds: str
    simulator: str
    tracks: tuple[int, ...]
    arms: tuple[ArmSummary, ...]
    pairs: tuple[Pair, ...]
    notes: tuple[str, ...]


class Units(NamedTuple):
    """The values `[n]` of an arm's units, what they are, and their strata."""

    values: NDArray[np.float64]
    keys: tuple[str, ...]
    strata: tuple[str, ...] | None
    unit: str


def compare(
    arms: Sequence[Arm], *, against: str | None = None, unit: Unit | None = None
) -> Comparison:
    """Compares every arm with every other, or all with one.

    Args:
      arms: on the same tracks, in the same mode.
      against: label of the arm that the others are compared with; by default all pairs
        are the family.
      unit: of replication. By default training runs, paired by (demonstration, training
        seed) where both arms have the same; else demonstrations, where both have the
        same; else Welch's test. Where an arm is one fixed policy: tracks, paired; with
        `"run"` its mean counts as a constant.

    Raises:
      StructjaxError: different conditions, no such arm, or one unit only.
    """
    _check_conditions(arms)
    tested = [_test(a, b, unit) for a, b in _family(arms, against)]
    adjusted = holm([pair.test.p for pair in tested])
    pairs = tuple(
        pair._replace(holm_p=p, significant=bool(p < LEVEL))
        for pair, p in zip(tested, adjusted, strict=True)
    )
    summaries = tuple(_summary(arm, unit) for arm in arms)
    first = arms[0]
    return Comparison(
        metric=first.metric,
        mode=first.mode,
        seeds=first.seeds,
        simulator=first.simulator,
        tracks=first.tracks,
        arms=summaries,
        pairs=pairs,
        notes=tuple(_notes(arms, summaries, pairs)),
    )


def _family(arms: Sequence[Arm], against: str | None) -> list[tuple[Arm, Arm]]:
    if against is None:
        return list(combinations(arms, 2))
    base = [arm for arm in arms if arm.label == against]
    if not base:
        raise StructjaxError(
            f"--against {against!r} is none of the arms",
            kind="options",
            hint=f"they are {', '.join(arm.label for arm in arms)}",
        )
    return [(arm, base[0]) for arm in arms if arm is not base[0]]


def _check_conditions(arms: Sequence[Arm]) -> None:
    first = arms[0]
    for arm in arms[1:]:
        if arm.tracks != first.tracks:
            raise StructjaxError(
                f"arms {first.label} and {arm.label} were played on different tracks: "
                f"{_listed(first.tracks)} and {_listed(arm.tracks)}",
                kind="tracks",
                hint="evaluate both on the same episode seeds",
            )
        for what in ("task", "metric", "mode", "simulator"):
            one, other = getattr(first, what), getattr(arm, what)
            if one and other and one != other:
                raise StructjaxError(
                    f"arms {first.label} and {arm.label} differ in their {what}: "
                    f"{one} and {other}",
                    kind=what,
                    hint=f"compare arms of the same {what}",
                )


def _listed(tracks: Sequence[int]) -> str:
    if len(tracks) < 4:
        return ", ".join(map(str, tracks))
    return f"{len(tracks)} from {tracks[0]} to {tracks[-1]}"


def units(arm: Arm, unit: Unit) -> Units:
    """The units of an arm: means over whatever is not a unit.

    Raises:
      StructjaxError: there is only one.
    """
    labels = tuple(run.demonstration for run in arm.runs)
    strata: tuple[str, ...] | None = None
    if unit == "track":
        values, keys = arm.returns.mean(0), tuple(map(str, arm.tracks))
    elif unit == "run":
        values, strata = arm.returns.mean(1), labels
        keys = tuple("/".join(filter(None, run)) for run in arm.runs)
    else:
        keys = tuple(dict.fromkeys(labels))
        per_run = arm.returns.mean(1)
        values = np.array([per_run[np.array(labels) == key].mean() for key in keys])
    if len(values) < 2:
        raise StructjaxError(
            f"arm {arm.label} has one unit only ({unit}): no interval and no test is "
            "possible",
            kind="units",
            hint="train on more seeds, or evaluate on more tracks",
        )
    return Units(values, keys, strata, WORDS[unit])


def own_units(arm: Arm, unit: Unit | None) -> Units:
    """What an arm is summarised over: a fixed policy has no runs, it has tracks.

    Raises:
      StructjaxError: there is only one.
    """
    if arm.fixed and unit in (None, "run"):
        return units(arm, "track")
    return units(arm, unit or "run")


def _unit(first: Arm, second: Arm) -> Unit:
    """The unit of replication that two arms allow."""
    if first.fixed or second.fixed:
        return "track"
    if set(first.runs) == set(second.runs):
        return "run"
    shown = [{run.demonstration for run in arm.runs} for arm in (first, second)]
    return "demonstration" if shown[0] == shown[1] and len(shown[0]) > 1 else "run"


def _test(first: Arm, second: Arm, unit: Unit | None) -> Pair:
    unit = unit or _unit(first, second)
    if unit == "run" and first.fixed != second.fixed:
        return _against_constant(first, second)
    a, b = units(first, unit), units(second, unit)
    if set(a.keys) == set(b.keys):
        return _paired(first.label, second.label, a, _ordered_as(b, a.keys))
    test = welch(a.values, b.values, unit=a.unit)
    effect = hedges_g(summary(a.values), summary(b.values), unit=a.unit)
    return _pair(first.label, second.label, a, b, test, effect)


def _against_constant(first: Arm, second: Arm) -> Pair:
    """Training runs of one arm against the mean of a fixed policy."""
    runs = units(second if first.fixed else first, "run")
    policy = first if first.fixed else second
    constant = runs._replace(values=np.full_like(runs.values, policy.returns.mean()))
    a, b = (constant, runs) if first.fixed else (runs, constant)
    return _paired(first.label, second.label, a, b)


def _paired(first: str, second: str, a: Units, b: Units) -> Pair:
    test = paired(a.values, b.values, unit=a.unit)
    effect = paired_dz(a.values, b.values, unit=a.unit)
    return _pair(first, second, a, b, test, effect)


def _pair(
    first: str, second: str, a: Units, b: Units, test: Difference, effect: Effect
) -> Pair:
    permutation = permutation_test(a.values, b.values, unit=a.unit, paired=test.paired)
    if a.strata is None and test.paired:  # each track or demonstration is a stratum
        improvement = share_improved(a.values, b.values, unit=a.unit)
    else:
        strata = (a.strata, b.strata) if a.strata and b.strata else None
        improvement = probability_of_improvement(
            a.values, b.values, unit=a.unit, strata=strata
        )
    return Pair(first, second, test, np.nan, False, effect, permutation, improvement)


def _ordered_as(units: Units, keys: tuple[str, ...]) -> Units:
    places = [units.keys.index(key) for key in keys]
    strata = units.strata and tuple(units.strata[i] for i in places)
    return Units(units.values[places], keys, strata, units.unit)


def _summary(arm: Arm, unit: Unit | None) -> ArmSummary:
    own = own_units(arm, unit)
    worst = int(own.values.argmin())
    return ArmSummary(
        label=arm.label,
        checkpoint=arm.checkpoint,
        mean=float(own.values.mean()),
        std=float(own.values.std(ddof=1)),
        iqm=bootstrap(own.values, iqm, unit=own.unit, strata=own.strata),
        worst=float(own.values[worst]),
        worst_unit=own.keys[worst],
        worst_episode=float(arm.returns.min()),
        n=len(own.values),
        unit=own.unit,
        runs=len(arm.runs),
        tracks=len(arm.tracks),
        episodes=arm.returns.size,
        resets=arm.resets,
    )


def _notes(
    arms: Sequence[Arm], summaries: Sequence[ArmSummary], pairs: Sequence[Pair]
) -> list[str]:
    """What a reader must know to read the numbers."""
    notes = []
    tested = {pair.test.unit for pair in pairs}
    fixed = ", ".join(arm.label for arm in arms if arm.fixed)
    each = " each" if "," in fixed else ""
    who = f"{fixed}: one fixed policy{each}. " if fixed else ""
    if WORDS["track"] in tested:
        notes.append(
            f"{who}Where the unit is the track, tracks are not independent training "
            "runs: the test is about these policies on such tracks, not about the "
            "methods that made them, and the spread over training seeds is not in it."
        )
    elif fixed:
        notes.append(f"{who}Its mean counts as a constant.")
    many = [a for a in arms if 1 < len({r.demonstration for r in a.runs}) < len(a.runs)]
    if many and WORDS["run"] in tested:
        notes.append(
            "Runs are resampled within their demonstration: the intervals hold for "
            "these demonstrations. --unit demonstration tests over demonstrations."
        )
    if any(not pair.test.paired for pair in pairs):
        notes.append("Arms without common units are compared by Welch's test.")
    if any(row.n < 10 for row in summaries):
        notes.append(
            "With fewer than 10 units bootstrap intervals are too narrow: of 5 units, "
            "95 % ones cover 85 to 91 %."
        )
    least = max(pair.permutation.smallest for pair in pairs)
    if least > LEVEL:
        notes.append(f"So few units allow no permutation p below {least:.3g}.")
    return notes
