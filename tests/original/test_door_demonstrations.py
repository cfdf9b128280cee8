"""The bundled Door Opening demonstrations, and that Meta-World records them again."""

import numpy as np
import pytest

from structjax.demonstration import bundled_demonstrations, load_demonstration
from structjax.original.door_demonstrations import (
    RECIPES,
    record_demonstration,
    scripted_expert,
)
from structjax.tasks.base import DEFAULT_SEEDS
from structjax.tasks.door_open.geometry import START_DISTANCE
from structjax.tasks.door_open.schema import DOOR_OPEN_SCHEMA

metaworld = pytest.mark.metaworld
BUNDLED = [name for name in bundled_demonstrations() if name.startswith("door_open/")]


def load(name):
    return load_demonstration(name, DOOR_OPEN_SCHEMA)


def test_every_recipe_is_bundled():
    assert sorted(BUNDLED) == sorted(f"door_open/{name}" for name in RECIPES)
    seeds = [recipe.seed for recipe in RECIPES.values()]
    assert set(seeds) <= set(DEFAULT_SEEDS["demonstration"])


@pytest.mark.parametrize("name", BUNDLED)
def test_a_demonstration_is_one_whole_episode_that_opens_the_door(name):
    demonstration = load(name)
    obs, actions = demonstration.observations, demonstration.actions
    assert obs.shape == (500, 39)
    assert np.abs(actions).max() <= 1
    # What was shown as one step earlier is what was shown one step earlier.
    np.testing.assert_array_equal(obs[1:, 18:36], obs[:-1, :18])
    distance = np.linalg.norm(obs[:, 4:7] - obs[:, 36:], axis=1)
    assert distance[0] == pytest.approx(START_DISTANCE, abs=1e-6)
    facts = demonstration.provenance
    # The last state is led to by the last action and is not observed any more.
    least = facts["outcomes"]["min_distance"]
    assert distance[1:].min() == pytest.approx(least, abs=1e-4)
    assert facts["outcomes"]["success_ever"] == 1
    assert (np.abs(obs[:, 4] - obs[:, 36]) <= 0.08).any()
    assert facts["seed"] == RECIPES[name.removeprefix("door_open/")].seed
    assert facts["versions"]["mujoco"] == "3.3.0"


@metaworld
@pytest.mark.parametrize("name", RECIPES)
def test_recording_again_gives_the_same(name):
    again, shipped = record_demonstration(RECIPES[name]), load(f"door_open/{name}")
    # Until the hand touches the handle nothing amplifies rounding.
    np.testing.assert_allclose(
        again.observations[:50], shipped.observations[:50], atol=1e-5
    )
    np.testing.assert_allclose(again.actions[:50], shipped.actions[:50], atol=1e-4)
    same = ("seed", "driver", "steps")
    assert [again.provenance[k] for k in same] == [shipped.provenance[k] for k in same]
    assert again.provenance["outcomes"]["success_ever"] == 1


@metaworld
def test_the_expert_does_not_write_into_the_observation():
    obs = load("door_open/expert_1").observations[:1][0].copy()
    before = obs.copy()
    action = scripted_expert()(obs)
    np.testing.assert_array_equal(obs, before)
    assert action.shape == (4,)
    assert np.abs(action).max() <= 1
