"""Where arms come from: run directories and tidy CSV files, named on a command line.

`PATH[:ARM][@CHECKPOINT]`: a table with a column `arm` holds several. Several run
directories joined by commas are one arm, each being one demonstration of it.
"""

import csv
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from structjax.errors import StructjaxError
from structjax.files import read_text
from structjax.manifest import read_manifest

HINT = (
    "an arm is a run directory of `structjax rl`, the output of `structjax evaluate "
    "--json`, or a CSV file with a column arm: FILE.csv or FILE.csv:ARM"
)


class Run(NamedTuple):
    """Which training run: its demonstration, where there are several, and its seed."""

    demonstration: str
    seed: str


@dataclass(frozen=True)
class Name:
    """What one argument names."""

    paths: tuple[Path, ...]
    arm: str | None = None
    checkpoint: str | None = None

    @property
    def label(self) -> str:
        """How tables call it unless told otherwise."""
        name = self.arm or _stem(self.paths[0])
        return f"{name}@{self.checkpoint}" if self.checkpoint else name


@dataclass(frozen=True, eq=False)
class Source:
    """The rows of one arm as text, one column per CSV column, and whose they are."""

    label: str
    rows: pd.DataFrame
    path: Path
    task: str | None = None
    checkpoint: str | None = None


def parse_name(text: str) -> Name:
    """The argument `PATH[:ARM][@CHECKPOINT]` or `RUN,RUN...[@CHECKPOINT]`.

    What exists as a file is a path, whatever characters it has.
    """
    if Path(text).exists():
        return Name((Path(text),))
    stem, at, checkpoint = text.rpartition("@")
    if at and stem and checkpoint:
        return replace(parse_name(stem), checkpoint=checkpoint)
    stem, colon, arm = text.rpartition(":")
    if colon and arm and (stem.endswith(".csv") or Path(stem).is_dir()):
        return Name((Path(stem),), arm=arm)
    return Name(tuple(Path(part) for part in text.split(",") if part) or (Path(text),))


def read_sources(name: Name, file: str, columns: Sequence[str]) -> list[Source]:
    """The tables that an argument names.

    Args:
      name: the argument.
      file: the CSV file of a run directory.
      columns: that its table must have.

    Raises:
      StructjaxError: a file is missing, is no such table, or has no such arm.
    """
    if len(name.paths) == 1:
        path = name.paths[0]
        if path.is_dir():
            wanted = [*columns, "arm"] if name.arm else columns
            rows = read_rows(_inside(path, file), wanted)
            if "arm" in rows:
                return _arms(name, rows, _task(path))
            return [Source(name.label, rows, path, _task(path), name.checkpoint)]
        return _arms(name, read_rows(path, [*columns, "arm"]), None)
    parts = []
    for number, path in enumerate(name.paths, 1):
        part = read_rows(_inside(path, file), columns)
        if "demonstration" not in part:
            part["demonstration"] = str(number)
        parts.append(part)
    if len(tasks := {_task(path) for path in name.paths}) > 1:
        known = ", ".join(sorted(map(str, tasks)))
        raise _unreadable(f"{name.label} joins runs of different tasks: {known}")
    rows = pd.concat(parts, ignore_index=True).fillna("")
    return [Source(name.label, rows, name.paths[0], tasks.pop(), name.checkpoint)]


def read_rows(path: Path, columns: Sequence[str]) -> pd.DataFrame:
    """A CSV table with its values as text.

    Raises:
      StructjaxError: it cannot be read, has no rows, or lacks a column.
    """
    text = read_text(path, kind="arm", hint=HINT)
    try:
        header, *lines = list(filter(None, csv.reader(text.splitlines()))) or [[]]
    except csv.Error as error:
        raise _unreadable(f"{path} is not a CSV table: {error}") from error
    if lacking := [column for column in columns if column not in header]:
        raise _unreadable(f"{path} has no column {', '.join(lacking)}")
    if len(set(header)) < len(header):
        raise _unreadable(f"{path} has two columns of one name")
    if not lines:
        raise _unreadable(f"{path} has no rows")
    for number, line in enumerate(lines, 1):
        if len(line) != len(header):  # torn by a kill, or no CSV at all
            counts = f"{len(line)} fields, not {len(header)}"
            raise _unreadable(f"{path}: row {number} has {counts}")
    return pd.DataFrame(lines, columns=header)


def numbers(rows: pd.DataFrame, column: str, path: Path) -> pd.Series:
    """A column as finite numbers.

    Raises:
      StructjaxError: some are not.
    """
    values = pd.to_numeric(rows[column], errors="coerce").astype(float)
    bad = ~values.abs().lt(float("inf"))
    if bad.any():
        first = rows[bad].iloc[0]
        keys = ("arm", "demonstration", "training_seed", "episode_seed", "update")
        where = ", ".join(f"{k} {first[k]}" for k in keys if first.get(k))
        raise StructjaxError(
            f"{path}: {int(bad.sum())} of {len(rows)} values of {column} are not "
            f"finite, the first at {where or 'the first row'}: {first[column]!r:.40}",
            kind="returns",
            hint="find out why that run failed; nothing is dropped silently",
        )
    return values


def runs_of(rows: pd.DataFrame) -> list[Run]:
    """Which run each row is of."""
    demonstrations = rows.get("demonstration", pd.Series("", rows.index))
    # pandas writes 3.0 for a seed of 3 where other arms have none.
    columns = (demonstrations, rows["training_seed"])
    plain = [[x.removesuffix(".0") for x in column] for column in columns]
    return list(map(Run, *plain))


def named(run: Run) -> str:
    """A run in words."""
    parts = (("demonstration", run.demonstration), ("training seed", run.seed))
    return ", ".join(f"{what} {x}" for what, x in parts if x) or "the policy"


def chosen_labels(own: Sequence[str], given: Sequence[str]) -> Sequence[str]:
    """The labels of arms: those given, else their own.

    Raises:
      StructjaxError: another number of labels than arms, or one label twice.
    """
    if given and len(given) != len(own):
        raise StructjaxError(
            f"{len(given)} labels for {len(own)} arms ({', '.join(own)})",
            kind="options",
            hint="give --labels one for each, in this order",
        )
    labels = list(given or own)
    if twice := [x for x in labels if labels.count(x) > 1]:
        raise StructjaxError(
            f"two arms are called {twice[0]!r}",
            kind="options",
            hint=f"give --labels {len(own)} different names",
        )
    return labels


def _arms(name: Name, rows: pd.DataFrame, task: str | None) -> list[Source]:
    """One source per arm of a table, or the one that is named."""
    path = name.paths[0]
    labels = list(dict.fromkeys(rows["arm"]))
    if name.arm is not None and name.arm not in labels:
        raise StructjaxError(
            f"{path} has no arm {name.arm!r}",
            kind="arm",
            hint=f"it has {', '.join(labels)}",
        )
    chosen = labels if name.arm is None else [name.arm]
    return [
        Source(
            replace(name, arm=label).label,
            rows[rows["arm"] == label].reset_index(drop=True),
            path,
            task,
            name.checkpoint,
        )
        for label in chosen
    ]


def _inside(run: Path, file: str) -> Path:
    """The table of a run directory."""
    if run.is_dir() and not (run / file).exists() and (run / "manifest.json").exists():
        status = read_manifest(run)["status"]
        raise StructjaxError(
            f"run {run} has no {file} (status {status})",
            kind="arm",
            hint="let it finish, or give a run of `structjax rl`",
        )
    return run / file


def _task(run: Path) -> str | None:
    if not (run / "manifest.json").exists():
        return None
    return str(read_manifest(run)["task"])


def _stem(path: Path) -> str:
    name = path if path.name else path.resolve()
    return name.stem if name.suffix in (".json", ".csv") else name.name


def _unreadable(message: str) -> StructjaxError:
    return StructjaxError(message, kind="arm", hint=HINT)
