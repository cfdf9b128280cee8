"""The compiled policy equals an independent float64 interpreter, in every transform."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from structjax.errors import StructjaxError
from structjax.language.parse import parse
from structjax.language.structure import Call, Index, Number, Observation, Slice, Weight
from structjax.policy import (
    MLPPolicy,
    StructuredPolicy,
    initial_values,
    variables_from,
    weights,
)
from structjax.schema import ActionField, Field, Schema
from structjax.tasks.car_racing.schema import CAR_RACING_SCHEMA as CAR

PROGRAMS = Path(__file__).parent / "fixtures" / "programs"
CARS = ("r0", "r1", "r2", "r3", "car_a", "car_b")


def program(name):
    return parse((PROGRAMS / f"{name}.py").read_text(), CAR).structure


# --- an interpreter that shares nothing with the compiler -----------------------------


def _softplus(x):
    return np.logaddexp(0, x)


NUMPY = {
    "add": lambda a, b: np.add(1.0 * a, b),
    "sub": lambda a, b: np.subtract(1.0 * a, b),
    "mul": lambda a, b: np.multiply(1.0 * a, b),
    "div": lambda a, b: np.divide(1.0 * a, b),
    "pow": lambda a, b: np.power(1.0 * a, b),
    "neg": lambda a: -1.0 * a,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "and_": np.logical_and,
    "or_": np.logical_or,
    "not_": np.logical_not,
    "where": np.where,
    "abs": np.abs,
    "relu": lambda x: np.maximum(x, 0),
    "clip": lambda x, low, high: np.minimum(np.maximum(x, low), high),
    "softplus": _softplus,
    "sqrt": lambda x: np.sqrt(np.maximum(x, 0)),
    "tanh": np.tanh,
    "square": np.square,
    "wrap_angle": lambda x: (x + np.pi) % (2 * np.pi) - np.pi,
    "atan2": np.arctan2,
    "minimum": np.minimum,
    "maximum": np.maximum,
    "reduce_sum": np.sum,
    "reduce_mean": np.mean,
    "reduce_min": np.min,
    "reduce_max": np.max,
    "safe_div": lambda a, b: 0.0 if abs(b) < 1e-6 else a / b,
    "weighted_mean": lambda v, w: np.sum(v * w) / np.sum(w),
    "stack": lambda *s: np.array(s),
    "concat": lambda *v: np.concatenate(v),
    "norm": np.linalg.norm,
    "dot": np.dot,
    "normalise": lambda v: v / np.linalg.norm(v),
    "rotate2d": lambda v, angle: (
        np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]) @ v
    ),
    "rotate": lambda q, v: Rotation.from_quat(q).apply(v),
    "rotate_inverse": lambda q, v: Rotation.from_quat(q).inv().apply(v),
}


def interpret(structure, obs, values, schema=CAR):
    """Latents and heads' arguments, in float64, one expression at a time."""
    known = {}

    def value(e):
        if isinstance(e, Number):
            return np.float64(e.value)
        if isinstance(e, Observation):
            part = np.asarray(obs, float)[schema.slice_of(e.field)]
            field = next(f for f in schema.observations if f.name == e.field)
            return part[0] if field.size is None else part
        if isinstance(e, Weight):
            return np.float64(values[e.name])
        if isinstance(e, Index):
            return value(e.vector)[e.position]
        if isinstance(e, Slice):
            return value(e.vector)[e.start : e.stop]
        if isinstance(e, Call):
            return NUMPY[e.operator](*map(value, e.arguments))
        return known[e.name]

    for latent in structure.latents:
        known[latent.name] = value(latent.expression)
    heads = {h.action: [value(a) for a in h.arguments] for h in structure.heads}
    means, stds = zip(*(heads[a.name] for a in schema.actions), strict=True)
    return known, np.array(means), np.array(stds)


def observations(number, seed=0, schema=CAR):
    """Random observations within the schema's ranges."""
    rng = np.random.default_rng(seed)
    parts = [rng.uniform(f.low, f.high, (number, f.width)) for f in schema.observations]
    return np.concatenate(parts, 1).astype(np.float32)


BODY = Schema(
    tuple(
        Field(name, size, "", -1, 1, name)
        for name, size in (("q", 4), ("p", 3), ("hand", 3), ("turn", None))
    ),
    (ActionField("right", "y"), ActionField("forward", "x")),
)
GEOMETRY = """
reach = weight(0.4, low=0.1)
gain = weight(-1.5, sign="-")

def swing(v, by):
    flat = rotate2d(v[:2], by)
    return concat(flat, v[2:])

def policy(obs):
    to = obs.p - obs.hand
    local = rotate_inverse(obs.q, to)
    back = rotate(obs.q, swing(local, 2 * obs.turn))
    pull = gain * normalise(back)
    near = norm(to) < reach
    apart = wrap_angle(atan2(pull[1], pull[0]) + 3 * obs.turn)
    high = to > 0
    reached = where(high, pull, -0.5)
    count = 0
    for i in range(3):
        count += 1 if high[i] and not near else reached[i] ** 2
    if near or 0.2 < obs.turn <= 0.6:
        side = dot(pull, back)
    else:
        side = max(apart, count, max(pull))
    return action(forward=normal(side), right=normal(min(pull), std=0.2 * abs(side)))
"""


@pytest.mark.parametrize("name", [*CARS, "geometry"])
def test_values_equal_an_independent_interpreter(name):
    text = GEOMETRY if name == "geometry" else (PROGRAMS / f"{name}.py").read_text()
    schema = BODY if name == "geometry" else CAR
    structure = parse(text, schema).structure
    policy = StructuredPolicy(structure, schema)
    values = initial_values(structure)
    obs = observations(24, schema=schema)
    distribution, latents = jax.jit(jax.vmap(policy.apply, (None, 0)))(
        variables_from(structure, values), obs
    )
    for row in range(len(obs)):
        known, mean, std = interpret(structure, obs[row], values, schema)
        np.testing.assert_allclose(distribution.mean[row], mean, rtol=2e-4, atol=2e-5)
        np.testing.assert_allclose(distribution.std[row], std, rtol=2e-4, atol=2e-5)
        for logged in latents:
            np.testing.assert_allclose(
                latents[logged][row],
                known[logged],
                rtol=2e-4,
                atol=2e-5,
                err_msg=logged,
            )


def test_temporaries_are_not_logged():
    structure = program("car_a")  # its helper `fraction` is inlined
    policy = StructuredPolicy(structure, CAR)
    variables = variables_from(structure, initial_values(structure))
    _, latents = policy.apply(variables, jnp.asarray(observations(1)[0]))
    assert any(not v.logged for v in structure.latents)
    assert list(latents) == [v.name for v in structure.latents if v.logged]


@pytest.mark.parametrize("name", CARS)
def test_a_start_is_exact(name):
    structure = program(name)
    policy = StructuredPolicy(structure, CAR)
    variables = policy.init(jax.random.key(0), jnp.zeros(CAR.observation_size))
    for weight, value in weights(policy, variables).items():
        written = initial_values(structure)[weight]
        assert value == pytest.approx(written, rel=1e-5, abs=1e-7), weight


ONE = Schema(
    observations=(Field("x", None, "", -1, 1, "x"), Field("v", 2, "", -1, 1, "v")),
    actions=(ActionField("a", "a"),),
)
BOUNDED = """
free = weight(-3.0)
above = weight(2.0, low=1.5)
below = weight(-2.0, sign="-")
between = weight(0.25, low=0.0, high=1.0)

def policy(obs):
    total = free + above + below + between * obs.x + mean(obs.v)
    return action(a=normal(total))
"""


def test_weights_stay_inside_their_bounds_wherever_the_optimiser_goes():
    structure = parse(BOUNDED, ONE).structure
    policy = StructuredPolicy(structure, ONE)
    start = variables_from(structure, initial_values(structure))
    for shift in (-50.0, -1.0, 1.0, 50.0):
        moved = jax.tree.map(lambda x, shift=shift: x + shift, start)
        found = weights(policy, moved)
        assert found["above"] >= 1.5
        assert found["below"] <= 0
        assert 0 <= found["between"] <= 1
        assert found["free"] == pytest.approx(-3 + shift)


def test_gradients_equal_finite_differences():
    structure = program("r1")
    policy = StructuredPolicy(structure, CAR)
    variables = variables_from(structure, initial_values(structure))
    obs = jnp.asarray(observations(1, seed=3)[0] * 0.3)

    def steer(variables):
        return policy.apply(variables, obs)[0].mean[0]

    gradient = jax.grad(steer)(variables)["params"]
    for name, start in variables["params"].items():
        # float32 allows a step of 1e-2 and about 1e-3 of accuracy.
        step = 1e-2
        ends = [
            steer({"params": {**variables["params"], name: start + d}})
            for d in (step, -step)
        ]
        numeric = (float(ends[0]) - float(ends[1])) / (2 * step)
        assert float(gradient[name]) == pytest.approx(numeric, rel=2e-2, abs=2e-3), name


@pytest.mark.parametrize("fill", [0.0, 1e6, -1e6, np.nan, np.inf])
@pytest.mark.parametrize("name", CARS)
def test_nothing_is_nan_at_zero_large_and_broken_observations(name, fill):
    structure = program(name)
    policy = StructuredPolicy(structure, CAR)
    variables = variables_from(structure, initial_values(structure))
    obs = jnp.full(CAR.observation_size, fill, jnp.float32)

    def total(variables):
        distribution, _ = policy.apply(variables, obs)
        return distribution.mean.sum() + distribution.std.sum()

    value, gradient = jax.jit(jax.value_and_grad(total))(variables)
    assert np.isfinite(value)
    assert all(np.isfinite(g) for g in jax.tree.leaves(gradient))


def test_jit_vmap_over_stacked_variables_and_scan_agree_with_plain_evaluation():
    structure = parse(BOUNDED, ONE).structure
    policy = StructuredPolicy(structure, ONE)
    stacked = variables_from(
        structure,
        {"free": np.array([-3.0, 1.0, 2.0])}
        | {
            name: np.full(3, value)
            for name, value in initial_values(structure).items()
            if name != "free"
        },
    )
    obs = jnp.array([0.5, 0.2, -0.4])
    means = jax.jit(jax.vmap(lambda v: policy.apply(v, obs)[0].mean))(stacked)
    # free + 2 - 2 + 0.25 * 0.5 + mean(0.2, -0.4)
    expected = np.array([-3.0, 1.0, 2.0]) + 0.125 - 0.1
    np.testing.assert_allclose(means[:, 0], expected, rtol=1e-5)
    first = jax.tree.map(lambda leaf: leaf[0], stacked)
    _, scanned = jax.lax.scan(
        lambda carry, o: (carry, policy.apply(first, o)[0].mean),
        0,
        jnp.stack([obs] * 4),
    )
    np.testing.assert_allclose(scanned, np.full((4, 1), expected[0]), rtol=1e-5)


BOUNDS = """
small = weight(0.1, low=0.02, high=0.2)
crossing = weight(0.1, low=-0.7, high=0.3)
down = weight(-1.1, high=-0.3)
up = weight(1.1, low=0.3)

def policy(obs):
    return action(a=normal(small + crossing + down + up * obs.x))
"""


@pytest.mark.parametrize("shift", [-60.0, 60.0])
def test_a_weight_that_was_fitted_to_its_bound_can_be_read_back(shift):
    # float32 rounds the bound 0.2 up: the fitted value is above it in double precision.
    structure = parse(BOUNDS, ONE).structure
    policy = StructuredPolicy(structure, ONE)
    start = variables_from(structure, initial_values(structure))
    fitted = weights(policy, jax.tree.map(lambda x: x + shift, start))
    values = {name: float(value) for name, value in fitted.items()}
    again = weights(policy, variables_from(structure, values))
    for name, value in values.items():
        assert float(again[name]) == pytest.approx(value, rel=1e-6, abs=1e-6), name


def test_a_weight_may_have_the_name_of_a_module_attribute():
    # Names that flax's own `self.param` refuses.
    names = ("name", "parent", "path", "copy", "schema", "structure", "apply")
    text = "".join(f"{name} = weight(0.5)\n" for name in names)
    text += f"def policy(obs):\n    return action(a=normal({' + '.join(names)}))\n"
    policy = StructuredPolicy(parse(text, ONE).structure, ONE)
    variables = policy.init(jax.random.key(0), jnp.zeros(3))
    # The start is what `variables_from` gives without values.
    assert variables == variables_from(policy.structure, {})
    mean = policy.apply(variables, jnp.zeros(3))[0].mean
    np.testing.assert_allclose(mean, [3.5], rtol=1e-6)


def test_a_program_of_another_task_is_refused():
    structure = parse(BOUNDED, ONE).structure
    variables = variables_from(structure, {})
    renamed = Schema(ONE.observations, (ActionField("b", "b"),))
    with pytest.raises(StructjaxError, match=r"returns the actions \['a'\].*has b"):
        StructuredPolicy(structure, renamed).apply(variables, jnp.zeros(3))
    without = Schema(ONE.observations[:1], ONE.actions)
    with pytest.raises(StructjaxError, match="reads the observation 'v'; the task has"):
        StructuredPolicy(structure, without).apply(variables, jnp.zeros(1))


def test_the_std_floor_is_a_share_of_the_half_range():
    structure = parse(BOUNDED, ONE).structure
    variables = variables_from(structure, {"std_a": 0.01})
    obs = jnp.zeros(3)
    plain = StructuredPolicy(structure, ONE).apply(variables, obs)[0].std
    floored = (
        StructuredPolicy(structure, ONE, std_floor=0.2).apply(variables, obs)[0].std
    )
    assert (float(plain[0]), float(floored[0])) == pytest.approx((0.01, 0.2), rel=1e-5)


def test_an_unknown_weight_and_a_value_outside_are_refused():
    structure = parse(BOUNDED, ONE).structure
    with pytest.raises(StructjaxError, match="no weight 'gain' in the program"):
        variables_from(structure, {"gain": 1.0})
    with pytest.raises(StructjaxError, match=r"weight 'between' is 2\.0"):
        variables_from(structure, {"between": 2.0})


def test_a_structure_is_a_static_argument_that_compiles_once():
    structure = parse(BOUNDED, ONE).structure
    same = parse(BOUNDED, ONE).structure
    traces = []

    def act(policy, variables, obs):
        traces.append(1)
        return policy.apply(variables, obs)[0].mean

    jitted = jax.jit(act, static_argnums=0)
    variables = variables_from(structure, initial_values(structure))
    jitted(StructuredPolicy(structure, ONE), variables, jnp.zeros(3))
    jitted(StructuredPolicy(same, ONE), variables, jnp.ones(3))
    assert len(traces) == 1


def test_a_discrete_action_is_categorical():
    schema = Schema(ONE.observations, (ActionField("go", "", choices=("no", "yes")),))
    text = (
        "k = weight(2.0)\n"
        "def policy(obs):\n"
        "    return action(go=categorical(0, k * obs.x))\n"
    )
    structure = parse(text, schema).structure
    policy = StructuredPolicy(structure, schema)
    variables = variables_from(structure, initial_values(structure))
    distribution, _ = policy.apply(variables, jnp.array([0.5, 0, 0]))
    np.testing.assert_allclose(distribution.logits, [0, 1], atol=1e-6)


def test_the_network_has_the_same_contract():
    policy = MLPPolicy(CAR)
    obs = jnp.asarray(observations(1)[0])
    variables = policy.init(jax.random.key(0), obs)
    distribution, latents = policy.apply(variables, obs)
    assert distribution.mean.shape == distribution.std.shape == (3,)
    assert latents == {}
    # 0.5 of the half ranges 1, 0.5, 0.5.
    np.testing.assert_allclose(distribution.std, [0.5, 0.25, 0.25], rtol=1e-5)
