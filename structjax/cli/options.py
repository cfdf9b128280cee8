"""The options of a command in its run's manifest, so that `--resume RUN` is enough."""

import os
from dataclasses import MISSING, Field, asdict, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from structjax.errors import StructjaxError
from structjax.manifest import read_manifest

Command = TypeVar("Command")

OF_THE_CALL = ("run", "resume", "json", "wait", "sandbox")
"""What concerns one call of a command, not the run: consent to run generated code
unprotected holds for the call that gave it."""


def stored(command: Any) -> dict[str, Any]:
    """The options as JSON-ready values, paths absolute."""
    options = {k: v for k, v in asdict(command).items() if k not in OF_THE_CALL}
    return {
        k: str(v.resolve()) if isinstance(v, Path) else _whole(k, v)
        for k, v in options.items()
    }


def whole(name: str) -> str:
    """The name of a demonstration or of what else may ship; a file's is absolute."""
    return os.path.abspath(name) if Path(name).suffix else name


def _whole(option: str, value: Any) -> Any:
    """The same for an option of any kind."""
    if not isinstance(value, str):
        return value
    if option in ("demonstration", "transcript"):
        return whole(value)
    if option == "policy":
        from structjax.rl.starting import MLP  # only of `rl`, which has loaded it

        return value if value == MLP else os.path.abspath(value)
    return os.path.abspath(value) if option == "start" else value


def one_run(new: Path | None, old: Path | None) -> None:
    """Refuses to start a run and to continue one at once.

    Raises:
      StructjaxError: both are named.
    """
    if new is not None and old is not None:
        raise StructjaxError(
            "--run and --resume were both given",
            kind="options",
            hint="--run names a new run, --resume continues one",
        )


def restored(command: Command, directory: Path) -> Command:
    """The command with the options of its first call where none is given now.

    Raises:
      StructjaxError: no run there, or one of another command.
    """
    manifest = read_manifest(directory)
    _check_kind(manifest.get("kind"), type(command).__name__.lower(), directory)
    options = manifest.get("command") or {}
    if problem := _problem(command, options):
        raise StructjaxError(
            f"{directory / 'manifest.json'} holds options of another kind: {problem}",
            kind="run",
            hint="restore it, or start a new run",
        )
    return _restored(command, options)


def _check_kind(own: Any, wanted: str, directory: Path) -> None:
    """Refuses a run of another command; older runs do not say whose they are."""
    if isinstance(own, str) and own != wanted:
        raise StructjaxError(
            f"{directory} is a run of `structjax {own}`",
            kind="run",
            hint=f"continue it with `structjax {own} --resume {directory}`",
        )


def _problem(command: Any, options: Any) -> str:
    """Which stored option no command can have had; empty if none."""
    if not isinstance(options, dict):
        return f"{options!r:.40} for {type(command).__name__}"
    hints = get_type_hints(type(command))
    for name in hints.keys() & options.keys() - set(OF_THE_CALL):
        value, kept = getattr(command, name), options[name]
        if is_dataclass(value):
            if problem := _problem(value, kept):
                return problem
        elif not _fits(kept, hints[name]):
            return f"{name} is {kept!r:.40}"
    return ""


def _fits(value: Any, hint: Any) -> bool:
    """Whether a JSON value stands for a value of a type."""
    if get_origin(hint) is Literal:
        return value in get_args(hint)
    if get_origin(hint) is tuple:
        item = get_args(hint)[0]
        return isinstance(value, list) and all(_fits(part, item) for part in value)
    if isinstance(hint, type):
        accepted = {Path: str, float: int | float}.get(hint, hint)
        return isinstance(value, accepted) and isinstance(value, bool) <= (hint is bool)
    return any(_fits(value, option) for option in get_args(hint))


def _restored(given: Any, options: dict[str, Any]) -> Any:
    """The dataclass with stored values in place of its defaults."""
    hints = get_type_hints(type(given))
    changes = {}
    for field in fields(given):
        value = getattr(given, field.name)
        if field.name in OF_THE_CALL or field.name not in options:
            continue
        if is_dataclass(value):
            changes[field.name] = _restored(value, options[field.name])
        elif value == _default(field):
            kept = options[field.name]
            changes[field.name] = _as(kept, hints[field.name])
    return replace(given, **changes)


def _as(kept: Any, hint: Any) -> Any:
    """A value from JSON in the type of its option."""
    if get_origin(hint) is tuple:
        return tuple(kept)
    return Path(kept) if kept is not None and Path in get_args(hint) else kept


def _default(field: Field[Any]) -> Any:
    if field.default_factory is not MISSING:
        return field.default_factory()
    return field.default
