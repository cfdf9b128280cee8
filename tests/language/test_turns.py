"""Loops found again in unrolled programs: what is folded, and that nothing changes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import structjax.lowering as lowering
from structjax.language.parse import parse
from structjax.language.turns import Turns, fold
from structjax.policy import StructuredPolicy
from structjax.schema import ActionField, Field, Schema

SCHEMA = Schema(
    (
        Field("v", 20, "", -3.0, 3.0, "20 numbers"),
        Field("a", None, "", -3.0, 3.0, "a number"),
    ),
    (ActionField("u", "an action"),),
)

HEAD = "gain = weight(0.3)\n\n\ndef policy(obs):\n"
RELAXATION = (
    HEAD
    + """    x = 0.0 * obs.v
    old = 0.0 * obs.v
    for i in range(40):
        guess = x + 0.9 * (x - old)
        force = guess - obs.v + 0.1 * guess ** 3
        old = x
        x = guess - gain * 0.1 * force
    spread = mean(abs(x))
    return action(u=normal(spread + obs.a, std=0.1))
"""
)
FILTER = (
    HEAD
    + """    level = obs.a
    for i in range(20):
        error = obs.v[i] - level
        share = 1.0 / (i + 2.0)
        big = abs(error) > 1.0
        level = level + gain * where(big, share, 0.5 * share) * error
        level = level + 0.0 * mean(obs.v)
    return action(u=normal(level, std=0.1))
"""
)
SEVERAL_HELPERS = """gain = weight(0.3)


def step(x, y):
    slope = tanh(x - y)
    return x - gain * slope


def policy(obs):
    x = obs.a
    y = obs.v[0]
    for i in range(20):
        x = step(x, y)
        y = step(y, obs.v[i] * 0.5)
    return action(u=normal(x - y, std=0.1))
"""
FLAGS = (
    HEAD
    + """    seen = obs.a > 0.0
    turns = 0.0
    for i in range(20):
        now = obs.v[i] > 1.0
        seen = (seen or now) and obs.v[i] > -2.0
        part = where(seen, gain, -gain)
        turns = turns + part
    return action(u=normal(turns + seen, std=0.1))
"""
)
NESTED = (
    HEAD
    + """    total = obs.a
    for i in range(10):
        for j in range(10):
            pull = obs.v[i + j] - total
            total = total + gain * 0.1 * pull
        total = tanh(total)
    return action(u=normal(total, std=0.1))
"""
)
FIRST_TURN = (
    HEAD
    + """    s = obs.a
    for i in range(60):
        if i == 0:
            base = s * 0.5
        else:
            other = s * 0.5
        s = base + s * 0.1
    return action(u=normal(gain * s, std=0.1))
"""
)
PROGRAMS = {
    "first turn": FIRST_TURN,
    "relaxation": RELAXATION,
    "filter": FILTER,
    "helpers": SEVERAL_HELPERS,
    "flags": FLAGS,
    "nested": NESTED,
}


def structure(text):
    return parse(text, SCHEMA).structure


def turns(text):
    return [p for p in fold(structure(text).latents) if isinstance(p, Turns)]


def observations():
    return jnp.asarray(np.random.default_rng(0).normal(0, 1.2, (16, 21)), jnp.float32)


def outcome(text):
    """Means, latents, and the derivatives by weight and observation."""
    policy = StructuredPolicy(structure(text), SCHEMA)
    variables = policy.init(jax.random.key(0), jnp.zeros(21))

    def mean(variables, obs):
        distribution, latents = policy.apply(variables, obs)
        return distribution.mean[0], latents

    derivative = jax.value_and_grad(mean, argnums=(0, 1), has_aux=True)
    return jax.jit(jax.vmap(derivative, (None, 0)))(variables, observations())


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_folded_loop_has_the_values_and_derivatives_of_the_unrolled_one(
    name, monkeypatch
):
    assert turns(PROGRAMS[name])
    folded = outcome(PROGRAMS[name])
    monkeypatch.setattr(lowering, "fold", tuple)
    unrolled = outcome(PROGRAMS[name])
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-5),
        folded,
        unrolled,
    )


def test_relaxation_folds_to_the_definitions_of_one_turn():
    # guess, force, old and x are defined in a turn. The first two turns start from the
    # zeros, so that at least 38 of 40 look alike.
    (loop,) = turns(RELAXATION)
    assert len(loop.template) == 4
    assert len(loop.names) >= 37
    assert all(len(history.before) == 1 for history in loop.histories)
    assert not loop.columns


def test_numbers_and_positions_that_change_are_columns():
    (loop,) = turns(FILTER)
    whole = [c for c in loop.columns if isinstance(c[0], int)]
    (shares,) = (c for c in loop.columns if isinstance(c[0], float))
    first = 20 - len(loop.names)
    assert whole == [tuple(range(first, 20))]
    np.testing.assert_allclose(shares, 1.0 / (np.arange(first, 20) + 2.0))


def test_every_definition_appears_once():
    for text in PROGRAMS.values():
        latents = structure(text).latents
        names = [
            name
            for part in fold(latents)
            for name in (
                [n for turn in part.names for n in turn]
                if isinstance(part, Turns)
                else [part.name]
            )
        ]
        assert names == [latent.name for latent in latents]


def test_compiled_size_does_not_grow_with_the_turns():
    def operations(count):
        text = RELAXATION.replace("range(40)", f"range({count})")
        policy = StructuredPolicy(structure(text), SCHEMA)
        variables = policy.init(jax.random.key(0), jnp.zeros(21))
        return str(jax.make_jaxpr(policy.apply)(variables, jnp.zeros(21))).count("\n")

    assert operations(60) == operations(30)


def test_short_loops_stay_unrolled():
    assert not turns(RELAXATION.replace("range(40)", "range(12)"))


def test_a_start_of_another_size_stays_outside_the_loop(monkeypatch):
    # Every turn sums `x`, of 20 elements in the first turn and of 2 in the others.
    text = (
        HEAD
        + """    x = obs.v
    for i in range(30):
        total = sum(x)
        x = stack(0.3 * tanh(total), obs.a)
    return action(u=normal(x[0] + x[1], std=0.1))
"""
    )
    (loop,) = turns(text.replace("range(30)", "range(60)"))
    assert len(loop.names) == 59
    folded = outcome(text)
    monkeypatch.setattr(lowering, "fold", tuple)
    jax.tree.map(np.testing.assert_allclose, folded, outcome(text))
