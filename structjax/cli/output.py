"""What commands print: JSON lines, tables, progress and errors."""

import json
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from structjax.errors import StructjaxError
from structjax.runs import jsonable


def print_json(value: Any) -> None:
    """One JSON object as the last line of stdout; NaN and infinities are null."""
    print(json.dumps(jsonable(value), allow_nan=False))


def print_error(error: StructjaxError, *, as_json: bool) -> None:
    """One line with the remedy, on stderr; under `--json` an object on stdout."""
    if as_json:
        message = Exception.__str__(error)
        print_json(
            {"error": {"kind": error.kind, "message": message, "hint": error.hint}}
        )
    else:
        print(f"structjax: error: {error}", file=sys.stderr)


def progress(text: str) -> None:
    """One line of progress on stderr."""
    print(f"structjax: {text}", file=sys.stderr, flush=True)


def text_table(
    header: Sequence[str], rows: Iterable[Sequence[object]], *, words: bool = False
) -> str:
    """A plain table: first column left, the others right-aligned unless of words."""
    cells = [list(map(str, header)), *(list(map(str, row)) for row in rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(header))]
    align = str.ljust if words else str.rjust
    lines = []
    for row in cells:
        first = row[0].ljust(widths[0])
        rest = [align(cell, w) for cell, w in zip(row[1:], widths[1:], strict=True)]
        lines.append("  ".join([first, *rest]).rstrip())
    rule = "  ".join("-" * w for w in widths)
    return "\n".join([lines[0], rule, *lines[1:]])


def seed_range(text: str) -> range:
    """The half-open range `A:B`.

    Raises:
      StructjaxError: not two integers, or nothing between them.
    """
    try:
        first, last = (int(part) for part in text.split(":"))
    except ValueError:
        raise StructjaxError(
            f"seeds {text!r} are not a range",
            kind="seeds",
            hint="write A:B for A, A + 1 ... B - 1, e.g. 1000:1010",
        ) from None
    if last <= first:
        raise StructjaxError(
            f"seeds {text!r} are an empty range", kind="seeds", hint="A:B needs A < B"
        )
    return range(first, last)
