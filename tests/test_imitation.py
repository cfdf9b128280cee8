"""Fitting, on a policy whose optimum is known: least squares."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from fits import (
    PLAIN,
    SCHEMA,
    Toy,
    anchor_of,
    demonstration,
    least_squares,
    linear,
    policy_of,
)

from structjax.imitation import (
    PRESETS,
    ImitationConfig,
    fit,
    fit_anchored,
    fit_best,
    nll,
    restart_starts,
    split,
    std_parameters,
)
from structjax.language.structure import (
    Head,
    Number,
    Parameter,
    Structure,
    Variable,
    Weight,
)
from structjax.policy import MLPPolicy, StructuredPolicy, variables_from, weights
from structjax.schema import ActionField, Field, Schema

_KEY = jax.random.key(0)


@pytest.fixture
def toy():
    return Toy(policy_of(), *demonstration())


def test_nll_is_the_negative_mean_log_density(toy):
    # a = b = 0, std = 0.5, actions 0.5: -log N(0.5; 0, 0.5)
    #   = 0.5 + log(0.5) + 0.5 log(2 pi) = 0.5 - 0.693147 + 0.918939 = 0.725791
    variables = variables_from(
        toy.policy.structure, {"a": 0.0, "b": 0.0, "std_push": 0.5}
    )
    value = nll(toy.policy, variables, np.ones((4, 2)), np.full((4, 1), 0.5))
    assert float(value) == pytest.approx(0.725791, abs=1e-5)
    near = nll(toy.policy, variables, np.ones((4, 2)), np.zeros((4, 1)))
    assert near < value, "likelier actions have a smaller loss"


def test_the_fit_is_the_least_squares_solution(toy):
    result = fit_best(*toy, config=PLAIN, key=jax.random.key(0))
    coefficients, rms = least_squares(toy.observations, toy.actions)
    values = weights(toy.policy, result.variables)
    np.testing.assert_allclose([values["a"], values["b"]], coefficients, atol=1e-3)
    assert float(values["std_push"]) == pytest.approx(rms, rel=1e-2)
    # At the optimum the NLL is 0.5 + log(rms) + 0.5 log(2 pi).
    least = 0.5 + math.log(rms) + 0.5 * math.log(2 * math.pi)
    assert result.report.nll_train == pytest.approx(least, abs=1e-3)
    assert result.report.converged


def test_minibatches_reach_the_same_optimum():
    observations, actions = demonstration(number=2000)
    config = ImitationConfig(restarts=1, batch_size=128, num_updates=500)
    result = fit_best(
        policy_of(), observations, actions, config=config, key=jax.random.key(1)
    )
    values = weights(policy_of(), result.variables)
    coefficients, _ = least_squares(observations, actions)
    np.testing.assert_allclose([values["a"], values["b"]], coefficients, atol=0.02)


def test_anchor_without_strength_is_the_fit_and_infinity_the_start(toy):
    # A strength s adds s |w - w0|^2: for the linear model with known std the optimum
    # is ridge regression about w0 (next test); here only the ends and the order.
    chosen = fit_anchored(
        *toy,
        strengths=(0.0, 1.0, 1e4, math.inf),
        evaluate=lambda stacked: np.asarray([1.0, 3.0, 2.0, 0.0]),
        config=PLAIN,
        key=jax.random.key(0),
    )
    values = weights(toy.policy, chosen.stacked)
    plain = fit_best(*toy, config=PLAIN, key=jax.random.key(0))
    np.testing.assert_allclose(
        values["a"][0], weights(toy.policy, plain.variables)["a"], rtol=1e-5
    )
    assert float(values["a"][3]) == 0.5
    assert float(values["a"][2]) == pytest.approx(0.5, abs=0.01)
    distances = [row.distance for row in chosen.rows]
    assert distances == sorted(distances, reverse=True)
    assert distances[3] == 0
    assert chosen.chosen == 1
    assert float(weights(toy.policy, chosen.variables)["a"]) == float(values["a"][1])
    assert chosen.rows[0].nll == pytest.approx(plain.report.nll_train, abs=1e-5)


def test_equal_returns_choose_the_strongest_anchor(toy):
    config = ImitationConfig(num_updates=2, restarts=1)
    tied = fit_anchored(
        *toy,
        strengths=(0.0, math.inf, 1.0),
        evaluate=lambda stacked: np.zeros(3),
        config=config,
        key=jax.random.key(0),
    )
    assert tied.chosen == 1
    assert tied.report is None


def test_anchoring_is_ridge_regression_about_the_written_values():
    # With std fixed at s: minimise |y - X w|^2 / (2 N s^2) + k |w - w0|^2, so
    # (X'X / (N s^2) + 2 k) w = X'y / (N s^2) + 2 k w0.
    observations, actions = demonstration()
    structure = linear()
    fixed = Structure(
        structure.parameters[:2],
        structure.latents,
        (Head("push", "normal", (Variable("pull"), Number(0.5))),),
    )
    policy = StructuredPolicy(fixed, SCHEMA)
    strength = 0.7
    scale = len(observations) * 0.25
    left = observations.T @ observations / scale + 2 * strength * np.eye(2)
    right = observations.T @ actions[:, 0] / scale + 2 * strength * 0.5
    config = ImitationConfig(
        anchor=strength,
        restarts=1,
        validation_share=0.0,
        num_updates=400,
        final_learning_rate=0.01,
    )
    result = fit_best(
        policy, observations, actions, config=config, key=jax.random.key(0)
    )
    values = weights(policy, result.variables)
    np.testing.assert_allclose(
        [values["a"], values["b"]], np.linalg.solve(left, right), atol=2e-3
    )


def test_stds_are_not_anchored(toy):
    anchored = fit_anchored(
        *toy,
        strengths=(1e4,),
        evaluate=lambda stacked: np.zeros(1),
        config=PLAIN,
        key=jax.random.key(0),
    )
    values = weights(toy.policy, anchored.variables)
    # With a = b = 0.5 held, the best std is the RMS of y - 0.5 x - 0.5 y.
    rms = np.sqrt(np.mean((toy.actions[:, 0] - toy.observations.sum(1) * 0.5) ** 2))
    assert float(values["std_push"]) == pytest.approx(rms, rel=0.02)
    assert std_parameters(toy.policy.structure) == {"std_push"}


def test_a_mapped_restart_is_the_single_fit_and_fits_repeat_exactly(toy):
    data = split(
        *map(jnp.asarray, toy[1:]), share=0.2, blocks=10, key=jax.random.key(3)
    )
    config = ImitationConfig(num_updates=30, batch_size=64)
    starts = variables_from(
        toy.policy.structure, restart_starts(toy.policy.structure, jax.random.key(4), 3)
    )

    def one(start):
        anchor = anchor_of(toy.policy)
        key = jax.random.key(5)
        return fit(toy.policy, start, data, anchor=anchor, config=config, key=key)

    rows = jax.jit(jax.vmap(one))(starts)
    single = jax.jit(one)(jax.tree.map(lambda leaf: leaf[1], starts))
    again = jax.jit(one)(jax.tree.map(lambda leaf: leaf[1], starts))
    row = jax.tree.map(lambda leaf: leaf[1], rows)
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6), row, single
    )
    jax.tree.map(np.testing.assert_array_equal, single, again)
    assert rows.train_curve.shape == (3, 30)


def test_stacked_demonstrations_are_fitted_each_on_its_own():
    policy = policy_of()
    pairs = [demonstration(0), demonstration(1, a=-0.4)]
    stacked = [jnp.stack(arrays) for arrays in zip(*pairs, strict=True)]

    def one(observations, actions):
        data = split(observations, actions, share=0.0, blocks=10, key=jax.random.key(0))
        return fit(
            policy,
            variables_from(policy.structure, {}),
            data,
            anchor=anchor_of(policy),
            config=PLAIN,
            key=jax.random.key(1),
        )

    values = weights(policy, jax.jit(jax.vmap(one))(*stacked).variables)
    for i, pair in enumerate(pairs):
        coefficients, _ = least_squares(*pair)
        assert float(values["a"][i]) == pytest.approx(coefficients[0], abs=1e-3)


def test_the_std_floor_holds_in_the_saved_weights(toy):
    config = ImitationConfig(
        validation_share=0.0, restarts=1, num_updates=200, std_floor=0.15
    )
    fitted = fit_best(*toy, config=config, key=jax.random.key(0))
    # 0.15 of the half range 2 is 0.3, above the residual's 0.1.
    values = weights(toy.policy, fitted.variables)
    assert float(values["std_push"]) == pytest.approx(0.3, rel=1e-5)
    assert fitted.report.std["push"] == pytest.approx(0.3, rel=1e-5)


def test_restarts_begin_with_the_written_values_and_stay_inside_the_bounds():
    structure = Structure(
        (
            Parameter("free", -2.0),
            Parameter("zero", 0.0),
            Parameter("share", 0.9, 0.0, 1.0),
            Parameter("gain", 1e-4, 0.0),
        ),
        (),
        (),
    )
    values = restart_starts(structure, jax.random.key(0), 400)
    assert [column[0] for column in values.values()] == [-2.0, 0.0, 0.9, 1e-4]
    logs = np.log(values["free"] / -2.0)
    # 400 draws: the mean's standard error is 0.015, the deviation's 0.011.
    assert abs(logs.mean()) < 0.06
    assert logs[1:].std() == pytest.approx(0.3, abs=0.045)
    assert values["zero"][1:].std() == pytest.approx(0.1, abs=0.015)
    assert values["share"].max() == pytest.approx(0.999)
    assert values["gain"].min() == pytest.approx(1e-4), "no farther from the bound"
    variables_from(structure, values)  # raises outside the bounds


def test_choices_are_fitted_by_their_log_odds():
    # Logits (0, a): with a share p of ones the optimum is a = log(p / (1 - p)).
    schema = Schema(
        (Field("x", None, "", -1.0, 1.0, "unused"),),
        (ActionField("turn", "turn", choices=("left", "right")),),
    )
    structure = Structure(
        (Parameter("a", 0.1),),
        (),
        (Head("turn", "categorical", (Number(0.0), Weight("a"))),),
    )
    policy = StructuredPolicy(structure, schema)
    actions = np.array([1] * 75 + [0] * 25)
    fitted = fit_best(
        policy, np.zeros((100, 1)), actions, config=PLAIN, key=jax.random.key(0)
    )
    value = weights(policy, fitted.variables)["a"]
    assert float(value) == pytest.approx(math.log(3), abs=1e-3)
    assert fitted.report.saturation == {}


def test_a_network_is_fitted_too(toy):
    policy = MLPPolicy(SCHEMA, hidden=(8,))
    config = ImitationConfig(num_updates=100, restarts=2)
    fitted = fit_best(policy, *toy[1:], config=config, key=jax.random.key(0))
    assert fitted.report.nll_fitted < fitted.report.nll_start
    assert fitted.report.weights == ()
    assert len(fitted.report.restart_objectives) == 2


def test_the_papers_preset():
    paper = PRESETS["paper"]
    assert (paper.learning_rate, paper.batch_size, paper.num_updates) == (
        0.03,
        512,
        1000,
    )
    assert (paper.restarts, paper.validation_share, paper.anchor) == (1, 0.0, 0.0)
    assert paper.final_learning_rate == 1.0
