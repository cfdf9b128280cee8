"""A difference between two programs as text and as HTML."""

import difflib
import re
from collections.abc import Iterator
from html import escape
from typing import NamedTuple

from structjax.language.compare import Difference
from structjax.language.render import number_text

_SHORT = ("re-constrained", "initial value", "fitted value")

Bounds = tuple[float | None, float | None]


class _Row(NamedTuple):
    """One change: what happened, to what, and what stood there before and after."""

    change: str
    subject: str
    before: str
    after: str


def difference_text(found: Difference) -> str:
    """One change after the other; `no change` where there is none."""
    if not found:
        return "no change\n"
    return "".join(f"{line}\n" for row in _rows(found) for line in _lines(row))


def _lines(row: _Row) -> list[str]:
    """The subject, and what changed: in the same line where it is short."""
    subject = f"{row.change:<15}{row.subject}"
    if row.change in _SHORT:
        return [f"{subject}: {row.before} -> {row.after}"]
    before = [f"{'':<12}- {row.before}"] * bool(row.before)
    return [subject, *before, *[f"{'':<12}+ {row.after}"] * bool(row.after)]


def difference_html(found: Difference, old: str = "old", new: str = "new") -> str:
    """A self-contained page; what changed within a formula is marked.

    Args:
      found: the difference.
      old: what the old program is called.
      new: what the new program is called.
    """
    rows = "".join(map(_html_row, _rows(found)))
    table = f"<table>{rows}</table>" if rows else "<p>no change</p>"
    title = f"{escape(old)} → {escape(new)}"
    return (
        "<!doctype html>\n<html lang=en><head><meta charset=utf-8>"
        f"<title>{title}</title><style>{_STYLE}</style></head>"
        f"<body><h1>{title}</h1>{table}</body></html>\n"
    )


_STYLE = (
    "body{font:14px sans-serif;margin:2em;color:#1a202c}h1{font-size:18px}"
    "td{padding:4px 12px 4px 0;vertical-align:top;border-top:1px solid #e2e8f0}"
    "code{white-space:pre-wrap}.before{background:#fff5f5}.after{background:#f0fff4}"
    "del{background:#feb2b2;text-decoration:none}"
    "ins{background:#9ae6b4;text-decoration:none}"
)


def _rows(found: Difference) -> Iterator[_Row]:
    for entry in found.removed:
        yield _Row("removed", f"{entry.kind} {entry.name}", entry.text, "")
    for entry in found.added:
        yield _Row("added", f"{entry.kind} {entry.name}", "", entry.text)
    for pair in found.renamed:
        yield _Row("renamed", f"{pair.kind} {pair.old} -> {pair.new}", "", "")
    for wire in found.rewired:
        yield _Row("rewired", f"latent {wire.name}", wire.before, wire.after)
    for bound in found.reconstrained:
        texts = _bounds(bound.before), _bounds(bound.after)
        yield _Row("re-constrained", f"weight {bound.name}", *texts)
    for start in found.restarted:
        texts = number_text(start.before), number_text(start.after)
        yield _Row("initial value", f"weight {start.name}", *texts)
    for fit in found.refitted:
        texts = f"{fit.before:.4g}", f"{fit.after:.4g}"
        yield _Row("fitted value", f"weight {fit.name}", *texts)
    for head in found.heads:
        yield _Row("head", head.action, head.before, head.after)


def _bounds(bounds: Bounds) -> str:
    low, high = (None if b is None else number_text(b) for b in bounds)
    if low is None and high is None:
        return "free"
    if low is None:
        return f"at most {high}"
    return f"at least {low}" if high is None else f"between {low} and {high}"


def _html_row(row: _Row) -> str:
    before, after = _marked(row.before, row.after)
    cells = "".join(
        f"<div><code class={kind}>{text}</code></div>" if text else ""
        for kind, text in (("before", before), ("after", after))
    )
    return f"<tr><td>{row.change}<td>{escape(row.subject)}<td>{cells}</tr>"


def _marked(before: str, after: str) -> tuple[str, str]:
    """Both texts as HTML, with marks where they differ."""
    if not (before and after):
        return escape(before), escape(after)
    old, new = (re.findall(r"[\w.]+|\s+|\W", text) for text in (before, after))
    texts = ["", ""]
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    for change, a, b, c, d in matcher.get_opcodes():
        parts = escape("".join(old[a:b])), escape("".join(new[c:d]))
        for i, (part, tag) in enumerate(zip(parts, ("del", "ins"), strict=True)):
            marked = part if change == "equal" or not part else f"<{tag}>{part}</{tag}>"
            texts[i] += marked
    return texts[0], texts[1]
