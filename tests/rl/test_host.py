"""Episodes of environments outside JAX become the same updates."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from rl.probes import Straight
from toy import HORIZON, SCHEMA, toy_task

from structjax.errors import ProgramFailed, StructjaxError
from structjax.language.parse import parse
from structjax.policy import StructuredPolicy, variables_from
from structjax.rl.batch import update_keys
from structjax.rl.config import RLConfig, scalars
from structjax.rl.gradient import PolicyGradient
from structjax.rl.host import host_update, play_host
from structjax.rl.host_environments import (
    SeparateEnvironments,
    VectorEnvironment,
    host_task,
)

CONFIG = RLConfig(groups=2, episodes=3, epochs=2, learning_rate=0.02)


class Pencil:
    """The toy task with Gymnasium's interface; seed s starts at (s % 10) / 10."""

    def __init__(self, shift=0.0, pay=1.0):
        self.shift, self.pay = shift, pay

    def reset(self, seed):
        self.x, self.time = (seed % 10) / 10 - self.shift, 0
        return np.array([self.x, 0.0]), {}

    def step(self, action):
        assert -1 <= float(action[0]) <= 1
        self.x, self.time = self.x + float(action[0]) / 2, self.time + 1
        obs = np.array([self.x, self.time / 10])
        return obs, -abs(self.x) * self.pay, self.x < -2, self.time >= HORIZON, {}


def pencils(number, **options):
    return SeparateEnvironments([Pencil(**options) for _ in range(number)])


def structured(text):
    structure = parse(text, SCHEMA).structure
    return StructuredPolicy(structure, SCHEMA), variables_from(structure, {})


def played(policy, variables, seeds, environments, horizon=HORIZON):
    return jax.tree.map(
        np.asarray,
        play_host(
            policy,
            variables,
            SCHEMA,
            environments,
            seeds,
            horizon=horizon,
            key=jax.random.key(4),
        ),
    )


LEFT = """def policy(obs):
    return action(push=normal(-1.0 - 0.0 * obs.x, std=fixed(0.001)))
"""


def test_an_episode_that_ends_early_is_held_there():
    # From -1.5: -2.0 and a little or not, -2.5 for sure. From 0.5: never.
    batch = played(*structured(LEFT), [4, 4, 1], pencils(3, shift=1.2), 4)
    np.testing.assert_allclose(batch.obs[:, 2, 0], [-1.1, -1.6, -2.1, -2.1], atol=0.02)
    np.testing.assert_array_equal(batch.valid[:, 2], [1, 1, 0, 0])
    np.testing.assert_array_equal(batch.terminated[:, 2], [0, 1, 0, 0])
    np.testing.assert_allclose(batch.reward[:, 2], [-1.6, -2.1, 0, 0], atol=0.02)
    assert batch.valid[:, 0].tolist() == [1, 1, 1, 0]
    assert batch.last_obs[2, 0] == batch.obs[2, 2, 0]
    # The others sample their own actions.
    assert not np.array_equal(batch.action[:, 0], batch.action[:, 1])


def test_a_horizon_cuts_without_terminating():
    batch = played(*structured(LEFT), [9, 9], pencils(2), 3)
    assert batch.valid.all()
    assert not batch.terminated.any()
    # 0.9 after three steps of -0.5, the last one not among the observations.
    np.testing.assert_allclose(batch.obs[:, 0, 0], [0.9, 0.4, -0.1], atol=0.02)
    np.testing.assert_allclose(batch.last_obs[:, 0], -0.6, atol=0.02)


FILTER = """keep = weight(0.5, low=0.0, high=1.0)

def policy(obs):
    level = keep * previous(level, start=1.0) + obs.x
    return action(push=normal(-0.25 * level, std=fixed(0.001)))
"""


def test_a_policy_with_memory_remembers_on_the_host():
    batch = played(*structured(FILTER), [4, 4], pencils(2))
    x, level = 0.4, 1.0
    for step in range(HORIZON):  # x' = x + push / 2, push = -level / 4
        level = 0.5 * level + x
        np.testing.assert_allclose(batch.action[step, :, 0], -level / 4, atol=0.02)
        x = x - level / 8


@pytest.mark.parametrize("text", [LEFT, FILTER])
def test_the_update_is_the_one_of_tasks(text):
    """The JAX task, given the recorded actions, tells the same story."""
    policy, variables = structured(text.replace("0.001", "0.3"))
    task = toy_task()
    algorithm = PolicyGradient(policy, task, CONFIG, 10)
    state = algorithm.init(jax.random.key(0), variables)
    numbers, key = scalars(CONFIG), update_keys(state.key).play
    seeds = [10001] * 3 + [10008] * 3
    batch = play_host(
        policy, variables, SCHEMA, pencils(6), seeds, horizon=HORIZON, key=key
    )
    params, starts = task.initial(seeds)
    obs, now = jax.vmap(task.reset, in_axes=(0, None))(starts, params)
    step = jax.vmap(task.step, in_axes=(None, 0, 0, None))
    for time in range(HORIZON):
        np.testing.assert_allclose(batch.obs[time], obs, atol=1e-6)
        action = jnp.clip(batch.action[time], -1, 1)
        obs, now, reward, *_ = step(key, now, action, params)
        np.testing.assert_allclose(batch.reward[time], reward, atol=1e-6)
    np.testing.assert_allclose(batch.last_obs, obs, atol=1e-6)

    found = host_update(algorithm, state, pencils(6), [10001, 10008], numbers)
    assert int(found.metrics["resets"]) == 6
    assert int(found.metrics["env_steps"]) == 6 * HORIZON
    assert int(found.metrics["gradient_steps"]) == 2
    expected = float(batch.reward.sum() / 6)
    # The two groups may come in the other order, with other actions.
    assert float(found.metrics["return"]) == pytest.approx(expected, abs=0.5)
    assert int(found.state.update) == 1
    assert min(found.play_seconds, found.learn_seconds) > 0


def test_host_episodes_teach():
    """Straight pushes with a learned gain: -2 x is best, from a start of 0."""
    task = host_task("pencil", schema=SCHEMA, description="Push.", horizon=HORIZON)
    config = replace(CONFIG, episodes=6, epochs=4, learning_rate=0.1)
    algorithm = PolicyGradient(Straight(fixed_std=0.3), task, config, 15)
    state = algorithm.init(jax.random.key(0), algorithm.policy.start())
    returns = []
    for _ in range(15):
        found = host_update(algorithm, state, pencils(12), [18, 19], scalars(config))
        state = found.state
        returns.append(float(found.metrics["return"]))
    # Without a push the return is 5 times -0.85.
    assert np.mean(returns[:2]) < -3
    assert np.mean(returns[-3:]) > -1.6
    assert float(state.learned["policy"]["w"][0]) < -0.7


def test_environments_that_begin_differently_are_refused():
    environments = SeparateEnvironments([Pencil(), Pencil(shift=0.1)])
    with pytest.raises(StructjaxError, match="seed 4 begin differently"):
        played(*structured(LEFT), [4, 4], environments)
    played(*structured(LEFT), [4, 5], environments)


def test_other_mistakes_of_environments_are_refused():
    with pytest.raises(StructjaxError, match="2 environments for 3 episodes"):
        played(*structured(LEFT), [4, 4, 4], pencils(2))
    with pytest.raises(ProgramFailed, match="rewards are not finite"):
        played(*structured(LEFT), [4, 4], pencils(2, pay=np.nan))
    with pytest.raises(StructjaxError, match="no JAX environment"):
        host_task("h", schema=SCHEMA, description="", horizon=5).initial([1])
    variables = {"w": jnp.full(2, jnp.nan), "log_std": jnp.zeros(())}
    with pytest.raises(ProgramFailed, match="not finite in 2 of 2 steps"):
        played(Straight(), variables, [4, 4], pencils(2))


class Vector:
    """What is read of a vector environment before it is stepped."""

    num_envs = 2

    def __init__(self, mode):
        self.metadata = {"autoreset_mode": mode}


@pytest.mark.parametrize("mode", ["SameStep", "Disabled", None])
def test_vector_environments_must_show_the_last_observation(mode):
    with pytest.raises(StructjaxError, match="autoreset"):
        VectorEnvironment(Vector(mode))
