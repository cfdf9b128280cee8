"""Operations of an update against the hand count of its matrix products."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import pytest
from toy import SCHEMA, toy_task

from structjax.language.parse import parse
from structjax.policy import MLPPolicy, StructuredPolicy, variables_from
from structjax.rl.config import RLConfig
from structjax.rl.flops import counted, play_flops, update_flops
from structjax.rl.gradient import PolicyGradient

HORIZON, WIDTH = 50, 128
TASK = replace(toy_task(), horizon=HORIZON)
BANK = TASK.initial(range(10000, 10010))
CONFIG = RLConfig(groups=2, episodes=5, epochs=3, minibatches=2)
# One observation through 2 -> 128 -> 128 -> 1, two operations a multiply-add.
FORWARD = 2 * (2 * WIDTH + WIDTH * WIDTH + WIDTH * 1)
# Backwards each product becomes two, but nobody asks for the observation's derivative.
BACKWARD = 2 * FORWARD - 2 * 2 * WIDTH


def network():
    policy = MLPPolicy(SCHEMA, hidden=(WIDTH, WIDTH))
    return policy, policy.init(jax.random.key(0), jnp.zeros(2))


def test_products_are_counted_as_by_hand():
    x, y = jnp.zeros((20, 16)), jnp.zeros((16, 8))
    assert counted(jnp.matmul, x, y) == 2 * 20 * 16 * 8


def test_an_update_is_the_sum_of_its_products():
    policy, variables = network()
    found = update_flops(PolicyGradient(policy, TASK, CONFIG, 10), variables, *BANK)
    # The environment, the noise and the keys are small beside the network.
    assert found.play.horizon == HORIZON
    assert found.play.step == pytest.approx(10 * FORWARD, rel=0.04)
    assert found.play.reset < 0.01 * found.play.step
    assert found.prepare == pytest.approx(10 * HORIZON * FORWARD, rel=0.04)
    # A minibatch has 5 of the 10 episodes; 2 * 3 steps.
    share = 5 * HORIZON * (FORWARD + BACKWARD)
    assert found.gradient_step == pytest.approx(share, rel=0.06)
    assert found.gradient_steps == 6
    by_hand = 10 * HORIZON * FORWARD * 2 + 6 * share
    assert found.total == pytest.approx(by_hand, rel=0.04)
    assert found.total > by_hand


def test_a_critic_costs_its_network_as_well():
    policy, variables = network()
    plain = update_flops(PolicyGradient(policy, TASK, CONFIG, 10), variables, *BANK)
    config = replace(CONFIG, advantage="gae")
    algorithm = PolicyGradient(policy, TASK, config, 10)
    found = update_flops(algorithm, variables, *BANK)
    critic = 2 * (2 * 64 + 64 * 64 + 64 * 1)
    more = 5 * HORIZON * (3 * critic - 2 * 2 * 64)
    assert found.gradient_step - plain.gradient_step == pytest.approx(more, rel=0.1)
    # Of all observations, and of the last ones.
    more = 10 * (HORIZON + 1) * critic
    assert found.prepare - plain.prepare == pytest.approx(more, rel=0.1)


PLAIN = """keep = weight(0.5)

def policy(obs):
    level = keep * 0.3 + obs.x * keep + obs.x * obs.clock * keep
    return action(push=normal(-0.25 * level, std=fixed(0.1)))
"""


def test_memory_is_counted_along_the_whole_episode():
    """A program that only differs in remembering costs about the same per step."""
    config = replace(CONFIG, minibatches=1)
    found = []
    for text in (PLAIN, PLAIN.replace("0.3", "previous(level, start=0.3)")):
        structure = parse(text, SCHEMA).structure
        policy = StructuredPolicy(structure, SCHEMA)
        algorithm = PolicyGradient(policy, TASK, config, 10)
        found.append(update_flops(algorithm, variables_from(structure, {}), *BANK))
    without, remembering = found
    assert remembering.gradient_step == pytest.approx(without.gradient_step, rel=0.15)
    assert remembering.play.step == pytest.approx(without.play.step, rel=0.1)
    # Counting the loop's body once would have been 50 times too little.
    assert remembering.gradient_step > 10 * HORIZON


def test_episodes_cost_in_proportion_to_their_number_and_length():
    policy, variables = network()
    params, starts = TASK.initial(range(10))
    ten = play_flops(policy, variables, TASK, params, starts)
    twenty = play_flops(policy, variables, TASK, *TASK.initial(range(20)))
    assert twenty.total == pytest.approx(2 * ten.total, rel=0.02)
    longer = play_flops(policy, variables, replace(TASK, horizon=100), params, starts)
    assert longer.total == pytest.approx(2 * ten.total, rel=0.02)
