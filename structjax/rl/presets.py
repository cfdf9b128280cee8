"""Named recipes, and the algorithm that one of them makes of a policy and a task."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from structjax.errors import StructjaxError
from structjax.rl.algorithm import Algorithm
from structjax.rl.config import PRESETS, RLConfig, scalars
from structjax.rl.evolution import (
    EVOLUTION_PRESETS,
    EvolutionConfig,
    EvolutionStrategy,
    evolution_scalars,
)
from structjax.rl.gradient import PolicyGradient
from structjax.tasks.base import Task

Config = RLConfig | EvolutionConfig
RECOMMENDED = "recommended"
ALL: Mapping[str, Config] = {**PRESETS, **EVOLUTION_PRESETS}


class Recipe(NamedTuple):
    """An algorithm with its scalar hyperparameters `[S]`."""

    algorithm: Algorithm
    scalars: Any


def preset(name: str) -> Config:
    """The recipe's configuration.

    Raises:
      StructjaxError: no such preset.
    """
    if name not in ALL:
        raise StructjaxError(
            f"unknown preset {name!r}",
            kind="options",
            hint="accepted: " + ", ".join([RECOMMENDED, *ALL]),
        )
    return ALL[name]


def resolved(name: str, network: bool) -> str:
    """The preset's own name: `recommended` is `es_small`, for networks `es_network`."""
    if name != RECOMMENDED:
        return name
    return "es_network" if network else "es_small"


def changed(name: str, settings: Sequence[str]) -> Config:
    """A preset with some options set, each given as `name=value`.

    Raises:
      StructjaxError: no such preset or option, or a value of another kind.
    """
    config, values = preset(name), {}
    for setting in settings:
        option, equals, text = setting.partition("=")
        if not equals or option not in config.__dataclass_fields__:
            raise _no_option(name, setting)
        values[option] = _value(option, text, type(getattr(config, option)))
    return replace(config, **values)


def _no_option(name: str, setting: str) -> StructjaxError:
    """What is wrong with a setting, and where it would be right."""
    option, equals, _ = setting.partition("=")
    others = [n for n, c in ALL.items() if option in c.__dataclass_fields__]
    if not equals:
        problem, hint = "is not name=value", "e.g. learning_rate=0.001"
    elif others:
        problem = f"is no option of the preset {name}"
        hint = "choose one that has it with --preset: " + ", ".join(others)
    else:
        problem = f"is no option of the preset {name}, nor of another"
        hint = f"{name} has " + ", ".join(ALL[name].__dataclass_fields__)
    return StructjaxError(
        f"setting {setting!r:.60} {problem}", kind="options", hint=hint
    )


def _value(name: str, text: str, kind: type) -> Any:
    try:
        return kind(text)
    except ValueError:
        raise StructjaxError(
            f"option {name} is {text!r:.60}",
            kind="options",
            hint=f"it must be {'a whole number' if kind is int else 'a number'}",
        ) from None


def recipe(policy: Any, task: Task, config: Config, resets: int, runs: int) -> Recipe:
    """The algorithm that spends `resets` episodes on each of S runs."""
    updates = max(resets // config.resets_per_update, 1)
    algorithm: Algorithm
    if isinstance(config, EvolutionConfig):
        algorithm = EvolutionStrategy(policy, task, config, updates)
        values: Any = evolution_scalars(config)
    else:
        algorithm = PolicyGradient(policy, task, config, updates)
        values = scalars(config)
    return Recipe(algorithm, jax.tree.map(lambda x: jnp.full(runs, x), values))
