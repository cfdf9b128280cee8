"""A network learns to balance a pole on gymnax's cart, from nothing."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from structjax.policy import MLPPolicy
from structjax.rl.config import RLConfig, Scalars, scalars
from structjax.rl.gradient import PolicyGradient
from structjax.rl.trainer import begin, repeat, train_chunk
from structjax.tasks.classic import cartpole

UPDATES, RUNS = 30, 2


@pytest.mark.slow
def test_a_network_learns_to_balance_a_pole():
    task = cartpole()
    policy = MLPPolicy(task.schema, hidden=(16,))
    variables = policy.init(jax.random.key(0), jnp.zeros(4))
    config = RLConfig(learning_rate=0.02, kl_stop=0.05, grouping="absorbing")
    algorithm = PolicyGradient(policy, task, config, UPDATES)
    keys = jax.random.split(jax.random.key(1), RUNS)
    numbers = Scalars(*(jnp.full(RUNS, value) for value in scalars(config)))
    state, metrics, found = train_chunk(
        algorithm,
        policy,
        task,
        begin(algorithm, keys, repeat(variables, RUNS)),
        task.initial(task.seeds["training"]),
        task.initial(task.seeds["selection"]),
        numbers,
        jnp.arange(UPDATES) == UPDATES - 1,
    )
    # At random a pole falls after some 22 steps; 500 is perfect.
    assert (np.asarray(metrics["return"][0]) < 60).all()
    assert (np.asarray(found.returns[-1]).mean(-1) > 400).all()
    assert (np.asarray(state.totals["resets"]) == UPDATES * 20).all()
