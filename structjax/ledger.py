"""The ledger: every reset, step, LLM call and token is booked under one purpose."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, get_args

Purpose = Literal[
    "demonstration", "diagnosis", "gate", "selection", "training", "evaluation"
]
PURPOSES: tuple[Purpose, ...] = get_args(Purpose)


@dataclass
class Ledger:
    """Counters of one run; mutable, and saved in the run's manifest.

    Attributes:
      resets: environment resets by purpose (one episode is one reset).
      env_steps: environment steps by purpose (masked steps do not count).
      llm_calls: live calls; `replayed_calls` are those answered from a transcript.
      input_tokens, output_tokens: of live and replayed calls together.
    """

    resets: dict[str, int] = field(default_factory=lambda: dict.fromkeys(PURPOSES, 0))
    env_steps: dict[str, int] = field(
        default_factory=lambda: dict.fromkeys(PURPOSES, 0)
    )
    llm_calls: int = 0
    replayed_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0

    def book(self, purpose: Purpose, *, resets: int, env_steps: int) -> None:
        """Books episodes under one purpose."""
        self.resets[purpose] += int(resets)
        self.env_steps[purpose] += int(env_steps)

    def book_call(
        self, *, replayed: bool, input_tokens: int, output_tokens: int
    ) -> None:
        """Books one LLM reply; a replayed one costs nothing now but is counted."""
        if replayed:
            self.replayed_calls += 1
        else:
            self.llm_calls += 1
        self.input_tokens += int(input_tokens)
        self.output_tokens += int(output_tokens)

    def copy(self) -> "Ledger":
        """An independent copy."""
        return replace(self, resets=dict(self.resets), env_steps=dict(self.env_steps))

    def since(self, before: "Ledger") -> dict[str, Any]:
        """What was booked after `before`, as `add` takes it."""
        now, then = asdict(self), asdict(before)
        return {
            name: {p: value[p] - then[name][p] for p in value}
            if isinstance(value, dict)
            else value - then[name]
            for name, value in now.items()
        }

    def add(self, booked: Mapping[str, Any]) -> None:
        """Books what `since` returned."""
        for name, value in asdict(self).items():
            if isinstance(value, dict):
                counters = getattr(self, name)
                for purpose in value:
                    counters[purpose] += booked[name][purpose]
            else:
                setattr(self, name, value + booked[name])

    @property
    def headline_resets(self) -> int:
        """Diagnosis + training: the count of arXiv 2610.01652."""
        return self.resets["diagnosis"] + self.resets["training"]

    @property
    def total_resets(self) -> int:
        """Everything but the final evaluation."""
        return sum(n for purpose, n in self.resets.items() if purpose != "evaluation")
