"""Every advantage and every ratio finds the optimum where it is known."""

from dataclasses import replace
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from rl.probes import CONTINUOUS, DISCRETE, Lookup, Straight

from structjax.rl.config import RLConfig, scalars
from structjax.rl.gradient import PolicyGradient

UPDATES = 40
SEED = 1
BASE = RLConfig(
    groups=4, episodes=6, epochs=4, window=2, learning_rate=0.04, kl_stop=0.2, gamma=0.9
)
RATIOS = ("per_step", "window_product", "window_geometric", "sequence_geometric")
ADVANTAGES = ("group_time", "group_return", "rloo", "gae")
# The two meet only in a product: each is tried with one of the other.
CROSS = [(ratio, "group_time") for ratio in RATIOS]
CROSS += [("per_step", advantage) for advantage in ADVANTAGES[1:]]
PAIRS = list(zip(RATIOS, ADVANTAGES, strict=True))


@cache
def player(task, policy):
    """Which episodes are played depends on neither the ratio nor the advantage."""
    return jax.jit(PolicyGradient(policy, task, BASE, UPDATES).collect)


def learned(task, policy, ratio, advantage, delayed):
    """The policy's weights after a few dozen updates."""
    config = replace(BASE, ratio=ratio, advantage=advantage)
    algorithm = PolicyGradient(policy, task, config, UPDATES)
    learn = jitted(algorithm)
    bank = task.initial(range(70), delayed)
    state = algorithm.init(jax.random.key(SEED), policy.start())
    numbers = scalars(config)
    for _ in range(UPDATES):
        batch = player(task, policy)(
            state._replace(learned={"policy": state.learned["policy"]}, adam=()), *bank
        )
        state, _ = learn(state, batch, numbers)
    return state.learned["policy"]


@cache
def jitted(algorithm):
    return jax.jit(algorithm.update_from)


@pytest.mark.parametrize(("ratio", "advantage"), CROSS)
def test_a_continuous_action_paid_at_once_and_later(ratio, advantage):
    policy = Straight(fixed_std=0.3)
    at_once = learned(CONTINUOUS, policy, ratio, advantage, False)["w"]
    np.testing.assert_allclose(at_once, [0.5, 0.3], atol=0.1)
    later = learned(CONTINUOUS, policy, ratio, advantage, True)["w"]
    np.testing.assert_allclose(later, [-0.5, 0.7], atol=0.15)


@pytest.mark.parametrize(("ratio", "advantage"), PAIRS)
def test_a_choice_paid_at_once_and_later(ratio, advantage):
    at_once = learned(DISCRETE, Lookup(), ratio, advantage, False)["table"]
    x = jnp.asarray([-1.0, -1 / 3, 0.0, 1.0])
    logits = at_once @ jnp.stack([x, jnp.ones(4)])
    assert logits.argmax(0).tolist() == [0, 0, 2, 2]
    later = learned(DISCRETE, Lookup(), ratio, advantage, True)["table"]
    chance = jax.nn.softmax(later, axis=0)
    assert float(chance[2, 1]) > 0.8  # the first step's
    assert float(chance[0, 0]) > 0.8  # the second's
