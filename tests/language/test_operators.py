"""The table against the functions, and the page against the table."""

import subprocess
import sys

import pytest

from structjax.language.functions import FUNCTIONS
from structjax.language.operators import _ROWS, CALLS, OPERATORS, ShapeError
from structjax.language.reference import language_page


def test_every_operator_has_a_function():
    assert len(_ROWS) == len(OPERATORS)  # no name twice
    assert set(OPERATORS) == set(FUNCTIONS)


def test_page_lists_every_operator_and_is_short():
    page = language_page()
    assert all(row.spelling in page for row in OPERATORS.values())
    # About four characters a token: at most 1,000 tokens.
    assert len(page) < 4_000


def test_min_is_a_reduction_or_element_wise():
    assert [row.name for row in CALLS["min"]] == ["minimum", "reduce_min"]


@pytest.mark.parametrize(
    ("name", "sizes", "result"),
    [
        ("add", (None, None), None),
        ("add", (3, None), 3),
        ("where", (None, 3, 3), 3),
        ("reduce_mean", (12,), None),
        ("weighted_mean", (4, 4), None),
        ("stack", (None, None), 2),
        ("concat", (2, 3), 5),
        ("rotate", (4, 3), 3),
        ("rotate2d", (2, None), 2),
    ],
)
def test_shapes(name, sizes, result):
    assert OPERATORS[name].shape(sizes) == result


@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("add", (3, 4)),
        ("reduce_mean", (None,)),
        ("dot", (3, 4)),
        ("stack", (3,)),
        ("concat", (None, 3)),
        ("concat", (1024, 1)),
        ("rotate", (3, 4)),
        ("rotate2d", (2, 2)),
    ],
)
def test_wrong_shapes(name, sizes):
    with pytest.raises(ShapeError):
        OPERATORS[name].shape(sizes)


def test_front_end_does_not_import_jax():
    modules = "parse, render, hashing, reference"
    code = f"from structjax.language import {modules}; import sys; print(*sys.modules)"
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert "structjax.language.parse" in run.stdout.split()
    assert "jax" not in run.stdout.split()
