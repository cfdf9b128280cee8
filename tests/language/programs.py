"""Schemas and small programs for the tests of the language."""

from pathlib import Path

from structjax.language.parse import Program, StructureError, parse
from structjax.schema import ActionField, Field, Schema

FIXTURES = Path(__file__).parents[1] / "fixtures" / "programs"


def _field(name: str, size: int | None = None) -> Field:
    return Field(name, size, "", -1.0, 1.0, "")


SMALL = Schema(
    (
        _field("tiles.x", 3),
        _field("tiles.y", 3),
        _field("speed"),
        _field("yaw"),
        _field("quat", 4),
    ),
    (ActionField("steer", ""), ActionField("gas", "", low=0.0, high=1.0)),
)
DOOR = Schema(
    (
        _field("hand", 3),
        _field("grip"),
        _field("handle", 3),
        _field("prev_hand", 3),
        _field("prev_handle", 3),
        _field("goal", 3),
    ),
    tuple(ActionField(name, "") for name in ("dx", "dy", "dz", "grip")),
)
CHOICE = Schema(
    (_field("angle"), _field("state", 2)),
    (ActionField("push", "", choices=("left", "right")),),
)

HEAD = "w = weight(0.5)\n"
RETURN = "    return action(steer=normal(w * obs.speed), gas=normal(a))\n"


def program(*lines: str, module: str = "") -> str:
    """A program whose policy holds these lines; they assign `a`."""
    body = "".join(f"    {line}\n" for text in lines for line in text.split("\n"))
    return f"{HEAD}{module}def policy(obs):\n{body}{RETURN}"


def read(*lines: str, module: str = "") -> Program:
    """The parsed program of these lines."""
    return parse(program(*lines, module=module), SMALL)


def problems(text: str, schema: Schema = SMALL) -> list[str]:
    """The errors of a program that must be refused, as `CODE line N: ...`."""
    try:
        parse(text, schema)
    except StructureError as error:
        return [f"{p.code} {p}" for p in error.problems if p.severity == "error"]
    raise AssertionError("the program was accepted")


def codes(text: str, schema: Schema = SMALL) -> list[str]:
    """The codes of those errors."""
    return [line.split()[0] for line in problems(text, schema)]
