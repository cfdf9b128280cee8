"""Action distributions with a family of its own for each action, most of them bounded.

Families work in units of the half range around the middle of the range, so on [-1, 1]:
`normal` (not bounded: the environment clips), `truncated_normal` (a normal conditioned
on the range), `tanh_normal` (the tanh of a normal; its mean and std are those of the
normal) and `beta` (given by its mean and std).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import betaln, digamma, log_ndtr, ndtr, ndtri

LOG_TWO_PI = math.log(2 * math.pi)
EDGE = 1e-6
"""Densities at the very edge of the range are taken this far inside."""
FAR_TAIL = -12.0
"""Below this many standard deviations float32 cannot invert the normal's CDF."""
LEAST_BETA_MEAN = 0.005
"""A beta's mean keeps this share of the range from the edges."""

_NODES, _SHARES = np.polynomial.hermite_e.hermegauss(48)
_SHARES = _SHARES / math.sqrt(2 * math.pi)


class Family(NamedTuple):
    """One family on [-1, 1]; functions of location and scale, all `[..., k]`."""

    sample: Callable[[jax.Array, jax.Array, jax.Array], jax.Array]
    log_prob: Callable[[jax.Array, jax.Array, jax.Array], jax.Array]
    mode: Callable[[jax.Array, jax.Array], jax.Array]
    moments: Callable[[jax.Array, jax.Array], tuple[jax.Array, jax.Array]]
    entropy: Callable[[jax.Array, jax.Array], jax.Array]


def _normal_log_density(z: jax.Array) -> jax.Array:
    return -0.5 * (z * z + LOG_TWO_PI)


def _within(x: jax.Array, log_density: jax.Array) -> jax.Array:
    """The log-density, minus infinity outside the range."""
    return jnp.where(jnp.abs(x) <= 1 + EDGE, log_density, -jnp.inf)


_NORMAL = Family(
    sample=lambda key, loc, scale: loc + scale * jax.random.normal(key, loc.shape),
    log_prob=lambda x, loc, scale: (
        _normal_log_density((x - loc) / scale) - jnp.log(scale)
    ),
    mode=lambda loc, scale: loc,
    moments=lambda loc, scale: (loc, scale),
    entropy=lambda loc, scale: 0.5 * (1 + LOG_TWO_PI) + jnp.log(scale),
)


class _Tails(NamedTuple):
    """The standardised range, mirrored where needed so that low + high <= 0.

    In the left tail probabilities are small numbers with all their digits.
    """

    low: jax.Array
    high: jax.Array
    mirrored: jax.Array

    @property
    def log_mass(self) -> jax.Array:
        below, upto = log_ndtr(self.low), log_ndtr(self.high)
        return upto + jnp.log1p(-jnp.exp(below - upto))

    def density_ratios(self) -> tuple[jax.Array, jax.Array]:
        """Normal density at both ends over the mass between them."""
        mass = self.log_mass
        return (
            jnp.exp(_normal_log_density(self.low) - mass),
            jnp.exp(_normal_log_density(self.high) - mass),
        )


def _tails(loc: jax.Array, scale: jax.Array) -> _Tails:
    low, high = (-1 - loc) / scale, (1 - loc) / scale
    mirrored = low + high > 0
    return _Tails(
        jnp.where(mirrored, -high, low), jnp.where(mirrored, -low, high), mirrored
    )


def _truncated_sample(key: jax.Array, loc: jax.Array, scale: jax.Array) -> jax.Array:
    tails = _tails(loc, scale)
    share = jax.random.uniform(key, loc.shape, minval=1e-7)
    below = ndtr(tails.low)
    z = ndtri(below + share * (ndtr(tails.high) - below))
    # Far out the density falls like exp(-z^2 / 2) times a nearly constant: Rayleigh.
    far = jnp.minimum(tails.high, FAR_TAIL)
    z = jnp.where(tails.high < FAR_TAIL, -jnp.sqrt(far * far - 2 * jnp.log(share)), z)
    z = jnp.clip(z, tails.low, tails.high)
    return jnp.clip(loc + scale * jnp.where(tails.mirrored, -z, z), -1, 1)


def _truncated_log_prob(x: jax.Array, loc: jax.Array, scale: jax.Array) -> jax.Array:
    mass = _tails(loc, scale).log_mass
    z = (x - loc) / scale
    return _within(x, _normal_log_density(z) - jnp.log(scale) - mass)


def _truncated_moments(loc: jax.Array, scale: jax.Array) -> tuple[jax.Array, jax.Array]:
    tails = _tails(loc, scale)
    at_low, at_high = tails.density_ratios()
    shift = at_low - at_high
    variance = 1 + tails.low * at_low - tails.high * at_high - shift * shift
    shift = jnp.where(tails.mirrored, -shift, shift)
    mean = jnp.clip(loc + scale * shift, -1, 1)
    return mean, scale * jnp.sqrt(jnp.maximum(variance, 1e-6))


def _truncated_entropy(loc: jax.Array, scale: jax.Array) -> jax.Array:
    tails = _tails(loc, scale)
    at_low, at_high = tails.density_ratios()
    ends = 0.5 * (tails.low * at_low - tails.high * at_high)
    return 0.5 * (1 + LOG_TWO_PI) + jnp.log(scale) + tails.log_mass + ends


_TRUNCATED = Family(
    sample=_truncated_sample,
    log_prob=_truncated_log_prob,
    mode=lambda loc, scale: jnp.clip(loc, -1, 1),
    moments=_truncated_moments,
    entropy=_truncated_entropy,
)


def _log_slope(u: jax.Array) -> jax.Array:
    """log(1 - tanh(u)^2), without cancellation."""
    return 2 * (math.log(2) - u - jax.nn.softplus(-2 * u))


def _expected(
    function: Callable[[jax.Array], jax.Array], loc: jax.Array, scale: jax.Array
) -> jax.Array:
    """Expectation of a function of N(loc, scale) by Gauss-Hermite quadrature."""
    shape = (1,) * loc.ndim + _NODES.shape
    nodes = jnp.asarray(_NODES.reshape(shape), jnp.float32)
    shares = jnp.asarray(_SHARES.reshape(shape), jnp.float32)
    points = loc[..., None] + scale[..., None] * nodes
    return jnp.sum(function(points) * shares, axis=-1)


def _tanh_log_prob(x: jax.Array, loc: jax.Array, scale: jax.Array) -> jax.Array:
    u = jnp.arctanh(jnp.clip(x, -1 + EDGE, 1 - EDGE))
    z = (u - loc) / scale
    return _within(x, _normal_log_density(z) - jnp.log(scale) - _log_slope(u))


def _tanh_moments(loc: jax.Array, scale: jax.Array) -> tuple[jax.Array, jax.Array]:
    mean = _expected(jnp.tanh, loc, scale)
    spread = _expected(lambda u: jnp.square(jnp.tanh(u) - mean[..., None]), loc, scale)
    return mean, jnp.sqrt(spread)


_TANH = Family(
    sample=lambda key, loc, scale: jnp.tanh(_NORMAL.sample(key, loc, scale)),
    log_prob=_tanh_log_prob,
    mode=lambda loc, scale: jnp.tanh(loc),
    moments=_tanh_moments,
    entropy=lambda loc, scale: (
        _NORMAL.entropy(loc, scale) + _expected(_log_slope, loc, scale)
    ),
)


def _shapes(loc: jax.Array, scale: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Both parameters of the beta, each at least 1, so that densities are bounded."""
    mean = jnp.clip(0.5 * (loc + 1), LEAST_BETA_MEAN, 1 - LEAST_BETA_MEAN)
    rest = 1 - mean
    widest = mean * rest * jnp.minimum(mean / (1 + mean), rest / (1 + rest))
    variance = jnp.minimum(jnp.square(0.5 * scale), widest)
    weight = mean * rest / variance - 1
    return jnp.maximum(mean * weight, 1.0), jnp.maximum(rest * weight, 1.0)


def _beta_log_prob(x: jax.Array, loc: jax.Array, scale: jax.Array) -> jax.Array:
    a, b = _shapes(loc, scale)
    y = jnp.clip(0.5 * (x + 1), EDGE, 1 - EDGE)
    density = (a - 1) * jnp.log(y) + (b - 1) * jnp.log1p(-y) - betaln(a, b)
    return _within(x, density - math.log(2))


def _beta_mode(loc: jax.Array, scale: jax.Array) -> jax.Array:
    a, b = _shapes(loc, scale)
    flat = a + b - 2 < 1e-6
    share = jnp.where(flat, 0.5, (a - 1) / jnp.where(flat, 1.0, a + b - 2))
    return 2 * share - 1


def _beta_moments(loc: jax.Array, scale: jax.Array) -> tuple[jax.Array, jax.Array]:
    a, b = _shapes(loc, scale)
    total = a + b
    return 2 * a / total - 1, 2 * jnp.sqrt(a * b / (total + 1)) / total


def _beta_entropy(loc: jax.Array, scale: jax.Array) -> jax.Array:
    a, b = _shapes(loc, scale)
    inner = (a - 1) * digamma(a) + (b - 1) * digamma(b)
    return betaln(a, b) - inner + (a + b - 2) * digamma(a + b) + math.log(2)


def _beta_sample(key: jax.Array, loc: jax.Array, scale: jax.Array) -> jax.Array:
    return 2 * jax.random.beta(key, *_shapes(loc, scale)) - 1


_BETA = Family(_beta_sample, _beta_log_prob, _beta_mode, _beta_moments, _beta_entropy)

FAMILIES: dict[str, Family] = {
    "normal": _NORMAL,
    "truncated_normal": _TRUNCATED,
    "tanh_normal": _TANH,
    "beta": _BETA,
}


@partial(
    jax.tree_util.register_dataclass,
    data_fields=("location", "scale"),
    meta_fields=("families", "low", "high"),
)
@dataclass(frozen=True)
class Mixed:
    """Independent actions, each of its own family.

    Attributes:
      location: `[..., A]` as written; in action units, for `tanh_normal` before tanh.
      scale: `[..., A]`, the same.
      families: one name of `FAMILIES` per action.
      low, high: the action range, A numbers each.
    """

    location: jax.Array
    scale: jax.Array
    families: tuple[str, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]

    @property
    def mean(self) -> jax.Array:
        """Expected action `[..., A]`."""
        return self.moments()["mean"]

    @property
    def std(self) -> jax.Array:
        """Standard deviation of the action `[..., A]`."""
        return self.moments()["std"]

    def moments(self) -> dict[str, jax.Array]:
        """Mean and standard deviation of the action, `[..., A]` each."""
        means, stds = zip(
            *(
                FAMILIES[name].moments(*self._part(name, places))
                for name, places in self._groups()
            ),
            strict=True,
        )
        return {
            "mean": self._middle + self._half * self._joined(means),
            "std": self._half * self._joined(stds),
        }

    def mode(self) -> jax.Array:
        """The action taken without noise `[..., A]`: the likeliest; tanh(mean)."""
        return self._each(lambda family, loc, scale: family.mode(loc, scale))

    def sample(self, key: jax.Array) -> jax.Array:
        """One draw `[..., A]`; consumes the key."""
        keys = iter(jax.random.split(key, len(self._groups())))
        return self._each(
            lambda family, loc, scale: family.sample(next(keys), loc, scale)
        )

    def log_prob(self, action: jax.Array) -> jax.Array:
        """Log-density `[...]` of the action; -inf outside a bounded one's range."""
        x = (action - self._middle) / self._half
        parts = [
            FAMILIES[name].log_prob(x[..., places], *self._part(name, places))
            for name, places in self._groups()
        ]
        return jnp.sum(self._joined(parts) - jnp.log(self._half), axis=-1)

    def entropy(self) -> jax.Array:
        """Differential entropy `[...]` in nats."""
        parts = [
            FAMILIES[name].entropy(*self._part(name, places))
            for name, places in self._groups()
        ]
        return jnp.sum(self._joined(parts) + jnp.log(self._half), axis=-1)

    @property
    def _half(self) -> jax.Array:
        half = 0.5 * (np.asarray(self.high) - np.asarray(self.low))
        return jnp.broadcast_to(jnp.asarray(half, jnp.float32), self.location.shape)

    @property
    def _middle(self) -> jax.Array:
        middle = 0.5 * (np.asarray(self.high) + np.asarray(self.low))
        return jnp.broadcast_to(jnp.asarray(middle, jnp.float32), self.location.shape)

    def _groups(self) -> list[tuple[str, np.ndarray]]:
        """Families with the places of their actions."""
        names = sorted(set(self.families))
        return [
            (name, np.flatnonzero([name == f for f in self.families])) for name in names
        ]

    def _part(self, name: str, places: np.ndarray) -> tuple[jax.Array, jax.Array]:
        """Location and scale `[..., k]` of one family's actions, on [-1, 1]."""
        loc, scale = self.location[..., places], self.scale[..., places]
        if name == "tanh_normal":
            return loc, scale
        half = self._half[..., places]
        return (loc - self._middle[..., places]) / half, scale / half

    def _joined(self, parts: "list[jax.Array] | tuple[jax.Array, ...]") -> jax.Array:
        """Parts of the families, in the order of the actions `[..., A]`."""
        order = np.concatenate([places for _, places in self._groups()])
        return jnp.concatenate(parts, axis=-1)[..., np.argsort(order)]

    def _each(
        self, function: Callable[[Family, jax.Array, jax.Array], jax.Array]
    ) -> jax.Array:
        """A function of all families, in action units `[..., A]`."""
        parts = [
            function(FAMILIES[name], *self._part(name, places))
            for name, places in self._groups()
        ]
        return self._middle + self._half * self._joined(parts)
