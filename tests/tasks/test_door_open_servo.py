"""The feedback law: its geometry by hand, and what it reaches in every simulator."""

from dataclasses import replace
from math import pi

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from structjax.outcomes import reduce_outcomes
from structjax.tasks.door_open import constants as c
from structjax.tasks.door_open.servo import ServoConfig, servo
from structjax.tasks.door_open.task import OUTCOMES, door_open

GOAL = (-0.25, 0.45, 0.15)  # the door's position (0.05, 0.9, 0.15) - (0.3, 0.45, 0)
HINGE = np.array([-0.135, 0.8])  # the door's position - (0.185, 0.1)
HOOK = np.array([c.HANDLE[0] + 0.03, c.HANDLE[1] + 0.02])  # (0.4057, -0.0871)
# Unclipped: one action per metre, nothing is farther away.
SLOW = ServoConfig(gain=1.0)


def turned(angle, point):
    rotation = np.exp(1j * angle) * complex(*point)
    return np.array([rotation.real, rotation.imag])


def seen(hand, theta):
    """The observation of a hand and a hinge angle."""
    obs = np.zeros(39, np.float32)
    obs[:3], obs[36:] = hand, GOAL
    obs[4:6] = HINGE + turned(theta, c.HANDLE[:2])
    obs[6] = 0.15
    return jnp.asarray(obs)


def test_from_afar_it_flies_above_the_hook_point():
    # Hook point (0.2707, 0.7129) in the world, 0.2 m above the handle at 0.15.
    action = servo(seen([0.0, 0.6, 0.2], 0.0), SLOW)
    np.testing.assert_allclose(action, [0.2707, 0.1129, 0.15, 1.0], atol=1e-4)


def test_above_the_hook_point_it_comes_down():
    above = [*(HINGE + HOOK), 0.3]
    np.testing.assert_allclose(
        servo(seen(above, 0.0), SLOW), [0, 0, -0.15, 1], atol=1e-5
    )


@pytest.mark.parametrize("theta", [0.0, -0.8])
def test_hooked_it_leads_the_door_along_its_arc(theta):
    at_hook = HINGE + turned(theta, HOOK)
    action = servo(seen([*at_hook, 0.15], theta), SLOW)
    # The wanted angle is 0.3 rad ahead, the hand 0.02 m before the hook point there.
    wanted = HINGE + turned(theta - 0.3, HOOK - [0.0, 0.02])
    np.testing.assert_allclose(action[:2], wanted - at_hook, atol=1e-5)


def test_near_the_goal_it_holds_the_door():
    place = HINGE + turned(-1.55, HOOK - [0.0, 0.02])
    action = servo(seen([*place, 0.15], -1.57), SLOW)
    np.testing.assert_allclose(action, [0, 0, 0, 1], atol=1e-5)


def test_it_leads_the_door_through_a_quarter_turn_and_more():
    """The direction of the handle passes -pi / 2 at theta = -1.29."""
    for theta in (-1.2, -pi / 2, -1.9):
        at_hook = HINGE + turned(theta, HOOK)
        action = servo(seen([*at_hook, 0.15], theta), replace(SLOW, lead=0.0, stop=-2))
        pressed = turned(theta, [0.0, -0.02])
        np.testing.assert_allclose(action[:2], pressed, atol=1e-5)


def play(task, seeds):
    """Its outcomes in the JAX task."""
    params, starts = task.initial(seeds)

    def episode(start):
        def body(carry, key):
            obs, state = carry
            step = task.step(key, state, servo(obs, ServoConfig()), params)
            return (step.obs, step.state), step.info

        keys = jax.random.split(jax.random.key(0), task.horizon)
        return jax.lax.scan(body, task.reset(start, params), keys)[1]

    info = jax.jit(jax.vmap(episode, out_axes=1))(starts)
    valid = np.ones((task.horizon, len(seeds)), bool)
    return reduce_outcomes(OUTCOMES, info, valid)


@pytest.mark.parametrize(
    "backend", ["analytic", pytest.param("mjx", marks=pytest.mark.slow)]
)
def test_it_holds_the_door_at_the_goal_in_jax(backend):
    found = play(door_open(backend=backend), range(1000, 1010))
    assert found["success_final"].min() == 1
    assert found["final_distance"].max() < 0.025


@pytest.mark.metaworld
def test_it_holds_the_door_at_the_goal_in_meta_world():
    from structjax.original.door_open import evaluate_original

    law = jax.jit(jax.vmap(lambda obs: servo(obs, ServoConfig())))

    def act(observations):
        return np.asarray(law(observations))

    found = evaluate_original(act, range(1000, 1010), OUTCOMES).outcomes
    assert found["success_final"].min() == 1
    # The least distance that the hinge allows is 0.0223 m.
    assert found["final_distance"].max() < 0.023
