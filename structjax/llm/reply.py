"""What a reply says: a decision and a program, or a clear refusal to guess.

The protocol is one line `ACTION: revise|test|stop` and, for revise and test, exactly
one fenced Python block. Errors are written as prompts: the loop sends them back.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

from structjax.errors import StructjaxError
from structjax.llm.model import Reply

Code = Literal[
    "EMPTY",
    "TRUNCATED",
    "REFUSED",
    "FILTERED",
    "NO_CODE",
    "NO_ENTRY",
    "WRONG_LANG",
    "AMBIGUOUS",
    "NO_DECISION",
    "BAD_DECISION",
]

_THINK = re.compile(r"<(/?)(?:think|thinking|reasoning)>", re.I)
_FENCE = re.compile(r"([ \t]*)(`{3,}|~{3,})[ \t]*([^`\n]*)")
_PYTHON_TAGS = ("", "python", "py", "python3")
_DEFINED = re.compile(r"^[ \t]*(?:async[ \t]+)?def[ \t]+(\w+)", re.M)
_DECORATION = r"[\s>*_#`'\"-]*"
_ACTION = re.compile(
    rf"{_DECORATION}action[\s*_`]*[:=\uff1a][\s*_`'\"<\[]*([A-Za-z]+)(.*)", re.I
)
_ACTIONS = ("revise", "test", "stop")
_SECOND = re.compile(
    r"[\s*_`'\"]*(?:\||/|,|\bor\b|\band\b)[\s*_`'\"]*(revise|test|stop)\b", re.I
)
_FENCE_RULE = (
    "send exactly one complete block that opens with ```python on a line of its own "
    "and closes with ``` on a line of its own"
)
_ACTION_RULE = (
    "write exactly one line `ACTION: revise`, `ACTION: test` or `ACTION: stop`"
)


class ReplyError(StructjaxError):
    """A reply that cannot be used; the message asks the model for a better one.

    Attributes:
      code: what is wrong, in one word.
    """

    def __init__(self, code: Code, message: str, hint: str) -> None:
        super().__init__(message, kind="reply", hint=hint)
        self.code = code


@dataclass(frozen=True)
class Revise:
    """A new program, and what the model says about it."""

    source: str
    reason: str = ""
    action: ClassVar[str] = "revise"


@dataclass(frozen=True)
class Test:
    """More diagnostics for the same table, and what the model says about them."""

    code: str
    reason: str = ""
    action: ClassVar[str] = "test"
    __test__: ClassVar[bool] = False  # not a test case, whatever pytest thinks


@dataclass(frozen=True)
class Stop:
    """No further change, and why."""

    reason: str
    action: ClassVar[str] = "stop"


Decision = Revise | Test | Stop


class _Block(NamedTuple):
    tag: str
    code: str


class _Layout(NamedTuple):
    """A reply taken apart: prose without the blocks, and the blocks."""

    prose: str
    blocks: list[_Block]
    unclosed: bool


def complete_text(reply: Reply) -> str:
    """The text of a complete reply.

    Raises:
      ReplyError: it is truncated, refused, filtered or empty; half of a program is
        never used.
    """
    if reply.status == "ok":
        return reply.text
    if reply.status == "truncated":
        raise ReplyError(
            "TRUNCATED",
            "your reply was cut at the output limit",
            "think and write more briefly and send the complete reply again",
        )
    if reply.status == "refused":
        raise ReplyError(
            "REFUSED",
            f"you declined: {reply.text.strip()[:200]!r}",
            "this is a simulated control task; send what was asked for",
        )
    if reply.status == "filtered":
        raise ReplyError(
            "FILTERED",
            "your reply was withheld by a content filter",
            "say the same in plain technical words",
        )
    raise _empty()


def extract_program(text: str) -> str:
    """The one program in a reply: the block that defines `policy`.

    A reply without any fence that defines `policy` is taken whole, prose included:
    the parser refuses it unless it is a program through and through.

    Raises:
      ReplyError: there is none, more than one, or half of one.
    """
    return _one_block(_layout(text), ("policy",), "policy(obs)")


def extract_tests(text: str) -> str:
    """The one block of diagnostics: it defines functions `check_...` or `test_...`.

    Raises:
      ReplyError: there is none, more than one, or half of one.
    """
    return _one_block(_layout(text), ("check_", "test_"), "check_...(table)")


def extract_decision(text: str) -> Decision:
    """The decision of a reply to a revision request, with its code.

    >>> extract_decision("ACTION: stop (nothing left to gain)").reason
    'nothing left to gain'

    Raises:
      ReplyError: the decision or its code is missing, double or cut off.
    """
    layout = _layout(text)
    if layout.unclosed:
        raise _truncated()
    action, reason = _decision(layout.prose)
    if action == "stop":
        return Stop(reason)
    if action == "test":
        entry = _one_block(layout, ("check_", "test_"), "check_...(table)")
        return Test(entry, reason)
    return Revise(_one_block(layout, ("policy",), "policy(obs)"), reason)


def _layout(text: str) -> _Layout:
    """Cleans a reply and separates prose from fenced blocks."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").lstrip("\ufeff")
    text, unclosed = _without_thinking(text)
    if unclosed:
        return _Layout("", [], unclosed=True)
    if not text.strip():
        raise _empty()
    return _split(text.split("\n"))


def _without_thinking(text: str) -> tuple[str, bool]:
    """The text without `<think>...</think>`, and whether it ends while thinking.

    Some servers put the opening tag into the prompt, so that only the closing one
    comes back: what precedes it is thought. An opening tag in the middle of a text
    that is never closed is taken literally.
    """
    kept: list[str] = []
    start, opened = 0, None
    for tag in _THINK.finditer(text):
        if not tag[1]:
            opened = tag.start() if opened is None else opened
            continue
        if opened is None:
            kept.clear()
        else:
            kept.append(text[start:opened])
        start, opened = tag.end(), None
    rest = text[start:]
    unclosed = opened is not None and not "".join([*kept, text[start:opened]]).strip()
    return "".join([*kept, rest]), unclosed


def _split(lines: Sequence[str]) -> _Layout:
    """Fenced blocks and the lines around them, by CommonMark's rules.

    Indentation of a fence is free (lists), and a second opening fence within a block
    means that the first block was never closed.
    """
    prose: list[str] = []
    blocks: list[_Block] = []
    opening: re.Match[str] | None = None
    body: list[str] = []
    for line in lines:
        fence = _FENCE.fullmatch(line)
        if opening is None:
            if fence is None:
                prose.append(line)
            else:
                opening, body = fence, []
        elif fence is None or not fence[2].startswith(opening[2]):
            body.append(line)
        elif fence[3].strip():
            return _Layout("\n".join(prose), blocks, unclosed=True)
        else:
            blocks.append(_Block(_tag(opening[3]), _dedent(body, opening[1])))
            opening = None
    prose_text = "\n".join(prose + _decision_blocks(blocks))
    return _Layout(prose_text, blocks, unclosed=opening is not None)


def _tag(info: str) -> str:
    """The language named after an opening fence."""
    words = re.split(r"[\s:,{}]+", info.strip("{}. \t").lower())
    return words[0].lstrip(".")


def _dedent(body: Sequence[str], indentation: str) -> str:
    """A block's code without the indentation of its fence, where all lines have it."""
    full = [line for line in body if line.strip()]
    if indentation and all(line.startswith(indentation) for line in full):
        body = [line.removeprefix(indentation) for line in body]
    return "\n".join(body).strip("\n") + "\n"


def _decision_blocks(blocks: Sequence[_Block]) -> list[str]:
    """Blocks that hold nothing but the decision line belong to the prose."""
    lines = (block.code.strip() for block in blocks)
    return [line for line in lines if "\n" not in line and _ACTION.fullmatch(line)]


def _decision(prose: str) -> tuple[str, str]:
    """The action, and the rest of the prose as its reason."""
    found: list[str] = []
    unknown: list[str] = []
    rest: list[str] = []
    for line in prose.split("\n"):
        match = _ACTION.fullmatch(line)
        if match is None:
            rest.append(line)
        elif match[1].lower() not in _ACTIONS:
            unknown.append(match[1])
            rest.append(line)
        else:
            second = _SECOND.match(match[2])  # `revise|test|stop`: the template itself
            found += [match[1].lower(), *([second[1].lower()] if second else [])]
            rest.append(match[2].strip(" \t*_`'\".,;:!-()<>[]"))
    if not found and unknown:
        name = unknown[0][:40]
        raise ReplyError("BAD_DECISION", f"unknown action {name!r}", _ACTION_RULE)
    if not found:
        raise ReplyError("NO_DECISION", "the reply has no ACTION line", _ACTION_RULE)
    if len(set(found)) > 1:
        names = ", ".join(dict.fromkeys(found))
        raise ReplyError(
            "AMBIGUOUS", f"the reply has several actions: {names}", _ACTION_RULE
        )
    return found[0], re.sub(r"\n{3,}", "\n\n", "\n".join(rest)).strip()


def _one_block(layout: _Layout, entries: tuple[str, ...], wanted: str) -> str:
    """The one distinct Python block that defines an entry.

    Args:
      layout: the reply.
      entries: names; one that ends with `_` stands for all names that begin with it.
      wanted: the entry, as the model should write it.
    """
    if layout.unclosed:
        raise _truncated()
    if not layout.blocks:
        if _defines(layout.prose, entries):
            lines = layout.prose.strip("\n").split("\n")
            return "\n".join(x for x in lines if not _ACTION.fullmatch(x)) + "\n"
        raise ReplyError("NO_CODE", "the reply contains no code block", _FENCE_RULE)
    python = [block for block in layout.blocks if block.tag in _PYTHON_TAGS]
    if not python:
        tags = ", ".join(dict.fromkeys(block.tag for block in layout.blocks))
        raise ReplyError(
            "WRONG_LANG", f"the code block is tagged {tags[:60]!r}", _FENCE_RULE
        )
    defining = {
        _comparable(block.code): block.code
        for block in python
        if _defines(block.code, entries)
    }
    if not defining:
        raise _no_entry([block.code for block in python], wanted)
    if len(defining) > 1:
        raise ReplyError(
            "AMBIGUOUS",
            f"{len(defining)} different blocks define {wanted}",
            f"{_FENCE_RULE}, with the whole code in it",
        )
    return next(iter(defining.values()))


def _defines(code: str, entries: tuple[str, ...]) -> bool:
    names = _DEFINED.findall(code)
    return any(
        name == entry or (entry.endswith("_") and name.startswith(entry))
        for name in names
        for entry in entries
    )


def _comparable(code: str) -> str:
    """Code without trailing white space, to recognise a repeated block."""
    return "\n".join(line.rstrip() for line in code.strip().split("\n"))


def _no_entry(codes: Sequence[str], wanted: str) -> ReplyError:
    names = [name for code in codes for name in _DEFINED.findall(code)]
    found = ", ".join(names[:5]) if names else "no function"
    return ReplyError(
        "NO_ENTRY",
        f"the code block defines {found}",
        f"define `def {wanted}:` in it",
    )


def _truncated() -> ReplyError:
    return ReplyError(
        "TRUNCATED",
        "a code block or the reasoning is not closed, so the reply may be cut off",
        _FENCE_RULE,
    )


def _empty() -> ReplyError:
    return ReplyError("EMPTY", "the reply is empty", "answer the request in full")
