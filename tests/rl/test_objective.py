"""The surrogate: its gradient where the policy played, clipping by hand, extremes."""

from dataclasses import replace
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from structjax.rl.batch import Steps
from structjax.rl.config import RLConfig, scalars
from structjax.rl.objective import Surrogate, surrogate

T = 6
KINDS = [
    ("per_step", "truncated"),
    ("window_product", "full"),
    ("window_product", "truncated"),
    ("window_geometric", "full"),
    ("window_geometric", "truncated"),
    ("sequence_geometric", "truncated"),
]
BASE = RLConfig(window=3)


class Judged(NamedTuple):
    found: Surrogate
    slope: jax.Array


@partial(jax.jit, static_argnames="config")
def judged(log_prob, advantage, valid, config, entropy=0.0):
    """The surrogate of log-probabilities `[T, B]`, old ones 0, and its gradient."""

    def objective(log_prob):
        found = surrogate(
            Steps(log_prob, jnp.where(valid, 0.5, 0.0)),
            jnp.zeros_like(log_prob),
            advantage,
            valid,
            config=config,
            scalars=scalars(config),
            entropy=jnp.float32(entropy),
        )
        return found.objective, found

    (_, found), slope = jax.value_and_grad(objective, has_aux=True)(log_prob)
    return Judged(found, slope)


def one_row(log_ratio, advantage, config=BASE, entropy=0.0):
    """Steps of one episode each."""
    log_prob, advantage = (
        jnp.asarray([x], jnp.float32) for x in (log_ratio, advantage)
    )
    valid = jnp.ones(log_prob.shape, bool)
    return judged(log_prob, advantage, valid, config, entropy).found


@pytest.mark.parametrize(("ratio", "ends"), KINDS)
def test_at_ratio_1_an_action_is_credited_with_the_starts_that_cover_it(ratio, ends):
    """dJ/dlogpi_u = sum of A_t over the starts t whose window holds u, over all starts.

    The mean of a geometric ratio divides by the window's length.
    """
    config = replace(BASE, ratio=ratio, window_ends=ends)
    advantage = np.random.default_rng(0).normal(size=(T, 3)).astype(np.float32)
    lengths = (6, 4, 2)
    expected, starts = np.zeros((T, 3)), 0
    for b, length in enumerate(lengths):
        for t in range(length):
            window = {"per_step": range(t, t + 1), "sequence_geometric": range(length)}
            inside = window.get(ratio, range(t, min(t + 3, length)))
            if "window" in ratio and ends == "full" and len(inside) < 3:
                continue
            starts += 1
            weight = len(inside) if "geometric" in ratio else 1
            for u in inside:
                expected[u, b] += advantage[t, b] / weight
    valid = jnp.arange(T)[:, None] < jnp.asarray(lengths)[None]
    advantage = jnp.where(valid, advantage, 0.0)
    at_1 = judged(jnp.zeros((T, 3)), advantage, valid, config)
    np.testing.assert_allclose(at_1.slope, expected / starts, rtol=1e-5, atol=1e-6)
    assert float(at_1.found.ess) == 1
    assert float(at_1.found.clip_share) == 0


def test_one_sided_clipping_by_hand():
    ratio, advantage = [1.5, 1.5, 0.5, 0.5], [1.0, -1.0, 1.0, -1.0]
    found = one_row(np.log(ratio), advantage)
    # 1.2 (clipped), -1.5, 0.5, -0.8 (clipped).
    assert float(found.objective) == pytest.approx((1.2 - 1.5 + 0.5 - 0.8) / 4)
    assert float(found.clip_share) == 0.5
    assert float(found.ess) == pytest.approx(4**2 / (4 * (2 * 1.5**2 + 2 * 0.5**2)))
    assert float(found.max_log_ratio) == pytest.approx(np.log(2))
    uneven = replace(BASE, clip_low=0.4, clip_high=0.1)
    found = one_row(np.log(ratio), advantage, uneven)
    assert float(found.objective) == pytest.approx((1.1 - 1.5 + 0.5 - 0.6) / 4)


def test_dual_clip_bounds_what_a_bad_action_can_cost():
    dual = replace(BASE, dual_clip=3.0)
    ratio, advantage = [5.0, 5.0, 2.0, 0.5], [-1.0, 1.0, -1.0, -1.0]
    # Without: -5, 1.2, -2, -0.8. With c = 3 the first is worth -3.
    assert float(one_row(np.log(ratio), advantage).objective) == pytest.approx(-6.6 / 4)
    bounded = one_row(np.log(ratio), advantage, dual)
    assert float(bounded.objective) == pytest.approx(-4.6 / 4)
    assert float(bounded.clip_share) == 0.75  # all but the ratio of 2
    log_ratio, advantage = jnp.log(jnp.asarray([ratio])), jnp.asarray([advantage])
    slope = judged(log_ratio, advantage, jnp.ones((1, 4), bool), dual).slope
    # Only the third still has a gradient: A rho / 4.
    np.testing.assert_allclose(slope[0], [0, 0, -0.5, 0], atol=1e-6)


def test_entropy_is_added_per_step():
    found = one_row([0.0, 0.0], [1.0, 3.0], entropy=0.1)
    assert float(found.entropy) == 0.5
    assert float(found.objective) == pytest.approx(2 + 0.1 * 0.5)


@pytest.mark.parametrize("distance", [0.5, 1e-2, 1e-4])
def test_divergence_keeps_its_digits_near_the_old_policy(distance):
    found = one_row([distance, -distance], [0.0, 0.0])
    # exp(d) - 1 - d, averaged over both signs: cosh(d) - 1 = 2 sinh(d / 2)^2.
    assert float(found.kl) == pytest.approx(2 * np.sinh(distance / 2) ** 2, rel=2e-3)


def test_divergence_is_unbiased():
    """Actions of N(0, 1) judged by N(0.3, 1): the KL divergence is 0.3^2 / 2."""
    x = jax.random.normal(jax.random.key(0), (1, 200_000))
    log_ratio = -0.5 * (x - 0.3) ** 2 + 0.5 * x**2
    found = judged(log_ratio, jnp.zeros_like(x), jnp.ones(x.shape, bool), BASE)
    assert float(found.found.kl) == pytest.approx(0.045, abs=1e-3)


def everything_finite(log_prob, advantage, valid, config):
    found, slope = judged(log_prob, advantage, valid, config)
    assert all(np.isfinite(value) for value in found), found
    assert np.isfinite(slope).all()
    assert not np.asarray(slope)[~np.asarray(valid)].any()
    return found


@pytest.mark.parametrize(("ratio", "ends"), KINDS)
def test_extreme_ratios_and_empty_masks_stay_finite(ratio, ends):
    config = replace(BASE, ratio=ratio, window_ends=ends)
    rng = np.random.default_rng(1)
    advantage = jnp.asarray(rng.normal(size=(T, 3)), jnp.float32)
    all_valid = jnp.ones((T, 3), bool)
    single = jnp.zeros((T, 3), bool).at[0, 1].set(True)
    for size in (1e3, 1e30, np.inf):
        signs = rng.choice([-1.0, 0.0, 1.0], size=(T, 3))
        log_prob = jnp.asarray(
            np.where(signs, np.copysign(size, signs), 0.1), jnp.float32
        )
        for valid in (all_valid, single, ~all_valid):
            everything_finite(log_prob, jnp.where(valid, advantage, 0.0), valid, config)
    nothing = everything_finite(log_prob, jnp.zeros((T, 3)), ~all_valid, config)
    assert float(nothing.objective) == 0
    assert float(nothing.clip_share) == 0


def test_an_episode_shorter_than_a_full_window_gives_no_start():
    config = replace(BASE, ratio="window_product", window=4, window_ends="full")
    valid = jnp.arange(T)[:, None] < jnp.asarray([[3, 4]])
    slope = judged(jnp.zeros((T, 2)), jnp.where(valid, 1.0, 0.0), valid, config).slope
    np.testing.assert_array_equal(slope[:, 0], 0)
    np.testing.assert_array_equal(slope[:, 1], [1, 1, 1, 1, 0, 0])
