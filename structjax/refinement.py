"""The refinement loop: fit, roll out, diagnose, ask for a revision, gate, repeat."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal, NamedTuple

from structjax.analysis import Analyst
from structjax.demonstration import Demonstration
from structjax.diagnostics.result import number
from structjax.dialogue import (
    BudgetExceeded,
    Dialogue,
    NoUsableReply,
    system_message,
)
from structjax.errors import ProgramFailed, StructjaxError
from structjax.gate import GateResult, judge, worse
from structjax.imitation import ImitationConfig
from structjax.language.parse import Program, parse
from structjax.llm.model import Message
from structjax.llm.replay import TranscriptExhausted
from structjax.llm.reply import (
    Decision,
    Revise,
    Test,
    extract_decision,
    extract_program,
)
from structjax.prompting import (
    FitMode,
    context,
    decide_prompt,
    gate_line,
    generate_prompt,
    history_lines,
    shortened,
)
from structjax.ranges import MAX_SEED, real_number, whole_number
from structjax.rounds import (
    Candidate,
    GateValues,
    diagnose_candidate,
    fit_candidate,
    fit_section,
    gate_values,
    same_program,
    table_path,
)
from structjax.runs import RunDirectory
from structjax.start_policy import StartPolicy
from structjax.table import load_table
from structjax.tasks.base import Task

MAX_ROUNDS = 10_000
MIN_SECONDS = 1e-3
Feedback = Literal["analysis", "table", "none", "reward"]


@dataclass(frozen=True)
class RefinementConfig:
    """Options of a refinement run; everything that changes its result."""

    rounds: int = 4
    """Revisions after the first program."""
    fit: FitMode = "none"
    """How weights are set: the written values, or a fit to a demonstration."""
    feedback: Feedback = "analysis"
    """What the model is shown: generated analysis code and built-in checks, the table
    itself, nothing, or the return only."""
    gate: Literal["on", "off"] = "on"
    """Refuse a round whose mean gate metric falls; `off` is the paper's behaviour."""
    extra_tests: int = 2
    """How often a round the model may ask for more tests on the same table."""
    max_calls: int | None = None
    """Budget of LLM calls, replayed ones included."""
    max_tokens: int | None = None
    """Budget of LLM tokens, input and output together."""
    max_seconds: float | None = None
    """Budget of wall-clock seconds."""
    seed: int = 0
    """Seed of fits."""
    imitation: ImitationConfig = field(default_factory=ImitationConfig)
    """Options of the fit."""

    def __post_init__(self) -> None:
        """Checks the ranges."""
        for name in ("rounds", "extra_tests"):
            whole_number(self, name, low=0, high=MAX_ROUNDS)
        whole_number(self, "seed", low=0, high=MAX_SEED)
        for name in ("max_calls", "max_tokens"):
            if getattr(self, name) is not None:
                whole_number(self, name, low=1)
        if self.max_seconds is not None:
            real_number(self, "max_seconds", low=MIN_SECONDS)


class Round(NamedTuple):
    """One finished round.

    Attributes:
      candidate: program and fitted values.
      gate: its gate result.
      words: what the model said it changed.
    """

    candidate: Candidate
    gate: GateResult
    words: str


class _Stopped(Exception):
    def __init__(self, status: str, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason


@dataclass
class Loop:
    """The state of a running refinement: rounds so far and the best of them.

    `tried` is the program tried out last with its gate values; `failures` counts the
    programs that could not be fitted or played since the last round.
    """

    task: Task
    run: RunDirectory
    dialogue: Dialogue
    analyst: Analyst
    config: RefinementConfig
    demonstration: Demonstration | None = None
    start: StartPolicy | None = None
    progress: Callable[[str], None] = lambda text: None
    rounds: list[Round] = field(default_factory=list)
    best: int = 0
    failures: int = 0
    tried: tuple[Candidate, GateValues] | None = None

    def play(self) -> tuple[str, str]:
        """All rounds; returns the status and the reason of the stop."""
        try:
            self._begin()
            for index in range(self.config.rounds):
                program, words = self._revise(index)
                if self._unchanged(program):
                    raise _Stopped("stopped:model", "the revision changed nothing")
                self._add(words)
        except _Stopped as stop:
            return stop.status, stop.reason
        except BudgetExceeded as stop:
            return self._keep_best("stopped:budget", stop)
        except TranscriptExhausted as stop:
            return self._keep_best("stopped:transcript", stop)
        except NoUsableReply as stop:
            return self._keep_best("stopped:model", stop)
        return "done", ""

    def _keep_best(self, status: str, stop: StructjaxError) -> tuple[str, str]:
        """A stop before the first round leaves nothing to keep."""
        if not self.rounds:
            raise stop
        return status, str(stop)

    def _use_program(self, text: str) -> Program:
        return parse(extract_program(text), self.task.schema)

    def _unchanged(self, program: Program) -> bool:
        """Whether the program is that of the last round, as kept or as shown."""
        if not self.rounds:
            return False
        last = self.rounds[-1].candidate
        shown = [parse(last.text, self.task.schema)] if last.tuned else []
        return any(same_program(program, known) for known in [last.program, *shown])

    def _begin(self) -> None:
        """Round 0: the policy that the run is started from, or the model's first."""
        if self.start is None:
            self._generate()
            self._add("First program.")
            return
        try:
            self._fit_and_gate(self.start.program)
        except ProgramFailed as error:
            raise StructjaxError(
                f"the run cannot start from {self.start.facts.path}: {error}",
                kind=error.kind,
                hint="`structjax diagnose` or `rollout` show more; mend it, or begin "
                "without --start",
            ) from error
        self._add("The program that the run was started from.")

    def _generate(self) -> None:
        self.progress("asking for the first program")
        messages = (
            system_message(),
            Message("user", generate_prompt(self.task, self.config.fit)),
        )
        self.dialogue.ask("generate", messages, self._use_program, self._try_out)

    def _try_out(self, program: Program) -> str:
        """Fits and gates a program for the next round; what failed, if anything."""
        try:
            self._fit_and_gate(program)
        except ProgramFailed as error:
            self.failures += 1
            self.progress(f"round {len(self.rounds)}: the program failed: {error}")
            return f"The program could be read, but not used: {error}."
        self.failures = 0
        return ""

    def _fit_and_gate(self, program: Program) -> None:
        index = len(self.rounds)
        self.progress(f"round {index}: fit and gate")
        candidate = fit_candidate(
            self.run,
            index,
            program,
            self.task,
            fit=self.config.fit,
            demonstration=self.demonstration,
            config=self.config.imitation,
            seed=self.config.seed,
            attempt=self.failures,
            start=self.start if index == 0 else None,
        )
        self.tried = candidate, gate_values(self.run, candidate)

    def _add(self, words: str) -> None:
        """Adds the program tried out last; it is the best unless it is refused."""
        if self.tried is None:
            raise AssertionError("no program was tried out")
        index, (candidate, values) = len(self.rounds), self.tried
        best = self.rounds[self.best].gate.values if self.rounds else None
        enforce = self.config.gate == "on"
        gate = judge(values.metric, best, enforce=enforce, outcomes=values.outcomes)
        self.rounds.append(Round(candidate, gate, words))
        if gate.accepted:
            self.best = index
        verdict = "accepted" if gate.accepted else "refused"
        self.progress(f"round {index}: gate {gate.mean:.1f}, {verdict}")
        self.run.log(
            phase="refine",
            round=index,
            accepted=gate.accepted,
            gate_mean=gate.mean,
            gate_std=gate.std,
            gate_worst=gate.worst,
            difference=gate.difference,
            interval=gate.interval,
        )

    def _revise(self, index: int) -> tuple[Program, str]:
        """Diagnoses round `index` and asks what to do; follows Test decisions."""
        current = self.rounds[index]
        self.progress(f"round {index}: rollouts and diagnostics")
        try:
            diagnosis = diagnose_candidate(
                self.run, current.candidate, self.demonstration
            )
            messages, results = self._first_results(index, diagnosis)
        except ProgramFailed as error:
            diagnosis = {}
            messages, results = self._failed_results(index, error)
        for extra in range(self.config.extra_tests + 1):
            tests_left = self.config.extra_tests - extra
            if self.config.feedback != "analysis" or not diagnosis:
                tests_left = 0
            question = decide_prompt(
                results,
                self._history(),
                self._standing(),
                fit=self.config.fit,
                tests_left=tests_left,
            )
            messages = (*messages, Message("user", question))
            slot = (
                f"round{index}/revise" if extra == 0 else f"round{index}/extra{extra}"
            )
            self.progress(f"round {index}: asking for a decision")
            (decision, program), text = self.dialogue.ask(
                slot,
                messages,
                partial(self._use_decision, tests_left=tests_left),
                self._try_revision,
            )
            if program is not None:
                return program, decision.reason
            if not isinstance(decision, Test):
                raise _Stopped("stopped:model", decision.reason)
            messages = (*messages, Message("assistant", text))
            results = "# Results of the additional tests\n\n" + self.analyst.run_checks(
                decision.code, slot, table_path(self.run, index), index
            )
        raise AssertionError("the last decision cannot be a test")

    def _try_revision(self, decided: tuple[Decision, Program | None]) -> str:
        program = decided[1]
        if program is None or self._unchanged(program):
            return ""
        return self._try_out(program)

    def _failed_results(
        self, index: int, error: ProgramFailed
    ) -> tuple[tuple[Message, ...], str]:
        """The chat and the results text after rollouts that the program failed in.

        Its round is refused after all, unless there is no other.
        """
        current = self.rounds[index]
        self.progress(f"round {index}: the program failed: {error}")
        others = [i for i, r in enumerate(self.rounds[:index]) if r.gate.accepted]
        if current.gate.accepted and others:
            gate = replace(current.gate, accepted=False)
            self.rounds[index] = current._replace(gate=gate)
            self.best = others[-1]
            self.run.log(phase="refine", round=index, accepted=False, failed=str(error))
        opening = context(self.task, current.candidate.text, self._note(index))
        head = (system_message(), Message("user", opening))
        return head, f"# Results\n\nThe program failed in its rollouts: {error}."

    def _first_results(
        self, index: int, diagnosis: Mapping[str, Any]
    ) -> tuple[tuple[Message, ...], str]:
        """The chat so far and the results text, as the feedback mode has it."""
        current = self.rounds[index]
        opening = context(self.task, current.candidate.text, self._note(index))
        figures = gate_line(current.gate, outcomes=self._tells_outcomes)
        gate = f"Validation episodes (mean actions): {figures}.\n"
        head = (system_message(), Message("user", opening))
        if self.config.feedback == "none":
            return head, "# Results\n\n(no feedback in this run)"
        if self.config.feedback == "reward":
            return head, f"# Results\n\n{gate}"
        results = f"# Results\n\n{gate}{fit_section(current.candidate)}"
        results += f"\n## Built-in checks\n\n{diagnosis['invariants']}"
        table = table_path(self.run, index)
        if self.config.feedback == "table":
            return head, results + "\n\n" + self.analyst.table_text(load_table(table))
        self.progress(f"round {index}: asking for tests")
        chat, findings = self.analyst.ask_and_run(
            opening, diagnosis, index, table, horizon=self.task.horizon
        )
        if current.gate.accepted:
            self.analyst.keep()
        return chat, f"{results}\n\n{findings}"

    def _use_decision(
        self, text: str, tests_left: int
    ) -> tuple[Decision, Program | None]:
        decision = extract_decision(text)
        if isinstance(decision, Test) and tests_left == 0:
            raise StructjaxError(
                "ACTION: test is not possible any more in this round",
                kind="reply",
                hint="decide on `ACTION: revise` or `ACTION: stop`",
            )
        if isinstance(decision, Revise):
            return decision, parse(decision.source, self.task.schema)
        return decision, None

    def _note(self, index: int) -> str:
        candidate = self.rounds[index].candidate
        tuned = " (tuned values in place)" if candidate.tuned else ""
        values = " (fitted values in place)" if candidate.fit else tuned
        return f" of round {index}{values}"

    def _history(self) -> str:
        return history_lines(
            [(r.candidate.index, r.gate, shortened(r.words)) for r in self.rounds],
            self.best,
            outcomes=self._tells_outcomes,
        )

    @property
    def _tells_outcomes(self) -> bool:
        """Not in the feedback modes that show the return alone, or nothing."""
        return self.config.feedback in ("analysis", "table")

    def _standing(self) -> str:
        """Which program the next revision starts from."""
        current = self.rounds[-1]
        if current.gate.accepted:
            return "The program above is the best so far; revise it."
        best = self.rounds[self.best]
        why = "it failed in its rollouts. The one"
        if worse(current.gate):
            why = (
                f"its mean validation return {number(current.gate.mean)} is below "
                f"{number(best.gate.mean)}"
            )
        return (
            f"The program above was REFUSED: {why} of round "
            f"{self.best}. That program stands; write the next revision from it, with "
            "what you learned from the refused one:\n\n"
            f"```python\n{best.candidate.text.strip()}\n```"
        )
