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
from structjax.tasks.door_open.planner import PlannerConfig, plan
from structjax.tasks.door_open.task import OUTCOMES

PACKAGES = (*PINNED, "gymnasium", "numpy")


MEMORY = 0.9  # share of the planner's noise that stays from step to step


class Recipe(NamedTuple):
    """Who opens the door of which seed; the seed also draws the planner's noise.

    Attributes:
      seed: of the door.
      planner: our motion planner's settings; None: Meta-World's scripted expert.
    """

    seed: int
    planner: PlannerConfig | None


# Both open all of these doors; none was left out between them.
RECIPES = {f"expert_{i + 1}": Recipe(4000 + i, None) for i in range(3)} | {
    f"planner_{i + 1}": Recipe(4100 + i, PlannerConfig(noise=0.15)) for i in range(3)
}


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


def motion_planner(
    config: PlannerConfig, seed: int
) -> Callable[[np.ndarray], np.ndarray]:
    """Our planner with its noise: observation `[39]` -> clipped action `[4]`."""
    planned = jax.jit(partial(plan, config=config))
    rng, drift = np.random.default_rng(seed), np.zeros(4)

    def act(obs: np.ndarray) -> np.ndarray:
        nonlocal drift
        fresh = np.append(rng.standard_normal(3), 0.0) * config.noise
        drift = MEMORY * drift + np.sqrt(1.0 - MEMORY**2) * fresh
        return np.clip(np.asarray(planned(obs)) + drift, -1.0, 1.0)

    return act


def record_demonstration(
    recipe: Recipe, env: OriginalDoorOpen | None = None
) -> Demonstration:
    """One episode in Meta-World.

    Raises:
      StructjaxError: the extra `metaworld` is not installed.
    """
    env = OriginalDoorOpen() if env is None else env
    if recipe.planner is None:
        facts = {"driver": "scripted expert of Meta-World", "level": "expert"}
        settings, policy = {}, scripted_expert()
    else:
        facts = {"driver": "motion planner of structjax", "level": "planner"}
        settings = asdict(recipe.planner)
        policy = motion_planner(recipe.planner, recipe.seed)
    episode = run_episode(env, recipe.seed, policy)
    taken = np.ones((len(episode.rewards), 1), bool)
    columns = {name: values[:, None] for name, values in episode.info.items()}
    outcomes = reduce_outcomes(OUTCOMES, columns, taken)
    provenance = {
        "task": "door_open",
        **facts,
        "settings": settings,
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
