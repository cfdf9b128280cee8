"""Records the bundled Door Opening demonstrations in Meta-World."""

import warnings
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

import jax
import numpy as np

from structjax.demonstration import Demonstration, save_demonstration
from structjax.original.door_open import (
    NAME,
    PINNED,
    OriginalDoorOpen,
    import_simulator,
    run_episode,
)
from structjax.outcomes import reduce_outcomes
from structjax.schema import Schema
from structjax.tasks.door_open.planner import Planner, PlannerConfig
from structjax.tasks.door_open.servo import ServoConfig, servo
from structjax.tasks.door_open.task import OUTCOMES

PACKAGES = (*PINNED, "gymnasium", "numpy")
MEMORY = 0.9  # share of the servo's noise that stays from step to step


class Recipe(NamedTuple):
    """Who opens the door of which seed; the noise of drivers has the door's seed.

    Attributes:
      seed: of the door.
      driver: Meta-World's scripted expert (None), our planner or our feedback law.
    """

    seed: int
    driver: PlannerConfig | ServoConfig | None = None


# Each opens all of its doors; none was left out between them.
RECIPES = (
    {f"expert_{i + 1}": Recipe(4000 + i) for i in range(3)}
    | {
        f"planner_{i + 1}": Recipe(4100 + i, PlannerConfig(noise=0.1, seed=4100 + i))
        for i in range(3)
    }
    | {f"servo_{i + 1}": Recipe(4200 + i, ServoConfig(noise=0.15)) for i in range(3)}
)


def scripted_expert() -> Callable[[np.ndarray], np.ndarray]:
    """Meta-World's own scripted policy: observation `[39]` -> clipped action `[4]`.

    Raises:
      StructjaxError: Meta-World is not installed.
    """
    import_simulator()
    from metaworld.policies import SawyerDoorOpenV3Policy

    expert = SawyerDoorOpenV3Policy()

    def act(obs: np.ndarray) -> np.ndarray:
        # It writes into what it is given.
        own = np.array(obs, np.float64)
        with warnings.catch_warnings():
            # It says at every step that its answers are not clipped.
            warnings.simplefilter("ignore")
            action = expert.get_action(own)
        return np.clip(action, -1.0, 1.0)

    return act


def motion_planner(config: PlannerConfig) -> Callable[[np.ndarray], np.ndarray]:
    """Our planner, which plans at the first observation it sees."""
    planner: Planner | None = None

    def act(obs: np.ndarray) -> np.ndarray:
        nonlocal planner
        if planner is None:
            planner = Planner(config)
            planner.reset(obs)
        return planner.act(obs)

    return act


def noisy_servo(config: ServoConfig, seed: int) -> Callable[[np.ndarray], np.ndarray]:
    """Our feedback law with its noise: observation `[39]` -> clipped action `[4]`."""
    law = jax.jit(partial(servo, config=config))
    rng, drift = np.random.default_rng(seed), np.zeros(4)

    def act(obs: np.ndarray) -> np.ndarray:
        nonlocal drift
        fresh = np.append(rng.standard_normal(3), 0.0) * config.noise
        drift = MEMORY * drift + np.sqrt(1.0 - MEMORY**2) * fresh
        return np.clip(np.asarray(law(obs)) + drift, -1.0, 1.0)

    return act


class _Driver(NamedTuple):
    """A driver at work, and what is to be told of it."""

    act: Callable[[np.ndarray], np.ndarray]
    words: str
    level: str


def _driver(recipe: Recipe) -> _Driver:
    config = recipe.driver
    if config is None:
        words = "scripted expert of Meta-World"
        return _Driver(scripted_expert(), words, "expert")
    if isinstance(config, PlannerConfig):
        words = "motion planner of structjax"
        return _Driver(motion_planner(config), words, "planner")
    words = "feedback law of structjax"
    return _Driver(noisy_servo(config, recipe.seed), words, "servo")


def record_demonstration(
    recipe: Recipe, env: OriginalDoorOpen | None = None
) -> Demonstration:
    """One episode in Meta-World.

    Raises:
      StructjaxError: the extra `metaworld` is not installed.
    """
    env = OriginalDoorOpen() if env is None else env
    driver = _driver(recipe)
    episode = run_episode(env, recipe.seed, driver.act)
    taken = np.ones((len(episode.rewards), 1), bool)
    columns = {name: values[:, None] for name, values in episode.info.items()}
    outcomes = reduce_outcomes(OUTCOMES, columns, taken)
    provenance = {
        "task": "door_open",
        "driver": driver.words,
        "level": driver.level,
        "settings": asdict(recipe.driver) if recipe.driver else {},
        "simulator": f"Meta-World {NAME}",
        "seed": recipe.seed,
        "return": round(float(episode.rewards.sum()), 2),
        "steps": len(episode.rewards),
        "outcomes": {name: round(float(v[0]), 4) for name, v in outcomes.items()},
        "versions": {name: metadata.version(name) for name in PACKAGES},
    }
    return Demonstration(episode.observations[:-1], episode.actions, provenance)


def make_demonstrations(folder: str | Path, schema: Schema) -> dict[str, Demonstration]:
    """Records all bundled demonstrations into `folder`, as `<name>.npz`."""
    env = OriginalDoorOpen()
    recorded = {}
    for name, recipe in RECIPES.items():
        recorded[name] = record_demonstration(recipe, env)
        save_demonstration(recorded[name], Path(folder) / f"{name}.npz", schema)
    return recorded
