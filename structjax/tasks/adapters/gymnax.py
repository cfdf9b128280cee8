"""A Task from any gymnax environment: bring a schema and a description."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from structjax.errors import StructjaxError
from structjax.outcomes import Outcomes
from structjax.schema import Schema
from structjax.tasks.base import DEFAULT_SEEDS, Step, Task


class _State(NamedTuple):
    """The environment's own state, and the number of steps taken."""

    steps: jax.Array
    inner: Any


def task_from_gymnax(
    environment: Any,
    *,
    schema: Schema,
    description: str,
    name: str,
    horizon: int | None = None,
    seeds: Mapping[str, range] | None = None,
    params: Any = None,
    info: Mapping[str, str] | None = None,
    outcomes: Outcomes | None = None,
) -> Task:
    """A Task whose episodes start where `jax.random.key(seed)` puts them.

    The schema is checked against the environment here, once: observation size, kind,
    number and bounds of the actions.

    Args:
      environment: a gymnax 1.x environment, or the name of a registered one.
      schema: one `Field` per part of the flattened observation, in its order, and one
        `ActionField` per action (one with `choices` when the action is discrete).
      description: the task in words, for prompts: goal, reward, what goes wrong.
      name: the task's name, used in run directories and messages.
      horizon: episode cap in steps; default the environment's own limit.
      seeds: use -> seeds, disjoint; default the project's sets (test 1000-1009, ...).
      params: the environment's parameters; default its own.
      info: scalar entries of the environment's info to record, with their meaning.
      outcomes: what to report per episode beside the return, name -> (entry of `info`,
        `"min"`, `"max"`, `"last"` or `"mean"`).

    Raises:
      StructjaxError: the environment is unknown, or differs from the schema.
    """
    environment, params = _resolve(environment, params)
    shapes = _trace(environment, params, name)
    _check_observation(schema, shapes.obs, environment, params, name)
    _check_action(schema, environment.action_space(params), name)
    _check_info(info or {}, shapes.info, name)
    horizon = _horizon(horizon, params, name)
    reset, step = _functions(environment, schema, horizon, shapes.state, info or {})

    def initial(chosen: Sequence[int]) -> tuple[Any, Any]:
        return params, jax.vmap(jax.random.key)(jnp.asarray(list(chosen), jnp.uint32))

    return Task(
        name=name,
        description=description,
        schema=schema,
        horizon=horizon,
        seeds=dict(DEFAULT_SEEDS if seeds is None else seeds),
        initial=initial,
        reset=reset,
        step=step,
        info=info,
        environment=environment,
        outcomes=outcomes or {},
    )


class _Shapes(NamedTuple):
    """Shapes and types of one step, by abstract evaluation."""

    obs: Any
    state: Any
    info: Any


def _error(name: str, message: str, hint: str) -> StructjaxError:
    return StructjaxError(f"task {name!r}: {message}", kind="task", hint=hint)


def _resolve(environment: Any, params: Any) -> tuple[Any, Any]:
    if isinstance(environment, str):
        import gymnax  # pulls in every environment: only when a name is given

        if environment not in gymnax.registered_envs:
            raise StructjaxError(
                f"unknown gymnax environment {environment!r}",
                kind="task",
                hint="known: " + ", ".join(gymnax.registered_envs),
            )
        environment, default = gymnax.make(environment)
        return environment, default if params is None else params
    return environment, environment.default_params if params is None else params


def _horizon(horizon: int | None, params: Any, name: str) -> int:
    limit = getattr(params, "max_steps_in_episode", None)
    if horizon is None:
        if limit is None:
            raise _error(
                name, "the environment has no time limit", "pass horizon=STEPS"
            )
        return int(limit)
    if limit is not None and horizon > int(limit):
        raise _error(
            name,
            f"horizon {horizon} is longer than the environment's limit of {limit}",
            "pass params=... with a larger max_steps_in_episode",
        )
    return horizon


def _trace(environment: Any, params: Any, name: str) -> _Shapes:
    def once(key: jax.Array) -> tuple[Any, Any, Any, Any, Any]:
        action = environment.action_space(params).sample(key)
        _, state = environment.reset_env(key, params)
        return environment.step_env(key, state, action, params)

    outputs = jax.eval_shape(once, jax.random.key(0))
    if len(outputs) != 5:
        raise _error(
            name,
            f"step_env returns {len(outputs)} values",
            "gymnax 1.x returns 5: observation, state, reward, terminated, info",
        )
    return _Shapes(outputs[0], outputs[1], outputs[4])


def _check_observation(
    schema: Schema, obs: Any, environment: Any, params: Any, name: str
) -> None:
    size = sum(int(np.prod(leaf.shape)) for leaf in jax.tree.leaves(obs))
    if size != schema.observation_size:
        raise _error(
            name,
            f"the schema describes {schema.observation_size} observation values "
            f"({', '.join(f.name for f in schema.observations)}), the environment "
            f"gives {size}",
            "one Field per value, or a Field with size=n, in the environment's order",
        )
    space = environment.observation_space(params)
    if not hasattr(space, "low"):
        return
    low = np.broadcast_to(np.asarray(space.low), space.shape).ravel()
    high = np.broadcast_to(np.asarray(space.high), space.shape).ravel()
    for field in schema.observations:
        part = schema.slice_of(field.name)
        if field.low > high[part].max() or field.high < low[part].min():
            raise _error(
                name,
                f"field {field.name!r} has the range [{field.low:g}, {field.high:g}], "
                f"the environment's values lie in [{low[part].min():g}, "
                f"{high[part].max():g}]",
                "check the order of the fields and their ranges",
            )


def _check_action(schema: Schema, space: Any, name: str) -> None:
    if hasattr(space, "n"):
        choices = schema.actions[0].choices if len(schema.actions) == 1 else None
        if choices is None or len(choices) != space.n:
            given = [a.name if a.choices is None else a.choices for a in schema.actions]
            raise _error(
                name,
                f"the environment has one discrete action with {space.n} choices, the "
                f"schema describes {given}",
                f"one ActionField with {space.n} names in choices=(...)",
            )
        return
    if not hasattr(space, "low"):
        raise _error(
            name,
            f"action space {space!r} is not supported",
            "Discrete and Box are",
        )
    size = int(np.prod(space.shape))
    if schema.discrete or len(schema.actions) != size:
        raise _error(
            name,
            f"the environment has {size} continuous actions, the schema describes "
            f"{[a.name for a in schema.actions]}",
            f"{size} ActionFields without choices",
        )
    low = np.broadcast_to(np.asarray(space.low), space.shape).ravel()
    high = np.broadcast_to(np.asarray(space.high), space.shape).ravel()
    for i, action in enumerate(schema.actions):
        if not np.allclose([action.low, action.high], [low[i], high[i]]):
            raise _error(
                name,
                f"action {action.name!r} has the range [{action.low:g}, "
                f"{action.high:g}], the environment's is [{low[i]:g}, {high[i]:g}]",
                "set low and high of the ActionField to the environment's",
            )


def _check_info(wanted: Mapping[str, str], given: Any, name: str) -> None:
    scalars = [key for key, leaf in given.items() if getattr(leaf, "shape", ()) == ()]
    for key in wanted:
        if key not in scalars:
            raise _error(
                name,
                f"info {key!r} is no scalar of the environment's info",
                "known: " + (", ".join(map(str, scalars)) or "none"),
            )


def _flatten(obs: Any) -> jax.Array:
    """The observation as one flat float array `[O]`."""
    leaves = [jnp.ravel(leaf).astype(jnp.float32) for leaf in jax.tree.leaves(obs)]
    return leaves[0] if len(leaves) == 1 else jnp.concatenate(leaves)


def _like(state: Any, types: Any) -> Any:
    """The state with the types a step leaves: a scan needs equal ones throughout."""

    def cast(leaf: Any, kind: Any) -> Any:
        if jnp.issubdtype(kind.dtype, jax.dtypes.prng_key):
            return leaf
        return jnp.asarray(leaf, kind.dtype)

    return jax.tree.map(cast, state, types)


def _functions(
    environment: Any, schema: Schema, horizon: int, types: Any, info: Mapping[str, str]
) -> tuple[Any, Any]:
    """`reset` and `step` of the Task."""

    def reset(start: jax.Array, params: Any) -> tuple[jax.Array, _State]:
        obs, inner = environment.reset_env(start, params)
        return _flatten(obs), _State(jnp.zeros((), jnp.int32), _like(inner, types))

    def step(key: jax.Array, state: _State, action: jax.Array, params: Any) -> Step:
        space = environment.action_space(params)
        kind = jnp.int32 if schema.discrete else jnp.float32
        action = jnp.reshape(action, space.shape).astype(kind)
        obs, inner, reward, terminated, extra = environment.step_env(
            key, state.inner, action, params
        )
        steps = state.steps + 1
        truncated = jnp.asarray(environment.is_truncated(inner, params), bool)
        return Step(
            obs=_flatten(obs),
            state=_State(steps, _like(inner, types)),
            reward=jnp.reshape(reward, ()).astype(jnp.float32),
            terminated=jnp.reshape(terminated, ()).astype(bool),
            truncated=jnp.reshape(truncated, ()) | (steps >= horizon),
            info={name: jnp.asarray(extra[name], jnp.float32) for name in info},
        )

    return reset, step
