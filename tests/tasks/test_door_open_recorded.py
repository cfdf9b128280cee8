"""Observation, reward, success and distance against states recorded in Meta-World.

`tests/original/record_door_states.py` recorded them: three episodes of 220 steps.
"""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from structjax.tasks.door_open.configurations import door_position
from structjax.tasks.door_open.observation import Body, observe, present
from structjax.tasks.door_open.reward import rate

FILE = Path(__file__).parent.parent / "fixtures" / "metaworld_states.npz"


@pytest.fixture(scope="module", params=[0, 1, 2], ids=["opened", "failed", "noisy"])
def episode(request):
    """One episode: name -> `[T, ...]`, states and observations `[T + 1, ...]`."""
    with np.load(FILE) as file:
        return {name: file[name][request.param] for name in file.files}


def bodies(episode):
    names = ("hand", "opening", "theta", "target")
    return Body(*(jnp.asarray(episode[name], jnp.float32) for name in names))


def test_the_observation_is_meta_worlds(episode):
    door = jnp.asarray(episode["door"], jnp.float32)
    moments = jax.vmap(present, (0, None))(bodies(episode), door)
    before = jnp.concatenate([moments[:1], moments[:-1]])
    found = jax.vmap(observe, (0, 0, None))(moments, before, door)
    np.testing.assert_allclose(found, episode["observation"], atol=1e-6)


def test_reward_success_and_distance_are_meta_worlds(episode):
    door = jnp.asarray(episode["door"], jnp.float32)
    after = jax.tree.map(lambda leaf: leaf[1:], bodies(episode))
    action = jnp.asarray(episode["action"])
    found = jax.vmap(rate, (0, None, 0))(after, door, action)
    np.testing.assert_allclose(found.reward, episode["reward"], atol=1e-5)
    np.testing.assert_allclose(found.distance, episode["distance"], atol=1e-6)
    np.testing.assert_array_equal(found.success, episode["success"])


def test_the_episodes_show_what_can_go_wrong(episode):
    """A fixture that never leaves the start would prove nothing."""
    seed = int(episode["seed"])
    opened = {1000: True, 1005: False, 4000: True}[seed]
    assert episode["success"].max() == opened
    # Success was lost again: the door is pulled past its goal.
    assert episode["success"][-1] == 0
    assert (episode["theta"].min() < -1.8) == opened
    np.testing.assert_array_equal(episode["door"], door_position(seed))
