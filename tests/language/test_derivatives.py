"""Derivatives of random programs against central differences in float64.

The differences are those of the exported NumPy module, which shares no code with the
compiler. Where differences of two widths disagree there is a kink, or float64 cannot
tell; the conventions at kinks are tested one by one in test_functions.py.
"""

import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import HealthCheck, assume, given, settings
from language.export.cases import observations
from language.export.test_random_programs import PROGRAMS, compiled
from language.programs import SMALL

from structjax.language.export.numpy_module import numpy_module
from structjax.policy import StructuredPolicy, initial_values, variables_from

FIXED = settings(
    max_examples=40,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
OBSERVATIONS = observations(SMALL, 14)[-3:]
compared: list[int] = []


def total(latents):
    """Sum of all latents, which the derivative is taken of."""
    return sum(np.sum(value, dtype=np.float64) for value in latents.values())


def difference(structure, values, name, obs, width):
    """Central difference of the total by one weight."""
    ends = []
    for sign in (1, -1):
        moved = {**values, name: values[name] + sign * width}
        names = {"__name__": "exported"}
        exec(numpy_module(structure, SMALL, moved), names)
        with np.errstate(all="ignore"):
            ends.append(total(names["act"](obs).latents))
    return (ends[0] - ends[1]) / (2 * width)


@FIXED
@given(PROGRAMS)
def check_one(expressions):
    structure, _ = compiled(expressions)
    free = [p.name for p in structure.parameters if (p.low, p.high) == (None, None)]
    assume(free)
    values = initial_values(structure)
    policy = StructuredPolicy(structure, SMALL)
    variables = variables_from(structure, values)

    def objective(variables, obs):
        latents = policy.apply(variables, obs)[1]
        return sum(jnp.sum(value) for value in latents.values())

    for obs in OBSERVATIONS:
        gradient = jax.grad(objective)(variables, jnp.asarray(obs, jnp.float32))
        for name in free:
            found = float(gradient["params"][name])
            wide, narrow = (
                difference(structure, values, name, np.asarray(obs, float), width)
                for width in (1e-4, 1e-5)
            )
            smooth = np.isclose(wide, narrow, rtol=1e-3, atol=1e-4)
            if not smooth or abs(wide) > 1e6:
                continue
            compared.append(1)
            assert np.isclose(found, narrow, rtol=2e-2, atol=2e-3), (name, expressions)


def test_gradients_are_the_slopes_of_an_independent_interpreter():
    check_one()
    assert len(compared) > 60
