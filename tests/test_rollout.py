"""Rollouts of the toy task, whose returns are known by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from toy import HORIZON, PROGRAM, SCHEMA, toy_task

from structjax.errors import StructjaxError
from structjax.evaluation import evaluate
from structjax.language.parse import parse
from structjax.ledger import Ledger
from structjax.policy import StructuredPolicy, initial_values, variables_from
from structjax.rollout import collect, play, play_stacked, returns_of
from structjax.tasks.loading import load_task


@pytest.fixture(scope="module")
def task():
    return toy_task()


@pytest.fixture(scope="module")
def pushing():
    structure = parse(PROGRAM, SCHEMA).structure
    policy = StructuredPolicy(structure, SCHEMA)
    return policy, variables_from(structure, initial_values(structure))


def test_returns_are_the_ones_computed_by_hand(task, pushing):
    episodes = play(*pushing, task, [1002, 1008], key=jax.random.key(0))
    # -31/32 x0, see toy.py.
    np.testing.assert_allclose(episodes.returns, [-31 / 32 * 0.2, -31 / 32 * 0.8], 1e-5)
    np.testing.assert_array_equal(episodes.steps, [HORIZON, HORIZON])


def test_every_row_holds_one_moment(task, pushing):
    run = collect(*pushing, task, [1004, 1006], key=jax.random.key(0))
    assert run.obs.shape == (HORIZON, 2, 2)
    np.testing.assert_allclose(run.latents["demand"], -run.obs[..., 0], rtol=1e-6)
    np.testing.assert_allclose(run.next_obs[:-1], run.obs[1:], rtol=1e-6)
    np.testing.assert_allclose(run.reward, -np.abs(run.next_obs[..., 0]), rtol=1e-6)


def test_nothing_counts_after_the_end(pushing):
    def first_step_ends(key, state, action, params):
        step = toy_task().step(key, state, action, params)
        return step._replace(terminated=jnp.array(True))

    ledger = Ledger()
    task = toy_task(first_step_ends)
    run = collect(
        *pushing, task, [1004], key=jax.random.key(0), ledger=ledger, purpose="gate"
    )
    np.testing.assert_array_equal(run.valid[:, 0], [True] + [False] * (HORIZON - 1))
    assert run.reward.sum() == pytest.approx(-0.2)  # one step from 0.4 to 0.2
    assert run.terminated.sum() == 1
    assert (ledger.resets["gate"], ledger.env_steps["gate"]) == (1, 1)


def test_sampled_actions_are_clipped_for_the_environment_only(task, pushing):
    policy, _ = pushing
    wide = variables_from(policy.structure, {"gain": 1.0, "std_push": 0.99})
    run = collect(
        policy, wide, task, [1009] * 64, key=jax.random.key(1), mode="sampled"
    )
    assert np.abs(run.action).max() > 1
    assert np.abs(run.environment_action).max() == 1
    assert not np.allclose(run.action, run.distribution.mean)
    again = collect(
        policy, wide, task, [1009] * 64, key=jax.random.key(1), mode="sampled"
    )
    np.testing.assert_array_equal(run.action, again.action)


def test_stacked_parameters_are_played_on_the_same_episodes(task, pushing):
    policy, _ = pushing
    stacked = jax.tree.map(
        lambda *leaves: jnp.stack(leaves),
        *(
            variables_from(policy.structure, {"gain": g, "std_push": 0.1})
            for g in (1.0, 2.0)
        ),
    )
    ledger = Ledger()
    returns = play_stacked(policy, stacked, task, [1004, 1006], ledger=ledger)
    # Gain 2 brings the point from 0.4 to 0 in one step; from 0.6 the push is clipped
    # at 1, so that 0.1 is left after the first step.
    np.testing.assert_allclose(
        returns, [[-31 / 32 * 0.4, -31 / 32 * 0.6], [0, -0.1]], atol=1e-5
    )
    assert ledger.resets["selection"] == 4


def test_the_original_simulator_agrees(task, pushing):
    seeds = range(1000, 1010)
    jax_result = evaluate(*pushing, task, seeds)
    pencil = evaluate(*pushing, task, seeds, simulator="pencil")
    np.testing.assert_allclose(jax_result.returns, pencil.returns, rtol=1e-5, atol=1e-6)
    assert pencil.simulator == "pencil"
    assert pencil.env_steps == 10 * HORIZON
    # Mean of -31/32 (0, 0.1, ..., 0.9) and its population std.
    assert jax_result.mean == pytest.approx(-31 / 32 * 0.45)
    assert jax_result.std_ddof0 == pytest.approx(31 / 32 * np.std(np.arange(10) / 10))


def test_an_unknown_simulator_is_refused_with_the_known_ones(task, pushing):
    with pytest.raises(
        StructjaxError, match="no simulator 'box2d'; it has jax, pencil"
    ):
        evaluate(*pushing, task, [1000], simulator="box2d")


def test_no_seeds_are_refused(task, pushing):
    with pytest.raises(StructjaxError, match="no seeds"):
        evaluate(*pushing, task, [])


def test_a_reward_that_is_not_finite_is_an_error(pushing):
    def poisoned(key, state, action, params):
        step = toy_task().step(key, state, action, params)
        return step._replace(reward=jnp.float32(jnp.nan))

    with pytest.raises(StructjaxError, match="reward that is not finite"):
        play(*pushing, toy_task(poisoned), [1000], key=jax.random.key(0))


def test_recorded_episodes_have_the_returns_of_played_ones_to_the_digit():
    task = load_task("pendulum")  # 200 steps: the order of a sum shows
    program = "def policy(obs):\n    return action(torque=normal(-obs.sin_angle))\n"
    structure = parse(program, task.schema).structure
    policy = StructuredPolicy(structure, task.schema)
    arm = policy, variables_from(structure, initial_values(structure)), task
    seeds = task.seeds["test"]
    recorded = returns_of(collect(*arm, seeds, key=jax.random.key(0)))
    np.testing.assert_array_equal(recorded, evaluate(*arm, seeds).returns)
