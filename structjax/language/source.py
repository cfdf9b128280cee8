"""Text before it is Python: normalisation, limits, characters."""

import re
import unicodedata
from collections.abc import Iterator

from structjax.language.problem import Problems

MAX_BYTES = 64 * 1024
MAX_LINES = 2_000
MAX_BRACKETS = 100

# Comments and strings, closed or running to their natural end.
_INERT = re.compile(
    r"#[^\n]*"
    r'|"""(?:\\.|[^\\])*?(?:"""|\\?\Z)'
    r"|'''(?:\\.|[^\\])*?(?:'''|\\?\Z)"
    r'|"(?:\\.|[^"\\\n])*(?:"|(?=\n)|\\?\Z)'
    r"|'(?:\\.|[^'\\\n])*(?:'|(?=\n)|\\?\Z)",
    re.DOTALL,
)
_UNARY_CHAIN = re.compile(rf"(?:[-+~]\s*|\bnot\b\s*){{{MAX_BRACKETS}}}")
_UNUSUAL = re.compile(r"[^\n\t\x20-\x7e]")
_UNENCODABLE = re.compile(r"[\x00\ud800-\udfff]")

_REPLACEMENTS = {
    "\u2212": "-",
    "\u2013": "-",
    "\u00b7": "*",
    "\u00d7": "*",
    "\u00f7": "/",
    "\u221a": "sqrt(...)",
    "\u00b2": "** 2",
    "\u2264": "<=",
    "\u2265": ">=",
    "\u2260": "!=",
    "\u00ac": "not",
    "\u03c0": "pi",
    "\u00a0": "a space",
    "\u201c": '"',
    "\u201d": '"',
    "\u2018": "'",
    "\u2019": "'",
}


def normalise(text: str) -> str:
    """The text without byte order mark, carriage returns and trailing space."""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    lines = [line.lstrip("\f").rstrip(" \t\f") for line in text.split("\n")]
    joined = "\n".join(lines).rstrip("\n")
    return joined + "\n" if joined else ""


def check(source: str, problems: Problems) -> None:
    """Notes every fault of a normalised text that shows before parsing."""
    if not source.strip():
        problems.error(
            "EMPTY",
            1,
            "the program is empty",
            "write weights, then `def policy(obs):`",
        )
        return
    size = len(source.encode("utf-8", "surrogatepass"))
    lines = source.count("\n")
    if size > MAX_BYTES or lines > MAX_LINES:
        problems.error(
            "TOO_LONG",
            1,
            f"the program has {size:,} bytes and {lines:,} lines",
            f"at most {MAX_BYTES:,} bytes and {MAX_LINES:,} lines are accepted",
        )
        return
    code = code_only(source)
    _characters(source, code, problems)
    _nesting(source, code, problems)


def code_only(source: str) -> str:
    """The text with comments and strings blanked, line structure kept."""
    return _INERT.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), source)


def comments(source: str) -> Iterator[tuple[int, int, str]]:
    """Line, column and text of each comment of a text that parses."""
    line, at = 1, 0
    for match in _INERT.finditer(source):
        if match[0].startswith("#"):
            line += source.count("\n", at, match.start())
            at = match.start()
            yield line, at - source.rfind("\n", 0, at) - 1, match[0]


def _characters(source: str, code: str, problems: Problems) -> None:
    unusual = [(m.start(), m.group()) for m in _UNUSUAL.finditer(code)]
    unusual += [(m.start(), m.group()) for m in _UNENCODABLE.finditer(source)]
    seen: set[str] = set()
    for position, char in sorted(unusual):
        if char in seen:
            continue
        seen.add(char)
        name = unicodedata.name(char, "a control character")
        replacement = _REPLACEMENTS.get(char)
        problems.error(
            "NON_ASCII",
            source.count("\n", 0, position) + 1,
            f"U+{ord(char):04X} ({name}) is not accepted",
            f"write {replacement}"
            if replacement
            else "code is ASCII; only comments and docstrings may hold other text",
        )


def _nesting(source: str, code: str, problems: Problems) -> None:
    depth = 0
    for match in re.finditer(r"[(\[{)\]}]", code):
        depth += 1 if match.group() in "([{" else -1
        if depth > MAX_BRACKETS:
            _too_deep(source, match.start(), "brackets", problems)
            return
    chain = _UNARY_CHAIN.search(code)
    if chain:
        _too_deep(source, chain.start(), "signs", problems)


def _too_deep(source: str, position: int, what: str, problems: Problems) -> None:
    problems.error(
        "TOO_DEEP",
        source.count("\n", 0, position) + 1,
        f"more than {MAX_BRACKETS} nested {what}",
        "split the expression into several assignments",
    )
