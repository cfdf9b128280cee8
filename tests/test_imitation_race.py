"""Many restarts: the race stops most of them, and changes nothing for the others."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from structjax.fitting import RACE_FROM, fit, race
from structjax.imitation import (
    Anchor,
    ImitationConfig,
    fit_best,
    restart_starts,
    split,
)
from structjax.language.parse import parse
from structjax.policy import StructuredPolicy, variables_from
from structjax.schema import ActionField, Field, Schema

SCHEMA = Schema(
    observations=(Field("x", None, "m", -3.0, 3.0, "place"),),
    actions=(ActionField("push", "push", low=-2.0, high=2.0),),
)
PROGRAM = """
slope = weight(0.5)
phase = weight(1.0)


def policy(obs):
    wave = sin(slope * obs.x + phase)
    return action(push=normal(wave))
"""
POLICY = StructuredPolicy(parse(PROGRAM, SCHEMA).structure, SCHEMA)
KEY = jax.random.key(0)
WHOLE = ImitationConfig(
    num_updates=40, learning_rate=0.1, final_learning_rate=1.0, validation_share=0.0
)


def demonstration(number=200):
    x = np.random.default_rng(0).uniform(-3, 3, (number, 1)).astype(np.float32)
    return x, np.sin(2.0 * x - 0.5)


def starts_of(number):
    return variables_from(
        POLICY.structure, restart_starts(POLICY.structure, KEY, number)
    )


def pieces(config, number=RACE_FROM):
    """Starts, and what `fit` and `race` take beside them."""
    arrays = map(jnp.asarray, demonstration())
    data = split(*arrays, share=config.validation_share, blocks=10, key=KEY)
    written = variables_from(POLICY.structure, {})
    anchor = Anchor(written, jax.tree.map(lambda _: 1.0, written), jnp.asarray(0.0))
    return starts_of(number), {"data": data, "anchor": anchor, "key": KEY}


def every_fit(config, starts, rest):
    one = jax.vmap(lambda start: fit(POLICY, start, config=config, **rest))
    return jax.tree.map(np.asarray, jax.jit(one)(starts))


def raced(config, starts, rest):
    result = jax.jit(lambda s: race(POLICY, s, config=config, **rest))(starts)
    return jax.tree.map(np.asarray, result)


def test_the_best_quarter_after_a_quarter_goes_on():
    # All steps in a batch and a constant step size: ten updates of forty are a fit of
    # ten, and what stops there is that fit.
    starts, rest = pieces(WHOLE)
    short = every_fit(replace(WHOLE, num_updates=10), starts, rest)
    result = raced(WHOLE, starts, rest)
    ahead = np.sort(np.argsort(short.objective)[: RACE_FROM // 4])
    np.testing.assert_array_equal(np.flatnonzero(result.updates == 40), ahead)
    behind = np.setdiff1d(np.arange(RACE_FROM), ahead)
    assert set(result.updates[behind]) == {10}
    np.testing.assert_allclose(
        result.objective[behind], short.objective[behind], rtol=1e-5
    )
    np.testing.assert_allclose(
        result.train_curve[behind, :10], short.train_curve[behind], rtol=1e-5
    )
    assert np.isnan(result.train_curve[behind, 10:]).all()
    assert np.isfinite(result.train_curve[ahead]).all()


@pytest.mark.parametrize("share", [0.0, 0.2])
def test_what_goes_on_ends_as_it_would_have_without_the_race(share):
    config = replace(
        WHOLE, validation_share=share, batch_size=32, final_learning_rate=0.1
    )
    starts, rest = pieces(config)
    result, without = raced(config, starts, rest), every_fit(config, starts, rest)
    finished = result.updates == config.num_updates
    assert finished.sum() == RACE_FROM // 4
    kept, same = (
        jax.tree.map(lambda leaf: leaf[finished], rows) for rows in (result, without)
    )
    # Equal also where nothing is held out and a curve is NaN.
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, 1e-3, 1e-5), kept, same)


def test_a_broken_start_does_not_go_on():
    starts, rest = pieces(WHOLE)
    starts = jax.tree.map(lambda leaf: leaf.at[:3].set(jnp.nan), starts)
    result = raced(WHOLE, starts, rest)
    assert (result.updates[:3] == 10).all()
    assert (result.updates == 40).sum() == RACE_FROM // 4


def test_only_many_restarts_race_and_only_where_they_may():
    data = demonstration()

    def spread(number, **options):
        config = replace(WHOLE, restarts=number, **options)
        return fit_best(POLICY, *data, config=config, key=KEY).report

    few, many = spread(RACE_FROM - 1), spread(RACE_FROM)
    unraced = spread(RACE_FROM, race=False)
    assert np.isfinite(unraced.restart_objectives).all()
    # A stopped restart stands where it stopped, far from where it would have ended.
    moved = ~np.isclose(many.restart_objectives, unraced.restart_objectives, rtol=1e-3)
    assert moved.sum() > RACE_FROM // 2
    assert many.best_restart == unraced.best_restart
    assert (
        few.restart_objectives == spread(RACE_FROM - 1, race=False).restart_objectives
    )


def test_a_stopped_restart_is_never_kept():
    # One more update of so large a step makes every fit worse than it was.
    wild = replace(
        WHOLE, num_updates=4, learning_rate=3.0, restarts=RACE_FROM, batch_size=4
    )
    report = fit_best(POLICY, *demonstration(), config=wild, key=KEY).report
    order = np.argsort(report.restart_objectives)
    assert order[0] != report.best_restart, "the premise: a stopped one is the best"
    assert np.isfinite(report.gradient_norm_max)
