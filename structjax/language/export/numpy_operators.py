"""What the operators compute, in NumPy: exported modules get copies of those they use.

Written from the language's definition, apart from the JAX functions: an exported module
is the independent interpreter that the compiled policy is tested against. Each function
may use NumPy, the standard modules that `math` and `statistics` are, and others here.
"""

import math
import statistics

import numpy as np


def where(condition, a, b):  # type: ignore[no-untyped-def]
    """`a` where the condition holds, else `b`."""
    return np.where(condition, a, b)[()]


def power(x, exponent):  # type: ignore[no-untyped-def]
    """Power; the base of a fractional exponent is floored."""
    if exponent != int(exponent):
        x = np.maximum(x, 0.0 if exponent > 0 else 1e-6)
    return np.power(np.float64(x), exponent)


def relu(x):  # type: ignore[no-untyped-def]
    """The positive part."""
    return np.maximum(x, 0.0)


def clip(x, low, high):  # type: ignore[no-untyped-def]
    """`x` kept in [low, high]."""
    return np.minimum(np.maximum(x, low), high)


def softplus(x):  # type: ignore[no-untyped-def]
    """log(1 + exp(x))."""
    return np.logaddexp(0.0, x)


def sigmoid(x):  # type: ignore[no-untyped-def]
    """1 / (1 + exp(-x))."""
    return 1.0 / (1.0 + np.exp(-x))


def sqrt(x):  # type: ignore[no-untyped-def]
    """Square root, 0 below 0."""
    return np.sqrt(np.maximum(x, 0.0))


def log(x):  # type: ignore[no-untyped-def]
    """Natural logarithm, the argument floored at 1e-6."""
    return np.log(np.maximum(x, 1e-6))


def atan2(y, x):  # type: ignore[no-untyped-def]
    """Angle of the point (x, y); 0 at the origin."""
    origin = np.maximum(np.abs(x), np.abs(y)) < 1e-15
    return where(origin, 0.0, np.arctan2(y, x))


def wrap_angle(x):  # type: ignore[no-untyped-def]
    """The angle in [-pi, pi)."""
    return (x + math.pi) % (2 * math.pi) - math.pi


def safe_div(a, b):  # type: ignore[no-untyped-def]
    """Quotient, 0 where |b| < 1e-6."""
    small = np.abs(b) < 1e-6
    return where(small, 0.0, a / np.where(small, 1.0, b))


def nan_clean(x):  # type: ignore[no-untyped-def]
    """0 for NaN and infinities."""
    return where(np.isfinite(x), x, 0.0)


def weighted_mean(v, w):  # type: ignore[no-untyped-def]
    """sum(v * w) / sum(w), 0 where the weights cancel."""
    return safe_div(np.sum(v * w), np.sum(w))


def norm(v):  # type: ignore[no-untyped-def]
    """Length of a vector."""
    return np.sqrt(np.sum(np.square(v)))


def normalise(v):  # type: ignore[no-untyped-def]
    """The vector at length 1; 0 where it is shorter than 1e-6."""
    return safe_div(v, norm(v))


def rotate2d(v, angle):  # type: ignore[no-untyped-def]
    """The plane vector turned counter-clockwise."""
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, -s], [s, c]]) @ v


def quaternion_matrix(q):  # type: ignore[no-untyped-def]
    """Rotation matrix of a quaternion (x, y, z, w) of any length; 0 turns nothing."""
    x, y, z, w = q
    rest = [
        [-(y * y + z * z), x * y - z * w, x * z + y * w],
        [x * y + z * w, -(x * x + z * z), y * z - x * w],
        [x * z - y * w, y * z + x * w, -(x * x + y * y)],
    ]
    return np.eye(3) + safe_div(2.0, np.sum(np.square(q))) * np.array(rest)


def rotate(q, v):  # type: ignore[no-untyped-def]
    """The space vector turned by a quaternion."""
    return quaternion_matrix(q) @ v


def rotate_inverse(q, v):  # type: ignore[no-untyped-def]
    """The space vector turned back by a quaternion."""
    return quaternion_matrix(q).T @ v


def squash(u, low, high):  # type: ignore[no-untyped-def]
    """The tanh of a value, on the range."""
    return (low + high) / 2 + (high - low) / 2 * np.tanh(u)


def beta_shapes(mean, std, low, high):  # type: ignore[no-untyped-def]
    """Both parameters of the beta with this mean and std, each at least 1."""
    m = min(max((mean - low) / (high - low), 0.005), 0.995)
    rest = 1 - m
    widest = min(m * m * rest / (1 + m), rest * rest * m / (1 + rest))
    count = m * rest / min((std / (high - low)) ** 2, widest) - 1
    return max(m * count, 1.0), max(rest * count, 1.0)


def beta_mode(mean, std, low, high):  # type: ignore[no-untyped-def]
    """The likeliest value of a beta on the range; its middle where all are equal."""
    a, b = beta_shapes(mean, std, low, high)
    share = 0.5 if a + b - 2 < 1e-6 else (a - 1) / (a + b - 2)
    return low + (high - low) * share


def sample_tanh_normal(mean, std, low, high, rng):  # type: ignore[no-untyped-def]
    """The tanh of a normal draw, on the range."""
    return squash(rng.normal(mean, std), low, high)


def sample_truncated_normal(mean, std, low, high, rng):  # type: ignore[no-untyped-def]
    """A normal draw, given that it lies in the range; by the inverse distribution."""
    if mean < (low + high) / 2:  # mirrored: the lower tail keeps its digits
        return -sample_truncated_normal(-mean, std, -high, -low, rng)
    scale = std * math.sqrt(2)
    below, upto = (0.5 * math.erfc((mean - edge) / scale) for edge in (low, high))
    share = below + (upto - below) * rng.random()
    if not 0.0 < share < 1.0:  # the range lies too far out: its nearest edge
        return min(max(mean, low), high)
    draw = mean + std * statistics.NormalDist().inv_cdf(share)
    return min(max(draw, low), high)


def sample_beta(mean, std, low, high, rng):  # type: ignore[no-untyped-def]
    """A beta draw with this mean and std, on the range."""
    return low + (high - low) * rng.beta(*beta_shapes(mean, std, low, high))


def coupled_noise(below, rng):  # type: ignore[no-untyped-def]
    """Correlated normal noise; `below` is under a unit diagonal, row by row."""
    size = (1 + math.isqrt(1 + 8 * len(below))) // 2
    factor = np.eye(size)
    factor[np.tril_indices(size, -1)] = below
    lengths = np.sqrt(np.sum(np.square(factor), axis=1))
    return factor @ rng.standard_normal(size) / lengths
