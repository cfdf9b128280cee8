"""Every fault of a server ends in a retry, or in one clear line with the remedy."""

import socket
from email.utils import formatdate

import pytest
from llm.fault_server import APIS, KEY, REQUEST, Answer, error, model_at, ok

from structjax.llm.model import LLMError, LLMUnavailable
from structjax.llm.openai import OpenAIModel
from structjax.llm.recorded import RecordedModel
from structjax.llm.transcript import Transcript, read_transcript

# Faults that pass: what the server says first, and the name of the failed try.
PASSING = {
    "rate limit, seconds": (error(429, headers={"Retry-After": "0"}), "rate_limit"),
    "rate limit, milliseconds": (
        error(429, headers={"retry-after-ms": "5"}),
        "rate_limit",
    ),
    "rate limit, date": (
        error(429, headers={"Retry-After": formatdate(usegmt=True)}),
        "rate_limit",
    ),
    "rate limit, nonsense": (
        error(429, headers={"Retry-After": "soon"}),
        "rate_limit",
    ),
    "500": (error(500), "http_500"),
    "502 html": (Answer(b"<html>bad gateway</html>", status=502), "http_502"),
    "overloaded": (error(529), "http_529"),
    "conflict": (error(409), "http_409"),
    "reset": (Answer(wire="reset"), "connection"),
    "body cut": (Answer(ok("chat"), wire="cut"), "connection"),
    "error in 200": (Answer({"error": {"message": "no", "code": 502}}), "http_502"),
    "error text in 200": (Answer({"error": "upstream"}), "http_500"),
    "rate limit in 200": (
        Answer({"error": {"code": "rate_limit_exceeded"}}),
        "rate_limit",
    ),
    "bad json": (Answer(b'{"choices": [', headers={}), "malformed"),
    "no utf-8": (Answer(b'{"model": "\xff\xfe"}'), "malformed"),
    "a list": (Answer(b"[1, 2]"), "malformed"),
    "nothing": (Answer(b""), "malformed"),
}


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize(("first", "name"), PASSING.values(), ids=PASSING.keys())
def test_passing_fault_is_retried(server, api, first, name):
    server.plan = [first, Answer(ok(api))]
    reply = model_at(server, api).complete(REQUEST)
    assert reply.text == "hello"
    assert [one.outcome for one in reply.attempts] == [name, "ok"]
    lost = name in ("connection", "malformed")
    assert reply.attempts[0].maybe_billed == lost


def test_failed_response_is_a_server_error(server):
    failed = ok("responses", status="failed", error={"code": "server_error"})
    server.plan = [Answer(failed), Answer(ok("responses"))]
    reply = model_at(server, "responses").complete(REQUEST)
    assert [one.outcome for one in reply.attempts] == ["http_500", "ok"]


# Faults that stay: the answer, the exception, its code, words of message and hint.
LASTING = {
    "quota": (
        error(429, "You exceeded", code="insufficient_quota"),
        LLMUnavailable,
        "quota",
        "add credit",
    ),
    "payment": (error(402), LLMUnavailable, "quota", "add credit"),
    "key": (error(401), LLMUnavailable, "key", "set OPENAI_API_KEY"),
    "model": (
        error(404, "model m not found"),
        LLMError,
        "not_found",
        "model m not found",
    ),
    "parameter": (
        error(400, "Unsupported", code="unsupported_parameter", param="temperature"),
        LLMError,
        "bad_request",
        "change the option temperature",
    ),
    "nested parameter": (
        error(400, "Unsupported", param="reasoning.effort"),
        LLMError,
        "bad_request",
        "change the option reasoning_effort",
    ),
    "context": (
        error(400, "too long", code="context_length_exceeded"),
        LLMError,
        "context_length",
        "longer context",
    ),
    "context of llama.cpp": (
        error(400, "9031 tokens exceeds the available context size"),
        LLMError,
        "context_length",
        "longer context",
    ),
    "html": (
        Answer(b"<!doctype html><p>log in", headers={"Content-Type": "text/html"}),
        LLMError,
        "bad_endpoint",
        "web page instead of JSON",
    ),
}


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize(
    ("answer", "kind", "code", "words"), LASTING.values(), ids=LASTING.keys()
)
def test_lasting_fault_stops_at_once(server, api, answer, kind, code, words):
    server.plan = [answer]
    with pytest.raises(LLMError, match=words) as caught:
        model_at(server, api).complete(REQUEST)
    assert type(caught.value) is kind
    assert caught.value.code == code
    assert len(server.asked) == len(caught.value.attempts) == 1


def test_long_rate_limit_stops_resumably(server):
    server.plan = [error(429, headers={"Retry-After": "300"})]
    with pytest.raises(LLMUnavailable, match=r"not again before \d\d:\d\d.*--resume"):
        model_at(server).complete(REQUEST)
    assert len(server.asked) == 1


def test_tries_are_bounded(server):
    server.plan = [error(503)]
    with pytest.raises(LLMUnavailable, match="the server failed") as caught:
        model_at(server, max_attempts=4).complete(REQUEST)
    assert len(server.asked) == len(caught.value.attempts) == 4


@pytest.mark.parametrize("wire", [None, "drip"])
def test_slow_replies_are_cut_off_and_asked_for_once_more(server, wire):
    # A dripping body never trips a read timeout: without our own clock the reply
    # would arrive complete, after 10 s.
    server.plan = [Answer(ok("chat"), seconds=0.0 if wire else 0.5, wire=wire)]
    model = model_at(server, attempt_s=0.15)
    with pytest.raises(LLMUnavailable, match="no complete reply within") as caught:
        model.complete(REQUEST)
    assert [one.outcome for one in caught.value.attempts] == ["timeout"] * 2
    assert all(one.maybe_billed for one in caught.value.attempts)


def test_the_deadline_covers_the_whole_call(server):
    server.plan = [error(500)]
    model = model_at(server, deadline_s=10.0, retry_delay_s=60.0)
    with pytest.raises(LLMUnavailable, match="no time left of 10 s"):
        model.complete(REQUEST)
    assert len(server.asked) == 1


def test_a_malformed_reply_is_asked_for_only_once_more(server):
    server.plan = [Answer(b"{")]
    with pytest.raises(LLMUnavailable, match="cannot be read"):
        model_at(server).complete(REQUEST)
    assert len(server.asked) == 2


def test_dead_server_is_named(server):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
    model = OpenAIModel(model="m", base_url=url, api_key=KEY)
    with pytest.raises(LLMUnavailable, match=rf"is the server at {url} running\?"):
        model.complete(REQUEST)


def test_a_server_that_answered_before_may_come_back(server):
    server.plan = [Answer(ok("chat"))]
    model = model_at(server, max_attempts=3)
    model.complete(REQUEST)
    server.socket.close()  # refuses from now on
    with pytest.raises(LLMUnavailable, match="cannot connect") as caught:
        model.complete(REQUEST)
    assert len(caught.value.attempts) == 3
    assert not any(one.maybe_billed for one in caught.value.attempts)


@pytest.mark.parametrize("key", [KEY, "gateway-7"])
def test_the_key_reaches_no_message_and_no_file(server, tmp_path, key):
    server.plan = [error(401, f"Incorrect API key provided: {key}. Bearer {key}")]
    url = f"http://127.0.0.1:{server.server_port}/v1"
    model = OpenAIModel(model="m", api_key=key, base_url=url)
    transcript = Transcript(tmp_path / "llm.jsonl", header=model.description)
    with pytest.raises(LLMUnavailable) as caught:
        RecordedModel(model, transcript).complete(REQUEST)
    assert key not in str(caught.value)
    assert "[redacted]" in str(caught.value)
    assert key not in (tmp_path / "llm.jsonl").read_text()


def test_tries_are_in_the_transcript(server, tmp_path):
    server.plan = [Answer(wire="reset"), Answer(ok("chat"))]
    transcript = Transcript(tmp_path / "llm.jsonl")
    RecordedModel(model_at(server), transcript).complete(REQUEST)
    tries = read_transcript(transcript.path).records[-1]["attempts"]
    assert [one["outcome"] for one in tries] == ["connection", "ok"]
    assert transcript.maybe_billed() == 1
