"""SymPy expressions compute what the NumPy module does; some are derived by hand."""

import functools
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from language.export.cases import INTEGRATOR, LATCH, NAMES, PLANT, load
from language.programs import SMALL, read

from structjax.errors import StructjaxError
from structjax.language.export.numpy_module import numpy_module
from structjax.language.export.symbolic import sympy_expression

sympy = pytest.importorskip("sympy")
NumPyPrinter = pytest.importorskip("sympy.printing.numpy").NumPyPrinter


def scope(schema, obs, latents, weights):
    """What the symbols stand for: they are spelt as in a program."""
    root = SimpleNamespace()
    for field in schema.observations:
        part = obs[schema.slice_of(field.name)]
        *groups, name = field.name.split(".")
        owner = root
        for group in groups:
            vars(owner).setdefault(group, SimpleNamespace())
            owner = getattr(owner, group)
        setattr(owner, name, part[0] if field.size is None else part)
    return {"numpy": np, "functools": functools, "obs": root, **weights, **latents}


def number(expression, names):
    return float(eval(NumPyPrinter().doprint(expression), names))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # the branch that is not taken
@pytest.mark.parametrize("inline", [False, True])
@pytest.mark.parametrize("name", [*NAMES, "operators"])
def test_every_latent_and_action_has_its_value(name, inline):
    structure, schema, _ = load(name)
    module = {"__name__": "exported"}
    exec(numpy_module(structure, schema, {}), module)
    rng = np.random.default_rng(3)
    obs = np.concatenate(
        [rng.uniform(f.low, f.high, f.width) for f in schema.observations]
    )
    decision = module["act"](obs)
    weights = {p.name: p.initial for p in structure.parameters}
    known = scope(schema, obs, {} if inline else decision.latents, weights)
    wanted = dict(decision.latents)
    for action, mean in zip(schema.actions, decision.mean, strict=True):
        wanted[f"action.{action.name}"] = mean
    for latent, value in wanted.items():
        found = sympy_expression(structure, schema, latent, inline=inline)
        parts = found if isinstance(found, list) else [found]
        numbers = [number(sympy.sympify(part), known) for part in parts]
        np.testing.assert_allclose(
            numbers, np.ravel(value), rtol=1e-9, atol=1e-9, err_msg=latent
        )


def expression(*lines, name="a", **options):
    return str(sympy_expression(read(*lines).structure, SMALL, name, **options))


def test_other_latents_are_symbols_or_written_out():
    lines = ("b = obs.speed + 1", "a = w * b ** 2")
    assert expression(*lines) == "b**2*w"
    assert expression(*lines, inline=True) == "w*(obs.speed + 1)**2"
    assert expression(*lines, values={"w": 3.0}) == "3*b**2"
    assert expression(*lines, values={}) == "0.5*b**2"
    assert expression(*lines, name="action.steer") == "obs.speed*w"


def test_conditions_and_bounds():
    assert expression("a = clip(obs.yaw, -1, w)") == "Min(w, Max(-1, obs.yaw))"
    found = expression("a = w if obs.yaw > 0 and obs.speed <= 1 else 2")
    assert found == "Piecewise((w, (obs.speed <= 1) & (obs.yaw > 0)), (2, True))"
    found = expression("t = obs.yaw > 0", "a = t + 1")
    assert found == "Piecewise((1, Ne(t, 0)), (0, True)) + 1"


def test_helpers_are_written_out():
    module = "def twice(x):\n    y = x\n    return y * 2\n"
    structure = read("a = twice(obs.yaw)", module=module).structure
    found = str(sympy_expression(structure, SMALL, "a"))
    assert found == "2*obs.yaw"


def test_memory_is_a_symbol():
    found = sympy_expression(INTEGRATOR, PLANT, "integral", inline=True)
    assert str(found) == "obs.error + previous(integral)"
    counted = sympy_expression(LATCH, PLANT, "count")  # of a truth value: 0 or 1
    assert str(counted) == (
        "previous(count) + Piecewise((1, Ne(previous(on), 0)), (0, True))"
    )


def test_vectors_are_written_element_by_element():
    assert expression("a = sum(obs.tiles.x)") == (
        "obs.tiles.x[0] + obs.tiles.x[1] + obs.tiles.x[2]"
    )
    found = sympy_expression(
        read("a = w", "v = 2 * obs.quat[:2]").structure, SMALL, "v"
    )
    assert list(map(str, found)) == ["2*obs.quat[0]", "2*obs.quat[1]"]
    with pytest.raises(StructjaxError, match="reads the observation 'error'"):
        sympy_expression(INTEGRATOR, SMALL, "integral")


def test_unknown_names_and_huge_formulas_are_refused():
    with pytest.raises(StructjaxError, match="did you mean `bend`"):
        expression("bend = obs.yaw", "a = bend", name="bent")
    lines = ["x0 = obs.yaw"] + [f"x{i} = x{i - 1} + x{i - 1} * w" for i in range(1, 20)]
    # n(i) = 2 n(i - 1) + 3, n(0) = 1: n(19) = 4 * 2^19 - 3; `a` is that.
    with pytest.raises(StructjaxError, match="2,097,149 operators and operands"):
        expression(*lines, "a = x19", inline=True)


def test_without_the_extra_the_error_names_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "sympy", None)
    with pytest.raises(StructjaxError, match=r"pip install 'structjax\[export\]'"):
        expression("a = w")
