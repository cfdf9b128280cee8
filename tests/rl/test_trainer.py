"""Runs side by side against runs alone, equal types, and the count of everything."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from rl.probes import Straight
from toy import PROGRAM, SCHEMA, toy_task

from structjax.language.parse import parse
from structjax.policy import StructuredPolicy, variables_from
from structjax.rl.config import RLConfig, Scalars, scalars
from structjax.rl.gradient import PolicyGradient
from structjax.rl.trainer import begin, better, repeat, stack, train_chunk

TASK = toy_task()
CONFIG = RLConfig(groups=2, episodes=3, epochs=2, learning_rate=0.02, entropy=0.01)
GAE = replace(CONFIG, advantage="gae", minibatches=2)
TRAINING = TASK.initial(range(10000, 10020))
SELECTION = TASK.initial(range(2100, 2104))


def structured(text=PROGRAM):
    structure = parse(text, SCHEMA).structure
    return StructuredPolicy(structure, SCHEMA), variables_from(structure, {})


def straight():
    return Straight(), Straight().start()


RUNS = 3
KEYS = jax.random.split(jax.random.key(7), RUNS)


def trained(algorithm, variables, numbers, flags=(False,) * 4, training=TRAINING):
    """Four updates of three runs: (state, metrics, appraisals)."""
    state = begin(algorithm, KEYS, repeat(variables, RUNS))
    data = training, SELECTION, numbers, jnp.asarray(flags)
    return train_chunk(algorithm, algorithm.policy, TASK, state, *data)


def many(config, **changes):
    """Scalars `[S]`; some of them may differ from run to run."""
    same = Scalars(*(jnp.full(RUNS, value) for value in scalars(config)))
    return same._replace(**{k: jnp.asarray(v, jnp.float32) for k, v in changes.items()})


@pytest.mark.parametrize(("make", "config"), [(structured, CONFIG), (straight, GAE)])
def test_a_run_is_the_same_alone_and_beside_others(make, config):
    policy, variables = make()
    algorithm = PolicyGradient(policy, TASK, config, 10)
    numbers = many(config, learning_rate=[0.02, 0.005, 0.01])
    state, metrics, found = trained(algorithm, variables, numbers, [True] * 4)
    # The one function of one run, without the trainer.
    update = jax.jit(algorithm.update)
    alone = algorithm.init(KEYS[1], variables)
    own = scalars(replace(config, learning_rate=0.005))
    for step in range(4):
        alone, said = update(alone, *TRAINING, own)
        for name, value in said.items():
            together = metrics[name][step, 1]
            np.testing.assert_allclose(together, value, rtol=2e-3, atol=2e-5)
    both = map(jax.tree.leaves, (alone.learned, state.algorithm.learned))
    for one, all_runs in zip(*both, strict=True):
        np.testing.assert_allclose(all_runs[1], one, rtol=1e-4, atol=1e-5)
    assert not np.allclose(metrics["return"][:, 0], metrics["return"][:, 1])
    assert found.returns.shape == (4, 3, 4)


@pytest.mark.parametrize(("make", "config"), [(structured, CONFIG), (straight, GAE)])
def test_a_chunk_ends_with_the_types_it_began_with(make, config):
    """Weak types included: the next chunk must not compile again."""
    policy, variables = make()
    algorithm = PolicyGradient(policy, TASK, config, 10)
    start = jax.eval_shape(lambda: begin(algorithm, KEYS, repeat(variables, RUNS)))

    def chunk(state):
        data = TRAINING, SELECTION, many(config), jnp.zeros(4, bool)
        return train_chunk(algorithm, policy, TASK, state, *data)[0]

    end = jax.eval_shape(chunk, start)
    assert jax.tree.structure(start) == jax.tree.structure(end)
    for before, after in zip(jax.tree.leaves(start), jax.tree.leaves(end), strict=True):
        assert (before.shape, before.dtype) == (after.shape, after.dtype)
        assert not before.weak_type
        assert not after.weak_type


CONSTANT = """push_left = weight(-1.0, high=0.0)

def policy(obs):
    return action(push=normal(push_left, std=fixed(0.001)))
"""


def test_everything_is_counted():
    """A point pushed left by 0.5 a step from -1.2 is beyond -2 after two steps."""
    policy, variables = structured(CONSTANT)
    bank = {}, jnp.full(4, -1.2)
    algorithm = PolicyGradient(policy, TASK, CONFIG, 10)
    numbers = many(CONFIG, learning_rate=[1e-6] * 3)
    state, metrics, _ = trained(algorithm, variables, numbers, training=bank)
    # 4 updates of 2 * 3 episodes of 2 steps each; 2 gradient steps an update.
    np.testing.assert_array_equal(metrics["resets"], np.full((4, 3), 6))
    np.testing.assert_array_equal(metrics["env_steps"], np.full((4, 3), 12))
    np.testing.assert_array_equal(metrics["gradient_steps"], np.full((4, 3), 2))
    np.testing.assert_array_equal(state.totals["resets"], [24] * 3)
    np.testing.assert_array_equal(state.totals["env_steps"], [48] * 3)
    np.testing.assert_array_equal(state.totals["gradient_steps"], [8] * 3)
    assert int(state.update) == 4
    # Rewards -|x'|: -1.7 and -2.2.
    np.testing.assert_allclose(metrics["return"], -3.9, atol=0.01)


def test_selection_episodes_are_played_where_asked_and_the_best_kept():
    policy, variables = structured()
    algorithm = PolicyGradient(policy, TASK, CONFIG, 10)
    flags = np.array([False, True, False, True])
    state, _, found = trained(algorithm, variables, many(CONFIG), flags)
    returns, steps = np.asarray(found.returns), np.asarray(found.steps)
    assert np.isnan(returns[~flags]).all()
    assert not steps[~flags].any()
    assert (steps[flags] == 5).all()
    means = returns[flags].mean(-1)
    np.testing.assert_allclose(state.best.score, means.max(0), rtol=1e-6)
    np.testing.assert_array_equal(state.best.update, 2 + 2 * means.argmax(0))


def test_a_nan_is_never_the_best():
    variables = Straight().start()
    algorithm = PolicyGradient(Straight(), TASK, CONFIG, 10)
    best = begin(algorithm, KEYS[:2], repeat(variables, 2)).best
    ill = stack([jax.tree.map(lambda x: x + 1, variables)] * 2)
    returns = jnp.asarray([[1.0, jnp.nan], [1.0, 2.0]])
    chosen = better(best, ill, returns, jnp.int32(5))
    np.testing.assert_array_equal(chosen.score, [-np.inf, 1.5])
    np.testing.assert_array_equal(chosen.update, [0, 5])
    np.testing.assert_allclose(chosen.variables["w"], [[0, 0], [1, 1]])


def test_start_states_are_different_ones_of_the_bank_each_shared_by_a_group():
    config = replace(CONFIG, groups=5)
    algorithm = PolicyGradient(Straight(), TASK, config, 10)
    bank = {}, jnp.arange(5.0) / 10
    collect = jax.jit(algorithm.collect)
    state = algorithm.init(jax.random.key(0), Straight().start())
    first = np.asarray(collect(state, *bank).obs[0, :, 0])
    groups = first.reshape(5, 3)
    assert (groups == groups[:, :1]).all()
    np.testing.assert_allclose(np.sort(groups[:, 0]), np.arange(5) / 10)
    # A bank of one must do for all groups.
    alone = collect(state, {}, jnp.asarray([0.4]))
    np.testing.assert_allclose(alone.obs[0, :, 0], 0.4)
