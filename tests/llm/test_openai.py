"""What the OpenAI provider sends, and what it makes of complete and odd replies."""

import asyncio

import pytest
from llm.fault_server import (
    APIS,
    KEY,
    REQUEST,
    Answer,
    error,
    filtered,
    model_at,
    ok,
    refused,
    truncated,
)

from structjax.llm.model import LLMError, Message, Reply, Request
from structjax.llm.openai import OpenAIModel, Price


@pytest.mark.parametrize("api", APIS)
def test_reply_and_request(server, api):
    server.plan = [Answer(ok(api))]
    model = model_at(
        server, api, reasoning_effort="high", temperature=0.5, extra_body={"top_k": 1}
    )
    reply = model.complete(REQUEST)
    assert (reply.text, reply.status, reply.model) == ("hello", "ok", "m-1")
    assert (reply.input_tokens, reply.output_tokens) == (7, 3)
    assert not reply.usage_estimated
    assert reply.raw_usage["total_tokens"] == 10
    assert [one.outcome for one in reply.attempts] == ["ok"]
    path, body = server.asked[0]
    messages = [
        {"role": "system", "content": "s" * 8},
        {"role": "user", "content": "uuuu"},
    ]
    common = {"model": "m", "temperature": 0.5, "top_k": 1}
    if api == "responses":
        assert path == "/v1/responses"
        assert body == common | {
            "input": messages,
            "max_output_tokens": 100,
            "store": False,
            "reasoning": {"effort": "high"},
        }
    else:
        assert path == "/v1/chat/completions"
        assert body == common | {
            "messages": messages,
            "max_tokens": 100,
            "reasoning_effort": "high",
        }


def test_defaults_follow_the_server(monkeypatch):
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    official = OpenAIModel(model="m", api_key=KEY)
    assert official.description["api"] == "responses"
    assert official.body(REQUEST, 9)["input"][0]["role"] == "developer"
    local = OpenAIModel(model="m", api_key=KEY, base_url="http://localhost:1/v1")
    assert local.description["api"] == "chat"
    assert local.body(REQUEST, 9)["max_tokens"] == 9
    monkeypatch.setenv("OPENAI_BASE_URL", "http://gateway/v1")
    assert OpenAIModel(model="m", api_key=KEY).description["host"] == "gateway"
    assert KEY not in repr(official)
    assert KEY not in str(official.description)


@pytest.mark.parametrize("api", APIS)
def test_truncated_reply_is_asked_for_once_more_with_twice_the_room(server, api):
    server.plan = [Answer(truncated(api)), Answer(ok(api))]
    reply = model_at(server, api).complete(REQUEST)
    assert (reply.text, reply.status) == ("hello", "ok")
    # Both replies are paid: 7 + 7 in, 3 + 3 out.
    assert (reply.input_tokens, reply.output_tokens) == (14, 6)
    limit = "max_output_tokens" if api == "responses" else "max_tokens"
    assert [body[limit] for _, body in server.asked] == [100, 200]


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("text", ["half", ""])
def test_twice_truncated_reply_says_so(server, api, text):
    # Empty and truncated: all of the room went into reasoning.
    server.plan = [Answer(truncated(api, text))]
    reply = model_at(server, api).complete(REQUEST)
    assert (reply.text, reply.status) == (text, "truncated")
    assert len(server.asked) == 2


def test_a_fault_after_a_truncated_reply_does_not_lose_it(server):
    server.plan = [Answer(truncated("chat")), error(400, "max_tokens is too large")]
    reply = model_at(server).complete(REQUEST)
    assert (reply.text, reply.status) == ("half", "truncated")
    assert [one.outcome for one in reply.attempts] == ["truncated", "bad_request"]


@pytest.mark.parametrize("api", APIS)
def test_refused_and_filtered_replies_are_not_repeated(server, api):
    server.plan = [Answer(refused(api)), Answer(filtered(api))]
    model = model_at(server, api)
    reply = model.complete(REQUEST)
    assert (reply.text, reply.status) == ("I won't.", "refused")
    assert model.complete(REQUEST).status == "filtered"
    assert len(server.asked) == 2


EMPTY = {
    "chat, empty": ("chat", ok("chat", "")),
    "chat, white space": ("chat", ok("chat", " \n")),
    "chat, null": ("chat", ok("chat", None)),
    "chat, no choices": ("chat", ok("chat", choices=[])),
    "chat, choices null": ("chat", ok("chat", choices=None)),
    "chat, odd choices": ("chat", ok("chat", choices=[{"message": "hi"}, 3])),
    "chat, only reasoning": (
        "chat",
        ok("chat", choices=[{"message": {"reasoning_content": "hm"}}]),
    ),
    "responses, no output": ("responses", ok("responses", output=[])),
    "responses, output null": ("responses", ok("responses", output=None)),
    "responses, odd output": ("responses", ok("responses", output=["x", {"a": 1}])),
}


@pytest.mark.parametrize(("api", "body"), EMPTY.values(), ids=EMPTY.keys())
def test_empty_reply_is_asked_for_once_more(server, api, body):
    server.plan = [Answer(body)]
    assert model_at(server, api).complete(REQUEST).status == "empty"
    assert len(server.asked) == 2


def test_text_in_parts_is_joined(server):
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    server.plan = [Answer(ok("chat", parts))]
    assert model_at(server).complete(REQUEST).text == "ab"


def test_missing_usage_is_estimated(server):
    server.plan = [Answer(ok("chat", usage=None))]
    reply = model_at(server).complete(REQUEST)
    # 8/4 + 4/4 = 3 tokens in; "hello" is 5/4, rounded up to 2, out.
    assert (reply.input_tokens, reply.output_tokens) == (3, 2)
    assert reply.usage_estimated


def test_lone_surrogates_pass_in_both_directions(server):
    server.plan = [Answer(ok("chat", "a\ud800b"))]
    reply = model_at(server).complete(Request("a", (Message("user", "\udc00"),)))
    assert reply.text == "a?b"
    assert server.asked[0][1]["messages"][0]["content"] == "?"


def test_no_key(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(LLMError) as caught:
        OpenAIModel(model="m")
    assert str(caught.value) == (
        "no key for --model openai; use --model replay or manual, or set "
        "OPENAI_API_KEY (local servers: any non-empty key)"
    )
    assert caught.value.kind == "llm"
    monkeypatch.setenv("OPENAI_API_KEY", "“key”")
    with pytest.raises(LLMError, match="characters that no key has"):
        OpenAIModel(model="m")


@pytest.mark.parametrize("url", ["localhost:8080", "ftp://x/v1", "http://", "v1"])
def test_bad_base_url(url):
    with pytest.raises(LLMError, match="is no web address"):
        OpenAIModel(model="m", api_key=KEY, base_url=url)


def test_a_running_event_loop_is_no_obstacle(server):
    async def notebook_cell():
        return model_at(server).complete(REQUEST)

    server.plan = [Answer(ok("chat"))]
    assert asyncio.run(notebook_cell()).text == "hello"


def test_cost_needs_a_price():
    model = OpenAIModel(model="m", api_key=KEY, price=Price(input=2.0, output=10.0))
    reply = Reply("x", input_tokens=1000, output_tokens=500)
    # (2 * 1000 + 10 * 500) / 1e6 = 0.007
    assert model.cost(reply) == pytest.approx(0.007)
    assert OpenAIModel(model="m", api_key=KEY).cost(reply) is None
    assert model.cost(Reply("x")) is None
