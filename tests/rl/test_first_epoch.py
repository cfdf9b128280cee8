"""Before the first step the policy that learns is the policy that played."""

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from language.programs import FIXTURES
from toy import PROGRAM, SCHEMA, toy_task

from structjax.language.parse import parse
from structjax.memory import along
from structjax.policy import MLPPolicy, StructuredPolicy, variables_from
from structjax.rl.batch import Batch, judge
from structjax.rl.config import PRESETS, scalars
from structjax.rl.gradient import PolicyGradient
from structjax.rollout import rollout
from structjax.tasks.car_racing.schema import CAR_RACING_SCHEMA as CAR

T, B = 160, 20
DRIVER = (FIXTURES / "r3.py").read_text()
# Brakes as long as the road was bent not long ago.
CAUTIOUS = """keep = weight(0.9, low=0.0, high=1.0)
gain = weight(1.0, sign="+")

def policy(obs):
    bend = keep * previous(bend, start=0.0) + abs(obs.tiles.heading[3])
    seen = previous(seen, start=False) or obs.speed > 0.3
    steer = gain * obs.tiles.heading[2]
    gas = 0.1 if seen else 0.2
    return action(
        steer=normal(steer, std=fixed(0.1)),
        gas=normal(gas, std=fixed(0.1)),
        brake=normal(0.1 * bend, std=fixed(0.05)),
    )
"""


def structured(text, schema):
    structure = parse(text, schema).structure
    return StructuredPolicy(structure, schema), variables_from(structure, {})


def network(schema):
    policy = MLPPolicy(schema)
    obs = jnp.zeros(schema.observation_size)
    return policy, policy.init(jax.random.key(0), obs)


DRIVERS = {
    "structured": partial(structured, DRIVER, CAR),
    "memory": partial(structured, CAUTIOUS, CAR),
    "mlp": partial(network, CAR),
}


def drive(policy, variables):
    """Actions of the policy at random observations of the schema's ranges."""
    rng = np.random.default_rng(0)
    low, high = (
        np.concatenate(
            [np.full(f.size or 1, getattr(f, end)) for f in CAR.observations]
        )
        for end in ("low", "high")
    )
    obs = jnp.asarray(rng.uniform(low, high, (T, B, low.size)), jnp.float32)
    played = jax.vmap(partial(along, policy, variables), in_axes=1, out_axes=1)
    distribution = jax.jit(played)(obs)[0]
    lengths = np.where(np.arange(B) % 4, T, 155)
    valid = jnp.arange(T)[:, None] < lengths[None]
    reward = jnp.asarray(rng.normal(size=(T, B)), jnp.float32)
    return Batch(
        obs,
        distribution.sample(jax.random.key(1)),
        jnp.where(valid, reward, 0.0),
        valid,
        jnp.zeros_like(valid),
        obs[-1],
    )


@pytest.mark.parametrize("kind", DRIVERS)
def test_the_ratio_is_1_in_the_first_epoch(kind):
    policy, variables = DRIVERS[kind]()
    config = replace(PRESETS["paper"], epochs=1)
    algorithm = PolicyGradient(policy, replace(toy_task(), horizon=T), config, 20)
    state = algorithm.init(jax.random.key(0), variables)
    batch = drive(policy, variables)
    learn = jax.jit(algorithm.update_from)
    state, metrics = learn(state, batch, scalars(config))
    # A product of 150 ratios.
    assert float(metrics["max_log_ratio"]) < 1e-4
    assert float(metrics["kl"]) < 1e-9
    assert float(metrics["clip_share"]) == 0
    assert float(metrics["ess"]) == pytest.approx(1, abs=1e-6)
    assert int(metrics["gradient_steps"]) == 1
    assert float(metrics["grad_norm"]) > 1e-3


MEMORY = """keep = weight(0.5, low=0.0, high=1.0)

def policy(obs):
    level = keep * previous(level, start=1.0) + obs.x
    return action(push=normal(-0.25 * level, std=fixed(0.1)))
"""


@pytest.mark.parametrize(
    "make",
    [
        partial(structured, PROGRAM, SCHEMA),
        partial(structured, MEMORY, SCHEMA),
        partial(network, SCHEMA),
    ],
)
def test_a_recorded_action_is_judged_as_when_it_was_played(make):
    policy, variables = make()
    task = toy_task()
    params, starts = task.initial([1, 5, 9])
    play = jax.jit(partial(rollout, policy, task=task, params=params, mode="sampled"))
    run = play(variables, starts=starts, key=jax.random.key(3))
    batch = Batch(
        run.obs, run.action, run.reward, run.valid, run.terminated, run.next_obs[-1]
    )
    steps = jax.jit(partial(judge, policy))(variables, batch)
    np.testing.assert_allclose(steps.log_prob, run.log_prob, rtol=1e-5, atol=1e-5)
    entropy = 0.5 * np.log(2 * np.pi * np.e * np.square(run.distribution.std[..., 0]))
    np.testing.assert_allclose(steps.entropy, entropy, rtol=1e-5)
