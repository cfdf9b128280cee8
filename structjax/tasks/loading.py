"""A task by its name, or from the user's own Python file."""

import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType

from structjax.errors import StructjaxError
from structjax.tasks.base import Task
from structjax.tasks.probing import check_task

DEFAULT_TASK = "car_racing"
"""What a command takes where neither it nor the policy names a task."""


def load_task(spec: str) -> Task:
    """The task that `--task` names.

    Args:
      spec: the name of a built-in task, or `path/to/file.py:function`, a function
        without arguments that returns a Task. The file is imported: it is the user's
        own code and runs as such.

    Raises:
      StructjaxError: no such task, file or function, or it does not give a Task.
    """
    path, colon, function = spec.rpartition(":")
    if not colon and not spec.endswith(".py"):
        from structjax.tasks.registry import make_task  # imports every task's code

        return make_task(spec)
    if not colon or not path.endswith(".py") or not function:
        raise _error(spec, "is no task", "write path/to/file.py:function")
    module = _import(Path(path), spec)
    factory = getattr(module, function, None)
    if not callable(factory):
        known = [
            name
            for name, value in vars(module).items()
            if callable(value) and getattr(value, "__module__", "") == module.__name__
        ]
        raise _error(
            spec,
            f"names no function of {path}",
            "it defines: " + (", ".join(known) or "none"),
        )
    try:
        task = factory()
    except StructjaxError:
        raise
    except (Exception, SystemExit) as error:
        raise _error(
            spec, f"failed: {type(error).__name__}: {error}", "mend the function"
        ) from error
    if not isinstance(task, Task):
        raise _error(
            spec,
            f"returned a {type(task).__name__}",
            "return a Task, e.g. from task_from_gymnax(...)",
        )
    check_task(task)
    return task


def absolute(spec: str) -> str:
    """The same spec, for use in any directory: a file by its absolute path."""
    path, colon, function = spec.rpartition(":")
    return f"{os.path.abspath(path)}:{function}" if colon else spec


def _import(path: Path, spec: str) -> ModuleType:
    if not os.path.isfile(path):
        raise _error(spec, f"names no file: {path}", "write path/to/file.py:function")
    loader = importlib.util.spec_from_file_location(f"structjax_user_{path.stem}", path)
    if loader is None or loader.loader is None:
        raise _error(spec, f"cannot be imported: {path}", "it must be a .py file")
    module = importlib.util.module_from_spec(loader)
    # Dataclasses and pickles look the module of a class up there.
    sys.modules[loader.name] = module
    try:
        loader.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[loader.name]
        raise _error(
            spec,
            f"cannot be imported: {type(error).__name__}: {error}",
            "mend the file: `python " + str(path) + "` shows the full traceback",
        ) from error
    return module


def _error(spec: str, message: str, hint: str) -> StructjaxError:
    return StructjaxError(f"task {spec!r} {message}", kind="task", hint=hint)
