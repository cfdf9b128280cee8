"""A policy on disk: a run directory, a saved policy, or a program as written."""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from structjax.errors import StructjaxError
from structjax.files import read_text, write_json
from structjax.forms import Maybe, read_form
from structjax.language.hashing import interface_hash, semantic_hash
from structjax.language.parse import Program, StructureError, parse
from structjax.manifest import VALUES, read_manifest, task_spec
from structjax.network_file import (
    SAVED,
    LoadedNetwork,
    is_network,
    load_network,
    network_task,
)
from structjax.policy import StructuredPolicy, initial_values, variables_from
from structjax.provenance import git_commit, versions
from structjax.runs import best_round
from structjax.schema import Schema
from structjax.tasks.base import Task
from structjax.tasks.loading import DEFAULT_TASK, load_task


class LoadedPolicy(NamedTuple):
    """A policy ready to act.

    Attributes:
      program: the parsed program.
      values: constrained weight values by name.
      policy: the compiled policy.
      variables: its parameters.
      note: what the user is to know of it, e.g. that its run is unfinished.
    """

    program: Program
    values: Mapping[str, float]
    policy: StructuredPolicy
    variables: Any
    note: str = ""


def loaded(program: Program, values: Mapping[str, float], task: Task) -> LoadedPolicy:
    """A program with weight values, compiled for a task."""
    policy = StructuredPolicy(program.structure, task.schema)
    return LoadedPolicy(
        program, values, policy, variables_from(program.structure, values)
    )


def load_policy(path: Path | str, task: Task) -> LoadedPolicy:
    """The best round of a run directory, a saved policy (.json), or a program (.py).

    Of an unfinished run it is the best round so far. A program has its written values.

    Raises:
      StructjaxError: nothing of that kind there, or made for another task.
    """
    path = acting_file(path)
    if os.path.isdir(path):
        return _from_run(path, read_manifest(path), task)
    if is_network(path):
        raise StructjaxError(
            f"{path} is a network: it has no program",
            kind="policy",
            hint="`structjax evaluate` and `structjax rl` take it",
        )
    if path.suffix == ".json":
        return _from_json(path, task)
    program = program_of(path, task)
    return loaded(program, initial_values(program.structure), task)


def program_of(path: Path | str, task: Task) -> Program:
    """The program of a file.

    Raises:
      StructjaxError: it cannot be read, is not accepted, or holds a PyTorch module.
    """
    text = read_program(path)
    try:
        return parse(text, task.schema)
    except StructureError as error:
        if is_torch(text):
            raise StructjaxError(TORCH, kind="program", hint=torch_hint(path)) from None
        others = accepting_tasks(lambda schema: parse(text, schema), task)
        raise _not_of(task, path, error, others) from None


def accepting_tasks(read: Callable[[Schema], object], task: Task) -> tuple[str, ...]:
    """Names of the built-in tasks but `task` whose schema a reader accepts."""
    from structjax.tasks.registry import make_task, task_names

    def accepts(name: str) -> bool:
        try:
            read(make_task(name).schema)
        except StructjaxError:
            return False
        return True

    return tuple(n for n in task_names() if n != task.name and accepts(n))


def told_task(task: Task) -> str:
    """`task 'car_racing' (the default)`: for which task something was read."""
    default = " (the default)" if task.name == DEFAULT_TASK else ""
    return f"task {task.name!r}{default}"


def _not_of(
    task: Task, path: Path | str, error: StructureError, others: Sequence[str]
) -> StructjaxError:
    """The refusal of a program: short where it is one of another task."""
    if not others:
        text = f"{path}, read for {told_task(task)}:\n{error}"
        return StructjaxError(text, kind=error.kind)
    return StructjaxError(
        f"{path} is no program of {told_task(task)}, but one of {others[0]!r}",
        kind=error.kind,
        hint=f"{ADD_TASK}{others[0]}",
    )


ADD_TASK = "add --task "
"""What a command that has the option needs for a program of another task."""
TORCH = "this looks like a PyTorch module"


def is_torch(text: str) -> bool:
    """Whether a refused text seems to be a PyTorch module."""
    return "import torch" in text or "from torch" in text or "nn.Module" in text


def torch_hint(path: Path | str) -> str:
    """The command that takes it."""
    return f"structjax check --from torch {path} --output PROGRAM.py"


def read_program(path: Path | str) -> str:
    """The text of a program file.

    Raises:
      StructjaxError: it cannot be read as UTF-8 text.
    """
    return read_text(
        Path(path),
        kind="program",
        hint="give a run directory, a saved policy (.json) or a program (.py)",
    )


def save_policy(
    path: Path,
    program: Program,
    values: Mapping[str, float],
    task: Task,
    *,
    std_floor: float = 0.0,
) -> None:
    """Saves program, values and where they come from as one JSON file."""
    write_json(
        path,
        {
            "task": task.name,
            "program": program.source,
            "values": dict(values),
            "std_floor": std_floor,
            "semantic_hash": semantic_hash(program.structure),
            "interface_hash": interface_hash(program.structure),
            "versions": versions(),
            "commit": git_commit(),
        },
    )


def policy_task(spec: str | None, path: Path) -> Task:
    """The task that is named, else the one a run or a saved policy was made for.

    Raises:
      StructjaxError: there is no such task, or no such run or policy.
    """
    if spec is not None:
        return load_task(spec)
    if os.path.isdir(path):
        return load_task(task_spec(read_manifest(path)))
    if path.suffix == ".json":
        name = network_task(path) or _read_saved(path)["task"]
        try:
            return load_task(name)
        except StructjaxError:
            raise StructjaxError(
                f"{path} was made for task {name!r}, which is not built in",
                kind="task",
                hint="name the task's file: --task path/to/file.py:function",
            ) from None
    return load_task(DEFAULT_TASK)


def saved_round(run: Path, index: int, task: Task) -> tuple[Program, dict[str, float]]:
    """Program and weight values of a run's round.

    Raises:
      StructjaxError: a file is missing or was changed.
    """
    source = read_program(run / "structures" / f"r{index}.py")
    path = run / "structures" / f"r{index}.json"
    saved = read_form(
        path,
        {"values": VALUES},
        what="the weights of a round",
        kind="run",
        hint="give a run directory, as printed at the end of a run",
    )
    program = parsed_program(run / "structures" / f"r{index}.py", source, task)
    check_values(path, program, saved["values"])
    return program, saved["values"]


def load_actor(path: Path | str, task: Task) -> LoadedPolicy | LoadedNetwork:
    """Anything that acts: what `load_policy` takes, or a saved network.

    Raises:
      StructjaxError: as `load_policy`.
    """
    path = acting_file(path)
    if is_network(path):
        return load_network(path, task)
    return load_policy(path, task)


def acting_file(path: Path | str) -> Path:
    """What is named, or of a training run the file of its best policy.

    Raises:
      StructjaxError: no such run, or it is unfinished.
    """
    path = Path(path)
    if os.path.isdir(path):  # no error for a name that no file can have
        manifest = read_manifest(path)
        if manifest.get("kind") == "rl":
            return _trained_policy(path, manifest)
    return path


def _trained_policy(run: Path, manifest: Mapping[str, Any]) -> Path:
    """The file of the best policy of a training run, by its selection seeds.

    Raises:
      StructjaxError: the run is unfinished.
    """
    if not isinstance(best := manifest.get("best_policy"), str):
        raise StructjaxError(
            f"training run {run} is unfinished (status {manifest['status']})",
            kind="run",
            hint=f"finish it with `structjax rl --resume {run}`",
        )
    return run / best


def _from_run(path: Path, manifest: dict[str, Any], task: Task) -> LoadedPolicy:
    _same_task(manifest["task"], task, path)
    best = best_round(path, manifest)
    if best is None:
        raise StructjaxError(
            f"run {path} has no best round yet (status {manifest['status']})",
            kind="run",
            hint=f"finish it with --resume {path}",
        )
    found = loaded(*saved_round(path, best, task), task)
    if manifest.get("best_round") is not None:
        return found
    return found._replace(
        note=f"run {path} is unfinished (status {manifest['status']}): round {best} "
        "is its best so far"
    )


def _read_saved(path: Path) -> dict[str, Any]:
    """What `save_policy` wrote."""
    form = {"task": str, "program": str, "values": VALUES, "std_floor": Maybe(float)}
    saved: dict[str, Any] = read_form(
        path, form, what="a saved policy", kind="policy", hint=SAVED
    )
    return saved


def _from_json(path: Path, task: Task) -> LoadedPolicy:
    saved = _read_saved(path)
    _same_task(saved["task"], task, path)
    program = parsed_program(path, saved["program"], task)
    check_values(path, program, saved["values"])
    found = loaded(program, saved["values"], task)
    floor = saved.get("std_floor") or 0.0
    if not 0 <= floor <= 1:
        text = f"{path} has a std floor of {floor}"
        raise StructjaxError(text, kind="policy", hint="accepted: 0 to 1")
    return found._replace(policy=found.policy.clone(std_floor=floor))


def parsed_program(path: Path, text: str, task: Task) -> Program:
    """A program that was accepted when it was saved."""
    try:
        return parse(text, task.schema)
    except StructureError as error:
        text = f"the program in {path} is refused:\n{error}"
        raise StructjaxError(text, kind=error.kind) from None


def check_values(path: Path, program: Program, values: Mapping[str, float]) -> None:
    """Refuses values that are not those of the program's weights, or out of bounds."""
    different = set(initial_values(program.structure)) ^ set(values)
    if different:
        raise StructjaxError(
            f"{path}: the values do not belong to the program "
            f"({', '.join(sorted(different))})",
            kind="policy",
            hint="save it again with `structjax fit`",
        )
    try:
        variables_from(program.structure, values)
    except StructjaxError as error:
        text = f"{path}: {Exception.__str__(error)}"
        raise StructjaxError(text, kind="policy", hint=error.hint) from None


def _same_task(name: Any, task: Task, path: Path) -> None:
    if name != task.name:
        raise StructjaxError(
            f"{path} was made for task {name!r}",
            kind="policy",
            hint=f"the task here is {task.name!r}",
        )
