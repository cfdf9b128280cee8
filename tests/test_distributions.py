"""Distributions against scipy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from structjax.distributions import Categorical, Normal

MEAN, STD = np.array([0.5, -1.0, 2.0]), np.array([0.1, 1.0, 3.0])
NORMAL = Normal(jnp.asarray(MEAN, jnp.float32), jnp.asarray(STD, jnp.float32))
LOGITS = np.array([0.2, -1.0, 3.0, 0.0])
CHOICE = Categorical(jnp.asarray(LOGITS, jnp.float32))


def test_normal_density_and_entropy():
    action = np.array([0.4, 1.0, -2.0])
    expected = stats.norm(MEAN, STD)
    assert NORMAL.log_prob(jnp.asarray(action, jnp.float32)) == pytest.approx(
        expected.logpdf(action).sum(), rel=1e-5
    )
    assert NORMAL.entropy() == pytest.approx(expected.entropy().sum(), rel=1e-5)
    np.testing.assert_array_equal(NORMAL.mode(), NORMAL.mean)


def test_normal_samples_have_its_moments():
    keys = jax.random.split(jax.random.key(0), 20_000)
    samples = jax.vmap(NORMAL.sample)(keys)
    # Five standard errors of the mean and of the std.
    np.testing.assert_array_less(abs(samples.mean(0) - MEAN), 5 * STD / 20_000**0.5)
    np.testing.assert_array_less(abs(samples.std(0) - STD), 5 * STD / 40_000**0.5)


def test_categorical_probabilities_and_entropy():
    p = np.exp(LOGITS) / np.exp(LOGITS).sum()
    for choice in range(4):
        assert CHOICE.log_prob(jnp.int32(choice)) == pytest.approx(
            np.log(p[choice]), rel=1e-5
        )
    assert CHOICE.entropy() == pytest.approx(stats.entropy(p), rel=1e-5)
    assert CHOICE.mode() == 2


def test_categorical_samples_have_its_frequencies():
    keys = jax.random.split(jax.random.key(0), 20_000)
    counts = np.bincount(jax.vmap(CHOICE.sample)(keys), minlength=4)
    p = np.exp(LOGITS) / np.exp(LOGITS).sum()
    assert stats.chisquare(counts, 20_000 * p).pvalue > 1e-4


def test_the_first_of_equal_choices_is_the_mode():
    assert Categorical(jnp.array([1.0, 1.0])).mode() == 0
