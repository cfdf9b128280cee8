"""Every kind of reply is read by the rules, or refused with a usable message."""

import pytest

from structjax.llm.model import Reply
from structjax.llm.reply import (
    ReplyError,
    Revise,
    Stop,
    Test,
    complete_text,
    extract_decision,
    extract_program,
    extract_tests,
)

PROGRAM = (
    "def policy(obs):\n    err = obs.a - obs.b\n    return action(u=normal(err))\n"
)
OTHER = PROGRAM.replace("obs.a", "obs.c")
CHECKS = "def check_range(table):\n    print(table.reward.min())\n"


def fenced(code: str, tag: str = "python", ticks: str = "```") -> str:
    return f"{ticks}{tag}\n{code}{ticks}\n"


INDENTED = "".join(f"   {line}\n" for line in fenced(PROGRAM).splitlines())

ACCEPTED = {
    "crlf": fenced(PROGRAM).replace("\n", "\r\n"),
    "cr only": fenced(PROGRAM).replace("\n", "\r"),
    "bom": "\ufeff" + fenced(PROGRAM),
    "prose around": f"Sure! Here it is:\n\n{fenced(PROGRAM)}\nThis uses err.",
    "no tag": fenced(PROGRAM, ""),
    "Python tag": fenced(PROGRAM, "Python"),
    "py tag": fenced(PROGRAM, "py"),
    "attributes": fenced(PROGRAM, "python title=policy.py"),
    "braces": fenced(PROGRAM, "{.python}"),
    "space before tag": fenced(PROGRAM, " python"),
    "4-tick fence": fenced(PROGRAM, ticks="````"),
    "tildes": fenced(PROGRAM, ticks="~~~"),
    "indented fence": f"1. do:\n{INDENTED}",
    "fence indented, code not": f"1. do:\n   ```python\n{PROGRAM}   ```",
    "think block": f"<think>maybe\n```python\nx=1\n```</think>\n{fenced(PROGRAM)}",
    "two think blocks": f"<think>a</think><Think>b</Think>{fenced(PROGRAM)}",
    "only the end of thinking": f"maybe\n```python\nx=1\n</think>\n{fenced(PROGRAM)}",
    "same block twice": fenced(PROGRAM) * 2,
    "same but for white space": fenced(PROGRAM) + fenced(PROGRAM.replace("\n", "  \n")),
    "usage example block": fenced(PROGRAM) + fenced("print(policy([1, 2]))\n"),
    "json beside": fenced('{"a": 1}\n', "json") + fenced(PROGRAM),
    "shell beside": fenced(PROGRAM) + fenced("pip install structjax\n", "bash"),
    "no fence at all": PROGRAM,
    "closing fence is longer": f"```python\n{PROGRAM}`````",
}

REFUSED = {
    "two different blocks": (fenced(PROGRAM) + fenced(OTHER), "AMBIGUOUS"),
    "fences glued": (
        f'```json\n{{"a":1}}\n``````python\n{PROGRAM}```',
        "TRUNCATED",
    ),
    "stray fence before": (f"```\n{fenced(PROGRAM)}", "TRUNCATED"),
    "nested in a fence": (f"```markdown\n{fenced(PROGRAM)}```", "TRUNCATED"),
    "unclosed fence": (f"```python\n{PROGRAM}", "TRUNCATED"),
    "closed on the last line of code": (f"```python\n{PROGRAM[:-1]}```", "TRUNCATED"),
    "second block unclosed": (f"{fenced(PROGRAM)}```python\n{OTHER}", "TRUNCATED"),
    "still thinking": (f"<think>first\n{fenced(PROGRAM)}", "TRUNCATED"),
    "only json": (fenced('{"a": 1}\n', "json"), "WRONG_LANG"),
    "only c++": (fenced("int main() {}\n", "c++"), "WRONG_LANG"),
    "empty": ("", "EMPTY"),
    "white space": (" \n\t", "EMPTY"),
    "only a bom": ("\ufeff", "EMPTY"),
    "only thoughts": ("<think>hm</think>\n", "EMPTY"),
    "refusal prose": ("I'm sorry, I can't help with that.", "NO_CODE"),
    "inline code": ("Use `def policy(obs)` as before.", "NO_CODE"),
    "wrong name": (fenced(PROGRAM.replace("policy", "controller")), "NO_ENTRY"),
    "longer name": (fenced(PROGRAM.replace("policy", "policy2")), "NO_ENTRY"),
    "expression only": (fenced("x = 1\n"), "NO_ENTRY"),
    "empty block": (fenced(""), "NO_ENTRY"),
}


@pytest.mark.parametrize("text", ACCEPTED.values(), ids=ACCEPTED.keys())
def test_program_is_found(text):
    lines = [line.rstrip() for line in extract_program(text).splitlines()]
    assert lines == PROGRAM.splitlines()


@pytest.mark.parametrize(("text", "code"), REFUSED.values(), ids=REFUSED.keys())
def test_program_is_refused(text, code):
    with pytest.raises(ReplyError) as caught:
        extract_program(text)
    assert caught.value.code == code


def test_unfenced_program_keeps_its_prose_so_that_the_parser_refuses_it():
    text = f"{PROGRAM}\nA positive gain y steers left."
    assert extract_program(text).endswith("A positive gain y steers left.\n")


def test_tests_are_found():
    # Helpers without the prefix may stand in the same block; others are ignored.
    other = fenced("def other(x):\n    pass\n")
    text = f"Checks:\n{fenced(CHECKS)}{other}"
    assert extract_tests(text) == CHECKS
    assert extract_tests(fenced("def test_a(table):\n    pass\n")).startswith(
        "def test"
    )


def test_tests_without_a_check_are_refused():
    with pytest.raises(ReplyError) as caught:
        extract_tests(fenced("print(1)\n"))
    assert caught.value.code == "NO_ENTRY"
    assert "def check_...(table)" in str(caught.value)


DECISION_LINES = [
    "ACTION: revise",
    "ACTION: REVISE",
    "action: Revise.",
    "**ACTION:** revise",
    "**ACTION: revise**",
    "**Action**: `revise`",
    "`ACTION: revise`",
    "### ACTION: revise",
    "> ACTION: revise!",
    "- ACTION: revise",
    "ACTION = revise",
    "ACTION\uff1arevise",
    "  ACTION:revise  ",
    "ACTION: <revise>",
    "```\nACTION: revise\n```",
    "ACTION: revise\n\nAs said:\n\nACTION: revise",
    "Action: the gain is too high\nACTION: revise",
]


@pytest.mark.parametrize("line", DECISION_LINES)
def test_decision_line_may_be_decorated(line):
    decision = extract_decision(f"The car spins.\n{line}\n{fenced(PROGRAM)}")
    assert isinstance(decision, Revise)
    assert decision.source == PROGRAM
    assert decision.reason.startswith("The car spins.")


def test_each_decision():
    assert extract_decision(f"ACTION: test\n{fenced(CHECKS)}") == Test(CHECKS)
    assert extract_decision("ACTION: stop\nNothing left.\n") == Stop("Nothing left.")
    assert extract_decision("ACTION: stop - good enough").reason == "good enough"
    # The final program may be repeated with a stop; the decision is clear.
    assert extract_decision(f"ACTION: stop\nDone.\n{fenced(PROGRAM)}") == Stop("Done.")
    # "stop" in the sentence after the decision is no second decision.
    tail = extract_decision("ACTION: stop, no further test needed")
    assert tail == Stop("no further test needed")


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (fenced(PROGRAM), "NO_DECISION"),
        ("I would revise it.", "NO_DECISION"),
        (f"ACTION: rewrite\n{fenced(PROGRAM)}", "BAD_DECISION"),
        (f"ACTION: revised\n{fenced(PROGRAM)}", "BAD_DECISION"),
        (f"ACTION: revise|test|stop\n{fenced(PROGRAM)}", "AMBIGUOUS"),
        (f"ACTION: revise or test\n{fenced(PROGRAM)}", "AMBIGUOUS"),
        (f"ACTION: revise\nACTION: stop\n{fenced(PROGRAM)}", "AMBIGUOUS"),
        ("ACTION: revise\nI will raise the gain.", "NO_CODE"),
        (f"ACTION: revise\n{fenced(CHECKS)}", "NO_ENTRY"),
        (f"ACTION: test\n{fenced(PROGRAM)}", "NO_ENTRY"),
        (f"ACTION: revise\n```python\n{PROGRAM}", "TRUNCATED"),
        (f"ACTION: stop\n```python\n{PROGRAM}", "TRUNCATED"),
        # A decision inside the code is part of the code.
        (fenced(f"# ACTION: revise\n{PROGRAM}"), "NO_DECISION"),
        ("", "EMPTY"),
    ],
)
def test_decision_is_refused(text, code):
    with pytest.raises(ReplyError) as caught:
        extract_decision(text)
    assert caught.value.code == code


def test_unfenced_program_with_a_decision_line():
    decision = extract_decision(f"ACTION: revise\n{PROGRAM}")
    assert isinstance(decision, Revise)
    assert decision.source == PROGRAM


def test_messages_are_prompts():
    with pytest.raises(ReplyError) as caught:
        extract_program(f"```python\n{PROGRAM}")
    assert str(caught.value) == (
        "a code block or the reasoning is not closed, so the reply may be cut off; "
        "send exactly one complete block that opens with ```python on a line of its "
        "own and closes with ``` on a line of its own"
    )
    with pytest.raises(ReplyError) as caught:
        extract_decision("ACTION: rewrite")
    assert str(caught.value) == (
        "unknown action 'rewrite'; write exactly one line `ACTION: revise`, "
        "`ACTION: test` or `ACTION: stop`"
    )


@pytest.mark.parametrize(
    ("status", "code"),
    [
        ("truncated", "TRUNCATED"),
        ("refused", "REFUSED"),
        ("filtered", "FILTERED"),
        ("empty", "EMPTY"),
        ("error", "EMPTY"),
    ],
)
def test_incomplete_reply_is_never_used(status, code):
    with pytest.raises(ReplyError) as caught:
        complete_text(Reply(text=fenced(PROGRAM), status=status))
    assert caught.value.code == code


def test_complete_reply_is_used():
    assert complete_text(Reply(text="x")) == "x"


def test_endless_repetition_is_refused_quickly():
    # Degenerate models repeat a tag until their limit: linear work, not quadratic.
    for text in ("<think>" * 60_000, "```\n" * 60_001, "*" * 400_000):
        with pytest.raises(ReplyError):
            extract_decision(text)
