"""Car Racing as a Task: tracks by Gymnasium's seeds, schema and description."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from structjax.errors import StructjaxError
from structjax.tasks.base import DEFAULT_SEEDS, Step, Task
from structjax.tasks.car_racing import constants as c
from structjax.tasks.car_racing.bank import track_bank
from structjax.tasks.car_racing.environment import (
    LAP_RULES,
    CarRacing,
    EnvParams,
    EnvState,
    LapRule,
    make_params,
)
from structjax.tasks.car_racing.observation import ObsConfig
from structjax.tasks.car_racing.schema import car_racing_schema
from structjax.tasks.car_racing.track import make_track
from structjax.tasks.scene import Scene, Shape

HORIZON = 1000
INFO: Mapping[str, str] = {
    "progress": "share of the road tiles visited so far",
    "position_x": "east coordinate of the car, m",
    "position_y": "north coordinate of the car, m",
    "heading": "absolute direction of the car, rad, 0 is north, positive: to the left",
    "on_road": "share of the four wheels that touch the road",
}
_ARROW = ((0.0, 6.0, 0.0), (-4.0, -5.0, 0.0), (4.0, -5.0, 0.0))
"""Marks the car in drawings, m; larger than the car, or it would not be seen."""
DESCRIPTION = f"""\
Car racing seen from above: drive one lap of a closed road as fast as possible. Every
episode has another random road, with bends of both directions and some hairpins. There
are {1 / c.TIME_STEP:.0f} steps a second.
Reward: 1000/N for each of the N road tiles (about 290) that a wheel touches for the
first time, and -0.1 for every step. The return of a complete lap in T steps is thus
1000 - 0.1 T; a lap takes 650 to 1000 steps.
End: the episode ends as soon as ALL tiles have been visited, or after {HORIZON} steps.
After a single missed tile it does not end early: the tile and the remaining steps are
lost. Leaving the playfield (+-{c.PLAYFIELD:.0f} m, far from the road) ends the episode
with a reward of -100.
Start: at rest on the centre line, along the road.
Car: rear-wheel drive, {c.ENGINE_POWER / 1000:.0f} kW per rear wheel for a mass of
{c.CAR.mass:.1f} kg; full gas from rest spins the rear wheels and then the car. Each
tyre pushes with at most {c.ROAD_GRIP:.0f} N on the road, shared by cornering, gas and
brake, and with {100 * c.GRASS_GRIP / c.ROAD_GRIP:.0f} % of that on grass; a tyre at its
limit slides. The brake acts on all four wheels and is strong even at small values; from
0.9 on it locks the wheels, which then slide and no longer steer. There is no air drag.
The front wheels turn towards the angle -steer (rad, positive to the left) with at most
{c.STEER_RATE:.0f} rad/s and stop at {c.STEER_LIMIT} rad: a |steer| above
{c.STEER_LIMIT} only holds them there."""


def car_racing(
    *,
    lap_rule: LapRule = "v3",
    observation: ObsConfig | None = None,
    cache_dir: str | None = None,
) -> Task:
    """The Car Racing task; a seed is the track of Gymnasium's `reset(seed=seed)`.

    Args:
      lap_rule: `"v3"` as Gymnasium's CarRacing-v3 behaves, or `"fixed"`, where a lap of
        95 % of the tiles ends the episode.
      observation: details of the observation; default the documented fields.
      cache_dir: where generated tracks are kept; default the user's cache directory.

    Raises:
      StructjaxError: an unknown lap rule.
    """
    if lap_rule not in LAP_RULES:
        raise StructjaxError(
            f"task 'car_racing': lap rule {lap_rule!r}",
            kind="task",
            hint="accepted: " + ", ".join(LAP_RULES),
        )
    environment = CarRacing(
        lambda: track_bank(DEFAULT_SEEDS["training"][:64], cache_dir), observation
    )

    def initial(seeds: Sequence[int]) -> tuple[EnvParams, jax.Array]:
        bank = track_bank(tuple(seeds), cache_dir)
        return make_params(bank, lap_rule=lap_rule), jnp.arange(len(seeds))

    def step(
        key: jax.Array, state: EnvState, action: jax.Array, params: EnvParams
    ) -> Step:
        obs, state, reward, terminated, info = environment.step_env(
            key, state, action, params
        )
        truncated = environment.is_truncated(state, params)
        return Step(obs, state, reward, terminated, truncated, info)

    return Task(
        name="car_racing",
        description=DESCRIPTION,
        schema=car_racing_schema(observation),
        horizon=HORIZON,
        seeds=DEFAULT_SEEDS,
        initial=initial,
        reset=environment.reset_to,
        step=step,
        info=INFO,
        environment=environment,
        simulators=_simulators(observation, lap_rule),
        scene=_scene,
    )


def _simulators(
    observation: ObsConfig | None, lap_rule: LapRule
) -> Mapping[str, Callable[..., Any]]:
    """Gymnasium's simulator, where it shows the same fields and ends the same way."""
    same = (observation or ObsConfig()) == ObsConfig() and lap_rule == "v3"
    return {"gymnasium": _gymnasium} if same else {}


def _gymnasium(
    act: Callable[[np.ndarray], np.ndarray], seeds: Sequence[int]
) -> tuple[np.ndarray, np.ndarray]:
    """Returns and lengths `[B]` of one episode per seed in Gymnasium."""
    from structjax.original.car_racing import evaluate_original

    result = evaluate_original(act, seeds)
    return result.returns, result.steps


def _scene(seed: int) -> Scene:
    """The road of a seed with its centre line, the car and its way, from above."""
    track = make_track(seed)
    road = np.column_stack([track.x, track.y, np.zeros_like(track.x)])
    place = {"position_x": (1.0, 0.0, 0.0), "position_y": (0.0, 1.0, 0.0)}
    return Scene(
        shapes=(
            Shape("loop", road, "#cbd5e0", 2 * c.ROAD_HALF_WIDTH),
            Shape("loop", road, "#ffffff", dashed=True),
            Shape("trace", ((0.0, 0.0, 0.0),), "#3182ce", moves=place),
            Shape("area", _ARROW, "#c53030", turn="heading", moves=place),
        )
    )
