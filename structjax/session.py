"""A refinement run from beginning to end: directory, transcript, loop, evaluation."""

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import jax

from structjax.analysis import Analyst
from structjax.demonstration import Demonstration
from structjax.dialogue import Budget, Dialogue
from structjax.errors import ProgramFailed, StructjaxError
from structjax.evaluation import evaluate, evaluation_of
from structjax.fitting import RACE_FROM
from structjax.forms import Maybe
from structjax.ledger import Ledger
from structjax.llm.model import LanguageModel
from structjax.llm.recorded import RecordedModel
from structjax.llm.replay import ReplayModel
from structjax.llm.transcript import Transcript
from structjax.manifest import EVALUATION
from structjax.outcomes import summarised
from structjax.provenance import device
from structjax.refinement import Loop, RefinementConfig, Round
from structjax.report import write_report
from structjax.rollout import collect
from structjax.rounds import Candidate, candidate_table
from structjax.runs import RunDirectory, default_directory
from structjax.start_policy import (
    RECORD,
    StartFacts,
    StartPolicy,
    check_start,
    load_start,
    restored_start,
)
from structjax.table import save_table
from structjax.tasks.base import Task


class Outcome(NamedTuple):
    """What a refinement run came to.

    Attributes:
      run: the run directory.
      status: done, or stopped:<why>; `reason` says more.
      best: index of the best accepted round.
      rounds: all rounds, in order.
      evaluation: the best round on the test seeds, JAX simulator, mean actions; as
        `Evaluation.as_dict`, with `sampled` beside it.
      test_returns: round -> test returns, for the report only; None where the program
        failed.
      ledger: everything counted.
      notes: e.g. prompts that differ from the replayed transcript.
      start: the policy that the run was started from, if it was.
    """

    run: Path
    status: str
    reason: str
    best: int
    rounds: tuple[Round, ...]
    evaluation: Mapping[str, Any]
    sampled: Mapping[str, Any]
    test_returns: list[list[float | None]]
    ledger: Ledger
    notes: tuple[str, ...]
    start: StartFacts | None = None

    def as_dict(self) -> dict[str, Any]:
        """The object `structjax refine --json` prints, without the seconds."""
        return {
            "run": str(self.run),
            "status": self.status,
            "reason": self.reason,
            "best_round": self.best,
            "rounds": [
                {
                    "round": r.candidate.index,
                    "accepted": r.gate.accepted,
                    "gate_mean": r.gate.mean,
                    "gate_std": r.gate.std,
                    "gate_worst": r.gate.worst,
                    "difference": r.gate.difference,
                    "interval": r.gate.interval,
                }
                | (
                    {"gate_outcomes": summarised(r.gate.outcomes)}
                    if r.gate.outcomes
                    else {}
                )
                for r in self.rounds
            ],
            "evaluation": self.evaluation,
            "sampled_evaluation": self.sampled,
            "ledger": asdict(self.ledger),
            "notes": list(self.notes),
            "start": None if self.start is None else asdict(self.start),
            "report": str(self.run / "report.html"),
        }


def refine(
    task: Task,
    model: LanguageModel,
    *,
    config: RefinementConfig,
    demonstration: Demonstration | None = None,
    start: Path | str | None = None,
    directory: Path | None = None,
    resume: bool = False,
    options: Mapping[str, Any] | None = None,
    command: Mapping[str, Any] | None = None,
    sandbox: str = "strict",
    progress: Callable[[str], None] = lambda text: None,
) -> Outcome:
    """Runs the loop in a run directory and evaluates its best round.

    Args:
      task: the task.
      model: what answers; a `ReplayModel` replays.
      config: everything that changes the result.
      demonstration: for the fits `imitation` and `anchored`.
      start: the policy to begin with, as `load_policy` takes it, instead of asking for
        a first program; a resumed run has it already and does not read it again.
      directory: the run directory; a new one below `runs/` when omitted.
      resume: continue the run in `directory`.
      options: further facts for the manifest, compared on resume.
      command: the options of the command line, kept for its `--resume`.
      sandbox: isolation level of generated code.
      progress: receives one line per phase.

    Raises:
      StructjaxError: anything a user can mend; the run stays resumable.
    """
    _check_task(model, task)
    directory = default_directory(task.name) if directory is None else directory
    named = None if start is None else str(start)
    place = None if named is None else os.path.abspath(named)
    settings = {**asdict(config), "start": place, **(options or {})}
    given = None if named is None or resume else load_start(named, task)
    if isinstance(model, ReplayModel) and not resume:
        check_start(model, given)
    with _open(directory, task, settings, resume, command) as run:
        run.manifest["device"] = device()
        run.manifest["model"] = dict(model.description)
        _note_sandbox(run, sandbox)
        begun = None if named is None else _kept_start(run, named, given, task)
        run.save_manifest()
        progress(f"run directory {run.path}")
        if given is not None and given.note:
            progress(given.note)
        header = {**model.description, "task": task.name, "config": settings}
        if begun is not None:
            header["start"] = asdict(begun.facts)
        transcript = Transcript(run.path / "llm.jsonl", header=header)
        recorded = RecordedModel(model, transcript)
        loop = _loop(task, run, recorded, transcript, config, demonstration, sandbox)
        loop.progress, loop.start = progress, begun
        try:
            status, reason = loop.play()
        finally:
            loop.analyst.close()
        outcome = _conclude(loop, status, reason, recorded)
    return outcome


def _kept_start(
    run: RunDirectory, named: str, given: StartPolicy | None, task: Task
) -> StartPolicy:
    """The start as the run keeps it, so that a resumed one does not read it again."""

    def compute() -> dict[str, Any]:
        # A resumed run is not given it, and lacks it if it was killed right here.
        begun = given or load_start(named, task)
        if begun.note:
            run.manifest["notes"].append(begun.note)
        return begun.record()

    kept = run.path / "checkpoints" / "start.json"
    begun = restored_start(run.step("start", compute, RECORD), task, kept)
    run.manifest["start"] = asdict(begun.facts)
    return begun


def _check_task(model: LanguageModel, task: Task) -> None:
    """Refuses to replay what was recorded on another task."""
    recorded = model.header.get("task") if isinstance(model, ReplayModel) else None
    if recorded not in (None, task.name):
        raise StructjaxError(
            f"the transcript {model.description['transcript']} was recorded on task "
            f"{recorded!r}, not on {task.name!r}",
            kind="transcript",
            hint="name one of this task with --transcript",
        )


def _open(
    directory: Path,
    task: Task,
    settings: Mapping[str, Any],
    resume: bool,
    command: Mapping[str, Any] | None,
) -> AbstractContextManager[RunDirectory]:
    if resume:
        return RunDirectory.resume(
            directory, config=settings, task=task.name, defaults=_before(settings)
        )
    return RunDirectory.create(
        directory, kind="refine", task=task.name, config=settings, command=command
    )


def _before(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Options that earlier versions did not have, as they behaved."""
    # There was no race, which only shows where there are enough restarts.
    many = settings["imitation"]["restarts"] >= RACE_FROM
    return {"imitation": {"race": not many}}


def _note_sandbox(run: RunDirectory, level: str) -> None:
    """Records the level; a resumed run keeps what its earlier findings ran in."""
    before = run.manifest.get("sandbox")
    if before is not None and before["level"] == level:
        return
    if before is not None:
        text = f"sandbox was {before['level']} until the run was resumed with {level}"
        run.manifest["notes"].append(text)
    run.manifest["sandbox"] = {"level": level, "started": False}


def _loop(
    task: Task,
    run: RunDirectory,
    model: RecordedModel,
    transcript: Transcript,
    config: RefinementConfig,
    demonstration: Demonstration | None,
    sandbox: str,
) -> Loop:
    budget = Budget(config.max_calls, config.max_tokens, config.max_seconds)
    dialogue = Dialogue(model, transcript, run.ledger, budget)
    replayed = model if isinstance(model.source, ReplayModel) else None
    analyst = Analyst(run, dialogue, recorded=replayed, level=sandbox)
    return Loop(task, run, dialogue, analyst, config, demonstration)


def _conclude(loop: Loop, status: str, reason: str, model: RecordedModel) -> Outcome:
    """Evaluates the best round, draws the report, closes the manifest."""
    run, task = loop.run, loop.task
    loop.progress("evaluation on the test seeds")
    best = loop.rounds[loop.best].candidate
    run.manifest["best_round"] = best.index
    try:
        mean, sampled = run.step(
            f"evaluation/best_r{best.index}",
            lambda: _evaluate_best(loop),
            [EVALUATION],
        )
    except ProgramFailed as error:
        raise StructjaxError(
            f"round {best.index} is the best, but fails in the test episodes: {error}",
            kind=error.kind,
            hint=f"its program is in {run.path / 'structures'}; start a new run",
        ) from error
    known = {loop.best: mean["values"]}
    test_returns = _evaluate_rounds(run, loop.rounds, task, known)
    notes = []
    if changed := len(model.notes):
        notes.append(_reworded(changed))
        run.manifest["changed_prompts"] = list(model.notes)
    if lost := model.transcript.maybe_billed():
        notes.append(f"calls without a reply that may have been billed: {lost}")
    if unused := model.unused_slots():
        notes.append(f"replies of the transcript not used: {', '.join(unused)}")
    run.manifest.update(
        status=status,
        reason=reason,
        best_round=best.index,
        evaluation=mean,
        sampled_evaluation=sampled,
        test_returns=test_returns,
        rounds=[
            {
                "round": r.candidate.index,
                "words": r.words,
                "accepted": r.gate.accepted,
                "gate": list(r.gate.values),
                "difference": r.gate.difference,
                "interval": r.gate.interval,
                "outcomes": r.gate.outcomes,
            }
            for r in loop.rounds
        ],
        notes=[*run.manifest["notes"], *notes],
    )
    run.save_manifest()
    write_report(run.path, task)
    outcome = Outcome(
        run=run.path,
        status=status,
        reason=reason,
        best=best.index,
        rounds=tuple(loop.rounds),
        evaluation=mean,
        sampled=sampled,
        test_returns=test_returns,
        ledger=run.ledger,
        notes=tuple(notes),
        start=loop.start.facts if loop.start else None,
    )
    return outcome


def _reworded(replies: int) -> str:
    """What prompts that differ from the recorded ones mean for the user."""
    if replies == 1:
        told = "1 reply was recorded with an earlier wording of its prompt, and is"
    else:
        told = (
            f"{replies} replies were recorded with an earlier wording of their "
            "prompts, and are"
        )
    return f"nothing to do: {told} used in {'its' if replies == 1 else 'their'} place"


def _evaluate_rounds(
    run: RunDirectory,
    rounds: Sequence[Round],
    task: Task,
    known: Mapping[int, Sequence[float]],
) -> list[list[float | None]]:
    """Test returns of every round, for the report only: no decision sees them.

    None where the program failed.

    Args:
      run: where they are kept and booked.
      rounds: all rounds, in order.
      task: the task.
      known: round -> its returns, where they are measured already.
    """

    def values(candidate: Candidate) -> list[float | None]:
        arm = candidate.policy, candidate.variables
        seeds = task.seeds["test"]
        try:
            return list(evaluate(*arm, task, seeds, ledger=run.ledger).values)
        except ProgramFailed:
            return [None] * len(seeds)

    def measured(index: int, candidate: Candidate) -> list[float | None]:
        if index in known:
            return list(known[index])
        # By round: a resumed run may have more of them, and another best one.
        name = f"evaluation/r{index}"
        result: list[float | None] = run.step(
            name, lambda: values(candidate), [Maybe(float)]
        )
        return result

    return [measured(i, r.candidate) for i, r in enumerate(rounds)]


def _evaluate_best(loop: Loop) -> list[dict[str, Any]]:
    """Both action modes on the test seeds; the mean-action steps kept as a table."""
    task, best = loop.task, loop.rounds[loop.best].candidate
    arm, seeds = (best.policy, best.variables), task.seeds["test"]
    ledger = loop.run.ledger
    trajectory = collect(
        *arm,
        task,
        seeds,
        key=jax.random.key(0),
        ledger=ledger,
        purpose="evaluation",
    )
    save_table(
        candidate_table(trajectory, best),
        loop.run.path / "tables" / "evaluation.parquet",
    )
    mean = evaluation_of(trajectory, task, seeds)
    sampled = evaluate(*arm, task, seeds, mode="sampled", ledger=ledger)
    return [mean.as_dict(), sampled.as_dict()]
