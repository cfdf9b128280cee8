"""A task small enough to compute by hand: push a point to the origin.

State x, observation (x, step / 10), action push in [-1, 1], x' = x + push / 2, reward
-|x'|. Seed s starts at x = (s % 10) / 10. An episode ends (terminated) when x' < -2,
or (truncated) after 5 steps.
"""

import jax.numpy as jnp
import numpy as np

from structjax.schema import ActionField, Field, Schema
from structjax.tasks.base import Step, Task

SCHEMA = Schema(
    observations=(
        Field("x", None, "m", -3.0, 3.0, "position of the point", mirror=-1),
        Field("clock", None, "10 steps", 0.0, 1.0, "time", mirror=1),
    ),
    actions=(ActionField("push", "force to the right", low=-1.0, high=1.0, mirror=-1),),
)
HORIZON = 5


def _initial(seeds):
    return {}, jnp.asarray([(s % 10) / 10 for s in seeds], jnp.float32)


def _obs(x, time):
    return jnp.stack([x, time / 10])


def _reset(start, params):
    return _obs(start, jnp.float32(0)), (start, jnp.float32(0))


def _step(key, state, action, params):
    x, time = state
    x, time = x + action[0] / 2, time + 1
    return Step(
        obs=_obs(x, time),
        state=(x, time),
        reward=-jnp.abs(x),
        terminated=x < -2,
        truncated=time >= HORIZON,
        info={"distance": jnp.abs(x)},
    )


def toy_task(step=_step) -> Task:
    return Task(
        name="toy",
        description="Push the point to the origin.",
        schema=SCHEMA,
        horizon=HORIZON,
        seeds={
            "test": range(1000, 1010),
            "gate": range(2000, 2010),
            "selection": range(2100, 2110),
            "debug": range(3000, 3008),
            "demonstration": range(4000, 5000),
            "training": range(10000, 10512),
        },
        initial=_initial,
        reset=_reset,
        step=step,
        info={"distance": "distance from the origin"},
        simulators={"pencil": _pencil},
    )


def _pencil(act, seeds):
    """The same task in NumPy: an original simulator to hold the JAX one against."""
    x = np.array([(s % 10) / 10 for s in seeds], np.float32)
    returns, time = np.zeros(len(seeds)), 0
    while time < HORIZON:
        obs = np.stack([x, np.full_like(x, time / 10)], 1)
        x = x + act(obs)[:, 0] / 2
        returns += -np.abs(x)
        time += 1
    return returns, np.full(len(seeds), HORIZON)


# Return of `push = -gain * x` from x0 with gain 1: x halves each step, so the return is
# -x0 (1/2 + 1/4 + 1/8 + 1/16 + 1/32) = -31/32 x0.
PROGRAM = '''"""Push against the offset."""

gain = weight(1.0, sign="+")  # push per metre


def policy(obs):
    demand = -gain * obs.x  # wanted push
    return action(push=normal(demand))
'''
