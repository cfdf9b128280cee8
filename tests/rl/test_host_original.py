"""The host path on Gymnasium's Pendulum and CartPole and on the original Car Racing."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from language.programs import FIXTURES

from structjax.errors import StructjaxError
from structjax.language.parse import parse
from structjax.original.car_racing import OriginalCarRacing
from structjax.policy import MLPPolicy, StructuredPolicy, variables_from
from structjax.rl.config import RLConfig, scalars
from structjax.rl.gradient import PolicyGradient
from structjax.rl.host import host_update, play_host
from structjax.rl.host_environments import (
    SeparateEnvironments,
    VectorEnvironment,
    host_task,
)
from structjax.tasks.car_racing.schema import CAR_RACING_SCHEMA
from structjax.tasks.classic import cartpole, pendulum

pytestmark = pytest.mark.original
CONFIG = RLConfig(groups=2, episodes=3, epochs=2)
SWING = """damping = weight(0.1, sign="+")

def policy(obs):
    push = damping * obs.angular_velocity + 0.2 * previous(push, start=0.0)
    return action(torque=normal(push, std=fixed(0.5)))
"""


@pytest.fixture(scope="module")
def gymnasium():
    return pytest.importorskip("gymnasium", reason="needs the extra `original`")


def swinging():
    schema = pendulum().schema
    structure = parse(SWING, schema).structure
    return StructuredPolicy(structure, schema), variables_from(structure, {}), schema


def balancing():
    schema = cartpole().schema
    policy = MLPPolicy(schema, hidden=(16,))
    return policy, policy.init(jax.random.key(0), jnp.zeros(4)), schema


def synchronous(gymnasium, name, number):
    return gymnasium.make_vec(name, num_envs=number, vectorization_mode="sync")


@pytest.mark.parametrize(
    ("name", "make"), [("Pendulum-v1", swinging), ("CartPole-v1", balancing)]
)
def test_a_list_and_a_vector_of_environments_give_the_same_batch(gymnasium, name, make):
    policy, variables, schema = make()
    seeds = [7, 7, 7, 8, 8, 8]
    separate = SeparateEnvironments([gymnasium.make(name) for _ in seeds])
    vector = VectorEnvironment(synchronous(gymnasium, name, len(seeds)))
    one, other = (
        play_host(
            policy, variables, schema, environments, seeds,
            horizon=60, key=jax.random.key(0),
        )
        for environments in (separate, vector)
    )  # fmt: skip
    for left, right in zip(one, other, strict=True):
        np.testing.assert_array_equal(left, right)
    lengths = np.asarray(one.valid.sum(0))
    # A pole that is pushed at random falls after 8 to 60 steps, a pendulum never.
    assert lengths.min() < 60 if name == "CartPole-v1" else (lengths == 60).all()
    assert one.obs[0, 0].tolist() == one.obs[0, 2].tolist() != one.obs[0, 3].tolist()


def test_one_seed_for_all_episodes_will_not_do(gymnasium):
    own = VectorEnvironment(gymnasium.make_vec("CartPole-v1", num_envs=2))
    with pytest.raises(StructjaxError, match="one seed per episode") as error:
        own.reset([7, 7])
    assert "sync" in error.value.hint


def test_a_pole_is_balanced_better_after_a_few_updates(gymnasium):
    policy, variables, schema = balancing()
    task = host_task("cartpole", schema=schema, description="Balance.", horizon=500)
    config = RLConfig(learning_rate=0.02, kl_stop=0.05, grouping="absorbing")
    algorithm = PolicyGradient(policy, task, config, 30)
    state = algorithm.init(jax.random.key(1), variables)
    environments = VectorEnvironment(synchronous(gymnasium, "CartPole-v1", 20))
    returns = []
    for _ in range(8):
        found = host_update(
            algorithm, state, environments, task.seeds["training"], scalars(config)
        )
        state = found.state
        returns.append(float(found.metrics["return"]))
        assert float(found.metrics["env_steps"]) == pytest.approx(20 * returns[-1])
    assert returns[0] < 40
    assert np.mean(returns[-2:]) > 1.5 * returns[0]


def test_the_original_car_is_driven_and_learned_from():
    pytest.importorskip("Box2D", reason="needs the extra `original`")
    text = (FIXTURES / "r3.py").read_text()
    structure = parse(text, CAR_RACING_SCHEMA).structure
    policy = StructuredPolicy(structure, CAR_RACING_SCHEMA)
    task = host_task("car", schema=CAR_RACING_SCHEMA, description="Drive.", horizon=40)
    config = replace(CONFIG, episodes=2)
    algorithm = PolicyGradient(policy, task, config, 10)
    state = algorithm.init(jax.random.key(0), variables_from(structure, {}))
    environments = SeparateEnvironments([OriginalCarRacing() for _ in range(4)])
    for _ in range(2):
        before = state.learned["policy"]
        found = host_update(
            algorithm, state, environments, task.seeds["training"], scalars(config)
        )
        state = found.state
        assert int(found.metrics["resets"]) == 4
        assert int(found.metrics["env_steps"]) == 160
        assert float(found.metrics["return"]) > 0  # the start line's tiles at least
        assert int(found.metrics["gradient_steps"]) == 2
        assert float(found.metrics["grad_norm"]) > 0
        moved = jax.tree.map(
            lambda x, y: float(abs(x - y)), before, state.learned["policy"]
        )
        assert max(jax.tree.leaves(moved)) > 1e-3
