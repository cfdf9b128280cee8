"""A look at a user's task before it is played: one step traced, nothing computed."""

from typing import Any

import jax
import jax.numpy as jnp

from structjax.errors import StructjaxError
from structjax.tasks.base import Step, Task


def check_task(task: Task) -> None:
    """Traces `initial`, `reset` and `step` on two debug seeds.

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
            hint="mend it; `reset` and `step` are pure JAX functions of one episode",
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
