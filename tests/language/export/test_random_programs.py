"""Random programs: compiled, NumPy module and ONNX model agree on every latent."""

import re

import jax
import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from language.export.cases import observations
from language.programs import SMALL, program
from language.test_render import EXPRESSIONS, MODULE

from structjax.language.export.numpy_module import numpy_module
from structjax.language.export.onnx_model import onnx_model
from structjax.language.parse import StructureError, parse
from structjax.policy import StructuredPolicy, variables_from

OBSERVATIONS = observations(SMALL, 14)
# Fixed examples: float32 and float64 may fall on two sides of a comparison.
FIXED = settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
PROGRAMS = st.lists(EXPRESSIONS, min_size=1, max_size=3)


ANGLES = re.compile("wrap_angle|sin|cos")
LARGE = re.compile(r"\d{3,}\.|e\+?\d")


def compiled(expressions):
    """Structure and latents of a program of these expressions.

    Of the angle of a large number float32 keeps no digit.
    """
    assume(not any(ANGLES.search(text) and LARGE.search(text) for text in expressions))
    lines = [f"b{i} = {text}" for i, text in enumerate(expressions)]
    try:
        structure = parse(program(*lines, "a = 1", module=MODULE), SMALL).structure
    except StructureError:
        assume(False)
    policy, variables = (
        StructuredPolicy(structure, SMALL),
        variables_from(structure, {}),
    )
    _, latents = jax.vmap(policy.apply, (None, 0))(variables, OBSERVATIONS)
    return structure, latents


def check(found, expected, name):
    """Equality, apart from what float32 cannot hold."""
    found, expected = np.asarray(found, float), np.asarray(expected, float)
    beyond = np.abs(found) > 1e30
    close = np.isclose(found, expected, rtol=1e-3, atol=1e-4, equal_nan=True)
    assert (beyond | close).all(), name


@FIXED
@given(PROGRAMS)
def test_the_numpy_module(expressions):
    structure, latents = compiled(expressions)
    names = {"__name__": "exported"}
    exec(numpy_module(structure, SMALL, {}), names)
    found = [names["act"](row).latents for row in OBSERVATIONS]
    for name, expected in latents.items():
        check([row[name] for row in found], expected, name)


@FIXED
@given(PROGRAMS)
def test_the_onnx_model(expressions):
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    structure, latents = compiled(expressions)
    model = onnx_model(structure, SMALL, {})
    run = runtime.InferenceSession(model, providers=["CPUExecutionProvider"])
    names = [output.name for output in run.get_outputs()]
    found = dict(zip(names, run.run(None, {"obs": OBSERVATIONS}), strict=True))
    for name, expected in latents.items():
        check(expected, found[f"latent_{name}"], name)
