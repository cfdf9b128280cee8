"""What went wrong with a call to an HTTP provider, and what to do about it."""

import re
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any, Literal, NamedTuple

Action = Literal["retry", "once", "stop", "fatal"]

_CONTEXT = re.compile(r"context[ _](?:length|window|size)", re.I)
_TEXT = 200  # characters of a server's message that are worth showing
_OPTIONS = {
    "temperature": "temperature",
    "reasoning": "reasoning_effort",
    "reasoning_effort": "reasoning_effort",
    "max_tokens": "token_param",
    "max_completion_tokens": "token_param",
    "max_output_tokens": "max_output_tokens",
    "messages": "system_role",
    "input": "system_role",
    "store": "store",
}


class Fault(NamedTuple):
    """A failed try.

    Attributes:
      name: short stable identifier.
      message: what is wrong, in one line.
      hint: the remedy.
      action: `retry` up to the limit; retry `once`; `stop`, to be resumed later with
        the same configuration; `fatal`: the configuration must change.
      maybe_billed: a reply may have been produced and lost.
      retry_after: seconds the server asks to wait.
    """

    name: str
    message: str
    hint: str = "try again later with --resume"
    action: Action = "retry"
    maybe_billed: bool = False
    retry_after: float | None = None


def status_fault(
    status: int, error: Mapping[str, Any], headers: Mapping[str, str], url: str
) -> Fault:
    """The fault behind an HTTP status and the server's error object.

    Args:
      status: HTTP status; of an error in a reply with status 200, its own number.
      error: `message`, `code`, `type`, `param`, as far as the server gives them.
      headers: of the reply, names in lower case.
      url: the base URL, for messages.
    """
    said = one_line(str(error.get("message") or "no details"))
    names = {str(error.get("code")), str(error.get("type"))}
    if "insufficient_quota" in names or status == 402:
        return Fault(
            "quota",
            f"the account has no credit left ({said})",
            "add credit or use another key, then --resume",
            "stop",
        )
    if status == 429:
        wait = retry_after(headers)
        return Fault("rate_limit", f"rate limited ({said})", retry_after=wait)
    if status >= 500 or status in (408, 409):
        wait = retry_after(headers)
        return Fault(f"http_{status}", f"the server failed ({said})", retry_after=wait)
    if status in (401, 403):
        return Fault(
            "key",
            f"the server refuses the key ({said})",
            "set OPENAI_API_KEY to a valid key, then --resume",
            "stop",
        )
    if status == 404:
        return Fault(
            "not_found",
            f"the server at {url} does not know the model or the path ({said})",
            "check the model's name, base_url (it usually ends in /v1) and api",
            "fatal",
        )
    return _bad_request(status, error, names, said)


def _bad_request(
    status: int, error: Mapping[str, Any], names: set[str], said: str
) -> Fault:
    """A request that the server understood and refuses."""
    if "context_length_exceeded" in names or _CONTEXT.search(said):
        return Fault(
            "context_length",
            f"the prompt is too long for the model ({said})",
            "use a model with a longer context, or fewer diagnostics",
            "fatal",
        )
    parameter = re.split(r"[.\[]", str(error.get("param") or ""))[0]
    option = _OPTIONS.get(parameter)
    hint = f"change the option {option}" if option else "check the model's options"
    return Fault(
        "bad_request",
        f"the server refuses the request ({status}: {said})",
        hint,
        "fatal",
    )


def payload_fault(error: Any, url: str) -> Fault:
    """The fault behind an error object in a reply with status 200."""
    details = error if isinstance(error, Mapping) else {"message": str(error)}
    code = str(details.get("code"))
    if code.isdigit() and int(code) >= 400:
        return status_fault(int(code), details, {}, url)
    status = {
        "rate_limit_exceeded": 429,
        "context_length_exceeded": 400,
        "invalid_prompt": 400,
    }.get(code, 500)
    return status_fault(status, details, {}, url)


def connection_fault(cause: BaseException | None, url: str, connected: bool) -> Fault:
    """The fault behind a broken or refused connection.

    Args:
      cause: what the transport raised.
      url: the base URL.
      connected: whether this server ever answered: if not, retrying is useless.
    """
    kind = type(cause).__name__
    said = one_line(str(cause) or kind)
    if kind in ("ConnectError", "ConnectTimeout"):
        return Fault(
            "unreachable",
            f"cannot connect to {url} ({said})",
            f"is the server at {url} running? start it or change base_url, then "
            "--resume",
            "retry" if connected else "stop",
        )
    return Fault(
        "connection", f"the connection to {url} broke ({said})", maybe_billed=True
    )


def malformed_fault(url: str, said: str) -> Fault:
    """A reply with status 200 that is not the API's."""
    if said.lstrip().startswith("<"):
        return Fault(
            "bad_endpoint",
            f"{url} answers with a web page instead of JSON",
            "check base_url (it usually ends in /v1) and any proxy or login page",
            "fatal",
        )
    message = f"{url} sent a reply that cannot be read ({one_line(said)})"
    return Fault("malformed", message, action="once", maybe_billed=True)


def timeout_fault(seconds: float) -> Fault:
    """No complete reply in time; it may still have been produced."""
    return Fault(
        "timeout",
        f"no complete reply within {seconds:.0f} s",
        "raise the deadline or lower reasoning_effort, then --resume",
        "once",
        maybe_billed=True,
    )


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds a server asks to wait: `retry-after-ms`, seconds, or an HTTP date."""
    for name, unit in (("retry-after-ms", 1e-3), ("retry-after", 1.0)):
        text = headers.get(name, "")
        try:
            return max(float(text) * unit, 0.0)
        except ValueError:
            continue
    try:
        moment = parsedate_to_datetime(headers.get("retry-after", ""))
    except ValueError:
        return None
    return max(moment.timestamp() - time.time(), 0.0)


def one_line(text: str) -> str:
    """The beginning of a server's message, on one line."""
    return " ".join(text.split())[:_TEXT]
