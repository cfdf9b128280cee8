"""Car Racing as a gymnax environment over a bank of tracks."""

from collections.abc import Callable
from functools import cached_property, partial
from typing import Literal, get_args

import jax
import jax.numpy as jnp
from flax import struct
from gymnax.environments import environment, spaces

from structjax.tasks.car_racing import constants as c
from structjax.tasks.car_racing.contact import (
    count_visited,
    mark_visited,
    nearest_node,
    pack,
    touched_tiles,
    touches_start,
    window_at,
)
from structjax.tasks.car_racing.dynamics import (
    Car,
    Grip,
    car_at_rest,
    hull_origin,
    rotation,
    step_car,
    wheel_centres,
)
from structjax.tasks.car_racing.observation import ObsConfig, observe
from structjax.tasks.car_racing.tables import TrackArrays

LapRule = Literal["v3", "fixed"]
LAP_RULES: tuple[LapRule, ...] = get_args(LapRule)
LAP_SHARE = 0.95  # of the tiles, before a lap counts under the rule "fixed"
OFF_PLAYFIELD_REWARD = -100.0
STEP_REWARD = -0.1
LAP_REWARD = 1000.0  # shared by all tiles


@struct.dataclass
class EnvState(environment.EnvState):
    """State of one episode.

    Attributes:
      time: `[]` steps taken.
      track: `[]` index of the track in the bank.
      car: the car.
      on_road: `[4]` wheels that touched the road when the last step began; they have
        the road's grip in the next step.
      near: `[]` node nearest to the car.
      touching: `[4]` wheels that touch the road now.
      touched: `[]` uint32, tiles that they touch now (bit j is near - BACK + j); they
        count as visited in the next step.
      visited: `[NODES // 32]` uint32, bits of the visited tiles.
      paid: `[]` tiles already rewarded.
    """

    time: jax.Array
    track: jax.Array
    car: Car
    on_road: jax.Array
    near: jax.Array
    touching: jax.Array
    touched: jax.Array
    visited: jax.Array
    paid: jax.Array


@partial(struct.dataclass, kw_only=True)
class EnvParams(environment.EnvParams):
    """What episodes share.

    Attributes:
      max_steps_in_episode: the episode is truncated after so many steps.
      bank: the tracks, stacked: `[K, ...]` each.
      grip: physics.
      lap_rule: `"v3"` ends an episode when every tile has been visited, as
        CarRacing-v3 does; `"fixed"` also when the car is back on tile 0 after 95 % of
        them, as its documentation says (Gymnasium issue 1269).
    """

    bank: TrackArrays
    max_steps_in_episode: int = 1000
    grip: Grip = Grip()
    lap_rule: LapRule = struct.field(pytree_node=False, default="v3")


class CarRacing(environment.Environment[EnvState, EnvParams]):
    """Gymnasium's CarRacing-v3 with semantic observations, in JAX.

    Args:
      bank: gives the tracks of `default_params`, stacked; called on first use.
      config: details of the observation.
    """

    def __init__(
        self, bank: Callable[[], TrackArrays], config: ObsConfig | None = None
    ) -> None:
        self._bank = bank
        self.config = config or ObsConfig()

    @cached_property
    def default_params(self) -> EnvParams:
        """Gymnasium's physics on the tracks of the constructor."""
        return make_params(self._bank())

    @property
    def name(self) -> str:
        """Environment name."""
        return "CarRacing"

    def reset_env(
        self, key: jax.Array, params: EnvParams
    ) -> tuple[jax.Array, EnvState]:
        """An episode on a random track of the bank."""
        index = jax.random.randint(key, (), 0, params.bank.n.shape[0])
        return self.reset_to(index, params)

    def reset_to(
        self, index: jax.Array, params: EnvParams
    ) -> tuple[jax.Array, EnvState]:
        """An episode on track `index` of the bank, after Gymnasium's hidden step."""
        bank = params.bank
        pose = bank.initial[index]
        none = jnp.zeros((), jnp.int32)
        state = EnvState(
            time=none,
            track=jnp.asarray(index, jnp.int32),
            car=car_at_rest(pose[0], pose[1], pose[2], bank.joint[index]),
            on_road=bank.initial_road[index],
            near=none,
            touching=jnp.zeros(4, bool),
            touched=jnp.zeros((), jnp.uint32),
            visited=bank.initial_visited[index],
            paid=none,
        )
        return self._look(state, bank)

    def step_env(
        self, key: jax.Array, state: EnvState, action: jax.Array, params: EnvParams
    ) -> tuple[jax.Array, EnvState, jax.Array, jax.Array, dict[str, jax.Array]]:
        """One step of 0.02 s: `(obs, state, reward, terminated, info)`.

        The order is Box2D's: tyres grip as at the last step, tiles count where the car
        stood before it moved. The key is not used; the task is deterministic.
        """
        del key
        n = params.bank.n[state.track]
        visited = mark_visited(state.visited, state.near, state.touched, n)
        count = count_visited(visited)
        reward = STEP_REWARD + LAP_REWARD / n * (count - state.paid)
        terminated = count == n
        if params.lap_rule == "fixed":
            back = touches_start(state.near, state.touched, n)
            terminated |= back & (count > LAP_SHARE * n)
        moved = state.replace(
            time=state.time + 1,
            car=step_car(state.car, state.on_road, action, params.grip),
            on_road=state.touching,
            visited=visited,
            paid=count,
        )
        obs, moved = self._look(moved, params.bank)
        x, y = hull_origin(moved.car)
        outside = (jnp.abs(x) > c.PLAYFIELD) | (jnp.abs(y) > c.PLAYFIELD)
        reward = jnp.where(outside, OFF_PLAYFIELD_REWARD, reward)
        info = {
            "progress": count / n,
            "position_x": x,
            "position_y": y,
            "heading": moved.car.heading,
            "on_road": jnp.mean(moved.touching.astype(jnp.float32)),
        }
        return obs, moved, reward, terminated | outside, info

    def _look(self, state: EnvState, bank: TrackArrays) -> tuple[jax.Array, EnvState]:
        """The observation, and what the wheels touch, at the car's present pose."""
        car = state.car
        x, y = hull_origin(car)
        near = nearest_node(bank.x[state.track], bank.y[state.track], x, y)
        window = window_at(bank.table, state.track, near)
        wheel = rotation(car.heading + car.joint)
        touched = touched_tiles(window, *wheel_centres(car), wheel)
        state = state.replace(
            near=near, touching=jnp.any(touched, axis=1), touched=pack(touched)
        )
        return observe(car, window, self.config), state

    @property
    def num_actions(self) -> int:
        """Steer, gas, brake."""
        return 3

    def action_space(self, params: EnvParams | None = None) -> spaces.Box:
        """Steer in [-1, 1], gas and brake in [0, 1]."""
        return spaces.Box(jnp.array([-1.0, 0.0, 0.0]), jnp.array([1.0, 1.0, 1.0]), (3,))

    def observation_space(self, params: EnvParams | None = None) -> spaces.Box:
        """Unbounded; the schema has the expected ranges."""
        return spaces.Box(-jnp.inf, jnp.inf, (4 * c.LOOK_AHEAD + 7,))


def make_params(bank: TrackArrays, *, lap_rule: LapRule = "v3") -> EnvParams:
    """Parameters with Gymnasium's physics and the tracks `bank`, `[K, ...]` each."""
    # The environment may ask for its tracks while it is being traced.
    with jax.ensure_compile_time_eval():
        arrays = TrackArrays(*(jnp.asarray(field) for field in bank))
    return EnvParams(bank=arrays, lap_rule=lap_rule)
