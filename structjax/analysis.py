"""Generated diagnostics in the loop: ask for checks, run them, keep them."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from structjax.diagnostics.finding import Finding
from structjax.diagnostics.result import number
from structjax.diagnostics.sandbox import Sandbox, SandboxUnavailable
from structjax.dialogue import Dialogue, system_message
from structjax.errors import StructjaxError
from structjax.forms import mismatch
from structjax.llm.model import Message
from structjax.llm.recorded import RecordedModel
from structjax.llm.reply import extract_tests
from structjax.manifest import FINDING
from structjax.prompting import OUTPUT_LIMIT, findings_text, tests_prompt
from structjax.runs import RunDirectory, write_atomic, write_json
from structjax.table import RolloutTable

TABLE_ROWS = 40
"""Rows shown of each of two episodes when the feedback is the table itself."""


@dataclass
class Analyst:
    """Runs generated checks on a round's table and words their results.

    Attributes:
      run: where code and findings are saved.
      dialogue: asks for checks.
      recorded: recorded findings to fall back on where no sandbox can run, or None.
      level: sandbox level, `"strict"` unless the user says otherwise.
      kept: the checks of the last accepted round, run again on the next table.
    """

    run: RunDirectory
    dialogue: Dialogue
    recorded: RecordedModel | None = None
    level: str = "strict"
    kept: str | None = None
    _last: str | None = None
    _sandbox: Sandbox | None = None
    _table: Path | None = None

    def close(self) -> None:
        """Ends the sandbox server, if one was started."""
        if self._sandbox is not None:
            self._sandbox.close()
            self._sandbox = None

    def ask_and_run(
        self,
        opening: str,
        diagnosis: Mapping[str, Any],
        index: int,
        table: Path,
        *,
        horizon: int,
    ) -> tuple[tuple[Message, ...], str]:
        """The chat with the model's checks in it, and the results text."""
        question = tests_prompt(
            opening,
            diagnosis["columns"],
            episodes=diagnosis["episodes"],
            horizon=horizon,
        )
        messages = (system_message(), Message("user", question))
        slot = f"round{index}/tests"
        code, reply = self.dialogue.ask(slot, messages, extract_tests)
        chat = (*messages, Message("assistant", reply))
        text = "## Your checks\n\n" + self.run_checks(code, slot, table, index)
        if self.kept is not None:
            again = self._run_kept(self.kept, f"round{index}/kept", table, index)
            text += f"\n\n## The last accepted round's checks, on this table\n\n{again}"
        self._last = code
        return chat, text

    def _run_kept(self, code: str, slot: str, table: Path, index: int) -> str:
        """Earlier checks on a new table; those whose columns are gone are left out."""
        findings = self._findings(code, slot, table, index)
        working = [f for f in findings if f.status != "exception"]
        return findings_text(working, OUTPUT_LIMIT // 3)

    def keep(self) -> None:
        """Keeps the newest checks: their round was accepted."""
        self.kept = self._last

    def run_checks(self, code: str, slot: str, table: Path, index: int) -> str:
        """Runs checks on a table, once per run, and words what they printed."""
        return findings_text(self._findings(code, slot, table, index), OUTPUT_LIMIT)

    def _findings(self, code: str, slot: str, table: Path, index: int) -> list[Finding]:
        """What checks find on a table; computed once per run, and recorded."""
        name = slot.split("/", 1)[1]
        stem = f"r{index}" if name == "tests" else f"r{index}_{name}"

        def compute() -> list[dict[str, Any]]:
            write_atomic(self.run.path / "diagnostics" / f"{stem}.py", code)
            findings = self._execute(code, slot, table)
            write_json(self.run.path / "diagnostics" / f"{stem}.json", findings)
            return findings

        findings = self.run.step(f"{slot}/findings", compute, [FINDING])
        self._record(slot, findings)
        return [_finding(f) for f in findings]

    def _record(self, slot: str, findings: Sequence[Mapping[str, Any]]) -> None:
        transcript = self.dialogue.transcript
        if transcript.findings(slot) is None:
            transcript.record_findings(slot, findings)

    def _execute(self, code: str, slot: str, table: Path) -> list[dict[str, Any]]:
        """In the sandbox; where it cannot run, recorded output, labelled as such."""
        try:
            sandbox = self._sandbox_for(table)
        except SandboxUnavailable:
            recorded = self.recorded.findings(slot) if self.recorded else None
            if recorded is None:
                raise
            if problem := mismatch(list(recorded), [FINDING]):
                raise StructjaxError(
                    f"the recorded findings of {slot} cannot be used: {problem}",
                    kind="transcript",
                    hint="restore the transcript",
                ) from None
            return [{**f, "recorded": True} for f in recorded]
        return [{**asdict(f), "recorded": False} for f in sandbox.run(code)]

    def _sandbox_for(self, table: Path) -> Sandbox:
        if self._sandbox is None:
            # Kept only once it has started: without a sandbox the next call asks again.
            self._sandbox = Sandbox(table, level=self.level).__enter__()
            self.run.manifest["sandbox"] = self._sandbox.level
        elif self._table != table:
            self._sandbox.load(table)
        self._table = table
        return self._sandbox

    def table_text(self, table: RolloutTable) -> str:
        """The table itself, thinned: the worst and the median episode."""
        frame = table.frame
        returns = frame.groupby("episode")["reward"].sum().sort_values()
        chosen = {"worst": returns.index[0], "median": returns.index[len(returns) // 2]}
        parts = []
        for label, episode in chosen.items():
            rows = frame[frame["episode"] == episode]
            step = max(len(rows) // TABLE_ROWS, 1)
            text = rows.iloc[::step].map(number).to_csv(index=False)
            parts.append(f"## Table: the {label} episode, every {step}th row\n\n{text}")
        return "\n".join(parts)


def _finding(record: Mapping[str, Any]) -> Finding:
    text = record["text"]
    if record.get("recorded"):
        text = f"(recorded output)\n{text}"
    return Finding(record["name"], record["status"], text, record["seconds"] or 0.0)
