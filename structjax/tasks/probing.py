"""A look at a user's task before it is played: one step traced, nothing computed."""

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp

from structjax.errors import StructjaxError
from structjax.tasks.base import Step, Task
from structjax.tasks.scene import Scene

_PURE = "mend it; `reset` and `step` are pure JAX functions of one episode"
_HINTS = dict.fromkeys(("initial", "reset", "step"), _PURE)


def check_task(task: Task) -> None:
    """Traces `initial`, `reset` and `step` on two debug seeds, and looks at a scene.

    Raises:
      StructjaxError: one of them fails, or gives arrays that no rollout can use.
    """
    seeds = task.seeds["debug"][:2]
    params, starts = _try(task, "initial", task.initial, seeds)
    sizes = {jnp.shape(leaf)[:1] for leaf in jax.tree.leaves(starts)}
    if sizes != {(len(seeds),)}:
        raise _refused(
            task,
            f"`initial` gives starts of {_words(starts)} for {len(seeds)} seeds",
            "a pytree of arrays with one row per seed",
        )
    start = jax.tree.map(lambda leaf: jnp.asarray(leaf)[0], starts)
    obs, state = _traced(task, "reset", task.reset, start, params)
    _check_shape(task, "the observation of `reset`", obs, _observation(task))
    action = jnp.int32(0) if task.schema.discrete else jnp.zeros(_actions(task))
    key = jax.random.key(0)
    step = _traced(task, "step", task.step, key, state, action, params)
    if not isinstance(step, Step):
        raise _refused(task, f"`step` returns a {type(step).__name__}", "a Step")
    _check_same(task, "observation", step.obs, obs)
    _check_same(task, "state", step.state, state)
    for name in ("reward", "terminated", "truncated"):
        _check_shape(task, f"the {name} of `step`", getattr(step, name), ())
    _check_info(task, step.info)
    if task.scene is not None:
        scene_of(task, seeds[0])


def scene_of(task: Task, seed: int) -> Scene:
    """What the task's scene function gives for a seed.

    Raises:
      StructjaxError: it fails, gives no Scene, or one that follows unknown values.
    """
    scene = _try(task, "scene", task.scene, seed)
    if not isinstance(scene, Scene):
        raise _refused(task, f"`scene` returns a {type(scene).__name__}", "a Scene")
    known = task.info or {}
    if unknown := sorted(scene.values - known.keys()):
        raise StructjaxError(
            f"scene of task {task.name!r}: no info value {unknown[0]!r}",
            kind="task",
            hint="accepted: " + (", ".join(known) or "none: the task has no info"),
        )
    return scene


def _check_info(task: Task, found: Any) -> None:
    """Every value that the task names is a real number of each step."""
    names = task.info or {}
    if names and not isinstance(found, Mapping):
        raise _refused(task, f"the info of `step` is {_words(found)}", "a dictionary")
    for name in names:
        if name not in found:
            known = ", ".join(map(str, found)) or "none"
            raise _refused(task, f"`step` gives no info value {name!r}", known)
        what, value = f"the info value {name!r} of `step`", found[name]
        if not hasattr(value, "dtype"):
            raise _refused(task, f"{what} is a {type(value).__name__}", "a number")
        _check_shape(task, what, value, ())
        if jnp.issubdtype(value.dtype, jnp.complexfloating):
            raise _refused(task, f"{what} is {_words(value)}", "a real number")


def _observation(task: Task) -> tuple[int]:
    return (task.schema.observation_size,)


def _actions(task: Task) -> int:
    return len(task.schema.actions)


def _traced(task: Task, name: str, function: Any, *arguments: Any) -> Any:
    """What a function gives, as shapes and dtypes."""
    return _try(task, name, jax.eval_shape, function, *arguments)


def _try(task: Task, name: str, function: Any, *arguments: Any) -> Any:
    try:
        return function(*arguments)
    except StructjaxError:
        raise
    except Exception as error:
        lines = str(error).strip().splitlines() or [""]
        raise StructjaxError(
            f"task {task.name!r}: `{name}` fails: {type(error).__name__}: "
            f"{lines[0]:.200}",
            kind="task",
            hint=_HINTS.get(name, "mend it"),
        ) from error


def _check_shape(task: Task, what: str, value: Any, shape: tuple[int, ...]) -> None:
    if jnp.shape(value) != shape:
        raise _refused(task, f"{what} is {_words(value)}", f"shape {list(shape)}")


def _check_same(task: Task, what: str, after: Any, before: Any) -> None:
    """A step gives what it takes, or no loop can run it."""
    if _kinds(after) != _kinds(before):
        raise _refused(
            task,
            f"the {what} of `step` is {_words(after)}",
            f"what `reset` gives, {_words(before)}",
        )


def _kinds(tree: Any) -> tuple[Any, ...]:
    leaves, structure = jax.tree.flatten(tree)
    return structure, [(leaf.shape, leaf.dtype) for leaf in leaves]


def _words(tree: Any) -> str:
    """Its arrays in short, e.g. `float32[2], int32[]`."""
    kinds = [
        (getattr(x, "dtype", type(x).__name__), jnp.shape(x))
        for x in jax.tree.leaves(tree)
    ]
    texts = [f"{dtype}{list(shape)}" for dtype, shape in kinds]
    return ", ".join(texts[:6]) + (", ..." if len(texts) > 6 else "") or "no array"


def _refused(task: Task, problem: str, accepted: str) -> StructjaxError:
    return StructjaxError(
        f"task {task.name!r}: {problem}", kind="task", hint=f"accepted: {accepted}"
    )
