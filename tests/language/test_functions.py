"""The JAX functions of the operators: values, stated derivatives at kinks, no NaN."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from structjax.language.functions import FUNCTIONS
from structjax.language.operators import OPERATORS

F = FUNCTIONS


def slope(name, x, *others):
    """Derivative of an operator by its first argument, reverse and forward mode."""

    def function(x):
        return F[name](x, *others)

    reverse = jax.grad(function)(jnp.float32(x))
    forward = jax.jvp(function, (jnp.float32(x),), (jnp.float32(1),))[1]
    assert float(reverse) == pytest.approx(float(forward), rel=1e-6)
    return float(reverse)


def test_every_operator_has_one_function():
    assert FUNCTIONS.keys() == OPERATORS.keys()


# The convention of the language page, PyTorch's: abs and sign 0 at 0, relu 0 at 0, clip
# 1 at an edge and 0 outside, halves for the element-wise max and min.
@pytest.mark.parametrize(
    ("name", "x", "others", "expected"),
    [
        ("abs", 0.0, (), 0.0),
        ("abs", 2.0, (), 1.0),
        ("abs", -2.0, (), -1.0),
        ("sign", 0.0, (), 0.0),
        ("sign", 3.0, (), 0.0),
        ("relu", 0.0, (), 0.0),
        ("relu", 1e-6, (), 1.0),
        ("relu", -1.0, (), 0.0),
        ("clip", 1.0, (-1.0, 1.0), 1.0),
        ("clip", -1.0, (-1.0, 1.0), 1.0),
        ("clip", 0.5, (-1.0, 1.0), 1.0),
        ("clip", 1.5, (-1.0, 1.0), 0.0),
        ("clip", -1.5, (-1.0, 1.0), 0.0),
        ("maximum", 1.0, (1.0,), 0.5),
        ("minimum", 1.0, (1.0,), 0.5),
        ("maximum", 2.0, (1.0,), 1.0),
        ("minimum", 2.0, (1.0,), 0.0),
        ("sqrt", 0.0, (), 0.0),
        ("sqrt", -4.0, (), 0.0),
        ("sqrt", 4.0, (), 0.25),
        ("log", 1e-6, (), 0.0),
        ("log", -1.0, (), 0.0),
        ("log", 2.0, (), 0.5),
        ("safe_div", 1.0, (0.0,), 0.0),
        ("safe_div", 1.0, (4.0,), 0.25),
        ("softplus", 0.0, (), 0.5),
        ("nan_clean", jnp.nan, (), 0.0),
        ("wrap_angle", 7.0, (), 1.0),
        ("atan2", 0.0, (0.0,), 0.0),
        ("atan2", 0.0, (2.0,), 0.5),
    ],
)
def test_derivatives_at_and_beside_kinks(name, x, others, expected):
    assert slope(name, x, *map(jnp.float32, others)) == pytest.approx(expected)


def test_a_vectors_extremes_pass_their_derivative_to_the_first_of_equals():
    v = jnp.array([1.0, 3.0, 3.0])
    np.testing.assert_array_equal(jax.grad(F["reduce_max"])(v), [0, 1, 0])
    np.testing.assert_array_equal(jax.grad(F["reduce_min"])(-v), [0, 1, 0])


def test_the_zero_vector_is_safe():
    zero = jnp.zeros(3)
    np.testing.assert_array_equal(jax.grad(F["norm"])(zero), zero)
    np.testing.assert_array_equal(F["normalise"](zero), zero)
    jacobian = jax.jacobian(F["normalise"])(zero)
    np.testing.assert_array_equal(jacobian, jnp.zeros((3, 3)))
    assert F["weighted_mean"](jnp.ones(3), zero) == 0


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("add", (2, 3), 5),
        ("sub", (2, 3), -1),
        ("mul", (2, 3), 6),
        ("div", (3, 2), 1.5),
        ("pow", (-2, 3), -8),
        ("pow", (4, 0.5), 2),
        ("pow", (2, -2), 0.25),
        ("neg", (2,), -2),
        ("lt", (1, 2), True),
        ("le", (2, 2), True),
        ("gt", (1, 2), False),
        ("ge", (2, 2), True),
        ("eq", (2, 2), True),
        ("ne", (2, 2), False),
        ("and_", (True, False), False),
        ("or_", (True, False), True),
        ("not_", (True,), False),
        ("add", (True, True), 2),
        ("where", (True, 1, 2), 1),
        ("softplus", (0,), np.log(2)),
        ("softplus", (100,), 100),
        ("exp", (1,), np.e),
        ("log", (0,), np.log(1e-6)),
        ("square", (-3,), 9),
        ("sign", (-3,), -1),
        ("tanh", (0.5,), np.tanh(0.5)),
        ("sigmoid", (0,), 0.5),
        ("sin", (1,), np.sin(1)),
        ("cos", (1,), np.cos(1)),
        ("atan2", (1, -1), 0.75 * np.pi),
        ("wrap_angle", (1.5 * np.pi,), -0.5 * np.pi),
        ("safe_div", (1, 1e-7), 0),
        ("nan_clean", (np.inf,), 0),
        ("minimum", (1, 2), 1),
        ("maximum", (1, 2), 2),
        ("clip", (5, 0, 1), 1),
        ("reduce_sum", ([1, 2, 4],), 7),
        ("reduce_mean", ([1, 2, 6],), 3),
        ("reduce_min", ([3, 1, 2],), 1),
        ("reduce_max", ([3, 1, 2],), 3),
        ("weighted_mean", ([1, 3], [1, 3]), 2.5),
        ("norm", ([3, 4],), 5),
        ("dot", ([1, 2], [3, 4]), 11),
        ("normalise", ([3, 4],), [0.6, 0.8]),
        ("stack", (1, 2), [1, 2]),
        ("concat", ([1], [2, 3]), [1, 2, 3]),
        ("rotate2d", ([1, 0], np.pi / 2), [0, 1]),
        # A half turn about z, then a quarter turn about x.
        ("rotate", ([0, 0, 1, 0], [1, 2, 3]), [-1, -2, 3]),
        ("rotate", ([np.sqrt(0.5), 0, 0, np.sqrt(0.5)], [0, 1, 0]), [0, 0, 1]),
        ("rotate_inverse", ([np.sqrt(0.5), 0, 0, np.sqrt(0.5)], [0, 0, 1]), [0, 1, 0]),
        ("rotate", ([0, 0, 0, 0], [1, 2, 3]), [1, 2, 3]),
    ],
)
def test_values(name, arguments, expected):
    values = [
        a if name == "pow" and i == 1 else jnp.asarray(a)
        for i, a in enumerate(arguments)
    ]
    result = F[name](*values)
    np.testing.assert_allclose(result, expected, rtol=1e-6, atol=1e-6)
    mapped = (
        jax.vmap(lambda *v: F[name](*v))(*(jnp.stack([v, v]) for v in values))
        if (name != "pow")
        else None
    )
    if mapped is not None:
        np.testing.assert_allclose(mapped[1], expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", ["add", "mul", "clip", "maximum", "where", "safe_div"])
def test_a_scalar_goes_with_a_vector(name):
    v = jnp.array([1.0, 2.0, 3.0])
    one = jnp.float32(1.5)
    arguments = {"clip": (v, one, one + 1), "where": (v > 2, v, one)}
    result = F[name](*arguments.get(name, (one, v)))
    assert result.shape == (3,)


SMOOTH = ("softplus", "sqrt", "exp", "log", "square", "tanh", "sigmoid", "sin", "cos")


@pytest.mark.parametrize("name", SMOOTH)
def test_derivatives_are_the_textbook_ones_away_from_kinks(name):
    x = np.float64(0.7)
    exact = {
        "softplus": 1 / (1 + np.exp(-x)),
        "sqrt": 0.5 / np.sqrt(x),
        "exp": np.exp(x),
        "log": 1 / x,
        "square": 2 * x,
        "tanh": 1 - np.tanh(x) ** 2,
        "sigmoid": np.exp(-x) / (1 + np.exp(-x)) ** 2,
        "sin": np.cos(x),
        "cos": -np.sin(x),
    }[name]
    assert slope(name, x) == pytest.approx(exact, rel=1e-5)


@pytest.mark.parametrize("name", [*SMOOTH, "abs", "relu", "sign", "wrap_angle"])
@pytest.mark.parametrize("x", [0.0, -0.0, 1e30, -1e30, 1e-38])
def test_no_derivative_is_nan(name, x):
    if name == "exp" and x == 1e30:
        pytest.skip("overflows by definition")
    assert np.isfinite(slope(name, x)) or (name, x) == ("square", 1e30)


def _numpy_turn(q, v):
    """The rotation matrix of a quaternion (x, y, z, w), written out, times v."""
    x, y, z, w = np.asarray(q) / np.sqrt(np.sum(np.square(q)))
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
        [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
        [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
    ]
    return np.array(rows) @ v


# Operator -> the same in NumPy, and the sizes of its arguments (0 is a scalar).
SEVERAL = {
    "div": (np.divide, (3, 0)),
    "safe_div": (np.divide, (0, 3)),
    "atan2": (np.arctan2, (0, 0)),
    "clip": (lambda x, a, b: np.minimum(np.maximum(x, a), b), (3, 0, 3)),
    "maximum": (np.maximum, (3, 3)),
    "minimum": (np.minimum, (0, 3)),
    "reduce_mean": (np.mean, (5,)),
    "reduce_max": (np.max, (5,)),
    "reduce_min": (np.min, (5,)),
    "weighted_mean": (lambda v, w: np.sum(v * w) / np.sum(w), (4, 4)),
    "norm": (lambda v: np.sqrt(np.sum(v * v)), (3,)),
    "dot": (np.dot, (3, 3)),
    "normalise": (lambda v: v / np.sqrt(np.sum(v * v)), (3,)),
    "stack": (lambda *s: np.array(s), (0, 0, 0)),
    "concat": (lambda *v: np.concatenate(v), (2, 3)),
    "rotate2d": (
        lambda v, a: np.array(
            [
                v[0] * np.cos(a) - v[1] * np.sin(a),
                v[0] * np.sin(a) + v[1] * np.cos(a),
            ]
        ),
        (2, 0),
    ),
    "rotate": (_numpy_turn, (4, 3)),
    "rotate_inverse": (
        lambda q, v: _numpy_turn(np.multiply(q, [-1, -1, -1, 1]), v),
        (4, 3),
    ),
}


@pytest.mark.parametrize("name", SEVERAL)
def test_derivatives_by_every_argument_equal_differences_in_double_precision(name):
    function, sizes = SEVERAL[name]
    rng = np.random.default_rng(0)
    point = [rng.uniform(0.2, 1.5, size or ()) for size in sizes]
    direction = [rng.normal(size=size or ()) for size in sizes]
    ahead, behind = (
        function(*(p + s * d for p, d in zip(point, direction, strict=True)))
        for s in (1e-6, -1e-6)
    )
    primals, tangents = (
        tuple(jnp.asarray(v, jnp.float32) for v in values)
        for values in (point, direction)
    )
    value, forward = jax.jvp(F[name], primals, tangents)
    np.testing.assert_allclose(value, function(*point), rtol=1e-5)
    np.testing.assert_allclose(forward, (ahead - behind) / 2e-6, rtol=1e-4, atol=1e-5)
    # Reverse mode: the sum of the outputs along the same direction.
    gradients = jax.grad(lambda p: jnp.sum(F[name](*p)))(primals)
    along = sum(np.sum(g * t) for g, t in zip(gradients, tangents, strict=True))
    np.testing.assert_allclose(along, np.sum(forward), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", [name for name in SEVERAL if name != "div"])
def test_no_derivative_is_nan_where_all_arguments_are_zero(name):
    zeros = tuple(jnp.zeros(size or ()) for size in SEVERAL[name][1])
    _, forward = jax.jvp(F[name], zeros, tuple(jnp.ones_like(z) for z in zeros))
    gradients = jax.grad(lambda p: jnp.sum(F[name](*p)))(zeros)
    assert all(np.all(np.isfinite(g)) for g in (forward, *gradients))


def test_a_clips_bounds_get_the_derivative_that_its_argument_does_not():
    slopes = jax.grad(F["clip"], argnums=(0, 1, 2))
    one = jnp.float32(1)
    for x, expected in (
        (-2, (0, 1, 0)),
        (-1, (1, 0, 0)),
        (1, (1, 0, 0)),
        (2, (0, 0, 1)),
    ):
        assert slopes(jnp.float32(x), -one, one) == expected


@pytest.mark.parametrize(
    ("x", "exponent", "value", "derivative"),
    [
        (3.0, 2.0, 9.0, 6.0),
        (0.0, 0.0, 1.0, 0.0),
        (-2.0, 3.0, -8.0, 12.0),
        (2.0, -1.0, 0.5, -0.25),
        (4.0, 1.5, 8.0, 3.0),
        # A fractional power is guarded like the square root and the logarithm.
        (0.0, 0.5, 0.0, 0.0),
        (-4.0, 0.5, 0.0, 0.0),
        (0.0, -0.5, 1e3, 0.0),
    ],
)
def test_powers(x, exponent, value, derivative):
    assert F["pow"](jnp.float32(x), exponent) == pytest.approx(value, rel=1e-5)
    assert slope("pow", x, exponent) == pytest.approx(derivative, rel=1e-5)
