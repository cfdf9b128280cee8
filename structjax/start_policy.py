"""The policy that a refinement run begins with, in place of the model's first one."""

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from structjax.errors import StructjaxError
from structjax.language.hashing import semantic_hash
from structjax.language.parse import Program, StructureError, parse
from structjax.language.structure import Number
from structjax.language.substitute import with_least_stds, with_values
from structjax.ledger import Ledger
from structjax.llm.replay import ReplayModel
from structjax.manifest import START, VALUES, read_manifest
from structjax.policy import initial_values
from structjax.policy_file import (
    ADD_TASK,
    LoadedPolicy,
    check_values,
    load_policy,
    parsed_program,
)
from structjax.starts import floor_values, least_stds, std_weight
from structjax.tasks.base import Task

RECORD = {**START, "program": str, "values": VALUES}
"""The form of `StartPolicy.record`."""


@dataclass(frozen=True)
class StartFacts:
    """What manifest, transcript and summary say of a start.

    Attributes:
      path: of the policy, as it was named.
      semantic_hash: of its program.
      values_hash: of the values of its weights.
      tuned: whether they are others than its author wrote, in single precision.
      spent: what the run it comes from has counted, if it comes from one.
    """

    path: str
    semantic_hash: str
    values_hash: str
    tuned: bool
    spent: Mapping[str, int] | None = None

    def line(self) -> str:
        """The start in one line, with what is not counted."""
        own = "its own resets and calls are not counted here"
        if self.spent:
            own += (
                f": its run has {self.spent['resets']} resets and "
                f"{self.spent['llm_calls']} LLM calls"
            )
        return f"{self.path} ({own})"


@dataclass(frozen=True, eq=False)
class StartPolicy:
    """A program with the values that a run begins with.

    Attributes:
      facts: where it comes from.
      program: with these values as the written ones, if they are not already.
      values: constrained weight values by name, exactly the policy's.
      note: what the user is to know of it.
    """

    facts: StartFacts
    program: Program
    values: Mapping[str, float]
    note: str = ""

    def record(self) -> dict[str, Any]:
        """Everything, JSON-ready; `restored_start` reads it."""
        return {
            **asdict(self.facts),
            "program": self.program.source,
            "values": dict(self.values),
        }


def load_start(path: Path | str, task: Task) -> StartPolicy:
    """A start from what `load_policy` takes.

    The std floor of a trained policy becomes part of the program and its values.

    Raises:
      StructjaxError: nothing of that kind there, or made for another task.
    """
    found = _found(path, task)
    values = floor_values(found.policy, found.values)
    values = {name: float(value) for name, value in values.items()}
    program = _floored(found, path, task)
    tuned = program is not found.program or _differ(values, program)
    if tuned:
        program = _reparsed(with_values(program, values), path, task)
    hashes = semantic_hash(program.structure), values_hash(values)
    facts = StartFacts(str(path), *hashes, tuned, _spent(path))
    return StartPolicy(facts, program, values, found.note)


def _found(path: Path | str, task: Task) -> LoadedPolicy:
    """The policy; of another task's program the command that takes it."""
    try:
        return load_policy(path, task)
    except StructjaxError as error:
        if error.hint.startswith(ADD_TASK):
            other = error.hint.removeprefix(ADD_TASK)
            error.hint = f"`structjax refine {other} --start {path}` takes it"
        raise


def restored_start(record: Mapping[str, Any], task: Task, kept: Path) -> StartPolicy:
    """The start that a run keeps in a file.

    Raises:
      StructjaxError: it was changed there.
    """
    program = parsed_program(kept, record["program"], task)
    check_values(kept, program, record["values"])
    return StartPolicy(start_facts(record), program, record["values"])


def start_facts(entry: Mapping[str, Any]) -> StartFacts:
    """The facts in a manifest, a transcript's header or a record."""
    hashes = entry["semantic_hash"], entry["values_hash"]
    return StartFacts(entry["path"], *hashes, entry["tuned"], entry.get("spent"))


def check_start(model: ReplayModel, start: StartPolicy | None) -> None:
    """Refuses to replay what was recorded from another start.

    Raises:
      StructjaxError: the recorded replies are not about this policy's rounds.
    """
    transcript = f"the transcript {model.name}"
    entry = model.header.get("start")
    if entry is None:
        if start is not None and model.answers("generate"):
            raise StructjaxError(
                f"{transcript} has a first program of its own: it was not recorded "
                f"from {start.facts.path}",
                kind="transcript",
                hint="leave out --start, or let a model answer: --model openai or "
                "manual",
            )
        return
    recorded = start_facts(entry)
    if start is None:
        raise StructjaxError(
            f"{transcript} was recorded from the policy {recorded.path} (semantic hash "
            f"{recorded.semantic_hash[:12]})",
            kind="transcript",
            hint=f"name it: --start {recorded.path}",
        )
    for what in ("semantic_hash", "values_hash"):
        ours, theirs = getattr(start.facts, what), getattr(recorded, what)
        if ours != theirs:
            raise StructjaxError(
                f"{transcript} was recorded from another policy than "
                f"{start.facts.path}: its {what.replace('_', ' ')} is "
                f"{theirs[:12]}, not {ours[:12]}",
                kind="transcript",
                hint=f"name the one it was recorded from (then at {recorded.path})",
            )


def values_hash(values: Mapping[str, float]) -> str:
    """Hash of weight values by name."""
    text = json.dumps(sorted(values.items()), separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _differ(values: Mapping[str, float], program: Program) -> bool:
    """Whether some value is not the written one in single precision."""
    written = initial_values(program.structure)
    return any(np.float32(values[k]) != np.float32(v) for k, v in written.items())


def _floored(found: LoadedPolicy, path: Path | str, task: Task) -> Program:
    """The program with the policy's std floor in the stds that are no weights."""
    structure = found.program.structure
    stds = {head.action: head.arguments[-1] for head in structure.heads}
    least = {
        action: limit
        for action, limit in least_stds(found.policy).items()
        if std_weight(structure, action, limit) is None
        and not (isinstance(std := stds[action], Number) and std.value >= limit)
    }
    if found.policy.std_floor <= 0 or not least:
        return found.program
    return _reparsed(with_least_stds(found.program, least), path, task)


def _reparsed(text: str, path: Path | str, task: Task) -> Program:
    """The program with other numbers in its text, which may be too long by them."""
    try:
        return parse(text, task.schema)
    except StructureError as error:
        raise StructjaxError(
            f"{path} with its values in place is refused: {error}",
            kind=error.kind,
            hint="shorten its program, e.g. its comments, and save it again",
        ) from None


def _spent(path: Path | str) -> dict[str, int] | None:
    """What a run directory has counted, without its final evaluation."""
    if not os.path.isdir(path):
        return None
    ledger = Ledger()
    ledger.add(read_manifest(Path(path))["ledger"])
    calls = ledger.llm_calls + ledger.replayed_calls
    return {"resets": ledger.total_resets, "llm_calls": calls}
