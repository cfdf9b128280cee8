"""What one update does with its batch, step by step."""

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from rl.probes import Straight, batch_of
from toy import SCHEMA, toy_task

from structjax.language.parse import parse
from structjax.policy import StructuredPolicy, variables_from
from structjax.rl.config import RLConfig, scalars
from structjax.rl.gradient import PolicyGradient

TASK = toy_task()
CONFIG = RLConfig(
    advantage="group_return",
    groups=2,
    episodes=2,
    epochs=1,
    learning_rate=0.1,
    learning_rate_schedule="constant",
    entropy_schedule="constant",
)
REWARD = np.random.default_rng(5).normal(size=(5, 4))
VALID = np.ones((5, 4), bool)

learn = jax.jit(PolicyGradient.update_from, static_argnums=0)


def updated(config, batch, *, update=0, policy=None, variables=None, updates=10):
    """(state before, state after, metrics) of one update on a batch."""
    policy = policy or Straight()
    # The numbers are passed apart: one compiled function for all of them.
    still = replace(config, kl_stop=0.0, max_grad_norm=0.0, entropy=0.0)
    algorithm = PolicyGradient(policy, TASK, still, updates)
    start = policy.start() if variables is None else variables
    state = algorithm.init(jax.random.key(0), start)._replace(update=jnp.int32(update))
    after, metrics = learn(algorithm, state, batch, scalars(config))
    return state, after, metrics


def change(before, after):
    """Changes of the weights as one vector."""
    flat = [
        np.ravel(new - old)
        for new, old in zip(
            jax.tree.leaves(after.learned), jax.tree.leaves(before.learned), strict=True
        )
    ]
    return np.concatenate(flat)


def test_no_step_after_the_divergence_passes_its_bound():
    batch = batch_of(REWARD, VALID)
    many = replace(CONFIG, epochs=5)
    assert int(updated(many, batch)[2]["gradient_steps"]) == 5
    _, stopped, metrics = updated(replace(many, kl_stop=1e-9), batch)
    # Nothing has moved before the first step; before the second it has.
    assert int(metrics["gradient_steps"]) == 1
    _, once, _ = updated(CONFIG, batch)
    for new, old in zip(*map(jax.tree.leaves, (stopped, once)), strict=True):
        if not jnp.issubdtype(new.dtype, jax.dtypes.prng_key):
            np.testing.assert_allclose(new, old, rtol=1e-4)


def test_a_stopped_update_stays_stopped():
    """Episodes 2 and 3 hold nothing: their divergence is 0 again, but it is over."""
    valid = VALID & (np.arange(4) < 2)[None]
    config = replace(CONFIG, minibatches=4, epochs=3, kl_stop=1e-9)
    _, _, metrics = updated(config, batch_of(REWARD, valid))
    assert int(metrics["gradient_steps"]) <= 3


def test_a_gradient_that_is_not_finite_teaches_nothing():
    obs = np.ones((5, 4, 2))
    obs[2, 1, 0] = np.nan
    before, after, metrics = updated(CONFIG, batch_of(REWARD, VALID, obs))
    assert int(metrics["gradient_steps"]) == 0
    assert np.isnan(metrics["grad_norm"])
    assert not change(before, after).any()
    assert int(after.adam.count) == 0
    assert int(after.update) == 1


def test_gradients_are_clipped_by_their_global_norm():
    batch = batch_of(REWARD, VALID)
    _, free, metrics = updated(CONFIG, batch)
    norm, limit = float(metrics["grad_norm"]), 0.01
    assert norm > limit
    _, bound, metrics = updated(replace(CONFIG, max_grad_norm=limit), batch)
    # Adam's first moment is a tenth of the gradient. Its direction is kept.
    assert float(optax.tree.norm(bound.adam.mu)) == pytest.approx(0.1 * limit)
    both = map(jax.tree.leaves, (bound.adam.mu, free.adam.mu))
    for short, long in zip(*both, strict=True):
        np.testing.assert_allclose(short, long * limit / norm, rtol=1e-4)
    _, loose, _ = updated(replace(CONFIG, max_grad_norm=2 * norm), batch)
    np.testing.assert_allclose(
        loose.adam.mu["policy"]["w"], free.adam.mu["policy"]["w"]
    )


def test_minibatches_cover_every_episode_once_an_epoch():
    config = replace(CONFIG, groups=4, episodes=3, minibatches=3, epochs=4)
    algorithm = PolicyGradient(Straight(), TASK, config, 10)
    parts = np.asarray(algorithm._parts(jax.random.key(1)))
    assert parts.shape == (12, 4)
    for epoch in parts.reshape(4, 12):
        assert sorted(epoch) == list(range(12))
    assert len({tuple(epoch) for epoch in parts.reshape(4, 12)}) == 4


def test_minibatches_take_their_steps():
    config = replace(CONFIG, minibatches=2, epochs=3)
    assert int(updated(config, batch_of(REWARD, VALID))[2]["gradient_steps"]) == 6


@pytest.mark.parametrize(("update", "left"), [(0, 1.0), (4, 0.6), (9, 0.1), (12, 0.0)])
def test_the_learning_rate_falls_to_0_over_the_planned_updates(update, left):
    config = replace(CONFIG, learning_rate_schedule="linear")
    before, after, _ = updated(config, batch_of(REWARD, VALID), update=update)
    # Adam's first step is the learning rate times the gradient's sign.
    moved = np.abs(change(before, after))
    np.testing.assert_allclose(moved, 0.1 * left, rtol=1e-4, atol=1e-9)
    before, after, _ = updated(CONFIG, batch_of(REWARD, VALID), update=update)
    np.testing.assert_allclose(np.abs(change(before, after)), 0.1, rtol=1e-4)


@pytest.mark.parametrize(("update", "left"), [(0, 1.0), (4, 0.6), (12, 0.0)])
def test_the_entropy_bonus_falls_to_0_over_the_planned_updates(update, left):
    """Equal returns: only the entropy has a gradient, 1 by the log of the std."""
    config = replace(CONFIG, entropy=0.01, entropy_schedule="linear")
    equal = batch_of(np.ones((5, 4)), VALID)
    _, after, metrics = updated(config, equal, update=update)
    assert float(metrics["grad_norm"]) == pytest.approx(0.01 * left)
    mean = -0.1 * 0.01 * left  # of a loss, so it points down
    assert float(after.adam.mu["policy"]["log_std"]) == pytest.approx(mean)
    assert not np.asarray(after.adam.mu["policy"]["w"]).any()


MEMORY = """keep = weight(0.5, low=0.0, high=1.0)

def policy(obs):
    level = keep * previous(level, start=1.0) + obs.x
    return action(push=normal(-0.25 * level, std=fixed(0.1)))
"""


def remembering():
    structure = parse(MEMORY, SCHEMA).structure
    return StructuredPolicy(structure, SCHEMA), variables_from(structure, {})


def straight():
    return Straight(), Straight().start()


@pytest.mark.parametrize(
    ("make", "advantage"),
    [(straight, "group_time"), (straight, "gae"), (remembering, "group_time")],
)
def test_what_lies_behind_an_episodes_end_does_not_matter(make, advantage):
    """Not even NaN, which 0 times a derivative would spread."""
    policy, variables = make()
    config = replace(CONFIG, advantage=advantage)
    lengths = np.array([5, 2, 3, 1])
    valid = np.arange(5)[:, None] < lengths[None]
    terminated = np.arange(5)[:, None] == (lengths - 1)[None]
    results = []
    for filler in (0.0, np.nan, 1e30):
        obs = np.random.default_rng(2).normal(size=(5, 4, 2))
        obs = np.where(valid[..., None], obs, filler)
        batch = batch_of(REWARD, valid, obs, terminated)
        before, after, metrics = updated(
            config, batch, policy=policy, variables=variables
        )
        assert int(metrics["gradient_steps"]) == 1
        results.append(change(before, after))
    assert np.abs(results[0]).max() > 0.05
    np.testing.assert_array_equal(results[1], results[0])
    np.testing.assert_array_equal(results[2], results[0])


def test_a_truncated_episode_is_valued_beyond_its_end():
    """Its next observation counts, although no step was taken from there."""
    config = replace(CONFIG, advantage="gae", gae_lambda=0.0, gamma=0.5)
    algorithm = PolicyGradient(Straight(), TASK, config, 10)
    learned = algorithm.init(jax.random.key(3), Straight().start()).learned
    valid = VALID & ~np.eye(5, 4, k=-4, dtype=bool)  # episode 0 ends after 4 steps
    end = np.zeros((5, 4), bool)
    obs = np.random.default_rng(2).normal(size=(5, 4, 2))
    prepare = jax.jit(partial(algorithm.prepare, scalars=scalars(config)))
    targets = {}
    for shift in (0.0, 1.0):
        for terminated in (False, True):
            obs[4, 0], end[3, 0] = shift, terminated
            batch = batch_of(REWARD, valid, obs, end)
            # With lambda 0 the target is reward + gamma * next value.
            target = prepare(learned, batch).value_target[3, 0]
            targets[shift, terminated] = float(target)
    assert targets[0.0, True] == targets[1.0, True] == pytest.approx(REWARD[3, 0])
    assert targets[0.0, False] != pytest.approx(targets[1.0, False])
