"""`structjax demo`: demonstrations, bundled, recorded and synthesised."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from structjax.cli.output import print_json, progress, text_table

if TYPE_CHECKING:
    from structjax.demonstration import Demonstration

_FACTS = ("driver", "simulator", "seed", "return", "steps")


@dataclass(frozen=True)
class List:
    """List the demonstrations that ship, with who drove and what came of it.

    Under `--json`: {"demonstrations": [{"name", ...provenance}]}.
    """

    task: str = "car_racing"
    """Name of the task."""
    json: bool = False
    """Print one JSON object as the last line of stdout."""

    def run_command(self) -> int:
        """Prints one line per demonstration."""
        from structjax.demonstration import (
            bundled_demonstrations,
            load_demonstration,
        )
        from structjax.tasks.loading import load_task

        schema = load_task(self.task).schema
        found: list[dict[str, Any]] = []
        for name in bundled_demonstrations():
            if name.startswith(f"{self.task}/"):
                demonstration = load_demonstration(name, schema)
                steps = len(demonstration.observations)
                found.append({"name": name, **demonstration.provenance, "steps": steps})
        if self.json:
            print_json({"demonstrations": found})
            return 0
        rows = [[d["name"], *(_word(d.get(fact)) for fact in _FACTS)] for d in found]
        print(text_table(("name", *_FACTS), rows))
        return 0


def _word(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.1f}"
    if isinstance(value, dict):
        return str(value.get("name", next(iter(value.values()), "")))
    return "" if value is None else str(value)


@dataclass(frozen=True)
class Synth:
    """Record a task's bundled demonstrations again, in its original simulator.

    That of car_racing is Gymnasium's (extra `original`), that of door_open Meta-World
    (extra `metaworld`). Under `--json`: {"files": [paths]}.
    """

    task: Literal["car_racing", "door_open"] = "car_racing"
    """Name of the task."""
    output: Path = Path("demonstrations")
    """Directory for the files."""
    json: bool = False
    """Print one JSON object as the last line of stdout."""

    def run_command(self) -> int:
        """Records all demonstrations of the task."""
        progress(f"recording {self.task} in its original simulator")
        self.output.mkdir(parents=True, exist_ok=True)
        made = _RECORDED[self.task](self.output)
        if self.json:
            files = [str(self.output / f"{name}.npz") for name in made]
            print_json({"files": files})
            return 0
        rows = [
            (name, d.provenance["seed"], f"{d.provenance['return']:.1f}")
            for name, d in made.items()
        ]
        print(text_table(("name", "seed", "return"), rows))
        return 0


def _car_racing(folder: Path) -> "dict[str, Demonstration]":
    from structjax.original.car_demonstrations import make_demonstrations
    from structjax.tasks.car_racing.schema import CAR_RACING_SCHEMA

    return make_demonstrations(folder, CAR_RACING_SCHEMA)


def _door_open(folder: Path) -> "dict[str, Demonstration]":
    from structjax.original.door_demonstrations import make_demonstrations
    from structjax.tasks.door_open.schema import DOOR_OPEN_SCHEMA

    return make_demonstrations(folder, DOOR_OPEN_SCHEMA)


_RECORDED = {"car_racing": _car_racing, "door_open": _door_open}


@dataclass(frozen=True)
class Demo:
    """Demonstrations: list those that ship, or record them again."""

    command: (
        Annotated[List, tyro.conf.subcommand("list")]
        | Annotated[Synth, tyro.conf.subcommand("synth")]
    )

    @property
    def json(self) -> bool:
        """Whether the subcommand prints JSON."""
        return self.command.json

    def run_command(self) -> int:
        """Runs the subcommand."""
        return self.command.run_command()
