"""Fitting, on a policy whose optimum is known: least squares."""

import json
import math
from dataclasses import replace
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from structjax.errors import StructjaxError
from structjax.imitation import (
    PRESETS,
    Anchor,
    ImitationConfig,
    Split,
    fit,
    fit_anchored,
    fit_best,
    nll,
    restart_starts,
    split,
    std_parameters,
)
from structjax.language.structure import (
    Call,
    Head,
    Latent,
    Number,
    Observation,
    Parameter,
    Structure,
    Variable,
    Weight,
)
from structjax.policy import MLPPolicy, StructuredPolicy, variables_from, weights
from structjax.schema import ActionField, Field, Schema

_KEY = jax.random.key(0)

SCHEMA = Schema(
    observations=(
        Field("x", None, "m", -3.0, 3.0, "first"),
        Field("y", None, "m", -3.0, 3.0, "second"),
    ),
    actions=(ActionField("push", "push", low=-2.0, high=2.0),),
)


def _call(name, *arguments):
    return Call(name, arguments)


def _linear(a=0.5, b=0.5, std=0.2, dead=None):
    """push = normal(a * x + b * y [+ relu(-1) * dead], std)."""
    mean = _call(
        "add",
        _call("mul", Weight("a"), Observation("x")),
        _call("mul", Weight("b"), Observation("y")),
    )
    parameters = [Parameter("a", a), Parameter("b", b)]
    if dead is not None:
        parameters.append(Parameter("dead", dead))
        silent = _call("mul", Weight("dead"), _call("relu", Number(-1.0)))
        mean = _call("add", mean, silent)
    return Structure(
        parameters=(*parameters, Parameter("std_push", std, 2e-3, 2.0)),
        latents=(Latent("pull", mean),),
        heads=(Head("push", "normal", (Variable("pull"), Weight("std_push"))),),
    )


def _policy(**values):
    return StructuredPolicy(_linear(**values), SCHEMA)


def _demonstration(seed=0, number=300, a=0.8, b=-0.3, noise=0.1):
    generator = np.random.default_rng(seed)
    observations = generator.normal(size=(number, 2)).astype(np.float32)
    push = observations @ np.array([a, b]) + noise * generator.normal(size=number)
    return observations, push[:, None].astype(np.float32)


def _least_squares(observations, actions):
    """The maximum of the Gaussian likelihood: coefficients and residual RMS."""
    solution, *_ = np.linalg.lstsq(observations, actions, rcond=None)
    return solution[:, 0], np.sqrt(np.mean((actions - observations @ solution) ** 2))


PLAIN = ImitationConfig(
    validation_share=0.0, restarts=1, num_updates=1000, final_learning_rate=0.01
)


class Toy(NamedTuple):
    policy: StructuredPolicy
    observations: np.ndarray
    actions: np.ndarray


@pytest.fixture
def toy():
    return Toy(_policy(), *_demonstration())


def _anchor(policy, strength=0.0):
    written = variables_from(policy.structure, {})
    mask = jax.tree.map(lambda _: 1.0, written)
    return Anchor(written, mask, jnp.asarray(strength))


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
    coefficients, rms = _least_squares(toy.observations, toy.actions)
    values = weights(toy.policy, result.variables)
    np.testing.assert_allclose([values["a"], values["b"]], coefficients, atol=1e-3)
    assert float(values["std_push"]) == pytest.approx(rms, rel=1e-2)
    # At the optimum the NLL is 0.5 + log(rms) + 0.5 log(2 pi).
    least = 0.5 + math.log(rms) + 0.5 * math.log(2 * math.pi)
    assert result.report.nll_train == pytest.approx(least, abs=1e-3)
    assert result.report.converged


def test_minibatches_reach_the_same_optimum():
    observations, actions = _demonstration(number=2000)
    config = ImitationConfig(restarts=1, batch_size=128, num_updates=500)
    result = fit_best(
        _policy(), observations, actions, config=config, key=jax.random.key(1)
    )
    values = weights(_policy(), result.variables)
    coefficients, _ = _least_squares(observations, actions)
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
    observations, actions = _demonstration()
    structure = _linear()
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
        anchor = _anchor(toy.policy)
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
    policy = _policy()
    pairs = [_demonstration(0), _demonstration(1, a=-0.4)]
    stacked = [jnp.stack(arrays) for arrays in zip(*pairs, strict=True)]

    def one(observations, actions):
        data = split(observations, actions, share=0.0, blocks=10, key=jax.random.key(0))
        return fit(
            policy,
            variables_from(policy.structure, {}),
            data,
            anchor=_anchor(policy),
            config=PLAIN,
            key=jax.random.key(1),
        )

    values = weights(policy, jax.jit(jax.vmap(one))(*stacked).variables)
    for i, pair in enumerate(pairs):
        coefficients, _ = _least_squares(*pair)
        assert float(values["a"][i]) == pytest.approx(coefficients[0], abs=1e-3)


def test_the_split_holds_out_whole_blocks():
    steps = jnp.arange(23.0)
    data = split(steps[:, None], steps, share=0.2, blocks=10, key=jax.random.key(0))
    # 10 blocks of 2 steps and 3 left over; 0.2 holds out 2 blocks.
    held = np.sort(np.asarray(data.held_actions)).reshape(2, 2)
    assert (held[:, 0] % 2 == 0).all()
    assert (held[:, 1] == held[:, 0] + 1).all()
    both = np.concatenate([data.actions, data.held_actions])
    np.testing.assert_array_equal(np.sort(both), np.arange(23.0))
    other = split(steps[:, None], steps, share=0.2, blocks=10, key=jax.random.key(1))
    assert set(held.ravel()) != set(np.asarray(other.held_actions).ravel())


def test_the_kept_parameters_are_the_best_on_the_held_out_steps():
    # The training actions are negated: a start at the optimum of the held-out steps
    # must not get worse.
    observations, actions = _demonstration(noise=0.1)
    data = split(
        jnp.asarray(observations),
        jnp.asarray(actions),
        share=0.2,
        blocks=10,
        key=jax.random.key(0),
    )
    spoilt = data._replace(actions=-data.actions)
    policy = _policy(a=0.8, b=-0.3, std=0.1)
    result = jax.jit(
        lambda: fit(
            policy,
            variables_from(policy.structure, {}),
            spoilt,
            anchor=_anchor(policy),
            config=ImitationConfig(num_updates=50),
            key=jax.random.key(0),
        )
    )()
    # Training pulls a and b to the opposite sign, so the start is the best seen.
    assert float(weights(policy, result.variables)["a"]) == pytest.approx(0.8)
    assert float(result.validation_nll) < float(result.validation_curve[-1])


def test_a_best_look_that_may_be_luck_gives_way_to_the_last_parameters():
    # 16 held-out steps say next to nothing about a difference of 0.005 in a, so the
    # start, better there by chance, must not stop a fit that 284 steps agree on.
    observations, actions = map(jnp.asarray, _demonstration())
    data = Split(observations[16:], actions[16:], observations[:16], actions[:16])
    held, _ = _least_squares(observations[:16], actions[:16])
    trained, rms = _least_squares(observations[16:], actions[16:])
    near = (1 - 0.1) * trained + 0.1 * held
    policy = _policy(a=float(near[0]), b=float(near[1]), std=float(rms))
    start = variables_from(policy.structure, {})
    result = jax.jit(
        lambda: fit(policy, start, data, anchor=_anchor(policy), config=PLAIN, key=_KEY)
    )()
    at_start = nll(policy, start, data.held_observations, data.held_actions)
    assert float(result.validation_nll) > float(at_start)
    values = weights(policy, result.variables)
    np.testing.assert_allclose([values["a"], values["b"]], trained, atol=1e-3)


def test_the_report_names_dead_weights_and_saturated_actions():
    observations, actions = _demonstration(a=3.0, b=0.0)
    policy = _policy(dead=0.3)
    fitted = fit_best(
        policy, observations, actions, config=PLAIN, key=jax.random.key(0)
    )
    report = fitted.report
    assert report.dead == ("dead",)
    rows = {row.name: row for row in report.weights}
    assert rows["dead"].move == 0
    assert rows["dead"].start == rows["dead"].fitted == pytest.approx(0.3)
    assert rows["a"].live
    assert rows["a"].live_at_start
    assert rows["a"].move == pytest.approx(rows["a"].fitted - 0.5, abs=1e-5)
    # push = 3 x with x normal: |push| > 2 for about half of the steps, P(|x| > 2/3).
    share = np.mean(np.abs(observations[:, 0] * rows["a"].fitted) > 2)
    assert report.saturation["push"] == pytest.approx(share, abs=0.02)
    assert 0.4 < share < 0.6
    assert report.gradient_nonfinite == 0
    assert report.std["push"] == pytest.approx(rows["std_push"].fitted)
    assert math.isnan(report.nll_validation)
    assert json.loads(json.dumps(report.to_dict()))["dead"] == ["dead"]


def test_one_step_without_a_gradient_makes_no_weight_dead_or_live():
    # push = where(x > 0, a x / x, 0) + relu(-1) dead: at x = 0 the branch not taken is
    # 0 / 0, so that the push is finite and its derivative by a NaN.
    x = Observation("x")
    ratio = _call("div", _call("mul", Weight("a"), x), x)
    ratio = _call("where", _call("gt", x, Number(0.0)), ratio, Number(0.0))
    silent = _call("mul", Weight("dead"), _call("relu", Number(-1.0)))
    structure = Structure(
        parameters=(Parameter("a", 0.5), Parameter("dead", 0.3), Parameter("s", 0.2)),
        latents=(),
        heads=(Head("push", "normal", (_call("add", ratio, silent), Weight("s"))),),
    )
    policy = StructuredPolicy(structure, SCHEMA)
    observations = np.array([[0.0, 0.0], [1.0, 0.0]], np.float32)
    report = fit_best(
        policy,
        observations,
        np.zeros((2, 1), np.float32),
        config=replace(PLAIN, num_updates=1),
        key=jax.random.key(0),
    ).report
    assert report.dead == ("dead",)


def test_too_few_updates_are_reported_as_not_converged(toy):
    short = ImitationConfig(num_updates=20, restarts=1, final_learning_rate=1.0)
    report = fit_best(*toy, config=short, key=jax.random.key(0)).report
    assert not report.converged
    assert report.late_gain > 0.05


def _with_mean(mean):
    """The linear structure with another mean and one more parameter, `c` = 1."""
    structure = _linear()
    return StructuredPolicy(
        Structure(
            (*structure.parameters, Parameter("c", 1.0)),
            (*structure.latents, Latent("sick", mean)),
            (Head("push", "normal", (Variable("sick"), Weight("std_push"))),),
        ),
        SCHEMA,
    )


OVERFLOW = _call("exp", _call("mul", Weight("c"), Number(1000.0)))


def test_gradients_that_are_not_finite_are_counted_and_skipped():
    # In where(1 > 0, pull, exp(1000 c)) the value is finite and the derivative with
    # respect to c is 0 * infinity; a and b still learn.
    condition = _call("gt", Number(1.0), Number(0.0))
    policy = _with_mean(_call("where", condition, Variable("pull"), OVERFLOW))
    observations, actions = _demonstration()
    fitted = fit_best(policy, observations, actions, config=PLAIN, key=_KEY)
    assert fitted.report.gradient_nonfinite == PLAIN.num_updates
    values = weights(policy, fitted.variables)
    coefficients, _ = _least_squares(observations, actions)
    assert float(values["a"]) == pytest.approx(coefficients[0], abs=1e-3)
    assert float(values["c"]) == 1.0


def test_a_program_without_a_finite_likelihood_is_refused():
    policy = _with_mean(_call("add", Variable("pull"), OVERFLOW))
    config = ImitationConfig(num_updates=3, restarts=2)
    with pytest.raises(StructjaxError, match="no restart of the fit has a finite"):
        fit_best(policy, *_demonstration(), config=config, key=_KEY)


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


@pytest.mark.parametrize(
    ("observations", "actions", "message"),
    [
        (np.zeros((5, 3)), np.zeros((5, 1)), r"observations \[N, 2\]"),
        (np.zeros((5, 2)), np.zeros((5, 2)), r"actions \[N, 1\]"),
        (np.zeros((5, 2)), np.zeros((4, 1)), r"shape \(5, 2\) and \(4, 1\)"),
        (np.full((5, 2), np.nan), np.zeros((5, 1)), "NaN or infinite"),
    ],
)
def test_foreign_demonstrations_are_refused(observations, actions, message):
    with pytest.raises(StructjaxError, match=message):
        fit_best(_policy(), observations, actions, key=jax.random.key(0))


@pytest.mark.parametrize(
    "options", [{"restarts": 0}, {"validation_share": 1.0}, {"anchor": math.inf}]
)
def test_impossible_options_are_refused(options):
    with pytest.raises(StructjaxError, match=f"option {next(iter(options))} is"):
        ImitationConfig(**options)
