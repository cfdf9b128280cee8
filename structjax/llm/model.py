"""One question, one answer: the interface every provider of replies has."""

import hashlib
import json
import math
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from structjax.errors import StructjaxError

Status = Literal["ok", "truncated", "refused", "filtered", "empty", "error"]

# Long enough to spare prose and program text: "sk-learn" is not a key.
_SECRETS = re.compile(
    r"\bsk-[A-Za-z0-9_*-]{12,}|\bBearer\s+[A-Za-z0-9._~+/=*-]{16,}", re.ASCII
)
_MIN_SECRET = 16  # a shorter OPENAI_API_KEY is a placeholder such as "dummy"


class LLMError(StructjaxError):
    """A call that cannot succeed as configured.

    Attributes:
      attempts: what was sent before giving up.
      code: short stable identifier, e.g. `"context_length"`.
    """

    def __init__(
        self,
        message: str,
        *,
        hint: str = "",
        code: str = "llm",
        kind: str = "llm",
        attempts: tuple["Attempt", ...] = (),
    ) -> None:
        super().__init__(message, kind=kind, hint=hint)
        self.code = code
        self.attempts = attempts


class LLMUnavailable(LLMError):
    """No reply for now: the run stays resumable, with the same configuration."""

    resumable = True


@dataclass(frozen=True)
class Message:
    """One turn of a chat; `role` is `system`, `user` or `assistant`."""

    role: str
    content: str


@dataclass(frozen=True)
class Request:
    """The whole chat, sent anew at every call, so that each call stands alone.

    Attributes:
      slot: place of the call in the run, e.g. `round3/revise/repair1`.
      messages: system text, earlier turns, and the question last.
      max_output_tokens: limit of the reply, reasoning included.
    """

    slot: str
    messages: tuple[Message, ...]
    max_output_tokens: int = 32_000


@dataclass(frozen=True)
class Attempt:
    """One try of a provider at one call.

    Attributes:
      number: 1 for the first.
      outcome: `ok`, another status, or the name of the fault.
      seconds: wall-clock time of this try.
      maybe_billed: a reply may have been produced (and charged) but was lost.
      detail: the fault in one line, without secrets.
    """

    number: int
    outcome: str
    seconds: float
    maybe_billed: bool = False
    detail: str = ""


@dataclass(frozen=True)
class Reply:
    """What came back, complete or not.

    Attributes:
      text: the reply; of a refusal, its words.
      status: `ok`, or why the text must not be used.
      input_tokens, output_tokens: as reported (all tries together), or estimated.
      usage_estimated: the provider reported nothing: characters / 4.
      model: what the provider says answered.
      latency_s: seconds of the call; of the recorded one when replayed.
      replayed: answered from a transcript.
      raw_usage: the provider's own account, kept as it came.
      attempts: every try of the provider, the last one included.
    """

    text: str
    status: Status = "ok"
    input_tokens: int | None = None
    output_tokens: int | None = None
    usage_estimated: bool = False
    model: str = ""
    latency_s: float = 0.0
    replayed: bool = False
    raw_usage: Mapping[str, Any] | None = None
    attempts: tuple[Attempt, ...] = field(default=(), compare=False)


class LanguageModel(Protocol):
    """Answers one request at a time."""

    @property
    def description(self) -> Mapping[str, str]:
        """What answers: at least `provider` and `model`; for headers and manifests."""
        ...

    def complete(self, request: Request) -> Reply:
        """The reply to a request.

        Raises:
          LLMUnavailable: no reply for now; the run can be resumed.
          LLMError: the call cannot succeed as configured.
        """
        ...


def clean_text(text: str) -> str:
    """The text with lone surrogates, which no file or socket takes, as `?`."""
    return text.encode("utf-8", "replace").decode("utf-8")


def redact(text: str) -> str:
    """The text with API keys and bearer tokens hidden."""
    key = os.environ.get("OPENAI_API_KEY", "")
    if len(key) >= _MIN_SECRET:
        text = text.replace(key, "[redacted]")
    return _SECRETS.sub("[redacted]", text)


def estimate_tokens(text: str) -> int:
    """Tokens of a text when nobody counted them: characters / 4, rounded up."""
    return math.ceil(len(text) / 4)


def estimate_usage(request: Request, text: str) -> tuple[int, int]:
    """Estimated (input, output) tokens of a call."""
    asked = sum(estimate_tokens(message.content) for message in request.messages)
    return asked, estimate_tokens(text)


def request_content(request: Request) -> dict[str, Any]:
    """The part of a request that a model sees, as plain data."""
    return {
        "messages": [
            {"role": message.role, "content": clean_text(message.content)}
            for message in request.messages
        ],
        "max_output_tokens": request.max_output_tokens,
    }


def request_key(request: Request) -> str:
    """Hash of what a model sees; the slot, which it does not see, is left out.

    >>> ask = (Message("user", "2 + 2?"),)
    >>> request_key(Request("a", ask)) == request_key(Request("b", ask))
    True
    """
    return content_key(request_content(request))


def content_key(content: Mapping[str, Any]) -> str:
    """sha256 of plain data as canonical JSON: sorted keys, 1.0 the same as 1."""
    text = json.dumps(
        _integers(content), sort_keys=True, separators=(",", ":"), allow_nan=False
    )
    return hashlib.sha256(text.encode()).hexdigest()


def _integers(value: Any) -> Any:
    """Plain data with integral floats as integers."""
    if isinstance(value, Mapping):
        return {str(key): _integers(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_integers(item) for item in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value
