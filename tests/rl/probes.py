"""Tasks whose optimum is known, policies of a few weights, and batches made by hand."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from structjax.distributions import Categorical, Normal
from structjax.rl.batch import Batch
from structjax.schema import ActionField, Field, Schema
from structjax.tasks.base import DEFAULT_SEEDS, Step, Task

OBSERVATIONS = (
    Field("x", None, "", -10.0, 10.0, "what is seen"),
    Field("first", None, "", 0.0, 1.0, "1 in the first step"),
)
PUSH = ActionField("push", "", low=-2.0, high=2.0)
SIDE = ActionField("side", "", choices=("left", "middle", "right"))


@dataclass(frozen=True)
class Straight:
    """A normal action of mean `w . obs`; the log of its std is learned unless fixed."""

    fixed_std: float = 0.0

    def apply(self, variables, obs):
        std = self.fixed_std or jnp.exp(variables["log_std"])
        mean = jnp.sum(variables["w"] * obs)[None]
        return Normal(mean, jnp.broadcast_to(std, (1,))), {}

    def start(self):
        weights = {"w": jnp.zeros(2)}
        if not self.fixed_std:
            weights["log_std"] = jnp.log(jnp.float32(0.5))
        return weights


@dataclass(frozen=True)
class Lookup:
    """A choice of three with logits `table @ obs`."""

    def apply(self, variables, obs):
        return Categorical(variables["table"] @ obs), {}

    def start(self):
        return {"table": jnp.zeros((3, 2))}


def probe(action, pay_now, pay_later):
    """One step that is paid at once, or two that are paid at the end.

    Which of them is an environment parameter, so that one compiled function serves
    both. With one step the observation is (x, 1); with two it is (0, 1), then (1, 0).
    `pay_now(x, action)` and `pay_later(first action, second action)` are the rewards.
    """

    def initial(seeds, delayed=False):
        starts = [(s % 7) / 3 - 1 for s in seeds]
        return jnp.asarray(delayed), jnp.asarray(starts, jnp.float32)

    def reset(x, delayed):
        obs = jnp.stack([jnp.where(delayed, 0.0, x), 1.0])
        return obs, (x, jnp.float32(0), jnp.int32(0))

    def step(key, state, act, delayed):
        x, before, time = state
        act = jnp.reshape(act, ()).astype(jnp.float32)
        last = (time == 1) | ~delayed
        paid = jnp.where(delayed, pay_later(before, act), pay_now(x, act))
        return Step(
            obs=jnp.asarray([1.0, 0.0]),
            state=(x, act, time + 1),
            reward=jnp.where(last, paid, 0.0),
            terminated=last,
            truncated=jnp.array(False),
            info={},
        )

    return Task(
        name="probe",
        description="A probe.",
        schema=Schema(OBSERVATIONS, (action,)),
        horizon=2,
        seeds=DEFAULT_SEEDS,
        initial=initial,
        reset=reset,
        step=step,
    )


# At once: the action 0.5 x + 0.3 is best. Later: 0.7, then -0.5.
CONTINUOUS = probe(
    PUSH,
    lambda x, act: -jnp.square(act - 0.5 * x - 0.3),
    lambda first, second: -jnp.square(first - 0.7) - jnp.square(second + 0.5),
)
# At once: left where x < 0, else right. Later: right, then left.
DISCRETE = probe(
    SIDE,
    lambda x, act: 1.0 * (act == jnp.where(x < 0, 0, 2)),
    lambda first, second: 1.0 * (first == 2) + 1.0 * (second == 0),
)


def batch_of(reward, valid, obs=None, terminated=None, seed=0):
    """A batch of one-action episodes `[T, B]`; obs `[T, B, O]` by default random."""
    reward, valid = np.asarray(reward, np.float32), np.asarray(valid, bool)
    rng = np.random.default_rng(seed)
    if obs is None:
        obs = rng.normal(size=(*reward.shape, 2))
    action = rng.normal(size=(*reward.shape, 1))
    terminated = np.zeros_like(valid) if terminated is None else np.asarray(terminated)
    return jax.tree.map(
        jnp.asarray,
        Batch(
            np.asarray(obs, np.float32),
            np.where(valid[..., None], action, 0).astype(np.float32),
            np.where(valid, reward, 0).astype(np.float32),
            valid,
            terminated,
            np.asarray(obs[-1], np.float32),
        ),
    )
