"""Each accepted function equals PyTorch's, values and gradients, at kinks too."""

import numpy as np
import pytest
from language.torch_source.against import runner
from language.torch_source.modules import SMALL, module

from structjax.language.torch_source.parse import parse_torch

torch = pytest.importorskip("torch")

# Inputs: tiles [B, 3, 2], rest = speed, wheel 0..3 [B, 5]. Parameters: w scalar, v [3],
# m [2, 2]. Each line computes `a` [B].
LINES = {
    "abs": "a = torch.abs(self.w * rest[:, 0]) + abs(self.w)",
    "abs of a vector": "a = (tiles[:, :, 0] * self.w).abs().sum(dim=1)",
    "clamp": "a = torch.clamp(self.w * rest[:, 0], -0.5, 0.5)",
    "clamp below": "a = torch.clamp(self.w * rest[:, 0], min=0.5)",
    "clamp above": "a = (self.w * rest[:, 0]).clamp(max=0.5)",
    "clamp by tensors": (
        "a = torch.clamp(self.w * rest[:, 0], min=self.v[0] - 1, max=self.v[1] + 1)"
    ),
    "clamp_min": "a = torch.clamp_min(self.w * rest[:, 0], self.v[0])",
    "clamp_max": "a = (self.w * rest[:, 0]).clamp_max(0.5)",
    "relu": "a = F.relu(self.w * rest[:, 0]) + torch.relu(self.w)",
    "leaky relu": "a = F.leaky_relu(self.w * rest[:, 0], negative_slope=0.2)",
    "softplus": "a = F.softplus(self.w) * rest[:, 0] + F.softplus(rest[:, 1] * self.w)",
    "softplus beta": "a = F.softplus(30 * self.w + rest[:, 0], beta=2)",
    "sign": "a = torch.sign(self.w * rest[:, 0]) * self.w",
    "square": "a = torch.square(self.w) * rest[:, 0] + self.w.pow(3) + self.w**2",
    "negative power": "a = (2 + self.w) ** -2 * rest[:, 0]",
    "fractional power": "a = (2 + self.w) ** 1.5 * rest[:, 0]",
    "sqrt": "a = torch.sqrt(self.w**2 + 1e-3) * rest[:, 0]",
    "log": "a = torch.log(self.w.abs() + 0.1) + rest[:, 0] + torch.log1p(self.w**2)",
    "exp": "a = torch.exp(self.w * rest[:, 0])",
    "tanh": "a = torch.tanh(self.w * rest[:, 0]) + torch.sigmoid(self.w)",
    "sin": "a = torch.sin(self.w) + torch.cos(rest[:, 0] * self.w)",
    "atan2": "a = torch.atan2(self.w + rest[:, 0], self.w - rest[:, 1])",
    "division": "a = rest[:, 0] / (self.w + 3) + (1 / (2 + self.w)).reciprocal()",
    "maximum": "a = torch.maximum(self.w * rest[:, 0], self.w * rest[:, 1])",
    "minimum": "a = torch.min(self.w * rest[:, 0], self.w * 0.5)",
    "max of two": "a = torch.max(self.v[0] * rest[:, 0], self.v[1] * rest[:, 1])",
    "max along": "a = (self.w * tiles[:, :, 0]).max(dim=1).values",
    "min along": "a = torch.min(self.v * tiles[..., 1], dim=-1)[0]",
    "max unpacked": "a, _ = torch.max(tiles[..., 1] * self.v, dim=1)",
    "max of everything": "a = rest[:, 0] + self.v.max() * rest[:, 1] + self.v.min()",
    "amax": "a = (self.w * tiles[:, :, 0]).amax(dim=1) + torch.amax(self.v)",
    "amin": "a = torch.amin(self.v * tiles[:, :, 0], dim=1)",
    "amax of two": "a = torch.amax(self.w * tiles[:, 0], dim=1)",
    "amax of axes": "a = torch.amax(self.w * tiles, dim=(1, 2))",
    "sum": "a = (tiles * self.w).sum(dim=(1, 2)) + rest.sum(-1) * self.w",
    "mean keepdim": "a = (rest - rest.mean(dim=1, keepdim=True) * self.w)[:, 0]",
    "mean of two": "a = (tiles[:, 0] * self.w).mean(dim=1)",
    "prod": "a = (tiles[:, :, 0] * self.w).prod(dim=1)",
    "cumsum": "a = torch.cumsum(self.v * tiles[:, :, 0], dim=1)[:, -1]",
    "std": "a = (self.v * tiles[:, :, 0]).std(dim=1) + rest.var(dim=1, unbiased=False)",
    "norm": "a = torch.norm(self.w * tiles[:, :, 0], dim=1)",
    "norm of a method": "a = (self.w * tiles[:, 0]).norm(dim=-1)",
    "norm of numbers": "a = torch.linalg.norm(self.w * tiles[:, :, 1], dim=1)",
    "vector_norm": "a = torch.linalg.vector_norm(self.v * tiles[:, :, 0], dim=-1)",
    "norm 1": "a = (self.v * tiles[:, :, 0]).norm(p=1, dim=1)",
    "normalize": "a = F.normalize(self.v + 2 + tiles[:, :, 0], dim=-1)[:, 1]",
    "where": "a = torch.where(rest[:, 0] > 0, self.w * rest[:, 0], self.v[0])",
    "where method": "a = (self.w * rest[:, 1]).where(rest[:, 0] >= 0, self.v[1])",
    "logic": (
        "a = torch.where((rest[:, 0] > 0) & ~(rest[:, 1] < 0) | (rest[:, 2] == 0), "
        "self.w, self.v[2])"
    ),
    "logic functions": (
        "a = torch.where(torch.logical_and(rest[:, 0] > 0, rest[:, 1]), self.w, 0.0)"
    ),
    "any": "a = torch.where((tiles > 0.9).any(dim=2).all(dim=1), self.w, self.v[0])",
    "truth as number": "a = self.w * (rest[:, 0] > 0).float() + (rest > 0).sum(dim=1)",
    "softmax": "a = (torch.softmax(self.v * 3, dim=0) * tiles[:, :, 0]).sum(1)",
    "softmax of inputs": "a = F.softmax(self.w * rest, dim=-1)[:, 2]",
    "lerp": "a = torch.lerp(rest[:, 0], rest[:, 1], self.w)",
    "matmul": "a = (rest[:, 1:].reshape(-1, 2, 2) @ self.m).sum(dim=(1, 2))",
    "matrix times vector": "a = (self.m @ tiles[:, 0].unsqueeze(-1)).squeeze(-1)[:, 0]",
    "rows times matrix": "a = torch.matmul(tiles[:, 0], self.m)[:, 1]",
    "vector times matrix": "a = rest[:, 0] * (self.m[0] @ self.m) [1]",
    "einsum": "a = torch.einsum('bij,jk->bik', tiles, self.m)[:, 2, 1]",
    "einsum to a scalar": "a = torch.einsum('bi,i->b', tiles[:, :, 1], self.v)",
    "bmm": "a = torch.bmm(tiles, tiles.transpose(1, 2) * self.w)[:, 0, 2]",
    "dot": "a = rest[:, 0] * torch.dot(self.v, self.v)",
    "cross": "a = torch.cross(tiles[..., 0] * self.v, tiles[..., 1], dim=-1)[:, 1]",
    "nan_to_num": (
        "a = torch.nan_to_num(rest[:, 0] / (self.w * 0), 0.0, 0.0, 0.0) + self.w"
    ),
    "nan_to_num numbers": (
        "a = torch.nan_to_num(rest[:, 0] * 1.0 / 0.0, nan=2.0, posinf=1.0, neginf=-1.0)"
        " + self.w * rest[:, 0]"
    ),
    "unbind": "x, y = tiles.unbind(-1)\na = (x * y * self.v).sum(dim=1)",
    "chunk": "a = torch.chunk(rest, 2, dim=1)[1][:, 0] * self.w",
    "split": "a = torch.split(rest, [1, 4], dim=1)[1][:, -1] * self.w",
    "flip": "a = (tiles[:, :, 0].flip(1) * self.v).sum(dim=1)",
    "steps": "a = (tiles[:, ::2, 0] * self.v[[0, 2]]).sum(dim=1)",
    "permute": "a = (tiles.permute(0, 2, 1) * self.v).sum(dim=2)[:, 1]",
    "flatten": "a = tiles.flatten(1)[:, 3] * self.w + tiles.reshape(len_b, -1)[:, 4]",
    "view": "a = (tiles.view(-1, 6) * self.w).view(len_b, 3, 2)[:, 1, 0]",
    "expand": "a = (self.v.expand(len_b, 3) * tiles[:, :, 0]).sum(-1)",
    "expand_as": "a = (self.v.unsqueeze(0).expand_as(tiles[..., 0]) * 2)[:, 1]",
    "repeat": "a = self.v.repeat(len_b, 2)[:, 4] * rest[:, 0]",
    "stack and cat": (
        "a = torch.cat([torch.stack([rest[:, 0], rest[:, 1]], 1), tiles[:, 0]], 1)\n"
        "a = (a * self.w).sum(dim=1)"
    ),
    "tril": "a = rest[:, 0] * torch.tril(self.m).sum() + torch.triu(self.m, 1).sum()",
    "diag": "a = rest[:, 0] * torch.diagonal(self.m).sum() + torch.diag(self.v)[1, 1]",
    "constants": (
        "a = (torch.arange(3) * self.v).sum() + torch.full((3,), 0.5)[0] * rest[:, 0]"
        " + torch.linspace(0, 1, 3)[1] + torch.eye(2)[0, 0]"
        " + torch.ones_like(rest)[:, 1]"
    ),
    "isfinite": "a = torch.where(torch.isfinite(rest[:, 0]), self.w, torch.zeros(()))",
    "square of a reduction": "a = tiles.pow(2).sum(dim=2).sqrt().sum(1) * self.w",
    "python": "a = sum([rest[:, i] * self.w for i in range(5) if i != 2])",
}
PARAMETERS = "w = 0.5; v = [0.2, -0.4, 0.6]; m = [[0.5, -0.2], [0.1, 0.3]]"


def source(lines):
    prepared = ("len_b = tiles.shape[0]", lines, "a = a.expand(len_b)")
    return module(*prepared, parameters=PARAMETERS, arguments="tiles, rest")


def build(text):
    names = {}
    exec(compile(text, "module", "exec"), names)
    return names["Policy"]()


def observations(kinks):
    rng = np.random.default_rng(3)
    if kinks:
        obs = rng.choice([-1.0, -0.5, 0.0, 0.5, 1.0], (60, 11))
        obs[0] = 0.0
    else:
        obs = rng.uniform(-1, 1, (60, 11))
    return obs.astype(np.float32)


def cases(model):
    """Observations, and parameter values in the model: random ones, then kinks."""
    rng = np.random.default_rng(4)
    for start in (None, 0.0, 0.5, 1.0):  # at 0.5 and 1 products meet the clamps' edges
        with torch.no_grad():
            for parameter in model.parameters():
                shape = tuple(parameter.shape)
                new = rng.choice([0.0, 0.5, 1.0], shape) if shape else start
                new = rng.uniform(-1, 1, shape) if start is None else new
                parameter.copy_(torch.tensor(np.asarray(new), dtype=torch.float32))
                parameter.grad = None
        yield observations(kinks=start is not None)


def flat(tensors):
    return np.concatenate([t.detach().numpy().reshape(-1) for t in tensors])


@pytest.mark.parametrize("name", LINES)
def test_a_function(name):
    text = source(LINES[name])
    structure = parse_torch(text, SMALL).structure
    names = [p.name for p in structure.parameters]
    run, model = runner(structure, SMALL), build(text)
    weight = np.random.default_rng(5).normal(size=60).astype(np.float32)
    for obs in cases(model):
        parameters = list(model.parameters())
        tiles = torch.tensor(np.stack([obs[:, :3], obs[:, 3:6]], -1))
        _, _, info = model(tiles, torch.tensor(obs[:, 6:]))
        (info["latent_a"] * torch.tensor(weight)).sum().backward()
        values = dict(zip(names, flat(parameters), strict=True))
        found, derivatives = run(values, obs, {"a": weight})
        wanted = info["latent_a"].detach().numpy()
        np.testing.assert_allclose(found["a"], wanted, rtol=1e-5, atol=1e-5)
        zeros = (torch.zeros_like(p) if p.grad is None else p.grad for p in parameters)
        found = np.array([derivatives[name] for name in names])
        np.testing.assert_allclose(found, flat(zeros), rtol=1e-4, atol=1e-4)
