"""Families of action heads, exact stds and coupled actions."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from language.programs import HEAD, SMALL, problems

from structjax.bounded import Mixed
from structjax.distributions import CoupledNormal
from structjax.language.hashing import interface_hash, semantic_hash
from structjax.language.parse import parse
from structjax.language.render import render
from structjax.policy import StructuredPolicy

SMALL_SIZE = SMALL.observation_size


def structure(final, *lines):
    body = "".join(f"    {line}\n" for line in lines)
    return parse(f"{HEAD}def policy(obs):\n{body}    {final}\n", SMALL).structure


def distribution(final, *lines, std_floor=0.0):
    policy = StructuredPolicy(structure(final, *lines), SMALL, std_floor)
    obs = jnp.full(SMALL_SIZE, 0.5)
    return policy.apply(policy.init(jax.random.key(0), obs), obs)[0]


RETURNS = [
    "return action(steer=beta(w), gas=truncated_normal(w, std=0.2))",
    "return action(steer=tanh_normal(w, std=w), gas=beta(w, std=fixed(0.05)))",
    "return action(steer=normal(w, std=exact(w)), gas=normal(w, std=exact(w * w)))",
    "return action(steer=normal(w), gas=normal(w), coupling=w)",
    "return action(steer=normal(w), gas=normal(w), coupling=stack(0.5 * w))",
]


@pytest.mark.parametrize("final", RETURNS)
def test_printed_heads_read_back(final):
    first = structure(final)
    assert parse(render(first), SMALL).structure == first


def test_each_family_and_coupling_has_its_own_hashes():
    finals = [
        "return action(steer=normal(w), gas=normal(w))",
        "return action(steer=beta(w), gas=normal(w))",
        "return action(steer=truncated_normal(w), gas=normal(w))",
        "return action(steer=normal(w), gas=normal(w), coupling=0.5)",
        "return action(steer=normal(w), gas=normal(w), coupling=w)",
    ]
    for identity in (semantic_hash, interface_hash):
        assert len({identity(structure(final)) for final in finals}) == len(finals)


def test_families_meet_the_range_of_their_action():
    d = distribution("return action(steer=beta(0.2, std=0.3), gas=tanh_normal(0.4))")
    assert isinstance(d, Mixed)
    assert d.families == ("beta", "tanh_normal")
    assert (d.low, d.high) == ((-1.0, 0.0), (1.0, 1.0))
    np.testing.assert_allclose(d.location, [0.2, 0.4], rtol=1e-6)
    # steer: as written; tanh_normal: a tenth of 1 before the tanh, not of gas's 0.5.
    np.testing.assert_allclose(d.scale, [0.3, 0.1], rtol=1e-5)
    assert d.mode()[1] == pytest.approx(0.5 + 0.5 * np.tanh(0.4), rel=1e-5)


def test_a_std_floor_counts_from_the_families_own_range():
    final = "return action(steer=beta(w), gas=tanh_normal(w))"
    np.testing.assert_allclose(distribution(final, std_floor=0.4).scale, [0.4, 0.4])
    final = "return action(steer=beta(w), gas=truncated_normal(w))"
    np.testing.assert_allclose(distribution(final, std_floor=0.4).scale, [0.4, 0.2])


def test_an_exact_std_has_no_floor_and_no_ceiling():
    # std is kept in [0.001, 1] of the half range otherwise.
    final = "return action(steer=normal(w, std=exact(big)), gas=normal(w, std=big))"
    d = distribution(final, "big = 10 * w")
    np.testing.assert_allclose(d.std, [5.0, 0.5])


def test_coupling_is_a_vector_or_for_two_actions_a_number():
    final = "return action(steer=normal(0), gas=normal(0.5), coupling=0.75)"
    d = distribution(final)
    assert isinstance(d, CoupledNormal)
    # Correlation 0.75 / sqrt(1 + 0.75^2) = 0.6.
    (first,), (across, own) = d.factor()
    assert across / jnp.hypot(across, own) == pytest.approx(0.6, rel=1e-5)
    assert first == pytest.approx(float(d.std[0]))
    vector = distribution(final.replace("0.75", "pairs"), "pairs = 0 * obs.tiles.x[:1]")
    np.testing.assert_array_equal(vector.coupling, [0.0])


REFUSALS = {
    "return action(steer=normal(w), gas=beta(w), coupling=w)": (
        "HEAD line 3: `coupling=w` needs two or more actions, all normal; delete it"
    ),
    "return action(steer=normal(w), gas=normal(w), coupling=obs.tiles.x)": (
        "HEAD line 3: `obs.tiles.x` is a vector of 3 for 1 pairs; "
        "write `coupling=stack(...)` of gas with steer"
    ),
    "return action(steer=beta(w, 1, 2), gas=normal(w))": (
        "HEAD line 3: `beta(w, 1, 2)` is not a beta head; "
        "write `beta(mean)` or `beta(mean, std=s)`"
    ),
    "return action(steer=gamma(w), gas=normal(w))": (
        "HEAD line 3: `steer=gamma(w)`: `steer` is continuous; write "
        "`steer=normal(mean)` (or truncated_normal, tanh_normal, beta)"
    ),
    "return action(steer=normal(w, std=exact(0.1)), gas=normal(w))": (
        "HEAD line 3: `exact(0.1)` is a number; write `std=fixed(number)`"
    ),
}


@pytest.mark.parametrize("final", REFUSALS)
def test_refused_heads(final):
    assert problems(f"{HEAD}def policy(obs):\n    {final}\n") == [REFUSALS[final]]


def test_a_program_may_call_an_angle_beta():
    assert structure("return action(steer=normal(beta), gas=normal(w))", "beta = w * 2")
