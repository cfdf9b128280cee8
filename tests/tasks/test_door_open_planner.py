"""The planner by its geometry, and in the analytic dynamics."""

import math

import jax
import numpy as np
import pytest

from structjax.tasks.base import DEFAULT_SEEDS
from structjax.tasks.door_open import constants as c
from structjax.tasks.door_open.planner import (
    Planner,
    PlannerConfig,
    blend,
    min_jerk_steps,
    minimum_jerk,
)
from structjax.tasks.door_open.task import door_open

TASK = door_open()
SEEDS = [*DEFAULT_SEEDS["demonstration"][:5], *DEFAULT_SEEDS["debug"][:5]]
PARAMS, STARTS = TASK.initial(SEEDS)
RESET = jax.jit(jax.vmap(lambda door: TASK.reset(door, PARAMS)))
STEP = jax.jit(
    jax.vmap(lambda state, action: TASK.step(jax.random.key(0), state, action, PARAMS))
)


def drive(config=None, steps=c.HORIZON):
    """Info values `[T, 10]` and actions `[T, 10, 4]` of ten episodes."""
    obs, state = RESET(STARTS)
    planners = [Planner(config) for _ in SEEDS]
    for planner, first in zip(planners, np.asarray(obs), strict=True):
        planner.reset(first)
    infos, actions = [], []
    for _ in range(steps):
        rows = zip(planners, np.asarray(obs), strict=True)
        actions.append(np.stack([planner.act(row) for planner, row in rows]))
        step = STEP(state, actions[-1])
        obs, state = step.obs, step.state
        infos.append(step.info)
    return jax.tree.map(lambda *parts: np.stack(parts), *infos), np.array(actions)


@pytest.fixture(scope="module")
def clean():
    return drive()


def test_it_ends_at_the_goal_behind_every_door(clean):
    """Nearest possible is 0.0223 m; the success of the last step is what counts."""
    info, _ = clean
    assert info["success"][-1].all()
    assert info["distance"][-1].max() < 0.03
    assert info["distance"].min() >= 0.0222


def test_it_does_not_touch_the_door_before_it_pulls(clean):
    info, _ = clean
    lowered = info["hand_z"] < 0.2
    for episode in range(len(SEEDS)):
        begin = int(np.flatnonzero(lowered[60:, episode])[0]) + 60
        assert np.abs(info["theta"][:begin, episode]).max() < 1e-3


def test_its_actions_are_in_range_and_keep_the_gripper_closed(clean):
    _, actions = clean
    assert np.abs(actions).max() <= 1.0
    assert (actions[..., 3] == 1.0).all()


def test_a_noisy_planner_still_arrives():
    info, actions = drive(PlannerConfig(noise=0.2, seed=3), steps=350)
    assert info["success"][-1].sum() >= 9
    assert np.abs(actions).max() <= 1.0


def test_the_profile_is_minimum_jerk():
    """Half way at half time, at rest at the ends, fastest in the middle: 15/8."""
    assert [blend(-1.0), blend(0.0), blend(0.5), blend(1.0), blend(7.0)] == [
        0.0,
        0.0,
        0.5,
        1.0,
        1.0,
    ]
    assert blend(0.501) - blend(0.499) == pytest.approx(0.002 * 15 / 8, rel=1e-4)
    assert blend(0.01) < 1e-5


def test_a_move_takes_as_long_as_its_peak_speed_asks():
    """0.3 m at a peak of 0.005 a step: 15/8 * 60 = 112.5 steps."""
    way = np.array([0.0, 0.3, 0.0])
    assert min_jerk_steps(way, 0.005) == 113
    points = np.array(list(minimum_jerk(np.zeros(3), way, 0.005)))
    np.testing.assert_allclose(points[-1], way)
    assert np.diff(points[:, 1]).max() <= 0.005
    assert min_jerk_steps(np.zeros(3), 0.005) == 1


@pytest.mark.parametrize("theta", [0.0, -0.6, -1.5])
def test_it_reads_the_hinge_angle_off_the_handle(theta):
    planner = Planner()
    obs, state = TASK.reset(STARTS[2], PARAMS)
    planner.reset(np.asarray(obs))
    inner = state.inner._replace(theta=np.float32(theta))
    step = jax.jit(TASK.step)(
        jax.random.key(0), state.replace(inner=inner), np.zeros(4), PARAMS
    )
    planner.act(np.asarray(step.obs))
    assert planner.theta() == pytest.approx(float(step.info["theta"]), abs=1e-4)
    assert planner.theta() == pytest.approx(theta, abs=0.04)


def test_the_hook_touches_the_bar_from_behind():
    """Closed: the fingers reach 0.013 m before the hand; at 90 degrees 0.015 m."""
    planner = Planner(PlannerConfig(seat=0.36))
    obs, _ = TASK.reset(STARTS[0], PARAMS)
    planner.reset(np.asarray(obs))
    hinge = np.asarray(STARTS[0]) + np.array(c.HINGE)
    np.testing.assert_allclose(
        planner._hooked(0.0) - hinge, [0.36, -0.098 + 0.013], atol=1e-6
    )
    np.testing.assert_allclose(
        planner._hooked(-math.pi / 2) - hinge, [-0.098 + 0.015, -0.36], atol=1e-6
    )
