"""Replies written beforehand: for tests and demonstrations of the loop."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from structjax.errors import StructjaxError
from structjax.files import read_json
from structjax.forms import Each, mismatch
from structjax.llm.model import Reply, Request, estimate_usage
from structjax.llm.replay import TranscriptExhausted

Script = Sequence[str | Reply] | Mapping[str, str | Reply] | Callable[[Request], str]


def read_script(path: Path) -> Script:
    """A script from a JSON file: slot -> reply text, or the texts in their order.

    Raises:
      StructjaxError: it cannot be read, or holds something else.
    """
    hint = "give a JSON file of slot -> reply text"
    script: Script = read_json(path, kind="script", hint=hint)
    form = [str] if isinstance(script, list) else Each(str)
    if problem := mismatch(script, form):
        text = f"{path} is not a script: {problem}"
        raise StructjaxError(text, kind="script", hint=hint)
    return script


class ScriptedModel:
    """Answers in order (sequence), by slot (mapping), or by a function.

    A reply may be a `Reply`, to play a truncated or refused one. A missing one ends
    the script as a transcript ends: `TranscriptExhausted`.

    Attributes:
      requests: everything that was asked, in order.

    >>> from structjax.llm.model import Message
    >>> model = ScriptedModel(["ACTION: stop"])
    >>> model.complete(Request("round1/revise", (Message("user", "?"),))).text
    'ACTION: stop'
    """

    def __init__(self, replies: Script) -> None:
        self.requests: list[Request] = []
        self._replies = replies

    @property
    def description(self) -> dict[str, str]:
        """What answers."""
        return {"provider": "scripted", "model": "scripted"}

    def complete(self, request: Request) -> Reply:
        """The scripted reply to a request, with estimated usage."""
        self.requests.append(request)
        text = self._find(request, len(self.requests) - 1)
        if isinstance(text, Reply):
            return text
        asked, answered = estimate_usage(request, text)
        return Reply(
            text=text,
            status="ok" if text.strip() else "empty",
            input_tokens=asked,
            output_tokens=answered,
            usage_estimated=True,
            model="scripted",
        )

    def _find(self, request: Request, position: int) -> str | Reply:
        if callable(self._replies):
            return self._replies(request)
        key = request.slot if isinstance(self._replies, Mapping) else position
        try:
            return self._replies[key]  # type: ignore[index]
        except (KeyError, IndexError):
            raise TranscriptExhausted(request.slot, "the script") from None
