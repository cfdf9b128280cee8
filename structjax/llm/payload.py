"""What the JSON of the Responses and the Chat Completions API says."""

from collections.abc import Iterable, Mapping
from typing import Any, Literal, NamedTuple

from structjax.llm.model import Message, Status, clean_text

Api = Literal["responses", "chat"]


class Answer(NamedTuple):
    """One answer of a server; `status` error: `error` holds the server's account."""

    text: str
    status: Status
    model: str
    usage: Mapping[str, Any] | None
    input_tokens: int | None
    output_tokens: int | None
    error: Any = None


def messages_payload(
    messages: Iterable[Message], system_role: str
) -> list[dict[str, str]]:
    """Messages as both APIs take them."""
    return [
        {
            "role": system_role if message.role == "system" else message.role,
            "content": clean_text(message.content),
        }
        for message in messages
    ]


def read_answer(api: Api, payload: Mapping[str, Any]) -> Answer:
    """The answer in a server's JSON."""
    read = _responses if api == "responses" else _chat
    text, status, error = read(payload)
    text = clean_text(text)
    if status == "ok" and not text.strip():
        status = "empty"
    usage = payload.get("usage")
    usage = usage if isinstance(usage, Mapping) else None
    return Answer(
        text=text,
        status=status,
        model=str(payload.get("model") or ""),
        usage=usage,
        input_tokens=_count(usage, "input_tokens", "prompt_tokens"),
        output_tokens=_count(usage, "output_tokens", "completion_tokens"),
        error=error,
    )


def _responses(payload: Mapping[str, Any]) -> tuple[str, Status, Any]:
    """(text, status, error) of the Responses API."""
    if payload.get("error") or payload.get("status") in ("failed", "cancelled"):
        return "", "error", payload.get("error") or payload.get("status")
    parts = [
        part
        for item in _dicts(payload.get("output"))
        for part in _dicts(item.get("content"))
        if item.get("type") == "message"
    ]
    text = "".join(_text(p, "text") for p in parts if p.get("type") == "output_text")
    refusal = "".join(_text(p, "refusal") for p in parts if p.get("type") == "refusal")
    if payload.get("status") == "incomplete":
        details = payload.get("incomplete_details")
        reason = details.get("reason") if isinstance(details, Mapping) else None
        return text, "filtered" if reason == "content_filter" else "truncated", None
    return (refusal, "refused", None) if refusal else (text, "ok", None)


def _chat(payload: Mapping[str, Any]) -> tuple[str, Status, Any]:
    """(text, status, error) of the Chat Completions API."""
    choices = _dicts(payload.get("choices"))
    if payload.get("error"):
        return "", "error", payload["error"]
    if not choices:
        return "", "empty", None
    message = choices[0].get("message")
    message = message if isinstance(message, Mapping) else {}
    text, refusal = _text(message, "content"), _text(message, "refusal")
    finish = choices[0].get("finish_reason")
    if finish in ("length", "max_tokens"):
        return text, "truncated", None
    if finish == "content_filter":
        return text, "filtered", None
    return (refusal, "refused", None) if refusal else (text, "ok", None)


def _dicts(value: Any) -> list[Mapping[str, Any]]:
    """The objects in a JSON array; nothing when it is none."""
    if not isinstance(value, list):
        return []
    return [item for item in value if isinstance(item, Mapping)]


def _text(value: Mapping[str, Any], name: str) -> str:
    """A text field; some servers send a list of parts instead."""
    content = value.get(name)
    if isinstance(content, str):
        return content
    return "".join(_text(part, "text") for part in _dicts(content))


def _count(usage: Mapping[str, Any] | None, *names: str) -> int | None:
    """A number of tokens, under whichever name the server gives it."""
    for name in names:
        count = (usage or {}).get(name)
        if isinstance(count, int | float) and not isinstance(count, bool):
            return int(count)
    return None
