"""Schemas and fixtures of the tests of PyTorch modules."""

from pathlib import Path

from structjax.language.parse import Program
from structjax.language.problem import StructureError
from structjax.language.torch_source.parse import parse_torch
from structjax.schema import ActionField, Field, Schema
from structjax.tasks.car_racing.schema import CAR_RACING_SCHEMA as CAR

FIXTURES = Path(__file__).parents[2] / "fixtures" / "torch"


def _field(name: str, size: int | None = None) -> Field:
    return Field(name, size, "", -1.0, 1.0, "")


DOOR = Schema(
    (
        _field("hand", 3),
        _field("opening"),
        _field("handle", 3),
        _field("quat", 4),
        _field("goal", 3),
    ),
    tuple(ActionField(name, "") for name in ("dx", "dy", "dz", "grip")),
)
LANDER = Schema(
    tuple(map(_field, ("x", "y", "vx", "vy", "angle", "spin", "left", "right"))),
    (ActionField("main", ""), ActionField("side", "")),
)
CARTPOLE = Schema(
    tuple(map(_field, ("place", "speed", "angle", "spin"))),
    (ActionField("push", "", choices=("left", "right")),),
)
SCHEMAS = {
    "car_r0": CAR,
    "car_r1": CAR,
    "car_r3": CAR,
    "planner": CAR,
    "door": DOOR,
    "lander": LANDER,
    "cartpole": CARTPOLE,
}


def text(name: str) -> str:
    """The source of a fixture."""
    return (FIXTURES / f"{name}.py").read_text()


def fixture(name: str) -> Program:
    """A fixture, read."""
    return parse_torch(text(name), SCHEMAS[name])


def module(*lines: str, parameters: str = "w = 0.5", arguments: str = "obs") -> str:
    """A module on `SMALL` whose forward holds these lines; they assign `a`."""
    declared = "".join(
        f"        self.{name.strip()} = nn.Parameter(torch.tensor({value.strip()}))\n"
        for name, _, value in (p.partition("=") for p in parameters.split(";"))
    )
    body = "".join(f"        {line}\n" for part in lines for line in part.split("\n"))
    return (
        "import torch\n"
        "import torch.nn as nn\n"
        "import torch.nn.functional as F\n"
        "class Policy(nn.Module):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        f"{declared}"
        f"    def forward(self, {arguments}):\n"
        f"{body}"
        "        mean = torch.stack([a, a], dim=-1)\n"
        "        return mean, torch.ones_like(mean), {'latent_a': a}\n"
    )


SMALL = Schema(
    (_field("tiles.x", 3), _field("tiles.y", 3), _field("speed"), _field("wheel", 4)),
    (ActionField("steer", ""), ActionField("gas", "")),
)
FIRST_LINE = 9  # of the lines given to `module`, with one parameter


def problems(source: str, schema: Schema = SMALL) -> list[str]:
    """The errors of a module that must be refused, as `CODE line N: ...`."""
    try:
        parse_torch(source, schema)
    except StructureError as error:
        return [f"{p.code} {p}" for p in error.problems if p.severity == "error"]
    raise AssertionError("the module was accepted")
