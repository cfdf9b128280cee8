"""A policy on disk: a run directory, a saved policy, or a program as written."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from structjax.errors import StructjaxError
from structjax.language.hashing import interface_hash, semantic_hash
from structjax.language.parse import Program, parse
from structjax.policy import StructuredPolicy, initial_values, variables_from
from structjax.provenance import git_commit, versions
from structjax.runs import read_json, write_json
from structjax.tasks.base import Task


class LoadedPolicy(NamedTuple):
    """A policy ready to act.

    Attributes:
      program: the parsed program.
      values: constrained weight values by name.
      policy: the compiled policy.
      variables: its parameters.
    """

    program: Program
    values: Mapping[str, float]
    policy: StructuredPolicy
    variables: Any


def loaded(program: Program, values: Mapping[str, float], task: Task) -> LoadedPolicy:
    """A program with weight values, compiled for a task."""
    policy = StructuredPolicy(program.structure, task.schema)
    return LoadedPolicy(
        program, values, policy, variables_from(program.structure, values)
    )


def load_policy(path: Path | str, task: Task) -> LoadedPolicy:
    """The best round of a run directory, a saved policy (.json), or a program (.py).

    A program has its written values.

    Raises:
      StructjaxError: nothing of that kind there, or made for another task.
    """
    path = Path(path)
    if path.is_dir():
        return _from_run(path, task)
    if path.suffix == ".json":
        return _from_json(path, task)
    program = parse(read_program(path), task.schema)
    return loaded(program, initial_values(program.structure), task)


def read_program(path: Path | str) -> str:
    """The text of a program file.

    Raises:
      StructjaxError: it cannot be read as UTF-8 text.
    """
    try:
        return Path(path).read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise StructjaxError(
            f"{path} is not UTF-8 text ({error.reason} at byte {error.start})",
            kind="program",
            hint="save it as UTF-8",
        ) from error
    except OSError as error:
        raise StructjaxError(
            f"cannot read {path}: {error.strerror}",
            kind="program",
            hint="give a run directory, a saved policy (.json) or a program (.py)",
        ) from error


def save_policy(
    path: Path, program: Program, values: Mapping[str, float], task: Task
) -> None:
    """Saves program, values and where they come from as one JSON file."""
    write_json(
        path,
        {
            "task": task.name,
            "program": program.source,
            "values": dict(values),
            "semantic_hash": semantic_hash(program.structure),
            "interface_hash": interface_hash(program.structure),
            "versions": versions(),
            "commit": git_commit(),
        },
    )


def _from_run(path: Path, task: Task) -> LoadedPolicy:
    manifest = read_json(path / "manifest.json")
    _same_task(manifest.get("task"), task, path)
    best = manifest.get("best_round")
    if best is None:
        raise StructjaxError(
            f"run {path} has no best round yet (status {manifest.get('status')})",
            kind="run",
            hint=f"finish it with --resume {path}",
        )
    source = read_program(path / "structures" / f"r{best}.py")
    values = read_json(path / "structures" / f"r{best}.json")["values"]
    return loaded(parse(source, task.schema), values, task)


def _from_json(path: Path, task: Task) -> LoadedPolicy:
    saved = read_json(path)
    if not isinstance(saved, dict) or not {"task", "program", "values"} <= set(saved):
        raise StructjaxError(
            f"{path} is not a saved policy",
            kind="policy",
            hint="give a file written by `structjax fit`, or a program (.py)",
        )
    _same_task(saved["task"], task, path)
    program = parse(saved["program"], task.schema)
    missing = set(initial_values(program.structure)) ^ set(saved["values"])
    if missing:
        raise StructjaxError(
            f"{path}: the values do not belong to the program "
            f"({', '.join(sorted(missing))})",
            kind="policy",
            hint="save it again with `structjax fit`",
        )
    return loaded(program, saved["values"], task)


def _same_task(name: Any, task: Task, path: Path) -> None:
    if name != task.name:
        raise StructjaxError(
            f"{path} was made for task {name!r}",
            kind="policy",
            hint=f"--task is {task.name!r}",
        )
