"""The original simulator's observation and accounting, from equations by hand."""

import sys

import numpy as np
import pytest
from original_state import physics_state

from structjax.errors import StructjaxError
from structjax.original.car_racing import (
    ACTION_HIGH,
    OriginalCarRacing,
    evaluate_original,
    import_simulator,
    observe,
    run_episode,
)

original = pytest.mark.original


@pytest.fixture
def env():
    pytest.importorskip("Box2D", reason="needs the extra `original`")
    return OriginalCarRacing()


def _weave(obs: np.ndarray) -> np.ndarray:
    """A slow policy that follows the road: actions `[..., 3]`."""
    steer = 1.5 * obs[..., 3] - 2.0 * obs[..., 28]
    gas = np.where(obs[..., 48] < 0.3, 0.15, 0.0)
    return np.stack([steer, gas, np.zeros_like(gas)], -1)


@original
def test_first_step_at_full_gas(env):
    env.reset(1000)
    result = env.step(np.array([0.0, 1.0, 0.0]))
    # The gas ramps to 0.1: spin 0.02 * 40000 * 0.1 / (1.6 * 5) = 10 rad/s; the tyre
    # would give 82 * 10 * 0.54 = 443 N, the grip allows 400 N, which takes
    # 0.02 * 400 * 0.54 / 1.6 = 2.7 rad/s off the spin.
    np.testing.assert_allclose(result.obs[51:], [0, 0, 7.3 / 200, 7.3 / 200], atol=1e-6)
    # Speed: 2 * 400 N * 0.02 s / 7.302 kg = 2.191 m/s.
    assert result.obs[48] == pytest.approx(0.02191, abs=1e-5)
    # Two of the 293 tiles were touched at reset and are paid now.
    assert result.reward == pytest.approx(2 * 1000 / 293 - 0.1)
    assert result.info["progress"] == pytest.approx(2 / 293)


@original
def test_tiles_are_seen_from_the_hull(env):
    env.reset(1001)
    _, beta, x, y = env.nodes[40]
    right = np.array([np.cos(beta), np.sin(beta)])
    hull = env.simulator.car.hull
    # Two metres left of the centre line at node 40, turned 0.1 pi to the left.
    hull.position = tuple(np.array([x, y]) - 2.0 * right)
    hull.angle = beta + 0.1 * np.pi
    obs = observe(env)
    cos, sin = np.cos(0.1 * np.pi), np.sin(0.1 * np.pi)
    assert obs[0] == pytest.approx(0.06 * cos, abs=1e-5)  # to the right,
    assert obs[12] == pytest.approx(-0.06 * sin, abs=1e-5)  # a little behind,
    assert obs[24] == pytest.approx(-0.1, abs=1e-5)  # and the road heads right
    assert obs[36:48].tolist() == env.border[40:52].tolist()
    # Tile 1 is 3.5 m on, along the road as seen from node 40 within half a turn.
    leap = np.hypot(obs[1] - obs[0], obs[13] - obs[12])
    assert leap == pytest.approx(3.5 * 0.03, abs=1e-5)


@original
def test_the_tiles_wrap_around_the_start_line(env):
    env.reset(1002)
    _, beta, x, y = env.nodes[-3]
    hull = env.simulator.car.hull
    hull.position, hull.angle = (x, y), beta
    obs = observe(env)
    at_start = env.nodes[0, 2:] - [x, y]
    assert obs[3] == pytest.approx(
        0.03 * at_start @ [np.cos(beta), np.sin(beta)], abs=1e-5
    )
    assert (np.abs(obs[24:36]) <= 1).all()


@original
def test_motion_fields_have_the_documented_signs(env):
    env.reset(1003)
    for _ in range(40):
        env.step(np.array([0.0, 0.2, 0.0]))
    for _ in range(5):
        obs = env.step(np.array([-0.2, 0.0, 0.0])).obs  # to the left
    state = physics_state(env)
    # The joint follows its target 0.2 rad at up to 3 rad/s: 0.06 rad a step.
    assert obs[49] == pytest.approx(state.joint_angle[0] / np.pi, abs=1e-6)
    assert 0.1 < state.joint_angle[0] < 0.21
    assert obs[50] == pytest.approx(state.yaw_rate / 10, abs=1e-6)
    assert state.yaw_rate > 0
    assert obs[48] == pytest.approx(np.hypot(*state.hull_velocity) / 100, abs=1e-6)


@original
def test_the_state_agrees_with_itself(env):
    env.reset(1004)
    for _ in range(30):
        env.step(np.array([-0.1, 0.3, 0.0]))
    state = physics_state(env)
    joint = state.wheel_angle - state.angle
    np.testing.assert_allclose(state.joint_angle, joint, atol=1e-5)
    # Hull 7.06 kg, four wheels of 0.06048 kg: the common centre is 4 * 0.06048 /
    # 7.30192 of the way from the hull's to the wheels' mean.
    share = 4 * 0.06048 / 7.30192
    mean = state.wheel_position.mean(0)
    expected = (1 - share) * state.hull_com + share * mean
    np.testing.assert_allclose(state.com, expected, atol=1e-4)
    assert state.visited.sum() == env.simulator.tile_visited_count
    assert state.on_road.all()
    np.testing.assert_allclose(state.gas, [0, 0, 0.3, 0.3])


@original
def test_leaving_the_playfield_costs_a_hundred(env):
    env.reset(1000)
    env.simulator.car.hull.position = (400.0, 0.0)
    result = env.step(np.zeros(3))
    assert result.reward == -100
    assert result.terminated


@original
def test_actions_are_clipped(env):
    env.reset(1000)
    beyond = [env.step(np.array([3.0, 7.0, 2.0], np.float32)) for _ in range(5)]
    env.reset(1000)
    edge = [env.step(ACTION_HIGH) for _ in range(5)]
    np.testing.assert_array_equal(beyond[-1].obs, edge[-1].obs)


@original
def test_an_episode_does_not_depend_on_earlier_ones(env):
    first = run_episode(env, 1005, _weave, steps=150)
    run_episode(env, 1006, _weave, steps=50)
    again = run_episode(env, 1005, _weave, steps=150)
    np.testing.assert_array_equal(first.observations, again.observations)
    np.testing.assert_array_equal(first.rewards, again.rewards)
    assert first.observations.shape == (150, 55)
    assert first.poses.shape == (151, 3)


@original
def test_lockstep_returns_are_those_of_single_episodes(env):
    batches = []
    seeds = (1000, 1001, 1002)

    def act(observations: np.ndarray) -> np.ndarray:
        batches.append(observations.shape)
        return _weave(observations)

    result = evaluate_original(act, seeds)
    episodes = [run_episode(env, seed, _weave) for seed in seeds]
    np.testing.assert_allclose(
        result.returns, [episode.rewards.sum() for episode in episodes], atol=1e-9
    )
    assert result.steps.tolist() == [len(episode.rewards) for episode in episodes]
    assert set(batches) == {(3, 55)}
    assert len(batches) == max(result.steps) <= 1000
    # Reward is 1000 per whole lap less 0.1 a step, wherever no episode left the field.
    for episode in episodes:
        total = 1000 * episode.progress - 0.1 * len(episode.rewards)
        assert episode.rewards.sum() == pytest.approx(total, abs=1e-6)


@pytest.mark.parametrize("absent", ["gymnasium", "gymnasium.envs.box2d.car_racing"])
def test_without_the_extra_the_remedy_is_named(monkeypatch, absent):
    pytest.importorskip("gymnasium", reason="needs the extra `original`")
    monkeypatch.setitem(sys.modules, absent, None)
    with pytest.raises(StructjaxError, match=r'pip install "structjax\[original\]"'):
        import_simulator()
