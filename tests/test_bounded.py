"""Bounded and coupled action distributions against scipy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, stats

from structjax.bounded import FAMILIES, Mixed
from structjax.distributions import CoupledNormal

LOW, HIGH = (-1.0, 0.0, -2.0), (1.0, 1.0, 4.0)
BOUNDED = [name for name in FAMILIES if name != "normal"]
# Location and std in action units: inside, at an edge, far outside, wide.
CASES = {
    "inside": ((0.2, 0.6, 1.5), (0.3, 0.1, 0.5)),
    "edge": ((1.0, 0.0, -2.0), (0.1, 0.05, 0.3)),
    "outside": ((1.7, -0.4, 6.0), (0.05, 0.05, 0.2)),
    "wide": ((0.0, 0.4, 1.0), (1.0, 0.5, 3.0)),
}


def mixed(family, case):
    location, scale = CASES[case]
    if family == "tanh_normal":  # location and scale are those before the tanh
        location, scale = (0.4, -1.5, 0.0), (0.3, 0.2, 1.0)
    return Mixed(
        jnp.asarray(location, jnp.float32),
        jnp.asarray(scale, jnp.float32),
        (family,) * 3,
        LOW,
        HIGH,
    )


def beta_shapes(location, scale, low, high):
    """Shapes from mean and variance, the variance cut where one would be below 1."""
    mean = np.clip((location - low) / (high - low), 0.005, 0.995)
    variance = (scale / (high - low)) ** 2
    weight = mean * (1 - mean) / variance - 1
    weight = max(weight, 1 / mean, 1 / (1 - mean))
    return mean * weight, (1 - mean) * weight


class Squashed:
    """middle + half * tanh(N(location, scale)), by numerical integration."""

    def __init__(self, location, scale, low, high):
        self.base = stats.norm(location, scale)
        self.middle, self.half = (low + high) / 2, (high - low) / 2

    def logpdf(self, x):
        y = (x - self.middle) / self.half
        return self.base.logpdf(np.arctanh(y)) - np.log(self.half * (1 - y * y))

    def mean(self):
        return self._expect(lambda u: self.middle + self.half * np.tanh(u))

    def std(self):
        mean = self.mean()
        square = lambda u: (self.middle + self.half * np.tanh(u) - mean) ** 2  # noqa: E731
        return self._expect(square) ** 0.5

    def entropy(self):
        slope = self._expect(lambda u: np.log(self.half * (1 - np.tanh(u) ** 2)))
        return self.base.entropy() + slope

    def _expect(self, function):
        ends = self.base.mean() + np.array([-8, 8]) * self.base.std()
        return integrate.quad(lambda u: function(u) * self.base.pdf(u), *ends)[0]


def reference(family, location, scale, low, high):
    if family == "truncated_normal":
        a, b = (low - location) / scale, (high - location) / scale
        return stats.truncnorm(a, b, loc=location, scale=scale)
    if family == "beta":
        shapes = beta_shapes(location, scale, low, high)
        return stats.beta(*shapes, loc=low, scale=high - low)
    return Squashed(location, scale, low, high)


def references(family, case):
    distribution = mixed(family, case)
    rows = zip(
        np.asarray(distribution.location, float),
        np.asarray(distribution.scale, float),
        LOW,
        HIGH,
        strict=True,
    )
    return distribution, [reference(family, *row) for row in rows]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("family", BOUNDED)
def test_log_probability_mean_std_and_entropy(family, case):
    distribution, expected = references(family, case)
    for share in (0.02, 0.3, 0.9):
        action = np.array(LOW) + share * (np.array(HIGH) - LOW)
        found = distribution.log_prob(jnp.asarray(action, jnp.float32))
        wanted = sum(e.logpdf(x) for e, x in zip(expected, action, strict=True))
        assert found == pytest.approx(wanted, rel=2e-3, abs=2e-3)
    moments = distribution.moments()
    width = np.array(HIGH) - LOW
    mean = np.array([e.mean() for e in expected])
    std = np.array([e.std() for e in expected])
    np.testing.assert_allclose(moments["mean"] / width, mean / width, atol=2e-4)
    np.testing.assert_allclose(moments["std"] / width, std / width, atol=2e-3)
    # In a far tail scipy's own closed form loses its digits.
    if case != "outside" or family != "truncated_normal":
        entropy = sum(e.entropy() for e in expected)
        assert distribution.entropy() == pytest.approx(entropy, rel=2e-3, abs=2e-3)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("family", BOUNDED)
def test_samples_follow_the_distribution_and_stay_in_the_range(family, case):
    distribution, expected = references(family, case)
    keys = jax.random.split(jax.random.key(1), 4000)
    draws = np.asarray(jax.jit(jax.vmap(distribution.sample))(keys), float)
    assert (draws >= np.array(LOW)).all()
    assert (draws <= np.array(HIGH)).all()
    for i, target in enumerate(expected):
        if family == "tanh_normal":
            y = (draws[:, i] - target.middle) / target.half
            cdf = target.base.cdf(np.arctanh(np.clip(y, -1 + 1e-7, 1 - 1e-7)))
        else:
            cdf = target.cdf(draws[:, i])
        # float32 places some draws on the edge itself; the test is of the bulk.
        assert stats.kstest(cdf, "uniform").statistic < 0.035


@pytest.mark.parametrize("case", ["inside", "edge", "wide"])
def test_the_mode_of_truncated_normal_and_beta_is_the_likeliest_action(case):
    for family in ("truncated_normal", "beta"):
        distribution, expected = references(family, case)
        grid = np.linspace(LOW, HIGH, 20_001)
        for i, (target, mode) in enumerate(
            zip(expected, distribution.mode(), strict=True)
        ):
            density = target.logpdf(grid[:, i])
            if np.ptp(density[1:-1]) < 1e-6:
                continue  # uniform: every action is a mode
            likeliest = grid[np.argmax(density), i]
            assert mode == pytest.approx(likeliest, abs=2e-3 * (HIGH[i] - LOW[i]))


def test_tanh_normal_acts_with_the_tanh_of_its_mean():
    mode = mixed("tanh_normal", "inside").mode()
    expected = np.array([0.0, 0.5, 1.0]) + np.array([1.0, 0.5, 3.0]) * np.tanh(
        [0.4, -1.5, 0.0]
    )
    np.testing.assert_allclose(mode, expected, rtol=1e-5)


@pytest.mark.parametrize("family", BOUNDED)
def test_no_mass_outside_the_range(family):
    distribution = mixed(family, "inside")
    assert distribution.log_prob(jnp.array([1.1, 0.5, 0.0])) == -jnp.inf


@pytest.mark.parametrize("family", BOUNDED)
def test_derivatives_are_finite_far_outside_and_at_the_edges(family):
    def log_prob(location, scale, action):
        return Mixed(location, scale, (family,) * 3, LOW, HIGH).log_prob(action)

    for location in (-50.0, 0.0, 1.0, 50.0):
        for action in (LOW, HIGH, (0.5, 0.5, 0.5)):
            grads = jax.grad(log_prob, (0, 1))(
                jnp.full(3, location), jnp.full(3, 1e-3), jnp.array(action)
            )
            assert jnp.isfinite(jnp.stack(grads)).all()


def test_families_of_one_policy_stay_in_the_order_of_the_actions():
    families = ("beta", "normal", "truncated_normal")
    location, scale = jnp.array([0.2, 0.6, 1.5]), jnp.array([0.3, 0.1, 0.5])
    joint = Mixed(location, scale, families, LOW, HIGH)
    action = jnp.array([0.1, 0.4, 2.0])
    alone = 0.0
    for i, family in enumerate(families):
        one = Mixed(
            location[i : i + 1], scale[i : i + 1], (family,), (LOW[i],), (HIGH[i],)
        )
        alone += one.log_prob(action[i : i + 1])
        assert joint.mode()[i] == pytest.approx(float(one.mode()[0]), rel=1e-5)
        assert joint.mean[i] == pytest.approx(float(one.mean[0]), rel=1e-5)
    assert joint.log_prob(action) == pytest.approx(float(alone), rel=1e-5)


def test_batches_give_what_single_ones_give():
    single = [mixed("truncated_normal", case) for case in CASES]
    batch = jax.tree.map(lambda *leaves: jnp.stack(leaves), *single)
    action = jnp.array([0.3, 0.2, 1.0])
    actions = jnp.broadcast_to(action, (4, 3))
    expected = jnp.stack([one.log_prob(action) for one in single])
    np.testing.assert_allclose(batch.log_prob(actions), expected, rtol=1e-5)


MEAN, STD = np.array([0.5, -1.0, 2.0]), np.array([0.1, 1.0, 3.0])
COUPLING = np.array([0.5, -2.0, 0.3])


def coupled():
    return CoupledNormal(*(jnp.asarray(x, jnp.float32) for x in (MEAN, STD, COUPLING)))


def covariance():
    rows = np.array([[1, 0, 0], [0.5, 1, 0], [-2.0, 0.3, 1]])
    factor = STD[:, None] * rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return factor @ factor.T


def test_coupled_density_and_entropy():
    expected = stats.multivariate_normal(MEAN, covariance())
    action = np.array([0.4, 1.0, -2.0])
    assert coupled().log_prob(jnp.asarray(action, jnp.float32)) == pytest.approx(
        expected.logpdf(action), rel=1e-4
    )
    assert coupled().entropy() == pytest.approx(expected.entropy(), rel=1e-5)


def test_coupled_samples_have_its_covariance():
    keys = jax.random.split(jax.random.key(0), 20_000)
    draws = np.asarray(jax.vmap(coupled().sample)(keys), float)
    scale = np.outer(STD, STD)
    np.testing.assert_allclose(np.cov(draws.T) / scale, covariance() / scale, atol=0.04)
    np.testing.assert_allclose(np.sqrt(np.diag(covariance())), STD)
