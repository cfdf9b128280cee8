"""Asking until the reply can be used: repairs, regenerations, budgets."""

import pytest

from structjax.dialogue import Budget, BudgetExceeded, Dialogue, NoUsableReply
from structjax.errors import StructjaxError
from structjax.ledger import Ledger
from structjax.llm.model import Message, Reply


class Outcomes:
    def __init__(self):
        self.recorded = []

    def outcomes(self, slot):
        return tuple(o for s, o, _ in self.recorded if s == slot)

    def record_outcome(self, slot, outcome, detail=""):
        self.recorded.append((slot, outcome, detail))


class Model:
    def __init__(self, *replies):
        self.description = {"provider": "test", "model": "test"}
        self.replies = list(replies)
        self.requests = []

    def complete(self, request):
        self.requests.append(request)
        reply = self.replies.pop(0)
        return reply if isinstance(reply, Reply) else Reply(reply, output_tokens=3)


def use_number(text):
    if not text.isdigit():
        raise StructjaxError(f"{text!r} is no number", kind="reply")
    return int(text)


def dialogue(model, **options):
    return Dialogue(model, Outcomes(), Ledger(), **options)


ASK = (Message("user", "A number?"),)


def test_a_usable_reply_is_used():
    talk = dialogue(Model("7"))
    assert talk.ask("generate", ASK, use_number) == (7, "7")
    assert talk.transcript.recorded == [("generate", "accepted", "")]
    assert talk.ledger.llm_calls == 1


def test_a_malformed_reply_is_sent_back_with_its_problems():
    model = Model("seven", "7")
    talk = dialogue(model)
    assert talk.ask("generate", ASK, use_number)[0] == 7
    repair = model.requests[1]
    assert repair.slot == "generate/repair1"
    assert [m.role for m in repair.messages] == ["user", "assistant", "user"]
    assert "'seven' is no number" in repair.messages[2].content


def test_after_two_repairs_the_question_is_asked_anew():
    model = Model("a", "b", "c", "7")
    dialogue(model).ask("round1/revise", ASK, use_number)
    slots = [request.slot for request in model.requests]
    assert slots == [
        "round1/revise",
        "round1/revise/repair1",
        "round1/revise/repair2",
        "round1/revise/regenerate1",
    ]
    assert model.requests[3].messages == ASK


def test_five_regenerations_later_it_gives_up_cleanly():
    model = Model(*["x"] * 18)
    with pytest.raises(NoUsableReply, match="no usable reply for generate: 'x' is no"):
        dialogue(model).ask("generate", ASK, use_number)
    assert len(model.requests) == 3 * 6  # 1 + 5 generations, each with two repairs


@pytest.mark.parametrize(
    ("status", "words"),
    [
        ("truncated", "cut at the output limit"),
        ("refused", "you declined"),
        ("filtered", "content filter"),
        ("empty", "empty"),
        ("error", "empty"),
    ],
)
def test_an_incomplete_reply_is_never_used(status, words):
    model = Model(Reply("7", status=status), "8")
    assert dialogue(model).ask("generate", ASK, use_number)[0] == 8
    assert words in model.requests[1].messages[-1].content


def test_the_budget_of_calls_stops_before_the_next_call():
    model = Model("x", "7")
    talk = dialogue(model, budget=Budget(calls=1))
    with pytest.raises(BudgetExceeded, match="budget of 1 calls is used up"):
        talk.ask("generate", ASK, use_number)
    assert len(model.requests) == 1


def test_the_budget_of_tokens_counts_input_and_output():
    model = Model(Reply("7", input_tokens=40, output_tokens=60), "8")
    talk = dialogue(model, budget=Budget(tokens=100))
    talk.ask("generate", ASK, use_number)
    with pytest.raises(BudgetExceeded, match="100 tokens"):
        talk.ask("round0/tests", ASK, use_number)


def test_outcomes_are_not_recorded_twice_on_resume():
    talk = dialogue(Model("7"))
    talk.transcript.record_outcome("generate", "accepted")
    talk.ask("generate", ASK, use_number)
    assert len(talk.transcript.recorded) == 1
