"""What each operator of the structure language computes, in JAX.

Arguments are float32 or boolean scalars `()` and vectors `[n]`; vectors have equal
lengths, and a scalar goes with a vector. Booleans count as 0 and 1 in arithmetic.

Derivatives at kinks are one stated convention, not JAX's own: `abs`, `sign` and `relu`
have 0 at 0, `clip` 1 at an edge and 0 outside, a vector's `max` and `min` pass to the
first of equal elements, the element-wise ones one half to each. `sqrt`, `log`,
`norm`, `atan2` and the safe divisions have derivative 0 where they are guarded, and
never give NaN there. Plain formulations are preferred to custom rules, and `lax` to
`jnp`: a policy is hundreds of scalar operations, so every wrapper costs trace time.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.typing import ArrayLike

SMALLEST_DIVISOR = 1e-6
"""`safe_div(a, b)` is 0 where |b| is below this."""

LOG_FLOOR = 1e-6
"""`log` floors its argument here."""

ORIGIN = 1e-15
"""Points closer to the origin than this have the angle 0: their squares underflow."""


def _real(value: ArrayLike) -> jax.Array:
    """The value as float32; booleans become 0 and 1."""
    if getattr(value, "dtype", None) == np.float32:
        return value  # type: ignore[return-value]
    return jnp.asarray(value, jnp.float32)


def _broadcast(values: list[jax.Array]) -> list[jax.Array]:
    """Scalars become vectors where one of the values is a vector."""
    shape = max((value.shape for value in values), key=len)
    return [v if v.shape == shape else lax.broadcast(v, shape) for v in values]


def _reals(*values: ArrayLike) -> list[jax.Array]:
    """The values as float32 of one shape."""
    return _broadcast([_real(value) for value in values])


def _truths(*values: ArrayLike) -> list[jax.Array]:
    """The values as booleans of one shape."""
    return _broadcast([jnp.asarray(value, jnp.bool_) for value in values])


def _elements(*vectors: ArrayLike) -> list[jax.Array]:
    """The vectors as they are when all are boolean, else as float32."""
    arrays = [jnp.asarray(vector) for vector in vectors]
    if all(array.dtype == jnp.bool_ for array in arrays):
        return arrays
    return [_real(array) for array in arrays]


def _binary(
    function: Callable[..., jax.Array],
) -> Callable[[ArrayLike, ArrayLike], jax.Array]:
    """A function of two reals; comparisons give booleans."""
    return lambda a, b: function(*_reals(a, b))


def _unary(
    function: Callable[[jax.Array], jax.Array],
) -> Callable[[ArrayLike], jax.Array]:
    """A function of one real that needs no guard."""
    return lambda x: function(_real(x))


def pow_(x: ArrayLike, exponent: float) -> jax.Array:
    """Power with a constant exponent.

    Negative whole exponents are a plain division. A fractional exponent takes its base
    floored: at 0 when positive (derivative 0 there), at `LOG_FLOOR` when negative.
    """
    base, power = _real(x), float(exponent)
    if power.is_integer():
        return lax.integer_pow(base, int(power))
    if power < 0:
        return lax.pow(_floored(base), _constant(base, power))
    low = lax.le(base, _constant(base, 0.0))
    return _guarded(low, base, lambda safe: lax.pow(safe, _constant(safe, power)))


def and_(a: ArrayLike, b: ArrayLike) -> jax.Array:
    """True where both are."""
    return lax.bitwise_and(*_truths(a, b))


def or_(a: ArrayLike, b: ArrayLike) -> jax.Array:
    """True where either is."""
    return lax.bitwise_or(*_truths(a, b))


def not_(a: ArrayLike) -> jax.Array:
    """True where the argument is false."""
    return lax.bitwise_not(*_truths(a))


def where(condition: ArrayLike, a: ArrayLike, b: ArrayLike) -> jax.Array:
    """`a` where the condition holds, else `b`; boolean when both are."""
    truth = jnp.asarray(condition, jnp.bool_)
    return lax.select(*_broadcast([truth, *_elements(a, b)]))


def _constant(like: jax.Array, value: float) -> jax.Array:
    """A constant of the same shape."""
    return lax.broadcast(np.float32(value), like.shape)


def _guarded(
    bad: jax.Array, x: jax.Array, function: Callable[[jax.Array], jax.Array]
) -> jax.Array:
    """`function(x)`, and 0 with derivative 0 where `bad`.

    The inner select keeps the bad values out of the function's derivative: 0 times an
    infinite one would be NaN.
    """
    value = function(lax.select(bad, _constant(x, 1.0), x))
    return lax.select(bad, _constant(x, 0.0), value)


def abs_(x: ArrayLike) -> jax.Array:
    """Absolute value; derivative 0 at 0."""
    x = _real(x)
    return lax.mul(x, lax.sign(x))  # lax.abs has the derivative 1 at 0


def relu(x: ArrayLike) -> jax.Array:
    """The positive part; derivative 0 at 0."""
    x = _real(x)
    zero = _constant(x, 0.0)
    return lax.select(lax.le(x, zero), zero, x)


def clip(x: ArrayLike, low: ArrayLike, high: ArrayLike) -> jax.Array:
    """`x` limited to [low, high]; derivative 1 at an edge, 0 outside.

    Crossed bounds give `high`, as in NumPy.
    """
    x, low, high = _reals(x, low, high)
    raised = lax.select(lax.lt(x, low), low, x)
    return lax.select(lax.gt(raised, high), high, raised)


def softplus(x: ArrayLike) -> jax.Array:
    """log(1 + exp(x)), without overflow."""
    x = _real(x)
    # At 0 max has the derivative 1/2 and abs has 0: their sum is the right one.
    tail = lax.log1p(lax.exp(lax.neg(abs_(x))))
    return lax.add(lax.max(x, _constant(x, 0.0)), tail)


def sqrt(x: ArrayLike) -> jax.Array:
    """Square root, the argument floored at 0; derivative 0 there."""
    x = _real(x)
    return _guarded(lax.le(x, _constant(x, 0.0)), x, lax.sqrt)


def _floored(x: jax.Array) -> jax.Array:
    """The argument of a logarithm; derivative 0 at the floor and below."""
    floor = _constant(x, LOG_FLOOR)
    return lax.select(lax.le(x, floor), floor, x)


def log(x: ArrayLike) -> jax.Array:
    """Natural logarithm, the argument floored at 1e-6; derivative 0 there."""
    return lax.log(_floored(_real(x)))


def atan2(y: ArrayLike, x: ArrayLike) -> jax.Array:
    """Angle of the point (x, y) in (-pi, pi]; 0 with derivative 0 at the origin."""
    y, x = _reals(y, x)
    extent = lax.max(lax.abs(y), lax.abs(x))
    origin = lax.lt(extent, _constant(extent, ORIGIN))
    safe_y = lax.select(origin, _constant(y, 0.0), y)
    return lax.atan2(safe_y, lax.select(origin, _constant(x, 1.0), x))


def wrap_angle(x: ArrayLike) -> jax.Array:
    """The angle moved by full turns into [-pi, pi); derivative 1."""
    x = _real(x)
    turns = lax.floor((x + np.float32(np.pi)) * np.float32(0.5 / np.pi))
    return x - turns * np.float32(2 * np.pi)


def safe_div(a: ArrayLike, b: ArrayLike) -> jax.Array:
    """Quotient; 0 with derivative 0 where |b| < 1e-6."""
    a, b = _reals(a, b)
    small = lax.lt(lax.abs(b), _constant(b, SMALLEST_DIVISOR))
    return _guarded(small, b, lambda divisor: lax.div(a, divisor))


def nan_clean(x: ArrayLike) -> jax.Array:
    """0 in place of NaN and the infinities."""
    x = _real(x)
    return lax.select(lax.is_finite(x), x, _constant(x, 0.0))


def reduce_sum(v: ArrayLike) -> jax.Array:
    """Sum of a vector."""
    return lax.reduce_sum(_real(v), axes=(0,))


def reduce_mean(v: ArrayLike) -> jax.Array:
    """Mean of a vector."""
    v = _real(v)
    return reduce_sum(v) * np.float32(1 / v.shape[0])


@jax.custom_jvp
def _largest(v: jax.Array) -> jax.Array:
    return lax.reduce_max(v, axes=(0,))


@_largest.defjvp
def _largest_derivative(
    primals: tuple[jax.Array], tangents: tuple[jax.Array]
) -> tuple[jax.Array, jax.Array]:
    (v,), (tangent,) = primals, tangents
    index = lax.argmax(v, 0, np.int32)  # of the first, where several are equal
    # A mask, not v[index]: a gather would come back as a scatter.
    chosen = lax.eq(lax.iota(np.int32, v.shape[0]), lax.broadcast(index, v.shape))
    picked = lax.select(chosen, tangent, _constant(v, 0.0))
    return _largest(v), lax.reduce_sum(picked, axes=(0,))


def reduce_max(v: ArrayLike) -> jax.Array:
    """Largest element; the derivative goes to the first of equal ones."""
    return _largest(_real(v))


def reduce_min(v: ArrayLike) -> jax.Array:
    """Smallest element; the derivative goes to the first of equal ones."""
    return lax.neg(_largest(lax.neg(_real(v))))


def weighted_mean(v: ArrayLike, weight: ArrayLike) -> jax.Array:
    """sum(v * weight) / sum(weight); 0 where |sum(weight)| < 1e-6."""
    v, weight = _reals(v, weight)
    return safe_div(dot(v, weight), reduce_sum(weight))


def dot(a: ArrayLike, b: ArrayLike) -> jax.Array:
    """Inner product of two vectors."""
    return reduce_sum(lax.mul(*_reals(a, b)))


def norm(v: ArrayLike) -> jax.Array:
    """Euclidean length; derivative 0 at the zero vector."""
    return sqrt(reduce_sum(lax.square(_real(v))))


def normalise(v: ArrayLike) -> jax.Array:
    """The vector at length 1; 0 with derivative 0 where it is shorter than 1e-6."""
    return safe_div(v, norm(v))


def stack(*scalars: ArrayLike) -> jax.Array:
    """A vector of scalars."""
    return concat(*(lax.reshape(scalar, (1,)) for scalar in _elements(*scalars)))


def concat(*vectors: ArrayLike) -> jax.Array:
    """Vectors end to end; boolean when all are."""
    return lax.concatenate(_elements(*vectors), 0)


def _parts(v: jax.Array) -> list[jax.Array]:
    """The elements of a short vector as scalars."""
    return [lax.index_in_dim(v, i, keepdims=False) for i in range(v.shape[0])]


def rotate2d(v: ArrayLike, angle: ArrayLike) -> jax.Array:
    """The 2-vector turned counter-clockwise by an angle in radians."""
    x, y = _parts(_real(v))
    cosine, sine = lax.cos(_real(angle)), lax.sin(_real(angle))
    return stack(cosine * x - sine * y, sine * x + cosine * y)


def _cross(a: list[jax.Array], b: list[jax.Array]) -> list[jax.Array]:
    (ax, ay, az), (bx, by, bz) = a, b
    return [ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx]


def _turn(q: ArrayLike, v: ArrayLike, direction: float) -> jax.Array:
    """The vector v + 2 u x (u x v + w v) / |q|^2, u = direction * (x, y, z)."""
    x, y, z, w = _parts(_real(q))
    axis = [component * np.float32(direction) for component in (x, y, z)]
    vector = _parts(_real(v))
    inner = [c + w * p for c, p in zip(_cross(axis, vector), vector, strict=True)]
    scale = safe_div(np.float32(2), x * x + y * y + z * z + w * w)
    outer = _cross(axis, inner)
    return stack(*(p + scale * c for p, c in zip(vector, outer, strict=True)))


def rotate(q: ArrayLike, v: ArrayLike) -> jax.Array:
    """The 3-vector turned by the quaternion (x, y, z, w).

    The quaternion need not be of length 1; the zero quaternion turns nothing.
    """
    return _turn(q, v, 1.0)


def rotate_inverse(q: ArrayLike, v: ArrayLike) -> jax.Array:
    """The 3-vector turned back by the quaternion (x, y, z, w)."""
    return _turn(q, v, -1.0)


FUNCTIONS: dict[str, Callable[..., jax.Array]] = {
    "add": _binary(lax.add),
    "sub": _binary(lax.sub),
    "mul": _binary(lax.mul),
    "div": _binary(lax.div),  # plain: infinite or NaN where the divisor is 0
    "pow": pow_,
    "neg": _unary(lax.neg),
    "lt": _binary(lax.lt),
    "le": _binary(lax.le),
    "gt": _binary(lax.gt),
    "ge": _binary(lax.ge),
    "eq": _binary(lax.eq),
    "ne": _binary(lax.ne),
    "and_": and_,
    "or_": or_,
    "not_": not_,
    "where": where,
    "abs": abs_,
    "relu": relu,
    "clip": clip,
    "softplus": softplus,
    "sqrt": sqrt,
    "exp": _unary(lax.exp),
    "log": log,
    "square": _unary(lax.square),
    "sign": _unary(lax.sign),
    "tanh": _unary(lax.tanh),
    "sigmoid": _unary(lax.logistic),
    "sin": _unary(lax.sin),
    "cos": _unary(lax.cos),
    "atan2": atan2,
    "wrap_angle": wrap_angle,
    "safe_div": safe_div,
    "nan_clean": nan_clean,
    "minimum": _binary(lax.min),
    "maximum": _binary(lax.max),
    "reduce_sum": reduce_sum,
    "reduce_mean": reduce_mean,
    "reduce_min": reduce_min,
    "reduce_max": reduce_max,
    "weighted_mean": weighted_mean,
    "norm": norm,
    "dot": dot,
    "normalise": normalise,
    "stack": stack,
    "concat": concat,
    "rotate2d": rotate2d,
    "rotate": rotate,
    "rotate_inverse": rotate_inverse,
}
"""Operator key -> function; the keys are those of the operator table."""
