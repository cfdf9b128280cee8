"""Advantages by hand, and generalised estimates against a plain double loop."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from structjax.rl.advantages import (
    gae,
    group_advantages,
    reward_to_go,
    standardised,
)

SQRT = np.sqrt(1.5)  # of 1, 3, 5: 2 over the population std sqrt(8 / 3)

COMPILED = jax.jit(group_advantages, static_argnames=("kind", "episodes", "grouping"))


def advantages(
    reward, kind, *, episodes, ends=(), grouping="survivors", gamma=1.0, floor=0.0
):
    """Of rewards `[T, B]`; `ends`: (episode, last step, terminated) of early ends."""
    reward = np.asarray(reward, np.float32)
    valid, terminated = np.ones(reward.shape, bool), np.zeros(reward.shape, bool)
    for episode, last, by_itself in ends:
        valid[last + 1 :, episode] = False
        terminated[last, episode] = by_itself
    reward = np.where(valid, reward, 0.0)
    found = COMPILED(
        jnp.asarray(reward),
        jnp.asarray(valid),
        jnp.asarray(terminated),
        kind=kind,
        episodes=episodes,
        grouping=grouping,
        gamma=jnp.float32(gamma),
        floor=jnp.float32(floor),
    )
    assert not np.asarray(found)[~valid].any()
    return np.asarray(found)


def test_reward_to_go_by_hand():
    # 1 + 2/2 + 4/4 = 3; 2 + 4/2 = 4; 4.
    found = reward_to_go(jnp.asarray([[1.0], [2.0], [4.0]]), jnp.float32(0.5))
    np.testing.assert_allclose(found[:, 0], [3, 4, 4])


def test_group_time_standardises_each_step_with_the_population_std():
    # To go: step 0: 1, 3, 5; step 1: 2, 2, 8, whose mean is 4 and variance 24 / 3.
    reward = [[0.0, 2.0, 1.0], [2.0, 2.0, 8.0]]
    found = advantages(reward, "group_time", episodes=3, gamma=0.5)
    np.testing.assert_allclose(found[0], [-SQRT, 0, SQRT], atol=1e-6)
    np.testing.assert_allclose(found[1], np.array([-2, -2, 4]) / np.sqrt(8), atol=1e-6)


def test_groups_are_not_compared_with_each_other():
    found = advantages([[1.0, 3.0, 5.0, 101.0, 103.0, 105.0]], "group_time", episodes=3)
    np.testing.assert_allclose(found[0], 2 * [-SQRT, 0, SQRT], atol=1e-5)


def test_survivors_are_compared_among_themselves():
    # Episode 0 ends in step 0. There 1, 3, 5 are to go; then 1 and 3 of the others.
    reward = [[1.0, 2.0, 2.0], [9.0, 1.0, 3.0]]
    found = advantages(reward, "group_time", episodes=3, ends=[(0, 0, True)])
    np.testing.assert_allclose(found, [[-SQRT, 0, SQRT], [0, -1, 1]], atol=1e-6)


def test_absorbing_groups_go_on_comparing_with_a_return_of_0():
    # Step 1: 0 (ended by itself), 3 and 6: mean 3, deviations -3, 0, 3.
    reward = [[0.0, 0.0, 0.0], [9.0, 3.0, 6.0]]
    ends = [(0, 0, True)]
    found = advantages(
        reward, "group_time", episodes=3, ends=ends, grouping="absorbing"
    )
    np.testing.assert_allclose(found[1], [0, 0, SQRT], atol=1e-6)
    # A truncated episode is not known to end at 0: it is left out.
    ends = [(0, 0, False)]
    found = advantages(
        reward, "group_time", episodes=3, ends=ends, grouping="absorbing"
    )
    np.testing.assert_allclose(found[1], [0, -1, 1], atol=1e-6)


@pytest.mark.parametrize("kind", ["group_time", "rloo"])
def test_a_lone_survivor_has_no_advantage(kind):
    reward = [[1.0, 2.0, 3.0], [0.0, 0.0, 50.0]]
    ends = [(0, 0, True), (1, 0, True)]
    found = advantages(reward, kind, episodes=3, ends=ends)
    assert found[1, 2] == 0
    assert found[0, 2] > 0
    absorbing = advantages(reward, kind, episodes=3, ends=ends, grouping="absorbing")
    assert absorbing[1, 2] > 0  # against two that failed


def test_group_return_is_the_same_in_all_steps_of_an_episode():
    # Undiscounted 1, 3, 5; the discount and the ended episodes change nothing.
    reward = [[1.0, 2.0, 1.0], [7.0, 1.0, 4.0]]
    found = advantages(
        reward, "group_return", episodes=3, ends=[(0, 0, True)], gamma=0.1
    )
    np.testing.assert_allclose(found, [[-SQRT, 0, SQRT], [0, 0, SQRT]], atol=1e-6)


def test_rloo_is_less_the_mean_of_the_others_in_units_of_the_batch():
    # 1 - (3 + 5) / 2 = -3, 3 - 3 = 0, 5 - 2 = 3; 10 - 13 = -3, -3, 16 - 10 = 6.
    # Deviations -2, 0, 2, -2, -2, 4: the batch's root mean square is sqrt(32 / 6).
    found = advantages([[1.0, 3.0, 5.0, 10.0, 10.0, 16.0]], "rloo", episodes=3)
    expected = np.array([-3, 0, 3, -3, -3, 6]) / np.sqrt(32 / 6)
    np.testing.assert_allclose(found[0], expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", ["group_time", "group_return", "rloo"])
@pytest.mark.parametrize("value", [0.0, 0.1, -640.123, 3e7])
def test_equal_returns_teach_nothing(kind, value):
    """Rounding of the mean must not become an advantage, whatever the floor."""
    for episodes in (3, 20):
        reward = np.full((5, episodes), value, np.float32)
        assert not advantages(reward, kind, episodes=episodes, gamma=0.98).any()


@pytest.mark.parametrize("kind", ["group_time", "group_return", "rloo"])
@pytest.mark.parametrize("grouping", ["survivors", "absorbing"])
def test_all_failed_alike(kind, grouping):
    reward = np.full((4, 5), -100.1, np.float32)
    ends = [(episode, 0, True) for episode in range(5)]
    found = advantages(reward, kind, episodes=5, ends=ends, grouping=grouping)
    assert not found.any()


@pytest.mark.parametrize("kind", ["group_time", "group_return", "rloo"])
def test_the_floor_silences_groups_that_differ_by_noise(kind):
    # Stds 1 and 0.001; the batch's is sqrt((2 + 2e-6) / 4) = 0.707.
    reward = [[0.0, 2.0, 5.0, 5.002]]
    quiet = advantages(reward, kind, episodes=2, floor=0.0015)
    assert quiet[0, :2].tolist() == [-quiet[0, 1], quiet[0, 1]]
    assert quiet[0, 1] > 0
    assert not quiet[0, 2:].any()
    assert advantages(reward, kind, episodes=2, floor=0.001)[0, 2:].all()


def looped_gae(reward, value, last, valid, terminated, gamma, decay):
    """Sum over k of (gamma decay)^k delta, each delta on its own, in float64."""
    steps, episodes = reward.shape
    following = np.vstack([value[1:], last])
    found = np.zeros(reward.shape)
    for b in range(episodes):
        for t in range(steps):
            for u in range(t, steps):
                if not valid[u, b]:
                    break
                later = 0.0 if terminated[u, b] else following[u, b]
                delta = reward[u, b] + gamma * later - value[u, b]
                found[t, b] += valid[t, b] * (gamma * decay) ** (u - t) * delta
    return found


def test_gae_equals_a_double_loop():
    rng = np.random.default_rng(3)
    reward, value = rng.normal(size=(2, 7, 4)).astype(np.float32)
    last = rng.normal(size=4).astype(np.float32)
    # To the end; terminated in step 3; truncated in step 3; terminated in the last.
    valid = np.arange(7)[:, None] <= np.array([6, 3, 3, 6])[None]
    terminated = np.zeros((7, 4), bool)
    terminated[[3, 6], [1, 3]] = True
    found = gae(
        jnp.asarray(np.where(valid, reward, 0.0)),
        jnp.asarray(value),
        jnp.asarray(np.vstack([value[1:], last])),
        jnp.asarray(valid),
        jnp.asarray(terminated),
        gamma=jnp.float32(0.9),
        decay=jnp.float32(0.8),
    )
    expected = looped_gae(reward, value, last, valid, terminated, 0.9, 0.8)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_standardised_over_the_valid_steps_only():
    valid = jnp.asarray([[True, True], [True, False]])
    found = standardised(jnp.asarray([[1.0, 3.0], [5.0, jnp.nan]]), valid)
    np.testing.assert_allclose(found, [[-SQRT, 0], [SQRT, 0]], atol=1e-6)
    nothing = standardised(jnp.asarray([[1.0, 3.0]]), jnp.zeros((1, 2), bool))
    assert not nothing.any()
