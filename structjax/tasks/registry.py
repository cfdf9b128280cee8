"""The built-in tasks by name."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from structjax.errors import StructjaxError
from structjax.tasks.base import Task
from structjax.tasks.car_racing.task import car_racing
from structjax.tasks.classic import cartpole, pendulum
from structjax.tasks.door_open.task import door_open

TASKS: Mapping[str, Callable[..., Task]] = {
    "car_racing": car_racing,
    "door_open": door_open,
    "pendulum": pendulum,
    "cartpole": cartpole,
}


def make_task(name: str, **options: Any) -> Task:
    """The task `name`; `options` are those of its function, e.g. `lap_rule="fixed"`.

    Raises:
      StructjaxError: unknown name or option.
    """
    if name not in TASKS:
        raise StructjaxError(
            f"unknown task {name!r}", kind="task", hint="known: " + ", ".join(TASKS)
        )
    factory = TASKS[name]
    known = list(inspect.signature(factory).parameters)
    for option in options:
        if option not in known:
            raise StructjaxError(
                f"task {name!r} has no option {option!r}",
                kind="task",
                hint="its options: " + (", ".join(known) or "none"),
            )
    return factory(**options)


def task_names() -> tuple[str, ...]:
    """The names `make_task` accepts."""
    return tuple(TASKS)
