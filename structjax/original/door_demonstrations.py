"""Records the bundled Door Opening demonstrations in Meta-World."""

import warnings
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

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
from structjax.tasks.door_open.task import OUTCOMES

PACKAGES = (*PINNED, "gymnasium", "numpy")


class Recipe(NamedTuple):
    """Who opens the door of which seed."""

    driver: str
    seed: int


# The expert opens all of these doors; none was left out between them.
RECIPES = {f"expert_{i + 1}": Recipe("expert", 4000 + i) for i in range(3)}


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


DRIVERS: dict[str, tuple[str, Callable[[], Callable[[np.ndarray], np.ndarray]]]] = {
    "expert": ("scripted expert of Meta-World", scripted_expert),
}


def record_demonstration(
    recipe: Recipe, env: OriginalDoorOpen | None = None
) -> Demonstration:
    """One episode in Meta-World.

    Raises:
      StructjaxError: the extra `metaworld` is not installed.
    """
    env = OriginalDoorOpen() if env is None else env
    words, make = DRIVERS[recipe.driver]
    episode = run_episode(env, recipe.seed, make())
    taken = np.ones((len(episode.rewards), 1), bool)
    columns = {name: values[:, None] for name, values in episode.info.items()}
    outcomes = reduce_outcomes(OUTCOMES, columns, taken)
    provenance = {
        "task": "door_open",
        "driver": words,
        "level": recipe.driver,
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
