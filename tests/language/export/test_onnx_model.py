"""The ONNX model, run by onnxruntime, equals the compiled policy."""

import json
import sys

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
from structjax.language.export.onnx_model import onnx_model
from structjax.language.parse import parse
from structjax.policy import StructuredPolicy, initial_values, variables_from
from structjax.schema import ActionField, Field, Schema

onnx = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")


def session(structure, schema, values=None):
    return runtime.InferenceSession(
        onnx_model(structure, schema, values or {}), providers=["CPUExecutionProvider"]
    )


def outputs(run, **inputs):
    names = [output.name for output in run.get_outputs()]
    given = {name: np.asarray(x, np.float32) for name, x in inputs.items()}
    return dict(zip(names, run.run(None, given), strict=True))


@pytest.mark.parametrize("name", [*NAMES, "operators"])
def test_it_equals_the_compiled_policy(name):
    structure, schema, _ = load(name)
    obs = observations(schema)
    policy = StructuredPolicy(structure, schema)
    variables = variables_from(structure, initial_values(structure))
    distribution, latents = jax.jit(jax.vmap(policy.apply, (None, 0)))(variables, obs)
    found = outputs(session(structure, schema), obs=obs)
    close = {"rtol": 2e-4, "atol": 5e-5}
    np.testing.assert_allclose(found["mean"], distribution.mean, **close)
    np.testing.assert_allclose(found["std"], distribution.std, **close)
    low, high = schema.action_low[None], schema.action_high[None]
    clipped = np.clip(distribution.mean, low, high)
    np.testing.assert_allclose(found["action"], clipped, **close)
    assert {f"latent_{latent}" for latent in latents} < set(found)
    for latent, value in latents.items():
        assert found[f"latent_{latent}"].shape == value.shape
        np.testing.assert_allclose(
            found[f"latent_{latent}"], value, rtol=2e-4, atol=2e-5, err_msg=latent
        )


ONE = Schema((Field("x", None, "", -1, 1, ""),), (ActionField("a", ""),))


def test_angles_in_all_quadrants_and_on_the_axes():
    schema = Schema((Field("p", 2, "", -1, 1, ""),), ONE.actions)
    text = "def policy(obs):\n    return action(a=normal(atan2(obs.p[0], obs.p[1])))\n"
    run = session(parse(text, schema).structure, schema)
    points = [(y, x) for y in (-2.0, -0.0, 0.0, 1.0) for x in (-1.0, -0.0, 0.0, 3.0)]
    found = outputs(run, obs=points)["mean"][:, 0]
    exact = [0.0 if not (x or y) else np.arctan2(y, x) for y, x in points]
    np.testing.assert_allclose(found, exact, atol=1e-6)


def test_what_is_not_a_number_stays_so():
    schema = Schema((Field("v", 3, "", -1, 1, ""),), ONE.actions)
    names = ("relu", "sign", "abs", "sqrt", "log", "tanh", "sigmoid", "softplus")
    lines = ["nan = obs.v[0] / obs.v[0]", "v = obs.v / obs.v"]
    lines += [f"a_{name} = {name}(nan)" for name in names]
    lines += ["b_min = min(nan, 1)", "b_max = max(1, nan)", "b_clip = clip(nan, 0, 1)"]
    lines += [f"c_{name} = {name}(v)" for name in ("min", "max", "sum", "mean", "norm")]
    lines += ["d_power = nan ** 0.5", "d_div = safe_div(nan, 2)"]
    body = "".join(f"    {line}\n" for line in lines)
    text = f"def policy(obs):\n{body}    return action(a=normal(0 * nan))\n"
    found = outputs(session(parse(text, schema).structure, schema), obs=[[0, 1, 2]])
    wrong = [name for name, value in found.items() if not np.isnan(value).any()]
    assert wrong == ["std"]


def test_a_sum_of_negative_zeros_is_a_positive_zero():
    schema = Schema((Field("v", 3, "", -1, 1, ""),), ONE.actions)
    text = "def policy(obs):\n    a = atan2(sum(-obs.v), -1)\n"
    text += "    return action(a=normal(a))\n"
    structure = parse(text, schema).structure
    run = session(structure, schema)
    variables = variables_from(structure, {})
    obs = np.zeros(3, np.float32)
    mean = StructuredPolicy(structure, schema).apply(variables, obs)[0].mean
    np.testing.assert_allclose(outputs(run, obs=[obs])["mean"][0], mean, rtol=1e-6)
    np.testing.assert_allclose(mean, [np.pi], rtol=1e-6)


def test_constants_have_the_length_of_the_batch():
    text = "k = weight(2.0)\ndef policy(obs):\n    c = 3 * k\n    v = stack(1, c)\n"
    structure = parse(text + "    return action(a=normal(c))\n", ONE).structure
    found = outputs(session(structure, ONE, {"k": 0.5}), obs=np.zeros((3, 1)))
    np.testing.assert_array_equal(found["latent_c"], [1.5] * 3)
    np.testing.assert_array_equal(found["latent_v"], [[1, 1.5]] * 3)
    np.testing.assert_array_equal(found["mean"], [[1.5]] * 3)


def test_memory_goes_in_and_out():
    model = onnx.load_from_string(onnx_model(INTEGRATOR, PLANT, {}))
    facts = {p.key: json.loads(p.value) for p in model.metadata_props}
    assert facts["memory"] == {"integral": 0.25, "phase": 0.0}
    assert facts["actions"] == {"pull": [-2.0, 1.0], "push": [-1.0, 1.0]}
    run = session(INTEGRATOR, PLANT)
    obs = [[0.5, 0, 0], [1.5, 0, 0]]
    first = outputs(run, obs=obs, memory=[[0.25, 0.0]] * 2)
    np.testing.assert_allclose(first["next_memory"], [[0.75, 0], [1.75, 1]])
    second = outputs(run, obs=obs, memory=first["next_memory"])
    np.testing.assert_allclose(second["next_memory"], [[1.25, 1], [3.25, 1]])
    np.testing.assert_allclose(second["mean"], [[0.625, 1], [1.625, 1]])
    np.testing.assert_allclose(second["action"], [[0.625, 1], [1.0, 1]])


def test_truth_values_are_remembered():
    obs = observations(PLANT, 60, seed=2)
    names = {"__name__": "exported"}
    exec(numpy_module(LATCH, PLANT, {}), names)
    run, decision = session(LATCH, PLANT), None
    memory = [list(names["INITIAL_MEMORY"].values())]
    for row in obs:
        decision = names["act"](row, decision and decision.memory)
        found = outputs(run, obs=[row], memory=memory)
        memory = found["next_memory"]
        np.testing.assert_array_equal(memory[0], list(decision.memory.values()))
        np.testing.assert_allclose(found["mean"][0], decision.mean, rtol=1e-5)


@pytest.mark.parametrize("family", ["truncated_normal", "tanh_normal", "beta"])
def test_actions_without_noise_equal_the_numpy_module(family):
    structure = headed(family, 0.75, 0.2)
    obs = np.random.default_rng(0).uniform(-1, 1, (50, 3))
    names = {"__name__": "exported"}
    exec(numpy_module(structure, PLANT, {}), names)
    expected, _ = names["Policy"]().predict(obs)
    found = outputs(session(structure, PLANT), obs=obs)["action"]
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_coupling_is_returned():
    found = outputs(session(COUPLED, PLANT), obs=np.zeros((2, 3)))
    np.testing.assert_array_equal(found["coupling"], [[0.75], [0.75]])


def test_a_choice():
    found = outputs(session(*choosing()), obs=[[0.5, 0, 0], [-0.5, 0, 0]])
    np.testing.assert_array_equal(found["logits"], [[1, 0], [-1, 0]])
    np.testing.assert_array_equal(found["action"], [0, 1])


def test_without_the_extra_the_error_names_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(StructjaxError, match=r"pip install 'structjax\[export\]'"):
        onnx_model(COUPLED, PLANT, {})
