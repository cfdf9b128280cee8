"""Errors that reach a user: one clear line, and the remedy."""


class StructjaxError(Exception):
    """A problem the user can fix.

    Attributes:
      kind: short stable identifier, e.g. `"task"`; the CLI prints it under `--json`.
      hint: the remedy, one sentence, possibly empty.
      resumable: whether the same run, with the same options, can go on later.
      exit_code: status of the command line.
    """

    resumable = False
    exit_code = 2

    def __init__(self, message: str, *, kind: str, hint: str = "") -> None:
        super().__init__(message)
        self.kind = kind
        self.hint = hint

    def __str__(self) -> str:
        message = super().__str__()
        return f"{message}; {self.hint}" if self.hint else message


class ProgramFailed(StructjaxError):
    """A program that can be read cannot be fitted or played; another one may."""
