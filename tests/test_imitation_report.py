"""What a fit holds out, keeps, reports and refuses."""

import json
import math
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from fits import (
    PLAIN,
    SCHEMA,
    Toy,
    anchor_of,
    call,
    demonstration,
    least_squares,
    linear,
    policy_of,
)

from structjax.errors import StructjaxError
from structjax.imitation import (
    ImitationConfig,
    Split,
    fit,
    fit_best,
    nll,
    split,
)
from structjax.language.structure import (
    Head,
    Latent,
    Number,
    Observation,
    Parameter,
    Structure,
    Variable,
    Weight,
)
from structjax.policy import StructuredPolicy, variables_from, weights

_KEY = jax.random.key(0)


@pytest.fixture
def toy():
    return Toy(policy_of(), *demonstration())


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
    observations, actions = demonstration(noise=0.1)
    data = split(
        jnp.asarray(observations),
        jnp.asarray(actions),
        share=0.2,
        blocks=10,
        key=jax.random.key(0),
    )
    spoilt = data._replace(actions=-data.actions)
    policy = policy_of(a=0.8, b=-0.3, std=0.1)
    result = jax.jit(
        lambda: fit(
            policy,
            variables_from(policy.structure, {}),
            spoilt,
            anchor=anchor_of(policy),
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
    observations, actions = map(jnp.asarray, demonstration())
    data = Split(observations[16:], actions[16:], observations[:16], actions[:16])
    held, _ = least_squares(observations[:16], actions[:16])
    trained, rms = least_squares(observations[16:], actions[16:])
    near = (1 - 0.1) * trained + 0.1 * held
    policy = policy_of(a=float(near[0]), b=float(near[1]), std=float(rms))
    start = variables_from(policy.structure, {})
    result = jax.jit(
        lambda: fit(
            policy, start, data, anchor=anchor_of(policy), config=PLAIN, key=_KEY
        )
    )()
    at_start = nll(policy, start, data.held_observations, data.held_actions)
    assert float(result.validation_nll) > float(at_start)
    values = weights(policy, result.variables)
    np.testing.assert_allclose([values["a"], values["b"]], trained, atol=1e-3)


def test_the_report_names_dead_weights_and_saturated_actions():
    observations, actions = demonstration(a=3.0, b=0.0)
    policy = policy_of(dead=0.3)
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
    ratio = call("div", call("mul", Weight("a"), x), x)
    ratio = call("where", call("gt", x, Number(0.0)), ratio, Number(0.0))
    silent = call("mul", Weight("dead"), call("relu", Number(-1.0)))
    structure = Structure(
        parameters=(Parameter("a", 0.5), Parameter("dead", 0.3), Parameter("s", 0.2)),
        latents=(),
        heads=(Head("push", "normal", (call("add", ratio, silent), Weight("s"))),),
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
    structure = linear()
    return StructuredPolicy(
        Structure(
            (*structure.parameters, Parameter("c", 1.0)),
            (*structure.latents, Latent("sick", mean)),
            (Head("push", "normal", (Variable("sick"), Weight("std_push"))),),
        ),
        SCHEMA,
    )


OVERFLOW = call("exp", call("mul", Weight("c"), Number(1000.0)))


def test_gradients_that_are_not_finite_are_counted_and_skipped():
    # In where(1 > 0, pull, exp(1000 c)) the value is finite and the derivative with
    # respect to c is 0 * infinity; a and b still learn.
    condition = call("gt", Number(1.0), Number(0.0))
    policy = _with_mean(call("where", condition, Variable("pull"), OVERFLOW))
    observations, actions = demonstration()
    fitted = fit_best(policy, observations, actions, config=PLAIN, key=_KEY)
    assert fitted.report.gradient_nonfinite == PLAIN.num_updates
    values = weights(policy, fitted.variables)
    coefficients, _ = least_squares(observations, actions)
    assert float(values["a"]) == pytest.approx(coefficients[0], abs=1e-3)
    assert float(values["c"]) == 1.0


def test_a_program_without_a_finite_likelihood_is_refused():
    policy = _with_mean(call("add", Variable("pull"), OVERFLOW))
    config = ImitationConfig(num_updates=3, restarts=2)
    with pytest.raises(StructjaxError, match="no restart of the fit has a finite"):
        fit_best(policy, *demonstration(), config=config, key=_KEY)


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
        fit_best(policy_of(), observations, actions, key=jax.random.key(0))


@pytest.mark.parametrize(
    "options", [{"restarts": 0}, {"validation_share": 1.0}, {"anchor": math.inf}]
)
def test_impossible_options_are_refused(options):
    with pytest.raises(StructjaxError, match=f"option {next(iter(options))} is"):
        ImitationConfig(**options)
