"""What can be wrong with a program: stable codes, lines, messages and hints."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from structjax.errors import StructjaxError

MAX_PROBLEMS = 20

#: Every code, with its meaning. Errors first, warnings below.
CODES = {
    "EMPTY": "the program is empty",
    "TOO_LONG": "too many bytes, lines, statements or nodes",
    "TOO_DEEP": "expressions or blocks nested too deeply",
    "NON_ASCII": "a character that code may not hold",
    "SYNTAX": "not valid Python",
    "IMPORT": "an import",
    "NODE": "Python that is not part of the language",
    "CONST": "a constant that is not a finite number",
    "DUNDER": "a name that begins with two underscores",
    "ATTR": "an attribute of something that is not the observation",
    "FIELD": "an observation field that does not exist, or a whole group of fields",
    "CALL": "a function that does not exist, or is used in the wrong place",
    "ARITY": "a wrong number of arguments, or arguments by keyword",
    "NAME": "an unknown name, or one used before its assignment",
    "SHADOW": "a name that already means something else",
    "REASSIGNED": "a second assignment",
    "PREVIOUS": "a `previous(...)` that cannot be remembered",
    "LOOP": "a loop that is not a short, static `for i in range(n)`",
    "BRANCH": "a name assigned in only one branch of an `if`",
    "POW": "an exponent that is not a constant in [-4, 4]",
    "TYPE": "a number where a truth value is needed",
    "SHAPE": "a scalar or vector where the other, or another length, is needed",
    "INDEX": "an index that is not static or out of range",
    "WEIGHT": "a wrong declaration of a weight or constant",
    "HEAD": "a wrong action head",
    "RETURN": "a return in the wrong place or of the wrong value",
    "NO_RETURN": "a function without a return",
    "SIGNATURE": "a wrong parameter list",
    "NO_ENTRY": "no `def policy(obs):`",
    "RECURSION": "a function that calls itself",
    "TOPLEVEL": "a statement that may not stand at module level",
    "START_ON_BOUND": "warning: a start on a bound, moved inside",
    "COARSE_START": "warning: a start that single precision makes another number",
    "UNUSED_LATENT": "warning: a latent that no action depends on",
    "UNUSED_WEIGHT": "warning: a weight that no action depends on",
    "UNUSED_HELPER": "warning: a helper that is never called",
    "NO_WEIGHT": "warning: nothing but the standard deviations can be trained",
    "BLIND_ACTION": "warning: an action that does not depend on the observation",
    "FRACTIONAL_POWER": "warning: a fractional power, which floors its base",
}


@dataclass(frozen=True)
class Problem:
    """One problem of a program.

    Attributes:
      code: one of `CODES`, or of the lint's `LINT_CODES`.
      severity: errors refuse the program, warnings do not.
      line: 1-based line of the normalised source.
      message: what is wrong, with the value.
      hint: what is accepted instead.
    """

    code: str
    severity: Literal["error", "warning"]
    line: int
    message: str
    hint: str = ""

    def __str__(self) -> str:
        warning = "warning: " if self.severity == "warning" else ""
        hint = f"; {self.hint}" if self.hint else ""
        return f"line {self.line}: {warning}{self.message}{hint}"


class StructureError(StructjaxError):
    """A program was refused.

    Attributes:
      problems: the first `MAX_PROBLEMS`: errors by line, then warnings by line.
    """

    def __init__(self, problems: Iterable[Problem]) -> None:
        ordered = sorted(dict.fromkeys(problems), key=_order)
        self.problems = tuple(ordered[:MAX_PROBLEMS])
        lines = [str(problem) for problem in self.problems]
        if len(ordered) > MAX_PROBLEMS:
            lines.append(f"and {len(ordered) - MAX_PROBLEMS} more problems")
        super().__init__("\n".join(lines), kind="structure")


def _order(problem: Problem) -> tuple[bool, int]:
    """Errors by line, then warnings by line: a cut never hides an error first."""
    return problem.severity == "warning", problem.line


class Problems:
    """Collects problems while a program is read; equal ones count once."""

    def __init__(self) -> None:
        self._found: dict[Problem, None] = {}

    def error(self, code: str, line: int, message: str, hint: str = "") -> None:
        """Notes an error."""
        self._found[Problem(code, "error", line, message, hint)] = None

    def warn(self, code: str, line: int, message: str, hint: str = "") -> None:
        """Notes a warning."""
        self._found[Problem(code, "warning", line, message, hint)] = None

    @property
    def found(self) -> tuple[Problem, ...]:
        """All problems, in the order in which they were found."""
        return tuple(self._found)

    @property
    def count(self) -> int:
        """Number of different problems so far."""
        return len(self._found)

    @property
    def failed(self) -> bool:
        """Whether there is an error."""
        return any(problem.severity == "error" for problem in self._found)

    @property
    def warnings(self) -> tuple[Problem, ...]:
        """The warnings, by line."""
        found = (p for p in self._found if p.severity == "warning")
        return tuple(sorted(found, key=lambda problem: problem.line))

    def raise_errors(self) -> None:
        """Raises when there is an error.

        Raises:
          StructureError: with every problem found so far.
        """
        if self.failed:
            raise StructureError(self._found)
