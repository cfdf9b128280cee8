"""Modules that are refused: each with its problem, word for word."""

from pathlib import Path

import pytest
from language.torch_source.modules import module, problems

A = "a = self.w * obs[:, 0]\n"
GOOD = module(A.strip())


def refused_lines():
    """Name -> lines of forward (from line 9 on), and what is said about them."""
    text = (Path(__file__).parent / "refused_lines.txt").read_text()
    for case in text.split("\n== ")[1:]:
        head, _, problem = case.rstrip("\n").rpartition("\n-> ")
        name, _, lines = head.partition("\n")
        yield pytest.param(lines, problem, id=name)


@pytest.mark.parametrize(("lines", "problem"), list(refused_lines()))
def test_lines_of_forward(lines, problem):
    assert problems(module(lines)) == [problem]


def changed(old, new):
    assert old in GOOD
    return GOOD.replace(old, new)


SUPER = "        super().__init__()\n"
RETURN = "return mean, torch.ones_like(mean), {'latent_a': a}"
MODULES = {
    "empty": (
        "",
        [
            (
                "EMPTY line 1: the program is empty; write one `class "
                "Policy(nn.Module):` with `__init__` and `forward`"
            ),
        ],
    ),
    "no class": (
        "import torch\n",
        [
            (
                "NO_ENTRY line 1: no class; write one `class Policy(nn.Module):` "
                "with `__init__` and `forward`"
            ),
        ],
    ),
    "two classes": (
        GOOD + "class B(nn.Module):\n    pass\n",
        [
            (
                "NO_ENTRY line 12: the file has 2 classes; write one `class "
                "Policy(nn.Module):` with `__init__` and `forward`"
            ),
        ],
    ),
    "not a module": (
        changed("Policy(nn.Module)", "Policy"),
        [
            (
                "NO_ENTRY line 4: `Policy` is not an nn.Module; write `class "
                "Policy(nn.Module):`"
            ),
        ],
    ),
    "no forward": (
        changed("forward", "run"),
        [
            (
                "NO_ENTRY line 4: `Policy` has no `forward`; write `def "
                "forward(self, obs):`"
            ),
        ],
    ),
    "os": (
        "import os\n" + GOOD,
        [
            (
                "IMPORT line 1: `import os` is not accepted; torch, math and typing "
                "may be imported"
            ),
        ],
    ),
    "numpy": (
        "import numpy as np\n" + GOOD,
        [
            (
                "IMPORT line 1: `import numpy as np` is not accepted; torch, math "
                "and typing may be imported"
            ),
        ],
    ),
    "star": (
        "from torch import *\n" + GOOD,
        [
            (
                "IMPORT line 1: `from torch import *` is not accepted here; imports "
                "stand at the top, without a star"
            ),
        ],
    ),
    "main": (
        GOOD + "\nif __name__ == '__main__':\n    print(Policy())\n",
        [
            (
                "TOPLEVEL line 13: `if __name__ == '__main__':` stands beside the "
                "class; imports, constants, functions and one class are accepted"
            ),
        ],
    ),
    "top call": (
        GOOD + "\npolicy = Policy()\n",
        [
            "NAME line 13: `Policy`: the name is not known",
        ],
    ),
    "top train": (
        GOOD + "\nfor i in range(3):\n    pass\n",
        [
            (
                "TOPLEVEL line 13: `for i in range(3):` stands beside the class; "
                "imports, constants, functions and one class are accepted"
            ),
        ],
    ),
    "buffer": (
        changed(SUPER, f"{SUPER}        self.register_buffer('c', torch.ones(3))\n"),
        [
            (
                "BUFFER line 7: `self.register_buffer('c', torch.ones(3))`: a buffer "
                "is not trained; a trained tensor is `nn.Parameter`, a constant is a "
                "number"
            ),
        ],
    ),
    "tensor attr": (
        changed(SUPER, f"{SUPER}        self.c = torch.ones(3)\n"),
        [
            (
                "BUFFER line 7: `self.c`: a tensor that is not trained; a trained "
                "tensor is `nn.Parameter`, a constant is a number"
            ),
        ],
    ),
    "layer": (
        changed(
            SUPER,
            f"{SUPER}        self.net = nn.Sequential(nn.Linear(3, 3), nn.ReLU())\n",
        ),
        [
            (
                "CALL line 7: `nn.Linear(3, 3)`: `nn.Linear` is not accepted; every "
                "weight is an `nn.Parameter` with a name; layers have none"
            ),
            (
                "CALL line 7: `nn.ReLU()`: `nn.ReLU` is not accepted; every weight "
                "is an `nn.Parameter` with a name; layers have none"
            ),
        ],
    ),
    "no grad param": (
        changed("torch.tensor(0.5))", "torch.tensor(0.5), requires_grad=False)"),
        [
            (
                "BUFFER line 7: `nn.Parameter(torch.tensor(0.5), "
                "requires_grad=False)`: a parameter that is not trained; a trained "
                "tensor is `nn.Parameter`, a constant is a number"
            ),
        ],
    ),
    "float param": (
        changed("torch.tensor(0.5))", "0.5)"),
        [
            (
                "WEIGHT line 7: `nn.Parameter(0.5)`: a parameter from a number; "
                "write `nn.Parameter(torch.tensor(0.5))`"
            ),
        ],
    ),
    "random param": (
        changed("torch.tensor(0.5)", "torch.randn(1)"),
        [
            (
                "TRAINING line 7: `torch.randn(1)`: randomness in a policy; noise "
                "belongs to the distribution of the action"
            ),
        ],
    ),
    "large param": (
        changed("torch.tensor(0.5)", "torch.zeros(100)"),
        [
            (
                "WEIGHT line 7: `self.w`: a parameter of 100 numbers; at most 64 "
                "numbers; every one has a meaning"
            ),
        ],
    ),
    "init args": (
        changed("__init__(self)", "__init__(self, obs_dim)"),
        [
            (
                "SIGNATURE line 5: `__init__` needs `obs_dim`; give it a default, or "
                "write `def __init__(self):`"
            ),
        ],
    ),
    "no super": (
        changed(SUPER, ""),
        [
            (
                "NO_ENTRY line 5: `__init__` does not call `super().__init__()`; "
                "call it first"
            ),
        ],
    ),
    "no_grad decorator": (
        changed("    def forward", "    @torch.no_grad()\n    def forward"),
        [
            (
                "TRAINING line 8: the decorator `@torch.no_grad()` is not accepted; "
                "only `@staticmethod` is accepted"
            ),
        ],
    ),
    "inputs": (
        changed("forward(self, obs)", "forward(self, speed_now, obs)"),
        [
            (
                "INPUT line 8: inputs `speed_now`, `obs` are no fields; accepted by "
                "name: `tiles` [B, 3, 2], `speed` [B], `wheel` [B, 4]; one further "
                "input takes the columns of all other fields"
            ),
        ],
    ),
    "no inputs": (
        changed("forward(self, obs)", "forward(self)"),
        [
            (
                "SIGNATURE line 8: `forward(self)` names no inputs; accepted by "
                "name: `tiles` [B, 3, 2], `speed` [B], `wheel` [B, 4]; one further "
                "input takes the columns of all other fields"
            ),
        ],
    ),
    "star inputs": (
        changed("forward(self, obs)", "forward(self, *obs)"),
        [
            (
                "SIGNATURE line 8: `forward(self, *obs)` names no inputs; accepted "
                "by name: `tiles` [B, 3, 2], `speed` [B], `wheel` [B, 4]; one "
                "further input takes the columns of all other fields"
            ),
        ],
    ),
    "nothing left": (
        changed("forward(self, obs)", "forward(self, tiles, speed, wheel, obs)"),
        [
            (
                "INPUT line 8: nothing is left for the input `obs`; accepted by "
                "name: `tiles` [B, 3, 2], `speed` [B], `wheel` [B, 4]; one further "
                "input takes the columns of all other fields"
            ),
        ],
    ),
    "no return": (
        changed("        return mean", "        mean"),
        [
            (
                "NO_RETURN line 8: forward returns nothing; return `mean, L, info`, "
                "mean [B, 2] for steer, gas"
            ),
        ],
    ),
    "mean only": (
        changed(RETURN, "return mean"),
        [
            (
                "OUTPUT line 8: forward returns a tensor; return `mean, L, info`, "
                "mean [B, 2] for steer, gas"
            ),
        ],
    ),
    "wrong mean": (
        changed("torch.stack([a, a]", "torch.stack([a, a, a]"),
        [
            (
                "OUTPUT line 8: the mean is [B, 3]; the task has 2 actions (steer, "
                "gas); return `mean, L, info`, mean [B, 2] for steer, gas"
            ),
        ],
    ),
    "wrong spread": (
        changed("torch.ones_like(mean)", "torch.eye(3)"),
        [
            (
                "OUTPUT line 8: the spread is [3, 3]; [B, 2, 2] (Cholesky) or [B, 2] "
                "(std) is accepted"
            ),
        ],
    ),
    "upper": (
        changed("torch.ones_like(mean)", "torch.ones(2, 2)"),
        [
            (
                "OUTPUT line 8: row 0 of the Cholesky factor is not lower "
                "triangular; its diagonal is positive and all above it are zeros: "
                "`torch.tril`"
            ),
        ],
    ),
    "sample": (
        changed("return mean, torch", "return torch.normal(mean, 0.1), torch"),
        [
            (
                "TRAINING line 11: `torch.normal(mean, 0.1)`: randomness in a "
                "policy; noise belongs to the distribution of the action"
            ),
        ],
    ),
    "column": (
        changed("{'latent_a': a}", "{'latent_b': obs[:, :2], 'latent_b_1': a}"),
        [
            (
                "NAME line 8: `b` and `b_1` would share column `latent_b_1`; rename "
                "one of them"
            ),
        ],
    ),
    "nonascii": (
        changed("self.w *", "self.w \u00d7"),
        [
            "NON_ASCII line 9: U+00D7 (MULTIPLICATION SIGN) is not accepted; write *",
        ],
    ),
    "inf": (
        changed("0.5", "1e999"),
        [
            (
                "CONST line 7: 1e309 is not accepted; constants are finite numbers "
                "up to 1e+30"
            ),
        ],
    ),
    "deep": (
        changed("self.w *", "(" * 101 + "self.w" + ")" * 101 + " *"),
        [
            (
                "TOO_DEEP line 9: more than 100 nested brackets; split the "
                "expression into several assignments"
            ),
        ],
    ),
    "long": (
        GOOD + "#" * 70000,
        [
            (
                "TOO_LONG line 1: the program has 70,355 bytes and 12 lines; at most "
                "65,536 bytes and 2,000 lines are accepted"
            ),
        ],
    ),
    "property": (
        changed("    def forward", "    @property\n    def forward"),
        [
            (
                "NODE line 8: the decorator `@property` is not accepted; only "
                "`@staticmethod` is accepted"
            ),
        ],
    ),
}


@pytest.mark.parametrize("name", MODULES)
def test_modules(name):
    text, found = MODULES[name]
    assert problems(text) == found
