"""Entry point: parses the command line, runs a command, words its errors."""

import sys
from typing import Annotated, Any

import tyro

from structjax.cli.demo import Demo
from structjax.cli.inspect import Graph, Report, Runs, Tasks
from structjax.cli.output import print_error
from structjax.cli.programs import Check, Evaluate, Fit
from structjax.cli.refine import Refine
from structjax.cli.tables import Diagnose, Rollout
from structjax.errors import StructjaxError

_COMMANDS: dict[str, type] = {
    "refine": Refine,
    "check": Check,
    "fit": Fit,
    "rollout": Rollout,
    "diagnose": Diagnose,
    "evaluate": Evaluate,
    "graph": Graph,
    "demo": Demo,
    "tasks": Tasks,
    "runs": Runs,
    "report": Report,
}


def _command_type() -> Any:
    union: Any = None
    for name, command in _COMMANDS.items():
        kind: Any = Annotated[command, tyro.conf.subcommand(name)]  # type: ignore[valid-type]
        union = kind if union is None else union | kind
    return union


def main(arguments: list[str] | None = None) -> None:
    """Runs one command; exits with 0, 1 (a program is not ok), 2, 75 or 130."""
    command: Any = tyro.cli(
        _command_type(),
        prog="structjax",
        description="Fits, diagnoses, refines interpretable control policies whose "
        "structure is written by an LLM, at JAX speed.",
        args=arguments,
        config=(tyro.conf.OmitArgPrefixes, tyro.conf.OmitSubcommandPrefixes),
    )
    as_json = bool(getattr(command, "json", False))
    try:
        code = command.run_command()
    except StructjaxError as error:
        print_error(error, as_json=as_json)
        code = error.exit_code
    except KeyboardInterrupt:
        print("structjax: interrupted", file=sys.stderr)
        code = 130
    except BrokenPipeError:
        code = 0
    sys.exit(code)
