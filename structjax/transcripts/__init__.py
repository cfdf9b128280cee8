"""Transcripts that ship with structjax, one file per recorded run."""

import os
from pathlib import Path

from structjax.errors import StructjaxError

DIRECTORY = Path(__file__).parent


def shipped(task: str) -> tuple[Path, ...]:
    """The recorded runs of a task; the first is the default."""
    return tuple(sorted((DIRECTORY / task).glob("*.jsonl")))


def find_transcript(name: str | None, task: str) -> Path:
    """A transcript by shipped name or path; the task's default when None.

    Raises:
      StructjaxError: there is none.
    """
    known = shipped(task)
    if name is None:
        if known:
            return known[0]
        raise StructjaxError(
            f"no transcript ships for task {task!r}",
            kind="transcript",
            hint="use --model manual or openai, or name one with --transcript FILE",
        )
    for path in known:
        if path.stem == name:
            return path
    if os.path.isfile(name):  # no error for a name that no file can have
        return Path(name)
    raise StructjaxError(
        f"no transcript {name!r}",
        kind="transcript",
        hint=f"give a .jsonl file or one of: {', '.join(p.stem for p in known) or '-'}",
    )
