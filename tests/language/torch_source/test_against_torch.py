"""Values, latents and gradients equal PyTorch's own, at kinks too."""

import importlib.util
import inspect

import numpy as np
import pytest
from language.torch_source.against import runner, split
from language.torch_source.modules import FIXTURES, SCHEMAS, fixture

from structjax.language.torch_source.naming import stem

torch = pytest.importorskip("torch")
NAMES = tuple(SCHEMAS)


def build(name):
    """An instance of the fixture's class."""
    spec = importlib.util.spec_from_file_location(
        f"torch_{name}", FIXTURES / f"{name}.py"
    )
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    (found,) = (
        c
        for c in vars(loaded).values()
        if inspect.isclass(c) and issubclass(c, torch.nn.Module)
    )
    return found()


def observations(schema, number, seed, kinks):
    """Within the ranges; `kinks` gives many exact zeros, ties and edges."""
    rng = np.random.default_rng(seed)
    parts = [rng.uniform(f.low, f.high, (number, f.width)) for f in schema.observations]
    obs = np.concatenate(parts, 1).astype(np.float32)
    if kinks:
        grid = rng.choice([-1.0, -0.5, 0.0, 0.0, 0.5, 1.0], obs.shape)
        obs = np.where(rng.uniform(size=obs.shape) < 0.8, grid, obs)
        obs[0] = 0.0
    return obs.astype(np.float32)


def values(program, model, seed, kinks):
    """Random parameter values, set in both; with `kinks` some are exactly 0."""
    rng = np.random.default_rng(seed)
    found = {}
    with torch.no_grad():
        for parameter in model.parameters():
            shape = tuple(parameter.shape)
            new = parameter.numpy() + rng.normal(0, 0.3, shape)
            if kinks:
                new = np.where(rng.uniform(size=shape) < 0.4, 0.0, new)
            parameter.copy_(torch.tensor(np.asarray(new), dtype=torch.float32))
    flat = np.concatenate([p.detach().numpy().reshape(-1) for p in model.parameters()])
    for parameter, value in zip(program.structure.parameters, flat, strict=True):
        found[parameter.name] = value
    return found


def run_torch(model, schema, obs):
    """Outputs and info of the model, by the names of the Structure."""
    arguments = list(inspect.signature(model.forward).parameters)
    tensors = [torch.tensor(part) for part in split(schema, arguments, obs)]
    *parts, info = model(*tensors)
    if schema.discrete:
        return {"logits": parts[0]}, info
    mean, spread = parts
    L = spread if spread.ndim == 3 else torch.diag_embed(spread)
    return {"mean": mean, "L": L}, info


def latents_of(info, program, number):
    """Latent -> torch's tensor, `[N]` or `[N, n]`."""
    logged = {v.name: v.size for v in program.structure.latents if v.logged}
    found = {}
    for key, tensor in info.items():
        _, name = stem(key)
        name = name if name in logged else f"latent_{name}"
        if name in logged:
            shape = (number,) if logged[name] is None else (number, logged[name])
            whole = (
                tensor.reshape(shape) if tensor.numel() == np.prod(shape) else tensor
            )
            found[name] = whole.expand(shape)
    assert set(found) == set(logged)
    return found


@pytest.mark.parametrize("name", NAMES)
def test_values_latents_and_gradients(name):
    program, schema = fixture(name), SCHEMAS[name]
    run = runner(program.structure, schema)
    for kinks in (False, True):
        model = build(name)
        weights = values(program, model, 1, kinks)
        obs = observations(schema, 40, 2, kinks)
        outputs, info = run_torch(model, schema, obs)
        expected = {**outputs, **latents_of(info, program, 40)}
        rng = np.random.default_rng(3)
        cotangents = {
            key: rng.normal(size=wanted.shape).astype(np.float32)
            for key, wanted in expected.items()
            if wanted.requires_grad
        }
        found, derivatives = run(weights, obs, cotangents)
        assert set(found) == set(expected)
        for key, wanted in expected.items():
            wanted = wanted.detach().float().numpy()
            np.testing.assert_allclose(found[key], wanted, 2e-5, 2e-6, err_msg=key)
        sum(
            (expected[k] * torch.tensor(c)).sum() for k, c in cotangents.items()
        ).backward()
        wanted = np.concatenate(
            [p.grad.numpy().reshape(-1) for p in model.parameters()]
        )
        found = np.array([derivatives[p.name] for p in program.structure.parameters])
        scale = np.abs(wanted).max()
        np.testing.assert_allclose(found, wanted, rtol=2e-4, atol=2e-6 * scale)


@pytest.mark.parametrize("name", NAMES)
def test_initial_values_are_the_written_ones(name):
    program, model = fixture(name), build(name)
    flat = np.concatenate([p.detach().numpy().reshape(-1) for p in model.parameters()])
    initial = [p.initial for p in program.structure.parameters]
    np.testing.assert_allclose(initial, flat, rtol=1e-6, atol=1e-8)
