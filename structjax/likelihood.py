"""Maximum likelihood of a demonstration, near the program's written values.

Pure functions, to be mapped over restarts, seeds, anchoring strengths and stacked
demonstrations: what `structjax.fitting` minimises.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from structjax.memory import along
from structjax.ranges import real_number, whole_number

Variables = Any

MAX_RESTARTS = 4096
"""All restarts are held in memory at once."""
MAX_UPDATES = 1_000_000
"""So are the curves of a fit."""
MIN_LEARNING_RATE = 1e-12


@dataclass(frozen=True)
class ImitationConfig:
    """How a policy is fitted to a demonstration."""

    learning_rate: float = 0.03
    """Adam's step size, in the unconstrained space of the weights."""
    final_learning_rate: float = 0.1
    """Share of the step size left at the last update (cosine); 1 keeps it constant."""
    batch_size: int = 512
    """Steps per minibatch; the whole demonstration when it is not longer."""
    num_updates: int = 1000
    """Updates of each restart."""
    restarts: int = 8
    """Starts fitted side by side; the first is the program's written values."""
    validation_share: float = 0.2
    """Share of the demonstration held out, in contiguous blocks; 0: none, and the last
    parameters are kept."""
    validation_blocks: int = 10
    """Number of blocks the demonstration is cut into for the split."""
    validate_every: int = 10
    """Updates between two looks at the held-out blocks."""
    anchor: float = 0.0
    """Strength of the pull towards the written values (unconstrained space)."""
    std_floor: float = 0.0
    """Least standard deviation, in units of the action's half range."""
    race: bool = True
    """Of 32 restarts or more, only the best quarter goes on after a quarter of the
    updates."""

    def __post_init__(self) -> None:
        """Checks the ranges."""
        for name in ("batch_size", "validate_every"):
            whole_number(self, name, low=1)
        whole_number(self, "num_updates", low=1, high=MAX_UPDATES)
        whole_number(self, "restarts", low=1, high=MAX_RESTARTS)
        whole_number(self, "validation_blocks", low=2)
        real_number(self, "learning_rate", low=MIN_LEARNING_RATE)
        real_number(self, "final_learning_rate", low=0, high=1)
        real_number(self, "validation_share", low=0, high=0.9)
        real_number(self, "anchor", low=0)
        real_number(self, "std_floor", low=0, high=1)


PRESETS: Mapping[str, ImitationConfig] = {
    "default": ImitationConfig(),
    # arXiv 2610.01652: one start from the written values, nothing held out.
    "paper": ImitationConfig(final_learning_rate=1.0, restarts=1, validation_share=0.0),
}


class Split(NamedTuple):
    """A demonstration cut in two; actions are `[N, A]`, choices `[N]`.

    Attributes:
      observations, actions: the training steps.
      held_observations, held_actions: the validation steps, possibly none.
      training, held: places of these steps in the demonstration; a policy with memory
        needs them, to be led along it in order.
    """

    observations: jax.Array
    actions: jax.Array
    held_observations: jax.Array
    held_actions: jax.Array
    training: jax.Array | None = None
    held: jax.Array | None = None


def split(
    observations: jax.Array,
    actions: jax.Array,
    *,
    share: float,
    blocks: int,
    key: jax.Array,
) -> Split:
    """Holds out whole blocks of a demonstration, chosen by the key.

    Neighbouring steps are nearly equal, so single steps drawn at random would be copies
    of training steps and could show no overfitting; contiguous blocks can.

    Args:
      observations: `[N, O]`.
      actions: `[N, A]`, or `[N]` choices.
      share: held-out share; at least one block is held out when it is positive.
      blocks: number of blocks; fewer when there are fewer steps. Steps beyond the last
        whole block stay with the training steps.
      key: consumed.
    """
    number = observations.shape[0]
    blocks = min(blocks, number)
    held = (
        0
        if share == 0 or blocks < 2
        else min(max(1, round(share * blocks)), blocks - 1)
    )
    length = number // blocks
    steps = jnp.arange(blocks * length).reshape(blocks, length)
    steps = jax.random.permutation(key, steps)
    rest = jnp.arange(blocks * length, number)
    validation = steps[:held].reshape(-1)
    training = jnp.concatenate([steps[held:].reshape(-1), rest])
    return Split(
        observations[training],
        actions[training],
        observations[validation],
        actions[validation],
        training,
        validation,
    )


def nll(
    policy: Any, variables: Variables, observations: jax.Array, actions: jax.Array
) -> jax.Array:
    """Mean negative log-likelihood of the actions, in nats per step.

    Args:
      policy: `apply(variables, obs [O]) -> (distribution, latents)`.
      variables: its parameters.
      observations: `[N, O]`, for a policy with memory those of one episode in order.
      actions: `[N, A]` unclipped actions, or `[N]` choices.
    """
    return jnp.mean(step_nll(policy, variables, observations, actions))


def step_nll(
    policy: Any, variables: Variables, observations: jax.Array, actions: jax.Array
) -> jax.Array:
    """Negative log-likelihood of every step, `[N]`; arguments as in `nll`."""
    distribution, _ = along(policy, variables, observations)
    # Steps go to the last axis: there the sum over the few actions is much slower.
    columns = jax.tree.map(lambda x: jnp.moveaxis(x, 0, -1), (distribution, actions))
    return -jax.vmap(lambda d, a: d.log_prob(a), in_axes=-1)(*columns)


def squared_distance(
    variables: Variables, written: Variables, mask: Variables
) -> jax.Array:
    """Squared distance of the unconstrained weights, those with mask 0 left out."""
    parts = jax.tree.map(
        lambda v, w, m: m * jnp.sum((v - w) ** 2), variables, written, mask
    )
    return sum(jax.tree.leaves(parts), jnp.zeros(()))


class Anchor(NamedTuple):
    """Where a fit is pulled to, and how strongly.

    Attributes:
      written: the variables of the written values.
      mask: same tree, 1 for weights that are pulled and 0 for stds.
      strength: factor of the squared distance; 0 is the plain likelihood.
    """

    written: Variables
    mask: Variables
    strength: jax.Array
