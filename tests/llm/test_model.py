"""Requests have stable keys; tokens are estimated when nobody counted them."""

from structjax.llm.model import (
    Message,
    Request,
    content_key,
    estimate_tokens,
    redact,
    request_key,
)


def test_key_depends_on_what_the_model_sees_and_nothing_else():
    chat = (Message("system", "s"), Message("user", "u"))
    key = request_key(Request("round1/revise", chat, 100))
    assert key == request_key(Request("round2/revise", chat, 100))
    assert key != request_key(Request("round1/revise", chat, 101))
    assert key != request_key(Request("round1/revise", chat[::-1], 100))
    assert key != request_key(Request("round1/revise", chat[:1], 100))


def test_key_ignores_key_order_and_the_type_of_whole_numbers():
    assert content_key({"a": 1, "b": [2.0]}) == content_key({"b": [2], "a": 1.0})
    assert content_key({"a": 1.5}) != content_key({"a": 1})
    # sha256 of the canonical JSON {"a":1}, from `printf '{"a":1}' | sha256sum`
    expected = "015abd7f5cc57a2dd94b7590f04ad8084273905ee33ec5cebeae62276a97f862"
    assert content_key({"a": 1.0}) == expected


def test_lone_surrogates_have_a_key():
    assert request_key(Request("a", (Message("user", "\ud800"),))) == request_key(
        Request("a", (Message("user", "?"),))
    )


def test_tokens_are_estimated_as_a_quarter_of_the_characters():
    assert [estimate_tokens("x" * n) for n in (0, 1, 4, 5)] == [0, 1, 1, 2]


def test_redaction_spares_prose():
    prose = "risk-adjusted-gains-everywhere, sk-learn, a Bearer of news"
    assert redact(prose) == prose
