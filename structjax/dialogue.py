"""Asking a language model until the reply can be used, within a budget."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from structjax.errors import StructjaxError
from structjax.ledger import Ledger
from structjax.llm.model import LanguageModel, Message, Reply, Request
from structjax.llm.prompts import fill
from structjax.llm.reply import complete_text
from structjax.llm.transcript import Transcript
from structjax.prompting import repair_prompt

T = TypeVar("T")


class BudgetExceeded(StructjaxError):
    """A budget is used up; the run keeps its best round."""


class NoUsableReply(StructjaxError):
    """Repairs and regenerations did not lead to a usable reply."""


@dataclass(frozen=True)
class Budget:
    """Limits of a run; None means no limit. Checked before each call."""

    calls: int | None = None
    tokens: int | None = None
    seconds: float | None = None


@dataclass
class Dialogue:
    """One model, one ledger, one budget.

    Attributes:
      model: answers requests; recorded replies are never requested again.
      transcript: where outcomes go.
      ledger: where calls and tokens are booked.
      repairs, regenerations: turns that a malformed reply may cost: first its problems
        are sent back, then the question is asked anew.
    """

    model: LanguageModel
    transcript: Transcript
    ledger: Ledger
    budget: Budget = Budget()
    repairs: int = 2
    regenerations: int = 5
    max_output_tokens: int = 32_000

    def __post_init__(self) -> None:
        """Starts the clock of the seconds budget."""
        self._started = time.monotonic()

    def ask(
        self,
        slot: str,
        messages: tuple[Message, ...],
        use: Callable[[str], T],
        check: Callable[[T], str] = lambda result: "",
    ) -> tuple[T, str]:
        """Asks until `use` accepts the reply.

        Args:
          slot: place of the call in the run, e.g. `"round1/revise"`.
          messages: system text, earlier turns, and the question last.
          use: makes something of the reply text; raises StructjaxError with the
            problems in it, written for the model.
          check: tries the result out; what is wrong with it, empty when nothing is.

        Returns:
          What `use` made of the reply, and the reply text.

        Raises:
          BudgetExceeded: before a call that the budget does not allow.
          NoUsableReply: after all repairs and regenerations.
        """
        problems = ""
        for generation in range(self.regenerations + 1):
            stem = slot if generation == 0 else f"{slot}/regenerate{generation}"
            chat = messages
            for repair in range(self.repairs + 1):
                here = stem if repair == 0 else f"{stem}/repair{repair}"
                reply = self._call(Request(here, chat, self.max_output_tokens))
                result, outcome, problems = _judge(reply, use, check)
                self._note(here, outcome, problems)
                if outcome == "accepted":
                    return result, reply.text
                chat = (
                    *messages,
                    Message("assistant", reply.text or "(empty reply)"),
                    Message("user", repair_prompt(problems)),
                )
        raise NoUsableReply(
            f"no usable reply for {slot}: {problems}",
            kind="llm",
            hint="a resumed run reads the same replies again: start a new one, or try "
            "another model",
        )

    def _note(self, slot: str, outcome: str, detail: str) -> None:
        """Outcomes of a resumed run are on record already."""
        if not self.transcript.outcomes(slot):
            self.transcript.record_outcome(slot, outcome, detail)

    def _call(self, request: Request) -> Reply:
        self._check_budget()
        reply = self.model.complete(request)
        self.ledger.book_call(
            replayed=reply.replayed,
            input_tokens=reply.input_tokens or 0,
            output_tokens=reply.output_tokens or 0,
        )
        return reply

    def _check_budget(self) -> None:
        calls = self.ledger.llm_calls + self.ledger.replayed_calls
        tokens = self.ledger.input_tokens + self.ledger.output_tokens
        seconds = time.monotonic() - self._started
        for name, used, limit in (
            ("calls", calls, self.budget.calls),
            ("tokens", tokens, self.budget.tokens),
            ("seconds", seconds, self.budget.seconds),
        ):
            if limit is not None and used >= limit:
                raise BudgetExceeded(
                    f"the budget of {limit:g} {name} is used up ({used:.4g} used)",
                    kind="budget",
                    hint="the best round so far stands",
                )


def _judge(
    reply: Reply, use: Callable[[str], Any], check: Callable[[Any], str]
) -> tuple[Any, str, str]:
    """What became of a reply: (result, outcome, problems)."""
    try:
        result = use(complete_text(reply))
    except StructjaxError as error:
        return None, "malformed", str(error)
    problems = check(result)
    return result, "rejected" if problems else "accepted", problems


def system_message() -> Message:
    """The role, the same for every request."""
    return Message("system", fill("system"))
