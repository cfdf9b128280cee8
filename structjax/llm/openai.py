"""OpenAI's API, or any server that speaks it: own retries, own deadline.

The SDK is imported at the first call only. Its retries are off: a retry after a
timeout can be billed twice, so each one must be seen and recorded.
"""

import asyncio
import json
import os
import random
import threading
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import urlsplit

from structjax.llm.faults import (
    Fault,
    connection_fault,
    malformed_fault,
    one_line,
    payload_fault,
    status_fault,
    timeout_fault,
)
from structjax.llm.model import (
    Attempt,
    LLMError,
    LLMUnavailable,
    Reply,
    Request,
    estimate_usage,
    redact,
)
from structjax.llm.payload import Answer, Api, messages_payload, read_answer

OPENAI_URL = "https://api.openai.com/v1"
_CONNECT_S = 10.0
_LONGEST_DELAY_S = 60.0


@dataclass(frozen=True)
class Price:
    """US dollars per million tokens; there is no price field in the API."""

    input: float
    output: float


@dataclass(frozen=True, kw_only=True)
class OpenAIModel:
    """A model behind the Responses or the Chat Completions API.

    Attributes:
      model: its name.
      api: None: `responses` at OpenAI, `chat` everywhere else.
      base_url: None: `OPENAI_BASE_URL`, else OpenAI.
      api_key: None: `OPENAI_API_KEY`. Local servers take any non-empty key.
      max_output_tokens: replaces the limit of each request; reasoning counts.
      reasoning_effort, temperature: sent when given: not every model takes them.
      deadline_s: wall-clock limit of one call, retries and waits included.
      attempt_s: wall-clock limit of one try.
      max_attempts: tries of one call.
      retry_delay_s: wait before the first retry; doubles, up to 60 s.
      token_param: name of the limit in `chat`; None: `max_completion_tokens` at
        OpenAI, `max_tokens` everywhere else.
      system_role: None: `developer` at OpenAI, `system` everywhere else.
      store: lets OpenAI keep the response (Responses API only).
      extra_body: further fields of the request, as the server documents them.
      price: for the cost of a reply; None: unknown, never 0.
    """

    model: str
    api: Api | None = None
    base_url: str | None = None
    api_key: str | None = field(default=None, repr=False)
    max_output_tokens: int | None = None
    reasoning_effort: str | None = None
    temperature: float | None = None
    deadline_s: float = 1800.0
    attempt_s: float = 900.0
    max_attempts: int = 6
    retry_delay_s: float = 1.0
    token_param: Literal["max_completion_tokens", "max_tokens"] | None = None
    system_role: Literal["developer", "system"] | None = None
    store: bool = False
    extra_body: Mapping[str, Any] | None = field(default=None, hash=False)
    price: Price | None = None
    _answered: threading.Event = field(
        default_factory=threading.Event, init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        address = urlsplit(self.url)
        if address.scheme not in ("http", "https") or not address.hostname:
            raise LLMError(
                f"base_url {self.url!r} is no web address",
                hint="give one like http://127.0.0.1:8080/v1",
                code="base_url",
            )
        if not self._key.isascii():
            raise LLMError(
                "the key has characters that no key has",
                hint="set OPENAI_API_KEY to the key alone",
                code="no_key",
            )
        if not self._key:
            raise LLMError(
                "no key for --model openai",
                hint="use --model replay or manual, or set OPENAI_API_KEY (local "
                "servers: any non-empty key)",
                code="no_key",
            )

    @property
    def url(self) -> str:
        """The server's base URL."""
        return self.base_url or os.environ.get("OPENAI_BASE_URL") or OPENAI_URL

    @property
    def description(self) -> dict[str, str]:
        """What answers, without the key."""
        return {
            "provider": "openai",
            "model": self.model,
            "api": self._api,
            "host": urlsplit(self.url).hostname or "",
            "reasoning_effort": self.reasoning_effort or "default",
        }

    def complete(self, request: Request) -> Reply:
        """The model's reply; truncated, refused, filtered or empty ones included.

        A truncated reply is asked for once more with twice the limit, an empty one
        once more as it is; both are paid and counted.

        Raises:
          LLMUnavailable: no reply within the tries or the deadline, or a problem of
            the account; the run can be resumed.
          LLMError: the configuration must change.
        """
        call = _Call(self, request)
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return asyncio.run(call.run())
        # In a notebook this thread already runs a loop.
        pool = ThreadPoolExecutor(1)
        try:
            return pool.submit(asyncio.run, call.run()).result()
        finally:
            pool.shutdown(wait=False)

    def cost(self, reply: Reply) -> float | None:
        """US dollars of a reply; None when the price or the usage is unknown."""
        if self.price is None or reply.input_tokens is None:
            return None
        paid = self.price.input * reply.input_tokens
        return (paid + self.price.output * (reply.output_tokens or 0)) / 1e6

    def hide(self, text: str) -> str:
        """A server's text without keys: some servers echo them."""
        return redact(text.replace(self._key, "[redacted]"))

    def body(self, request: Request, limit: int) -> dict[str, Any]:
        """The fields of a request, as the SDK takes them."""
        role = self.system_role or ("developer" if self._at_openai else "system")
        messages = messages_payload(request.messages, role)
        body: dict[str, Any] = {"model": self.model}
        if self._api == "responses":
            body |= {"input": messages, "max_output_tokens": limit, "store": self.store}
            if self.reasoning_effort:
                body["reasoning"] = {"effort": self.reasoning_effort}
        else:
            theirs = "max_completion_tokens" if self._at_openai else "max_tokens"
            body |= {"messages": messages, self.token_param or theirs: limit}
            if self.reasoning_effort:
                body["reasoning_effort"] = self.reasoning_effort
        if self.temperature is not None:
            body["temperature"] = self.temperature
        if self.extra_body:
            body["extra_body"] = dict(self.extra_body)
        return body

    @property
    def _key(self) -> str:
        return (self.api_key or os.environ.get("OPENAI_API_KEY") or "").strip()

    @property
    def _at_openai(self) -> bool:
        return urlsplit(self.url).hostname == "api.openai.com"

    @property
    def _api(self) -> Api:
        return self.api or ("responses" if self._at_openai else "chat")

    def _client(self) -> Any:
        """A client of the SDK that neither retries nor waits on its own."""
        try:
            import openai
        except ImportError as error:
            raise LLMError(
                "the package openai is not installed",
                hint="pip install openai, or use --model replay or manual",
            ) from error
        return openai.AsyncOpenAI(
            api_key=self._key,
            base_url=self.url,
            max_retries=0,
            timeout=openai.Timeout(self.attempt_s, connect=_CONNECT_S),
        )

    async def _send(self, client: Any, request: Request, limit: int) -> Answer | Fault:
        """One try: the answer, or what went wrong."""
        import openai

        api = client.responses if self._api == "responses" else client.chat.completions
        try:
            raw = await api.with_raw_response.create(**self.body(request, limit))
        except openai.APIStatusError as error:
            self._answered.set()
            headers = {k.lower(): v for k, v in error.response.headers.items()}
            body = error.body if isinstance(error.body, Mapping) else {}
            said = {"message": error.message, **body}
            return status_fault(error.status_code, said, headers, self.url)
        except openai.APITimeoutError as error:
            if type(error.__cause__).__name__ == "ConnectTimeout":
                return self._broken(error)
            return timeout_fault(self.attempt_s)
        except openai.APIConnectionError as error:
            return self._broken(error)
        self._answered.set()
        return self._read(raw.content)

    def _broken(self, error: BaseException) -> Fault:
        return connection_fault(error.__cause__, self.url, self._answered.is_set())

    def _read(self, content: bytes) -> Answer | Fault:
        """The answer in the body of a reply with status 200."""
        text = content.decode("utf-8", "replace")
        try:
            payload = json.loads(content)
        except ValueError:
            return malformed_fault(self.url, text)
        if not isinstance(payload, Mapping):
            return malformed_fault(self.url, text)
        answer = read_answer(self._api, payload)
        if answer.status == "error":
            return payload_fault(answer.error, self.url)
        return answer


class _Call:
    """One call in progress: its tries, its clock and what has been paid."""

    def __init__(self, model: OpenAIModel, request: Request) -> None:
        self.model = model
        self.request = request
        self.limit = model.max_output_tokens or request.max_output_tokens
        self.started = time.monotonic()
        self.attempts: list[Attempt] = []
        self.answers: list[Answer] = []

    async def run(self) -> Reply:
        """Tries until there is a reply or no point in trying."""
        async with self.model._client() as client:
            while True:
                result = await self._try(client)
                if isinstance(result, Answer):
                    self.answers.append(result)
                    if self._final(result):
                        return self._reply()
                    if result.status == "truncated":
                        self.limit *= 2
                elif self.answers:
                    return self._reply()  # half a reply, marked so, but paid for
                else:
                    await asyncio.sleep(self._delay(result))

    async def _try(self, client: Any) -> Answer | Fault:
        """Sends once, within the time that is left, and writes the try down."""
        began = time.monotonic()
        seconds = max(min(self.model.attempt_s, self._left()), 0.001)
        try:
            async with asyncio.timeout(seconds):
                result = await self.model._send(client, self.request, self.limit)
        except TimeoutError:
            result = timeout_fault(seconds)
        except (LLMError, asyncio.CancelledError):
            raise
        except Exception as error:  # the SDK leaks errors of its JSON and HTTP layers
            result = malformed_fault(self.model.url, f"{type(error).__name__}: {error}")
        if isinstance(result, Fault):
            result = result._replace(message=self.model.hide(result.message))
            outcome, billed, detail = result.name, result.maybe_billed, result.message
        else:
            outcome, billed, detail = result.status, False, ""
        spent = time.monotonic() - began
        number = len(self.attempts) + 1
        self.attempts.append(Attempt(number, outcome, spent, billed, detail))
        return result

    def _final(self, answer: Answer) -> bool:
        """Whether an answer is the reply: a second unusable one is."""
        exhausted = len(self.attempts) >= self.model.max_attempts or self._left() <= 0
        again = answer.status in ("truncated", "empty") and len(self.answers) == 1
        return exhausted or not again

    def _delay(self, fault: Fault) -> float:
        """Seconds until the next try; raises when there is none."""
        tries = len(self.attempts)
        tried = sum(one.outcome == fault.name for one in self.attempts)
        if fault.action == "fatal":
            raise self._error(LLMError, fault, fault.message)
        if fault.action == "stop":
            raise self._error(LLMUnavailable, fault, fault.message)
        if tries >= self.model.max_attempts or (fault.action == "once" and tried > 1):
            message = f"{fault.message}, {tries} tries"
            raise self._error(LLMUnavailable, fault, message)
        delay = self.model.retry_delay_s * 2.0 ** (tries - 1)
        delay = min(delay, _LONGEST_DELAY_S) * random.uniform(0.75, 1.0)
        if fault.retry_after is not None:
            delay = fault.retry_after
        if delay >= self._left():
            message = f"{fault.message}, no time left of {self.model.deadline_s:.0f} s"
            if fault.retry_after is not None:
                until = time.strftime("%H:%M", time.localtime(time.time() + delay))
                message = f"{fault.message}, not again before {until}"
            raise self._error(LLMUnavailable, fault, message)
        return delay

    def _left(self) -> float:
        return self.started + self.model.deadline_s - time.monotonic()

    def _error(self, kind: type[LLMError], fault: Fault, message: str) -> LLMError:
        return kind(
            one_line(message),
            hint=fault.hint,
            code=fault.name,
            attempts=tuple(self.attempts),
        )

    def _reply(self) -> Reply:
        """The last answer as the reply, with the usage of all of them."""
        answer = self.answers[-1]
        estimated = False
        asked = answered = 0
        for one in self.answers:
            guess = estimate_usage(self.request, one.text)
            estimated |= one.input_tokens is None or one.output_tokens is None
            asked += guess[0] if one.input_tokens is None else one.input_tokens
            answered += guess[1] if one.output_tokens is None else one.output_tokens
        return Reply(
            text=answer.text,
            status=answer.status,
            input_tokens=asked,
            output_tokens=answered,
            usage_estimated=estimated,
            model=answer.model or self.model.model,
            latency_s=time.monotonic() - self.started,
            raw_usage=answer.usage,
            attempts=tuple(self.attempts),
        )
