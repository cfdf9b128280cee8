"""Records the bundled Car Racing demonstrations in the original simulator."""

from collections.abc import Callable
from dataclasses import asdict
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

import numpy as np

from structjax.demonstration import Demonstration, save_demonstration
from structjax.original.car_racing import OriginalCarRacing, run_episode
from structjax.schema import Schema
from structjax.tasks.car_racing.driver import CarState, Driver, DriverConfig
from structjax.tasks.car_racing.track import make_track

EXPERT = DriverConfig()
HUMAN = DriverConfig(
    grip=0.27,
    braking=40.0,
    top_speed=54.0,
    corridor=0.5,
    lag=7,
    steer_noise=0.03,
    pedal_noise=0.1,
    preview=0.25,
)
PACKAGES = ("gymnasium", "box2d", "numpy")


class Recipe(NamedTuple):
    """Who drives which track; the seed also draws the driver's noise."""

    driver: DriverConfig
    level: str
    seed: int


# Human level: returns of 840-900 as in arXiv 2610.01652, on five of the six tracks
# among 4000-4008 where this driver has one. Expert level: five tracks, not chosen.
RECIPES = {
    f"human_{i + 1}": Recipe(HUMAN, "human", seed)
    for i, seed in enumerate((4003, 4004, 4005, 4006, 4008))
} | {f"expert_{i + 1}": Recipe(EXPERT, "expert", 4100 + i) for i in range(5)}


def record_demonstration(
    recipe: Recipe, env: OriginalCarRacing | None = None
) -> Demonstration:
    """One episode of our driver in Gymnasium's simulator.

    Raises:
      StructjaxError: the extra `original` is not installed.
    """
    env = OriginalCarRacing() if env is None else env
    driver = Driver(make_track(recipe.seed), recipe.driver, recipe.seed)
    episode = run_episode(env, recipe.seed, driver_policy(driver, env))
    provenance = {
        "task": "car_racing",
        "driver": "preview controller of structjax",
        "level": recipe.level,
        "settings": asdict(recipe.driver),
        "simulator": "gymnasium CarRacing-v3, not rendered",
        "seed": recipe.seed,
        "return": round(float(episode.rewards.sum()), 2),
        "steps": len(episode.rewards),
        "progress": round(episode.progress, 4),
        "versions": {name: metadata.version(name) for name in PACKAGES},
    }
    return Demonstration(episode.observations, episode.actions, provenance)


def driver_policy(
    driver: Driver, env: OriginalCarRacing
) -> Callable[[np.ndarray], np.ndarray]:
    """The driver as a policy; it looks at the simulator instead of the observation."""

    def act(_: np.ndarray) -> np.ndarray:
        hull, wheels = env.simulator.car.hull, env.simulator.car.wheels
        return driver.act(
            CarState(
                position=np.array(hull.position),
                angle=hull.angle,
                velocity=np.array(hull.linearVelocity),
                yaw_rate=hull.angularVelocity,
                rear_omega=float(wheels[2].omega + wheels[3].omega) / 2,
            )
        )

    return act


def make_demonstrations(folder: str | Path, schema: Schema) -> dict[str, Demonstration]:
    """Records all bundled demonstrations into `folder`, as `<name>.npz`."""
    env = OriginalCarRacing()
    recorded = {}
    for name, recipe in RECIPES.items():
        recorded[name] = record_demonstration(recipe, env)
        save_demonstration(recorded[name], Path(folder) / f"{name}.npz", schema)
    return recorded
