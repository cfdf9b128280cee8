"""Damaged modules are read or refused, never anything else."""

import ast
import copy
import random

import pytest
from language.torch_source.modules import SCHEMAS, text

from structjax.language.parse import StructureError
from structjax.language.torch_source.parse import parse_torch

FOREIGN = [
    ast.parse(line, mode="eval").body
    for line in (
        *(
            "self",
            "torch",
            "None",
            "True",
            "'x'",
            "[]",
            "()",
            "{}",
            "10 ** 9",
            "...",
            "-1",
        ),
        *("range(10 ** 20)", "torch.eye(3)", "torch.zeros(99, 99)", "tiles.max(dim=1)"),
        *(
            "nn.Parameter(torch.tensor(1.0))",
            "torch.max",
            "{'a': 1}",
            "obs[:]",
            "slice",
        ),
        *("self.forward", "super().__init__()", "torch.float64", "f'{1}'", "3 > 2"),
    )
]


class Swap(ast.NodeTransformer):
    """Replaces some nodes, by identity."""

    def __init__(self, others):
        self.others = others

    def visit(self, node):
        node = self.generic_visit(node)
        return self.others.get(id(node), node)


def mutant(tree, rng):
    tree = copy.deepcopy(tree)
    inside_texts = {
        id(part)
        for node in ast.walk(tree)
        if isinstance(node, ast.JoinedStr)
        for part in ast.walk(node)
    }
    nodes = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.expr)
        and id(node) not in inside_texts
        and not isinstance(getattr(node, "ctx", None), ast.Store)
    ]
    others = {}
    for _ in range(rng.randint(1, 2)):
        old = rng.choice(nodes)
        alike = [node for node in nodes if type(node) is type(old)]
        new = rng.choice(FOREIGN if rng.random() < 0.2 else alike)
        others[id(old)] = copy.deepcopy(new)
    return ast.unparse(ast.fix_missing_locations(Swap(others).visit(tree)))


@pytest.mark.parametrize("name", SCHEMAS)
def test_mutants(name):
    rng, tree = random.Random(name), ast.parse(text(name))
    accepted = refused = 0
    for _ in range(100):
        try:
            parse_torch(mutant(tree, rng), SCHEMAS[name])
            accepted += 1
        except StructureError as error:
            refused += any(p.severity == "error" for p in error.problems)
    assert accepted > 5
    assert accepted + refused == 100
