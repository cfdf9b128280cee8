"""An arm: the returns of its policies, per training run and per track."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from structjax.comparison.sources import (
    Name,
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
from structjax.forms import mismatch, read_form
from structjax.manifest import EVALUATION, read_manifest
from structjax.outcomes import OUTCOME
from structjax.tasks.base import DEFAULT_SEEDS

COLUMNS = ("training_seed", "checkpoint", "mode", "episode_seed")
RETURN = "return"


@dataclass(frozen=True)
class Selection:
    """Which of the recorded episodes count.

    Attributes:
      checkpoint: unless an arm names its own.
      seeds: name of the set of episodes, or A:B; None for the test's where there are
        several.
      simulator: None where only one was used.
      metric: `return`, or the name of one of the task's outcomes.
    """

    checkpoint: str = "final"
    mode: str = "mean"
    seeds: str | None = None
    simulator: str | None = None
    metric: str = RETURN

    @property
    def column(self) -> str:
        """Where `evaluations.csv` has it."""
        return RETURN if self.metric == RETURN else f"{OUTCOME}{self.metric}"


@dataclass(frozen=True, eq=False)
class Arm:
    """One arm under stated conditions.

    Attributes:
      returns: `[R, E]`, R training runs on the same E tracks.
      runs: R of them; one only is a fixed policy.
      tracks: the E episode seeds, ascending.
      resets: of training behind the checkpoint, mean over runs; None if not recorded.
    """

    label: str
    returns: NDArray[np.float64]
    runs: tuple[Run, ...]
    tracks: tuple[int, ...]
    checkpoint: str
    mode: str
    seeds: str
    simulator: str
    metric: str = "return"
    task: str | None = None
    resets: float | None = None

    @property
    def fixed(self) -> bool:
        """Whether it is one policy rather than a sample of training runs."""
        return len(self.runs) == 1


def read_arms(
    names: Sequence[str], selection: Selection, labels: Sequence[str] = ()
) -> list[Arm]:
    """The arms that the arguments of `structjax compare` name.

    Raises:
      StructjaxError: one cannot be read or lacks what is selected; fewer than two; two
        with the same label.
    """
    arms = [arm for name in names for arm in _read(parse_name(name), selection)]
    if len(arms) < 2:
        found = ", ".join(arm.label for arm in arms) or "none"
        raise StructjaxError(
            f"a comparison needs two arms, given: {found}",
            kind="arm",
            hint="name two runs or files, or a CSV file with several arms",
        )
    chosen = chosen_labels([arm.label for arm in arms], labels)
    return [replace(a, label=label) for a, label in zip(arms, chosen, strict=True)]


def _read(name: Name, selection: Selection) -> list[Arm]:
    path = name.paths[0]
    if len(name.paths) == 1:
        if path.suffix == ".json":
            return [_evaluated(name, path, selection)]
        if _has_evaluation(path):
            return [_evaluated_run(name, path, selection)]
    columns = (*COLUMNS, selection.column)
    sources = read_sources(name, "evaluations.csv", columns)
    return [arm_of(source, selection) for source in sources]


def _has_evaluation(path: Path) -> bool:
    """Whether it is a finished run of refinement."""
    recorded = path / "manifest.json"
    if (path / "evaluations.csv").exists() or not recorded.exists():
        return False
    return "evaluation" in read_manifest(path)


def _evaluated(name: Name, path: Path, selection: Selection) -> Arm:
    evaluation = read_form(
        path,
        EVALUATION,
        what="an evaluation",
        kind="arm",
        hint="write it with `structjax evaluate POLICY --json > FILE.json`",
    )
    return _fixed(name, evaluation, path, selection)


def _evaluated_run(name: Name, path: Path, selection: Selection) -> Arm:
    manifest = read_manifest(path)
    key = "sampled_evaluation" if selection.mode == "sampled" else "evaluation"
    if problem := mismatch(manifest.get(key), EVALUATION, key):
        text = f"{path / 'manifest.json'} is not the manifest of a run: {problem}"
        raise StructjaxError(text, kind="arm", hint="give a finished run")
    return _fixed(name, manifest[key], path, selection, use="test")


def _fixed(
    name: Name,
    evaluation: dict[str, Any],
    path: Path,
    selection: Selection,
    use: str | None = None,
) -> Arm:
    """The arm of one policy that was evaluated once, on the seeds of a known use."""
    if name.checkpoint is not None:
        text = f"{path} holds one policy, no checkpoint {name.checkpoint!r}"
        raise StructjaxError(text, kind="checkpoint", hint="leave out @CHECKPOINT")
    for key in ("mode", "simulator"):
        wanted = getattr(selection, key)
        if wanted not in (None, evaluation[key]):
            raise _absent(path, key, wanted, [evaluation[key]])
    seeds, values = evaluation["seeds"], _values(evaluation, path, selection.metric)
    if not seeds or len(seeds) != len(values):
        counts = f"{len(seeds)} seeds and {len(values)} values"
        text = f"{path} is not an evaluation: it has {counts}"
        raise StructjaxError(text, kind="arm", hint="write it again")
    _check_seeds(path, seeds, selection.seeds, use)
    rows = {
        "training_seed": "",
        "episode_seed": list(map(str, seeds)),
        selection.column: list(map(str, values)),
    }
    source = Source(name.label, pd.DataFrame(rows), path, evaluation["task"])
    runs, tracks, returns = _matrix(source.rows, source, selection.column)
    return Arm(
        label=source.label,
        returns=returns,
        runs=runs,
        tracks=tracks,
        checkpoint="",
        mode=evaluation["mode"],
        seeds=_set_of(seeds),
        simulator=evaluation["simulator"],
        metric=selection.metric,
        task=source.task,
    )


def _check_seeds(
    path: Path, seeds: Sequence[int], asked: str | None, use: str | None
) -> None:
    """Refuses an evaluation on other seeds than the set or the range that is asked."""
    own = {_set_of(seeds), _span(seeds), use}
    if asked is not None and asked not in own:
        raise _absent(path, "seeds", asked, [_set_of(seeds)])


def _values(evaluation: dict[str, Any], path: Path, metric: str) -> list[Any]:
    """What an evaluation has of a metric, per episode."""
    known = {evaluation["metric"]: {"values": evaluation["values"]}}
    known |= evaluation.get("outcomes") or {}
    if metric not in known:
        raise _absent(path, "metric", metric, list(known))
    found: list[Any] = known[metric]["values"]
    return found


def _set_of(seeds: Sequence[int]) -> str:
    """The name of a set of seeds; their range where they are no known one."""
    for use, known in DEFAULT_SEEDS.items():
        if list(known) == list(seeds):
            return use
    return _span(seeds)


def _span(seeds: Sequence[int]) -> str:
    return f"{min(seeds)}:{max(seeds) + 1}"


def arm_of(source: Source, selection: Selection) -> Arm:
    """The arm that the selected rows of a table amount to.

    Raises:
      StructjaxError: no such rows, returns that are not finite, an episode twice, or
        runs on different tracks.
    """
    checkpoint = source.checkpoint or selection.checkpoint
    rows = source.rows
    for column in ("seeds", "simulator"):
        if column not in rows and getattr(selection, column) is not None:
            raise _untold(source, column)
    seeds = selection.seeds or "test"
    wanted = {"checkpoint": checkpoint, "mode": selection.mode,
              "seeds": seeds, "simulator": selection.simulator}  # fmt: skip
    for column, value in wanted.items():
        rows = _with(rows, column, value, source)
    runs, tracks, returns = _matrix(rows, source, selection.column)
    resets = None
    if "resets" in rows and rows["resets"].ne("").all():
        resets = float(numbers(rows, "resets", source.path).mean())
    if resets == 0:
        runs, returns = _distinct(runs, returns)
    return Arm(
        label=source.label,
        returns=returns,
        runs=runs,
        tracks=tracks,
        checkpoint=checkpoint,
        mode=selection.mode,
        seeds=seeds,
        simulator=str(rows["simulator"].iloc[0]) if "simulator" in rows else "",
        metric=selection.metric,
        task=source.task,
        resets=resets,
    )


def _distinct(
    runs: tuple[Run, ...], returns: NDArray[np.float64]
) -> tuple[tuple[Run, ...], NDArray[np.float64]]:
    """Untrained runs of a demonstration with equal returns are one policy, not many."""
    kept: dict[tuple[str, bytes], int] = {}
    for index, run in enumerate(runs):
        kept.setdefault((run.demonstration, returns[index].tobytes()), index)
    places = list(kept.values())
    return tuple(runs[i] for i in places), returns[places]


def _with(
    rows: pd.DataFrame, column: str, value: str | None, source: Source
) -> pd.DataFrame:
    """The rows with a value in a column; any, if it is None and they all have one."""
    if column not in rows:
        return rows
    known = list(dict.fromkeys(rows[column]))
    if value is None and len(known) == 1:
        return rows
    if value not in known:
        raise _absent(f"arm {source.label} ({source.path})", column, value, known)
    return rows[rows[column] == value]


def _untold(source: Source, column: str) -> StructjaxError:
    return StructjaxError(
        f"arm {source.label} ({source.path}) does not say its {column}",
        kind=column,
        hint=f"add a column {column}, or leave out --{column}",
    )


def _absent(
    where: object, column: str, value: str | None, known: Sequence[str]
) -> StructjaxError:
    has = ", ".join(map(str, known))
    if value is None:
        return StructjaxError(
            f"{where} has several values of {column}: {has}",
            kind=column,
            hint=f"choose one with --{column}",
        )
    hint = f"it has {has}"
    if column == "checkpoint":
        hint += "; --checkpoint NAME chooses for all arms, ARM@NAME for one"
    return StructjaxError(f"{where} has no {column} {value!r}", kind=column, hint=hint)


def _matrix(
    rows: pd.DataFrame, source: Source, column: str
) -> tuple[tuple[Run, ...], tuple[int, ...], NDArray[np.float64]]:
    """Runs, tracks and values `[R, E]` of a column of rows, one per episode."""
    values = numbers(rows, column, source.path)
    tracks = numbers(rows, "episode_seed", source.path).astype(int)
    runs = runs_of(rows)
    cells = dict(zip(zip(runs, tracks, strict=True), values, strict=True))
    if len(cells) < len(rows):
        (run, track), _ = Counter(zip(runs, tracks, strict=True)).most_common(1)[0]
        raise StructjaxError(
            f"arm {source.label} ({source.path}) has two returns of {named(run)} on "
            f"track {track}",
            kind="returns",
            hint="one row per episode is accepted",
        )
    order = tuple(dict.fromkeys(runs))
    every = tuple(sorted(set(tracks)))
    for run in order:
        if lacking := [t for t in every if (run, t) not in cells]:
            raise StructjaxError(
                f"arm {source.label} ({source.path}): {named(run)} was not played on "
                f"track {lacking[0]} as others were ({len(lacking)} lacking)",
                kind="tracks",
                hint="evaluate all runs on the same tracks",
            )
    returns = np.array([[cells[run, track] for track in every] for run in order])
    return order, every, returns
