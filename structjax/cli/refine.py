"""`structjax refine`: the loop, its run directory, its summary and its report."""

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import tyro

from structjax.cli.options import one_run, restored, stored, whole
from structjax.cli.output import print_json, progress, text_table
from structjax.compilation import compile_clock, enable_compile_cache
from structjax.errors import StructjaxError
from structjax.gate import difference_text
from structjax.llm.manual import ManualModel
from structjax.llm.model import LanguageModel
from structjax.llm.replay import ReplayModel
from structjax.llm.scripted import ScriptedModel, read_script
from structjax.manifest import read_manifest, task_spec
from structjax.outcomes import table_rows
from structjax.refinement import RefinementConfig
from structjax.runs import default_directory
from structjax.session import Outcome
from structjax.transcripts import find_transcript


@dataclass(frozen=True)
class Refine:
    """Run the refinement loop on a task and evaluate the best policy.

    Without options it replays a shipped transcript: no key, no network. Under `--json`
    the last line is {"run", "status", "best_round", "rounds": [{"round", "accepted",
    "gate_mean", "gate_std", "gate_worst", "gate_outcomes"}], "evaluation": as of
    `evaluate`, "ledger": {"resets", "env_steps", "llm_calls", "input_tokens",
    "output_tokens", "replayed_calls"}, "start": null or {"path", "semantic_hash",
    "values_hash", "tuned", "spent"}, "seconds": {"total", "compile"}, "report"}.
    """

    task: tyro.conf.Positional[str | None] = None
    """Name of a task (`structjax tasks`), or path/to/file.py:function."""
    demonstration: str = "none"
    """Name or file of a demonstration, or none."""
    start: str | None = None
    """Begin from this policy instead of asking for a first program: a program (.py) as
    written, a saved policy (.json), or a run of `refine` or `rl` (its best). Round 0 is
    that policy; what it has cost before is not counted."""
    model: Literal["replay", "manual", "openai", "scripted"] = "replay"
    """What answers: a transcript, prompt and reply files, an API, a JSON script."""
    transcript: str | None = None
    """Transcript to replay: a shipped name or a .jsonl file (default: the task's)."""
    transcript_mode: Literal["slot", "strict"] = "slot"
    """Match replies by place in the run, or insist on equal prompts."""
    script: Path | None = None
    """For --model scripted: a JSON file of slot -> reply text."""
    llm: str = "gpt-5-mini"
    """For --model openai: name of the model."""
    base_url: str | None = None
    """For --model openai: URL of an OpenAI-compatible server."""
    api: Literal["responses", "chat"] | None = None
    """For --model openai: which API (default: responses at OpenAI, chat elsewhere)."""
    reasoning_effort: str | None = None
    """For --model openai: e.g. high; servers that do not know it refuse it."""
    answered_by: str = "unknown"
    """For --model manual: who or what answers; goes into the transcript's header."""
    manual: Path | None = None
    """For --model manual: directory of prompt and reply files (default: in the run)."""
    wait: bool = True
    """For --model manual: wait for reply files; --no-wait exits with status 75. Holds
    for this call: give it again with --resume."""
    sandbox: Literal["strict", "container", "off"] = "strict"
    """Isolation of generated code; `off` runs it unprotected and is recorded. Holds for
    this call: give it again with --resume."""
    run: Path | None = None
    """Run directory (default: runs/<task>-<date>-<time>-<hex>)."""
    resume: Path | None = None
    """Continue this run directory, with the options it was started with, but for
    --sandbox and --wait."""
    json: bool = False
    """Print one JSON object as the last line of stdout."""
    config: RefinementConfig = field(default_factory=RefinementConfig)

    def run_command(self) -> int:
        """Runs the loop to its end and prints a summary."""
        one_run(self.run, self.resume)
        if self.resume is not None:
            _check_task(self.task, self.resume)
            return restored(self, self.resume)._run()
        return self._run()

    def _run(self) -> int:
        from structjax.demonstration import load_demonstration
        from structjax.session import refine
        from structjax.tasks.loading import absolute, load_task

        enable_compile_cache()
        task_name = self._check()
        started = time.monotonic()
        with compile_clock() as clock:
            task = load_task(task_name)
            demonstration = None
            if self.demonstration != "none":
                demonstration = load_demonstration(self.demonstration, task.schema)
            directory = self.resume or self.run or default_directory(task.name)
            try:
                outcome = refine(
                    task,
                    self._model(task.name, directory),
                    config=self.config,
                    demonstration=demonstration,
                    start=self.start,
                    directory=directory,
                    resume=self.resume is not None,
                    options={
                        "demonstration": whole(self.demonstration),
                        "model": self.model,
                    },
                    command={**stored(self), "task": absolute(task_name)},
                    sandbox=self.sandbox,
                    progress=progress,
                )
            except KeyboardInterrupt:
                progress(f"interrupted; continue with --resume {directory}")
                return 130
        seconds = {"total": time.monotonic() - started, "compile": clock.seconds}
        if self.json:
            print_json({**outcome.as_dict(), "seconds": seconds})
        else:
            print(summary(outcome, seconds))
        return 0

    def _check(self) -> str:
        """The task; refuses contradictions before anything is written."""
        if self.task is None:
            raise StructjaxError(
                "no task was named",
                kind="options",
                hint="`structjax refine TASK` (`structjax tasks`), or --resume RUN",
            )
        if self.config.fit != "none" and self.demonstration == "none":
            raise StructjaxError(
                f"--fit {self.config.fit} needs a demonstration",
                kind="options",
                hint="name one with --demonstration (`structjax demo`), or --fit none",
            )
        return self.task

    def _model(self, task: str, directory: Path) -> LanguageModel:
        if self.model == "replay":
            return ReplayModel(
                find_transcript(self.transcript, task), self.transcript_mode
            )
        if self.model == "manual":
            return ManualModel(
                self.manual or directory / "manual",
                wait=self.wait,
                answered_by=self.answered_by,
            )
        if self.model == "scripted":
            if self.script is None:
                raise StructjaxError(
                    "--model scripted needs --script FILE",
                    kind="options",
                    hint="a JSON file of slot -> reply text",
                )
            return ScriptedModel(read_script(self.script))
        from structjax.llm.openai import OpenAIModel

        return OpenAIModel(
            model=self.llm,
            api=self.api,
            base_url=self.base_url,
            reasoning_effort=self.reasoning_effort,
        )


def _check_task(given: str | None, run: Path) -> None:
    """Refuses to resume a run with another task than its own."""
    from structjax.tasks.loading import absolute

    manifest = read_manifest(run)
    own = manifest["task"], absolute(task_spec(manifest))
    if given is not None and absolute(given) not in own:
        raise StructjaxError(
            f"{run} is a run of task {own[0]!r}, not of {given!r}",
            kind="options",
            hint="resume it without naming a task, or start a new run",
        )


def summary(outcome: Outcome, seconds: dict[str, float]) -> str:
    """The end of a run, for the terminal: rounds, evaluation, what it cost."""
    rows = [
        (
            r.candidate.index,
            "accepted" if r.gate.accepted else "refused",
            f"{r.gate.mean:.1f}",
            f"{r.gate.std:.1f}",
            f"{r.gate.worst:.1f}",
            difference_text(r.gate.difference, r.gate.interval),
            "<- best" if r.candidate.index == outcome.best else "",
        )
        for r in outcome.rounds
    ]
    header = ("round", "gate", "mean", "std", "worst", "against the best so far", "")
    ledger, mean, sampled = outcome.ledger, outcome.evaluation, outcome.sampled
    reason = f" ({outcome.reason})" if outcome.reason else ""
    lines = [
        "",
        text_table(header, rows),
        "",
        f"status      {outcome.status}{reason}",
        f"test seeds  {mean['mean']:.1f} +- {mean['std_ddof0']:.1f} with mean actions, "
        f"{sampled['mean']:.1f} +- {sampled['std_ddof0']:.1f} with sampled actions "
        f"(round {outcome.best}, {len(mean['seeds'])} episodes, JAX simulator)",
        *(
            f"outcome     {name}: {first} with mean actions, {second} with sampled ones"
            for name, first, second in table_rows([mean, sampled])
        ),
        f"resets      {ledger.headline_resets} diagnosis + training, "
        f"{ledger.total_resets} with gate, selection and demonstration",
        f"LLM         {ledger.llm_calls} live and {ledger.replayed_calls} replayed "
        f"calls, {ledger.input_tokens} tokens in, {ledger.output_tokens} out",
        *([f"start       {outcome.start.line()}"] if outcome.start else []),
        f"seconds     {seconds['total']:.1f}, {seconds['compile']:.1f} to compile",
        *(f"note        {note}" for note in outcome.notes),
        f"run         {outcome.run}",
        f"report      {outcome.run / 'report.html'}",
    ]
    return "\n".join(lines)
