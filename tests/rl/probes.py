"""Tasks whose optimum is known, policies of a few weights, and batches made by hand."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from structjax.distributions import Categorical, Normal
from structjax.rl.batch import Batch
from structjax.schema import ActionField, Field
from structjax.tasks.base import DEFAULT_SEEDS, Task

X = Field("x", None, "", -10.0, 10.0, "what is seen")
FIRST = Field("first", None, "", 0.0, 1.0, "1 in the first step")
PUSH = ActionField("push", "", low=-2.0, high=2.0)
SIDE = ActionField("side", "", choices=("left", "middle", "right"))


@dataclass(frozen=True)
class Straight:
    """Normal action of mean `w . obs`; the log of its std is a weight as well."""

    def apply(self, variables, obs):
        std = jnp.exp(variables["log_std"])
        return Normal(jnp.sum(variables["w"] * obs)[None], std[None]), {}

    def start(self, size=2, std=0.5):
        return {"w": jnp.zeros(size), "log_std": jnp.log(jnp.float32(std))}


@dataclass(frozen=True)
class Lookup:
    """A categorical choice of three with logits `table @ obs`."""

    def apply(self, variables, obs):
        return Categorical(variables["table"] @ obs), {}

    def start(self, size=2):
        return {"table": jnp.zeros((3, size))}


def probe(name, schema, horizon, reset, step):
    def initial(seeds):
        return {"pay": jnp.float32(0)}, jnp.asarray([s % 7 for s in seeds], jnp.float32)

    return Task(
        name=name,
        description="A probe.",
        schema=schema,
        horizon=horizon,
        seeds=DEFAULT_SEEDS,
        initial=initial,
        reset=reset,
        step=step,
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
