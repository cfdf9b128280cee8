"""Entry point: parses the command line, runs a command, words its errors."""

import contextlib
import os
import sys
from typing import Annotated, Any

import tyro

from structjax.cli.compare import Compare
from structjax.cli.curves import Curves
from structjax.cli.demo import Demo
from structjax.cli.inspect import Operators, Report, Runs, Tasks
from structjax.cli.output import print_error
from structjax.cli.programs import Check, Evaluate, Fit
from structjax.cli.refine import Refine
from structjax.cli.rl import Rl
from structjax.cli.tables import Diagnose, Rollout
from structjax.cli.views import Diff, Export, Graph
from structjax.errors import StructjaxError

_COMMANDS: dict[str, type] = {
    "refine": Refine,
    "check": Check,
    "fit": Fit,
    "rollout": Rollout,
    "diagnose": Diagnose,
    "rl": Rl,
    "evaluate": Evaluate,
    "compare": Compare,
    "curves": Curves,
    "graph": Graph,
    "diff": Diff,
    "export": Export,
    "demo": Demo,
    "tasks": Tasks,
    "operators": Operators,
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
    given = sys.argv[1:] if arguments is None else arguments
    _print_any_character()
    try:
        code = _parse(given).run_command()
        sys.stdout.flush()
    except StructjaxError as error:
        code = _refuse(error, given)
    except KeyboardInterrupt:
        print("structjax: interrupted", file=sys.stderr)
        code = 130
    except BrokenPipeError:
        _drop_stdout()
        code = 0
    except (MemoryError, RuntimeError) as error:
        code = _refuse(_out_of_memory(error), given)
    except OSError as error:
        where = f" {error.filename!r}" if error.filename else ""
        text = f"the system refuses{where}: {error.strerror or error}"
        hint = "free some space, or name files that can be read and written"
        code = _refuse(StructjaxError(text, kind="system", hint=hint), given)
    sys.exit(code)


def _parse(arguments: list[str]) -> Any:
    """The command with its options.

    Raises:
      StructjaxError: they are not understood; without `--json`, tyro's text is all.
    """
    try:
        return _command(arguments)
    except SystemExit as stopped:
        if not stopped.code or "--json" not in arguments:
            raise
        raise StructjaxError(
            "the command line is not understood",
            kind="options",
            hint="stderr says why; see `structjax COMMAND --help`",
        ) from None


def _command(arguments: list[str]) -> Any:
    if arguments == ["demo"]:  # tyro's own message names the help of `structjax` alone
        raise StructjaxError(
            "demo needs a subcommand, list or synth",
            kind="options",
            hint="see `structjax demo --help`",
        )
    command: Any = tyro.cli(
        _command_type(),
        prog="structjax",
        description="Fits, diagnoses, refines interpretable control policies whose "
        "structure is written by an LLM, at JAX speed.",
        args=arguments,
        config=(tyro.conf.OmitArgPrefixes, tyro.conf.OmitSubcommandPrefixes),
    )
    if isinstance(command, Fit) and command.preset is not None:
        return command.on_preset(arguments)
    return command


def _out_of_memory(error: Exception) -> StructjaxError:
    """The error in words, if it is a lack of memory; raised again if not."""
    text = str(error)
    # jax.errors.JaxRuntimeError is a RuntimeError with XLA's status as its text.
    if not isinstance(error, MemoryError) and "RESOURCE_EXHAUSTED" not in text:
        raise error
    wanted = text.partition("RESOURCE_EXHAUSTED:")[2].strip().partition("\n")[0]
    return StructjaxError(
        f"not enough memory{': ' if wanted else ''}{wanted:.120}".rstrip("."),
        kind="memory",
        hint="play fewer episodes side by side, or train fewer seeds at a time",
    )


def _refuse(error: StructjaxError, arguments: list[str]) -> int:
    """Prints an error and returns the status."""
    as_json = "--json" in arguments
    try:
        print_error(error, as_json=as_json)
        sys.stdout.flush()
    except OSError:  # stdout is full or gone
        _drop_stdout()
        if as_json:
            print_error(error, as_json=False)
    return error.exit_code


def _print_any_character() -> None:
    """What the terminal's encoding lacks is escaped."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def _drop_stdout() -> None:
    """Leaves nothing for the interpreter to print, and to fail at, when it ends."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
