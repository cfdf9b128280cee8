"""Booking by purpose, and the difference of two ledgers."""

from structjax.ledger import Ledger


def test_headline_and_total_leave_out_the_evaluation():
    ledger = Ledger()
    for purpose, resets in (
        ("diagnosis", 8),
        ("training", 100),
        ("gate", 10),
        ("selection", 20),
        ("demonstration", 1),
        ("evaluation", 1000),
    ):
        ledger.book(purpose, resets=resets, env_steps=10 * resets)
    assert ledger.headline_resets == 108
    assert ledger.total_resets == 139
    assert ledger.env_steps["evaluation"] == 10_000


def test_replayed_calls_are_counted_apart():
    ledger = Ledger()
    ledger.book_call(replayed=True, input_tokens=10, output_tokens=1)
    ledger.book_call(replayed=False, input_tokens=5, output_tokens=2)
    assert (ledger.llm_calls, ledger.replayed_calls) == (1, 1)
    assert (ledger.input_tokens, ledger.output_tokens) == (15, 3)


def test_adding_what_was_booked_since_gives_the_same_ledger():
    ledger = Ledger()
    ledger.book("gate", resets=10, env_steps=100)
    before = ledger.copy()
    ledger.book("gate", resets=10, env_steps=90)
    ledger.book_call(replayed=False, input_tokens=7, output_tokens=8)
    before.add(ledger.since(before))
    assert before == ledger
