"""The exported NumPy module equals the compiled policy and acts in Gymnasium's loop."""

import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest
from language.export.cases import (
    COUPLED,
    INTEGRATOR,
    LATCH,
    NAMES,
    PLANT,
    choosing,
    headed,
    load,
    observations,
)

from structjax.errors import StructjaxError
from structjax.language.export.numpy_module import numpy_module
from structjax.language.parse import parse
from structjax.language.structure import (
    Call,
    Head,
    Latent,
    Number,
    Structure,
    Variable,
)
from structjax.memory import along
from structjax.policy import StructuredPolicy, initial_values, variables_from
from structjax.schema import ActionField, Field, Schema
from structjax.tasks.car_racing.schema import CAR_RACING_SCHEMA as CAR


def imported(structure, schema, values=None, docs=None):
    """The module's names."""
    text = numpy_module(structure, schema, values or {}, docs)
    found = {"__name__": "exported"}
    exec(compile(text, "exported.py", "exec"), found)
    return found


def compiled(structure, schema, obs, values=None):
    """Distribution and latents of the compiled policy."""
    values = initial_values(structure) | (values or {})
    policy = StructuredPolicy(structure, schema)
    variables = variables_from(structure, values)
    return jax.jit(jax.vmap(policy.apply, (None, 0)))(variables, obs)


@pytest.mark.parametrize("name", [*NAMES, "operators"])
def test_it_equals_the_compiled_policy(name):
    structure, schema, docs = load(name)
    obs = observations(schema)
    distribution, latents = compiled(structure, schema, obs)
    act = imported(structure, schema, docs=docs)["act"]
    for i, row in enumerate(obs):
        decision = act(row)
        assert set(decision.latents) == set(latents)
        for latent, value in decision.latents.items():
            np.testing.assert_allclose(
                latents[latent][i], value, rtol=2e-4, atol=2e-5, err_msg=latent
            )
        close = {"rtol": 2e-4, "atol": 5e-5}
        np.testing.assert_allclose(distribution.mean[i], decision.mean, **close)
        np.testing.assert_allclose(distribution.std[i], decision.std, **close)


def test_other_weights_are_those_that_are_given():
    structure, schema, _ = load("r1")
    values = {"brake_gain": 2.0, "gas_gain": 0.25}
    obs = observations(schema)
    distribution, _ = compiled(structure, schema, obs, values)
    act = imported(structure, schema, values)["act"]
    means = [act(row).mean for row in obs]
    np.testing.assert_allclose(distribution.mean, means, rtol=2e-4, atol=2e-5)


ONE = Schema(
    (Field("x", None, "", -1, 1, ""),), (ActionField("a", "", low=-1.0, high=2.0),)
)


def values_of(*lines, x=0.0):
    """Latents of a program of these lines at one observation."""
    body = "".join(f"    {line}\n" for line in lines)
    text = f"def policy(obs):\n{body}    return action(a=normal(obs.x))\n"
    return imported(parse(text, ONE).structure, ONE)["act"]([x]).latents


def test_plain_division_by_zero_is_infinite_and_never_an_exception():
    zero, one = Number(0.0), Number(1.0)
    quotients = {
        "p": Call("div", (one, zero)),
        "q": Call("div", (zero, zero)),
        "r": Call("pow", (zero, Number(-1.0))),
        "s": Call("div", (one, Variable("zero"))),
    }
    structure = Structure(
        (),
        (Latent("zero", zero), *(Latent(n, e) for n, e in quotients.items())),
        (Head("a", "normal", (zero, one)),),
    )
    found = imported(structure, ONE)["act"]([0.0]).latents
    assert found["p"] == found["r"] == found["s"] == np.inf
    assert np.isnan(found["q"])


def test_truth_values_count_as_numbers():
    found = values_of(
        "t = obs.x > 0", "n = t + t", "m = -t", "d = t - (obs.x > 1)", x=1.0
    )
    assert found == {"t": 1.0, "n": 2.0, "m": -1.0, "d": 1.0}


def test_whole_numbers_do_not_become_integers():
    found = values_of(
        "v = stack(2, 4)", "w = v ** -1", "c = where(obs.x > 0, 1, 2) ** -1"
    )
    np.testing.assert_array_equal(found["w"], [0.5, 0.25])
    assert found["c"] == 0.5


def test_guards():
    found = values_of(
        "a = sqrt(-2)",
        "b = log(0)",
        "c = safe_div(3, 9e-7)",
        "d = safe_div(3, 2e-6)",
        "e = norm(stack(0, 0))",
        "f = normalise(stack(3e-7, 4e-7))",
        "g = weighted_mean(stack(1, 2), stack(1, -1))",
        "h = nan_clean(1 / (obs.x * 0))",
        "i = wrap_angle(pi)",
        "j = atan2(0 * obs.x, 0 * obs.x)",
        "k = rotate(stack(0, 0, 0, 0), stack(1, 2, 3))",
        "m = rotate(stack(0, 0, 2, 2), stack(1, 2, 3))",  # a quarter turn about z
        "n = clip(5, 2, 1)",
        "p = obs.x ** 0.5",
        "q = obs.x ** -0.5",
        x=-4.0,
    )
    assert found["a"] == found["c"] == found["e"] == found["g"] == found["h"] == 0
    assert found["b"] == pytest.approx(-6 * np.log(10))
    assert found["d"] == pytest.approx(1.5e6)
    np.testing.assert_array_equal(found["f"], [0, 0])
    assert found["i"] == pytest.approx(-np.pi)
    assert found["j"] == 0
    np.testing.assert_array_equal(found["k"], [1, 2, 3])
    np.testing.assert_allclose(found["m"], [-2, 1, 3])
    assert found["n"] == 1
    assert found["p"] == 0
    assert found["q"] == pytest.approx(1000)


def test_names_that_the_module_needs_itself_are_changed():
    names = ("np", "act", "relu_", "LOW", "memory", "latents", "dict", "obs_x", "math")
    text = "".join(f"{name} = weight({i}.5)\n" for i, name in enumerate(names))
    text += "def policy(obs):\n"
    text += f"    statistics = relu({' + '.join(names)}) + obs.x\n"
    text += "    return action(a=normal(statistics))\n"
    found = imported(parse(text, ONE).structure, ONE)
    decision = found["act"]([0.25])
    # 0.5 + 1.5 + ... + 8.5 = 36 + 4.5
    assert decision.latents == {"statistics": 40.75}


def test_the_memory_is_what_the_last_decision_returned():
    act = imported(INTEGRATOR, PLANT)["act"]
    first = act([0.5, 0, 0])
    assert first.memory == {"integral": 0.75, "phase": 0.0}
    second = act([0.5, 0, 0], first.memory)
    assert second.memory == {"integral": 1.25, "phase": 1.0}
    third = act([-1.0, 0, 0], second.memory)  # back below 1: the phase stays
    assert third.memory == {"integral": 0.25, "phase": 1.0}
    np.testing.assert_allclose(third.mean, [0.125, 1.0])


@pytest.mark.parametrize("structure", [INTEGRATOR, LATCH], ids=["integrator", "latch"])
def test_memory_equals_that_of_the_compiled_policy(structure):
    obs = observations(PLANT, 60, seed=2)
    policy = StructuredPolicy(structure, PLANT)
    variables = variables_from(structure, initial_values(structure))
    distribution, latents = jax.jit(along, static_argnums=0)(policy, variables, obs)
    act, memory = imported(structure, PLANT)["act"], None
    for i, row in enumerate(obs):
        decision = act(row, memory)
        memory = decision.memory
        np.testing.assert_allclose(distribution.mean[i], decision.mean, rtol=1e-4)
        for name, value in decision.latents.items():
            np.testing.assert_allclose(latents[name][i], value, rtol=1e-4, err_msg=name)


def test_predict_carries_memory_and_forgets_it_where_an_episode_begins():
    policy = imported(INTEGRATOR, PLANT)["Policy"]()
    obs = np.array([[0.5, 0, 0], [1.5, 0, 0]], np.float32)
    action, state = policy.predict(obs)
    # gain 0.5 times 0.75 and 1.75; the phase of the second latches.
    np.testing.assert_allclose(action, [[0.375, 0], [0.875, 1]])
    action, state = policy.predict(obs, state, np.array([False, True]))
    np.testing.assert_allclose(action, [[0.625, 1], [0.875, 1]])
    np.testing.assert_allclose(state, [[1.25, 1], [1.75, 1]])
    action, state = policy.predict(obs[0], state[0])
    np.testing.assert_allclose(action, [0.875, 1])
    np.testing.assert_allclose(state, [1.75, 1])


class Walk:
    """A Gymnasium-shaped environment: keep x at 0; the observation is x."""

    def reset(self, seed=None):
        self.x, self.steps = 0.9, 0
        return np.array([self.x], np.float32), {}

    def step(self, action):
        assert action.dtype == np.float32
        assert action.shape == (1,)
        assert -1.0 <= action[0] <= 2.0
        self.x += 0.5 * float(action[0])
        self.steps += 1
        obs = np.array([self.x], np.float32)
        return obs, -abs(self.x), False, self.steps == 20, {}


@pytest.mark.parametrize("deterministic", [True, False])
def test_predict_in_a_gymnasium_loop(deterministic):
    text = "def policy(obs):\n    return action(a=normal(-obs.x, std=fixed(0.01)))\n"
    policy = imported(parse(text, ONE).structure, ONE)["Policy"](seed=0)
    env = Walk()
    obs, _ = env.reset()
    state, over = None, False
    while not over:
        action, state = policy.predict(obs, state, deterministic=deterministic)
        obs, _, terminated, truncated, _ = env.step(action)
        over = terminated or truncated
    assert state is None
    # x halves in each of 20 steps; the noise's stationary std is 0.005 / sqrt(0.75).
    bound = 1e-6 if deterministic else 0.03
    assert abs(env.x) < bound


def test_actions_are_clipped_to_their_ranges():
    text = "def policy(obs):\n    return action(a=normal(9 * obs.x))\n"
    policy = imported(parse(text, ONE).structure, ONE)["Policy"]()
    np.testing.assert_array_equal(
        policy.predict(np.array([[1.0], [-1.0]]))[0], [[2], [-1]]
    )


def draws(structure, schema, obs, number=4000):
    policy = imported(structure, schema)["Policy"](seed=1)
    batch = np.tile(np.asarray(obs, float), (number, 1))
    return policy.predict(batch, deterministic=False)[0].astype(float)


def test_a_truncated_normal_is_drawn_within_its_range():
    from scipy import stats

    # mean 0.5 * 1 = 0.5, std 0.4 + 0.6 = 1, both actions; ranges [-2, 1] and [-1, 1].
    sampled = draws(headed("truncated_normal", 0.5, 0.4), PLANT, [1.0, 0.6, 0.0])
    for i, (low, high) in enumerate([(-2, 1), (-1, 1)]):
        exact = stats.truncnorm(low - 0.5, high - 0.5, loc=0.5)
        assert stats.kstest(sampled[:, i], exact.cdf).pvalue > 1e-3
    # 40 standard deviations beyond the range: all at the edge.
    far = draws(headed("truncated_normal", 41.0, 0.4), PLANT, [1.0, 0.6, 0.0], 10)
    np.testing.assert_allclose(far, np.ones((10, 2)), atol=0.2)
    below = draws(headed("truncated_normal", -9.0, 0.4), PLANT, [1.0, 0.6, 0.0])
    exact = stats.truncnorm(7, 10, loc=-9.0)
    assert stats.kstest(below[:, 0], exact.cdf).pvalue > 1e-3


def test_a_tanh_normal_is_squashed_onto_its_range():
    structure = headed("tanh_normal", 0.5, 0.25)
    action, _ = imported(structure, PLANT)["Policy"]().predict(np.array([1.0, 0, 0]))
    np.testing.assert_allclose(action, [-0.5 + 1.5 * np.tanh(0.5), np.tanh(0.5)])
    sampled = draws(structure, PLANT, [1.0, 0, 0])
    u = np.arctanh((sampled - [-0.5, 0]) / [1.5, 1])
    np.testing.assert_allclose(u.mean(0), 0.5, atol=0.02)
    np.testing.assert_allclose(u.std(0), 0.25, atol=0.02)


def test_a_beta_has_its_mean_and_std():
    structure = headed("beta", 0.25, 0.3)
    sampled = draws(structure, PLANT, [1.0, 0, 0])
    np.testing.assert_allclose(sampled.mean(0), 0.25, atol=0.02)
    np.testing.assert_allclose(sampled.std(0), 0.3, atol=0.02)
    action, _ = imported(structure, PLANT)["Policy"]().predict(np.array([1.0, 0, 0]))
    # On [-1, 1]: mean share 5/8, variance 9/400, so a + b = (15/64) / (9/400) - 1 =
    # 113/12, a = 565/96, mode share (565/96 - 1) / (113/12 - 2) = 469/712.
    assert action[1] == pytest.approx(2 * 469 / 712 - 1)


@pytest.mark.parametrize("family", ["truncated_normal", "tanh_normal", "beta"])
def test_actions_without_noise_equal_those_of_the_compiled_policy(family):
    structure = headed(family, 1.25, 0.2)
    obs = observations(PLANT)
    distribution, _ = compiled(structure, PLANT, obs)
    action, _ = imported(structure, PLANT)["Policy"]().predict(obs)
    np.testing.assert_allclose(action, distribution.mode(), rtol=1e-4, atol=1e-5)


def test_coupled_actions_have_their_stds_and_their_correlation():
    sampled = draws(COUPLED, PLANT, [0.0, 0, 0])
    # Row 1 of C is (0.75, 1) of length 1.25: the correlation is 0.75 / 1.25 = 0.6.
    np.testing.assert_allclose(sampled.std(0), [0.49, 0.2], rtol=0.05)
    assert np.corrcoef(sampled.T)[0, 1] == pytest.approx(0.6, abs=0.04)


def test_a_choice_is_the_likeliest_or_drawn():
    structure, schema = choosing()
    found = imported(structure, schema)
    decision = found["act"]([0.5, 0.0, 0.0])
    np.testing.assert_array_equal(decision.logits, [1.0, 0.0])
    policy = found["Policy"](seed=0)
    action, _ = policy.predict(np.array([[0.5, 0, 0], [-0.5, 0, 0]]))
    np.testing.assert_array_equal(action, [0, 1])
    batch = np.tile([0.5, 0, 0], (4000, 1))
    drawn = policy.predict(batch, deterministic=False)[0]
    assert drawn.mean() == pytest.approx(1 / (1 + np.e), abs=0.03)


def test_a_wrong_observation_and_another_task_are_refused():
    structure, schema, _ = load("r0")
    act = imported(structure, schema)["act"]
    with pytest.raises(ValueError, match=r"obs has shape \(3,\), needed is \(55,\)"):
        act(np.zeros(3))
    with pytest.raises(StructjaxError, match=r"returns the actions .* the task has a"):
        numpy_module(structure, ONE, {})
    with pytest.raises(StructjaxError, match="reads the observation"):
        numpy_module(structure, Schema(ONE.observations, CAR.actions), {})
    with pytest.raises(StructjaxError, match="no weight 'gain' in the program"):
        numpy_module(structure, CAR, {"gain": 1.0})


def test_it_runs_without_structjax_and_jax(tmp_path):
    structure, schema, docs = load("car_a")
    path = tmp_path / "exported.py"
    path.write_text(numpy_module(structure, schema, {}, docs))
    code = (
        "import sys; sys.path.insert(0, '.'); import exported; "
        "print(exported.act([0.0] * 55).mean.shape, "
        "[m for m in sys.modules if m.startswith(('jax', 'structjax', 'scipy'))])"
    )
    ran = subprocess.run(
        [sys.executable, "-I", "-c", code], cwd=tmp_path, capture_output=True, text=True
    )
    assert ran.stdout.strip() == "(3,) []", ran.stderr
    assert Path(path).read_text().startswith('"""')
