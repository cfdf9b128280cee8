"""The JAX car without Box2D: golden episodes of the original, rules, interface."""

import json
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from car_simulator import SEEDS, Simulator

from structjax.errors import StructjaxError
from structjax.tasks.car_racing import constants as c
from structjax.tasks.car_racing import contact
from structjax.tasks.car_racing.dynamics import (
    car_at_rest,
)
from structjax.tasks.car_racing.environment import EnvParams, EnvState
from structjax.tasks.car_racing.observation import ObsConfig, observe
from structjax.tasks.car_racing.schema import car_racing_schema
from structjax.tasks.car_racing.task import car_racing
from structjax.tasks.registry import make_task

GOLDEN = json.loads(
    (Path(__file__).parents[1] / "golden" / "car_racing.json").read_text()
)


@pytest.mark.parametrize("episode", GOLDEN["episodes"], ids=["clean", "noisy"])
def test_recorded_episodes_of_the_original(
    episode: dict[str, Any], simulator: Simulator
) -> None:
    obs, state = simulator.reset(SEEDS.index(episode["seed"]), simulator.params)
    marks = {mark["step"]: mark for mark in episode["marks"]}
    total = 0.0
    for step, action in enumerate(episode["actions_64"], start=1):
        action = jnp.asarray(action, jnp.float32) / 64
        obs, state, reward, _, _, info = simulator.step(state, action, simulator.params)
        total += float(reward)
        if step in marks:
            mark = marks[step]
            pose = [info["position_x"], info["position_y"], info["heading"]]
            np.testing.assert_allclose(pose[:2], mark["pose"][:2], atol=2e-2)
            assert float(pose[2]) == pytest.approx(mark["pose"][2], abs=1e-3)
            assert total == pytest.approx(mark["return"], abs=5e-3)
            np.testing.assert_allclose(obs, mark["obs"], atol=2e-3)


def test_the_tiles_of_the_reset_are_paid_with_the_first_step(
    simulator: Simulator,
) -> None:
    """The car stands on tiles 0 and 1: 2 * 1000 / N - 0.1, then only -0.1."""
    _, state = simulator.reset(0, simulator.params)
    idle = jnp.zeros(3)
    first = simulator.step(state, idle, simulator.params)
    second = simulator.step(first.state, idle, simulator.params)
    n = int(simulator.params.bank.n[0])
    assert float(first.reward) == pytest.approx(2000 / n - 0.1, abs=1e-5)
    assert float(second.reward) == pytest.approx(-0.1, abs=1e-6)
    assert float(second.info["progress"]) == pytest.approx(2 / n)


def mark_all_but(state: EnvState, n: int, missing: tuple[int, ...]) -> EnvState:
    """The state of a car that has visited and been paid for all tiles but some."""
    bits = np.zeros(c.NODES, bool)
    bits[:n] = True
    bits[list(missing)] = False
    words = np.packbits(bits, bitorder="little").view("<u4")
    return state.replace(visited=jnp.asarray(words), paid=jnp.int32(bits.sum()))


def test_a_missed_tile_keeps_the_episode_going(simulator: Simulator) -> None:
    n = int(simulator.params.bank.n[0])
    _, state = simulator.reset(0, simulator.params)
    idle = jnp.zeros(3)
    almost = simulator.step(mark_all_but(state, n, (n // 2,)), idle, simulator.params)
    assert not almost.terminated
    done = simulator.step(mark_all_but(state, n, ()), idle, simulator.params)
    assert done.terminated
    assert not done.truncated


def test_the_fixed_lap_rule_ends_at_the_start_line(
    simulator: Simulator, cache_dir: str
) -> None:
    """The car stands on tile 0; 95 % of the tiles are needed, and 94 % do not do."""
    fixed = car_racing(lap_rule="fixed", cache_dir=cache_dir)
    params, _ = fixed.initial(SEEDS)
    n = int(params.bank.n[0])
    _, state = simulator.reset(0, params)
    idle = jnp.zeros(3)
    few, many = int(0.04 * n), int(0.06 * n)
    lap = mark_all_but(state, n, tuple(range(50, 50 + few)))
    assert simulator.step(lap, idle, params).terminated
    assert not simulator.step(lap, idle, simulator.params).terminated
    short = mark_all_but(state, n, tuple(range(50, 50 + many)))
    assert not simulator.step(short, idle, params).terminated
    elsewhere = lap.replace(touched=jnp.uint32(0))
    assert not simulator.step(elsewhere, idle, params).terminated


def test_leaving_the_playfield_costs_a_hundred(simulator: Simulator) -> None:
    """The hull's origin is tested, 0.08 m from the centre of mass."""
    _, state = simulator.reset(0, simulator.params)
    for x, outside in ((c.PLAYFIELD - 0.3, False), (c.PLAYFIELD + 0.3, True)):
        car = car_at_rest(
            jnp.float32(x), jnp.float32(0), jnp.float32(0), jnp.float32(0)
        )
        state = state.replace(car=car, touched=jnp.uint32(0), paid=jnp.int32(2))
        result = simulator.step(state, jnp.zeros(3), simulator.params)
        assert bool(result.terminated) == outside
        assert float(result.reward) == pytest.approx(-100.0 if outside else -0.1)


def test_the_episode_is_truncated_after_a_thousand_steps(simulator: Simulator) -> None:
    _, state = simulator.reset(0, simulator.params)
    idle = jnp.zeros(3)
    for time, truncated in ((998, False), (999, True)):
        result = simulator.step(
            state.replace(time=jnp.int32(time)), idle, simulator.params
        )
        assert bool(result.truncated) == truncated


def test_a_lap_is_driven_and_pays_what_the_description_says(
    simulator: Simulator,
) -> None:
    """1000 for all tiles - 0.1 per step, whatever happens on the way."""

    @jax.jit
    def lap(params: EnvParams) -> Any:
        def body(carry: Any, _: None) -> tuple[Any, Any]:
            obs, state = carry
            aim = jnp.arctan2(obs[3], obs[15])
            steer = aim - 0.3 * obs[50]
            action = jnp.stack([steer, 2 * (0.3 - obs[48]), jnp.zeros(())])
            result = simulator.task.step(jax.random.key(0), state, action, params)
            return (result.obs, result.state), (result.reward, result.terminated)

        start = simulator.task.reset(jnp.int32(0), params)
        return jax.lax.scan(body, start, None, length=2500)[1]

    reward, terminated = lap(simulator.params)
    steps = int(jnp.argmax(terminated)) + 1
    assert bool(terminated[steps - 1])
    total = float(jnp.sum(reward[:steps]))
    assert total == pytest.approx(1000 - 0.1 * steps, abs=0.02)


@pytest.mark.parametrize(
    "config",
    [ObsConfig(), ObsConfig(steer="hull", reference="mid", heading_scale=1.0)],
    ids=["default", "paper"],
)
def test_the_schema_describes_the_observation(
    config: ObsConfig, simulator: Simulator
) -> None:
    schema = car_racing_schema(config)
    _, state = simulator.reset(0, simulator.params)
    bank = simulator.params.bank
    window = contact.window_at(bank.table, state.track, state.near)
    obs = observe(state.car, window, config)
    assert obs.shape == (schema.observation_size,) == (55,)
    names = [field.name for field in schema.observations]
    steer = "steer_angle" if config.steer == "joint" else "heading"
    assert names == [
        *("tiles.x", "tiles.y", "tiles.heading", "tiles.corner"),
        *("speed", steer, "yaw_rate", "wheel_speed"),
    ]
    for field in schema.observations:
        part = obs[schema.slice_of(field.name)]
        assert np.all((part >= field.low) & (part <= field.high)), field.name
    unit = {field.name: field.unit for field in schema.observations}
    assert unit["tiles.heading"] == ("pi rad" if config.steer == "joint" else "rad")


def test_mid_and_hull_options_by_hand(simulator: Simulator) -> None:
    """The middle of a tile is the mean of its two nodes; the heading is the car's."""
    _, state = simulator.reset(0, simulator.params)
    bank = simulator.params.bank
    window = contact.window_at(bank.table, state.track, state.near)
    node = observe(state.car, window, ObsConfig())
    other = observe(state.car, window, ObsConfig(reference="mid", steer="hull"))
    np.testing.assert_allclose(other[1:12], 0.5 * (node[1:12] + node[:11]), atol=1e-6)
    assert float(other[49]) == pytest.approx(float(state.car.heading) / np.pi)


def test_gymnax_interface_and_one_compilation(simulator: Simulator) -> None:
    """reset and the six-value, auto-resetting step of other people's trainers."""
    environment = simulator.task.environment
    traces = 0

    @jax.jit
    def step(key: jax.Array, state: EnvState, action: jax.Array) -> Any:
        nonlocal traces
        traces += 1
        return environment.step(key, state, action, simulator.params)

    key = jax.random.key(1)
    obs, state = environment.reset(key, simulator.params)
    for action in ((0.0, 1.0, 0.0), (1.0, 0.0, 1.0)):
        result = step(key, state, jnp.asarray(action))
        obs, state = result[0], result[1]
    assert len(result) == 6
    assert traces == 1
    assert environment.action_space(simulator.params).shape == (3,)
    assert obs.shape == environment.observation_space(simulator.params).shape
    ended = step(key, state.replace(time=jnp.int32(999)), jnp.zeros(3))
    assert ended[4]
    assert int(ended[1].time) == 0


def test_info_is_described_and_scalar(simulator: Simulator) -> None:
    _, state = simulator.reset(0, simulator.params)
    info = simulator.step(state, jnp.zeros(3), simulator.params).info
    assert set(info) == set(simulator.task.info or {})
    assert all(jnp.shape(entry) == () for entry in info.values())
    assert float(info["on_road"]) == 1.0


def test_options_and_errors() -> None:
    assert make_task("car_racing", lap_rule="fixed").simulators == {}
    assert list(make_task("car_racing").simulators) == ["gymnasium"]
    with pytest.raises(StructjaxError, match=r"unknown task 'car'.*known: car_racing"):
        make_task("car")
    with pytest.raises(StructjaxError, match=r"no option 'lap'.*lap_rule"):
        make_task("car_racing", lap="v3")
    with pytest.raises(StructjaxError, match=r"lap rule 'v4'; accepted: v3, fixed"):
        make_task("car_racing", lap_rule="v4")
