"""What commands print: JSON lines, tables, progress and errors."""

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from structjax.errors import StructjaxError
from structjax.files import jsonable
from structjax.ranges import seed_number

MAX_EPISODES = 65_536


def print_json(value: Any) -> None:
    """One JSON object as the last line of stdout; NaN and infinities are null."""
    print(json.dumps(jsonable(value), allow_nan=False))


def as_object(record: Any) -> Any:
    """A named tuple, and those in it, with their field names."""
    if hasattr(record, "_asdict"):
        return {key: as_object(value) for key, value in record._asdict().items()}
    return record


def print_error(error: StructjaxError, *, as_json: bool) -> None:
    """One line with the remedy, on stderr; under `--json` an object on stdout."""
    if as_json:
        message = Exception.__str__(error)
        print_json(
            {"error": {"kind": error.kind, "message": message, "hint": error.hint}}
        )
    else:
        # A reply that is awaited is no fault.
        label = "" if error.kind == "pending" else "error: "
        print(f"structjax: {label}{error}", file=sys.stderr)


def progress(text: str) -> None:
    """One line of progress on stderr."""
    print(f"structjax: {text}", file=sys.stderr, flush=True)


def tell(note: str) -> None:
    """A policy's note, if it has one."""
    if note:
        progress(note)


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


def seed_range(text: str, named: Mapping[str, range]) -> range:
    """One of the named sets, or the half-open range `A:B`.

    Raises:
      StructjaxError: not two integers, nothing between them, or out of range.
    """
    if text in named:
        return named[text]
    try:
        first, last = (int(part) for part in text.split(":"))
    except ValueError:
        raise StructjaxError(
            f"seeds {text[:60]!r} are not a range",
            kind="seeds",
            hint="write A:B for A, A + 1 ... B - 1, e.g. 1000:1010, or one of "
            f"{', '.join(named)}",
        ) from None
    if last <= first:
        raise StructjaxError(
            f"seeds {text!r} are an empty range", kind="seeds", hint="A:B needs A < B"
        )
    seed_number(first, "seeds")
    seed_number(last - 1, "seeds")
    if last - first > MAX_EPISODES:
        raise StructjaxError(
            f"seeds {text!r} are {last - first:,} episodes",
            kind="seeds",
            hint=f"at most {MAX_EPISODES:,} are played side by side",
        )
    return range(first, last)
