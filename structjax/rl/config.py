"""What a gradient-based training run does, and the named recipes."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, get_args

import jax
import jax.numpy as jnp

from structjax.errors import StructjaxError
from structjax.forms import LARGEST
from structjax.ranges import one_of, real_number, whole_number

Ratio = Literal["window_product", "window_geometric", "sequence_geometric", "per_step"]
Advantage = Literal["group_time", "group_return", "rloo", "gae"]
Grouping = Literal["survivors", "absorbing"]
WindowEnds = Literal["full", "truncated"]
Schedule = Literal["constant", "linear"]

MOST = 1_000_000
"""The largest count of episodes, passes and the like."""

LITERALS: Mapping[str, Any] = {
    "ratio": Ratio,
    "advantage": Advantage,
    "grouping": Grouping,
    "window_ends": WindowEnds,
    "learning_rate_schedule": Schedule,
    "entropy_schedule": Schedule,
}


@dataclass(frozen=True)
class RLConfig:
    """Options of one update rule; hashable, a static argument of `jit`.

    An update plays `groups * episodes` episodes with sampled actions and takes
    `epochs * minibatches` Adam steps on them.
    """

    ratio: Ratio = "per_step"
    """What the surrogate's likelihood ratio covers: `window` steps from t on, as a
    product or as its geometric mean, the whole episode (GSPO), or step t alone."""
    window: int = 10
    """Steps of a window; only for the two window ratios."""
    window_ends: WindowEnds = "truncated"
    """`full`: only windows that end before the episode does; `truncated`: all."""
    advantage: Advantage = "group_time"
    """`group_time`: reward-to-go standardised per time step within a group;
    `group_return`: the episode's return standardised within its group (GRPO); `rloo`:
    reward-to-go less the mean of the others; `gae`: a critic's (PPO)."""
    grouping: Grouping = "survivors"
    """Who is compared at time t: episodes that still run, or also those that have
    terminated, whose reward-to-go is 0."""
    groups: int = 4
    """Initial states per update."""
    episodes: int = 5
    """Episodes per initial state."""
    epochs: int = 8
    """Passes over an update's episodes."""
    minibatches: int = 1
    """Adam steps per pass, each on a share of the episodes."""
    clip_low: float = 0.2
    """Ratios below 1 - clip_low give no gradient where the advantage is negative."""
    clip_high: float = 0.2
    """Ratios above 1 + clip_high give no gradient where the advantage is positive."""
    dual_clip: float = 0.0
    """Bound c of the surrogate for negative advantages, at least c * advantage; 0: no
    bound (one-sided clipping)."""
    gamma: float = 0.98
    """Discount per step."""
    gae_lambda: float = 0.95
    """Decay of the generalised advantage estimate; only with `gae`."""
    value_coefficient: float = 0.5
    """Weight of the critic's squared error; only with `gae`."""
    reward_scale: float = 1.0
    """The critic sees rewards times this; only with `gae`."""
    advantage_floor: float = 1e-3
    """Groups whose std is below this share of the batch's give no advantage."""
    learning_rate: float = 3e-3
    """Adam's, on the unconstrained weights."""
    learning_rate_schedule: Schedule = "linear"
    """`linear` falls to 0 over the planned updates."""
    max_grad_norm: float = 0.0
    """Global norm to which gradients are clipped; 0: not clipped."""
    entropy: float = 0.0
    """Coefficient of the mean entropy in the objective."""
    entropy_schedule: Schedule = "linear"
    """`linear` falls to 0 over the planned updates."""
    kl_stop: float = 0.0
    """An update ends early when the mean KL per step passes this; 0: never."""
    fall: float = 0.0
    """A selection return this far below the best takes training back to the best, with
    half the step size; 0: never."""
    std_floor: float = 0.05
    """Least std of an action, as a share of its widest sensible std."""

    def __post_init__(self) -> None:
        """Checks values and ranges.

        Raises:
          StructjaxError: a value that is not accepted.
        """
        for name, literal in LITERALS.items():
            one_of(self, name, get_args(literal))
        for name in ("window", "groups", "episodes", "epochs", "minibatches"):
            whole_number(self, name, low=1, high=MOST)
        for name in ("gamma", "gae_lambda", "clip_low", "std_floor"):
            real_number(self, name, low=0.0, high=1.0)
        for name in (
            "clip_high",
            "dual_clip",
            "value_coefficient",
            "reward_scale",
            "advantage_floor",
            "learning_rate",
            "max_grad_norm",
            "entropy",
            "kl_stop",
            "fall",
        ):
            real_number(self, name, low=0.0, high=LARGEST)
        _check_pairs(self)

    @property
    def resets_per_update(self) -> int:
        """Episodes that one update plays."""
        return self.groups * self.episodes


def _check_pairs(config: RLConfig) -> None:
    """Options that only make sense together."""
    if config.advantage != "gae" and config.episodes < 2:
        raise StructjaxError(
            f"advantage {config.advantage} compares the episodes of a group, and "
            f"episodes is {config.episodes}",
            kind="options",
            hint="at least 2 episodes per initial state, or advantage gae",
        )
    if config.resets_per_update % config.minibatches:
        raise StructjaxError(
            f"{config.resets_per_update} episodes an update cannot be split into "
            f"{config.minibatches} equal minibatches",
            kind="options",
            hint="a divisor of groups * episodes",
        )
    if config.dual_clip and config.dual_clip <= 1:
        raise StructjaxError(
            f"option dual_clip is {config.dual_clip!r}",
            kind="options",
            hint="it must be 0 (off) or larger than 1",
        )


class Scalars(NamedTuple):
    """The scalar hyperparameters as arrays, `[]` or stacked `[S]` for a sweep."""

    learning_rate: jax.Array
    gamma: jax.Array
    gae_lambda: jax.Array
    clip_low: jax.Array
    clip_high: jax.Array
    dual_clip: jax.Array
    entropy: jax.Array
    max_grad_norm: jax.Array
    kl_stop: jax.Array
    advantage_floor: jax.Array
    fall: jax.Array


def scalars(config: RLConfig) -> Scalars:
    """The scalars of a configuration, float32."""
    return Scalars(*(jnp.float32(getattr(config, name)) for name in Scalars._fields))


PAPER = RLConfig(
    ratio="window_product",
    window=150,
    window_ends="full",
    advantage="group_time",
    grouping="survivors",
    groups=1,
    episodes=20,
    epochs=3,
    clip_low=0.2,
    clip_high=0.2,
    gamma=0.98,
    advantage_floor=0.0,
    learning_rate=0.007,
    learning_rate_schedule="constant",
    entropy=0.01,
    entropy_schedule="linear",
    std_floor=0.0,
)
"""The recipe of arXiv 2610.01652: group reward-to-go per time step, the product of 150
ratios, 20 episodes of one track an update; no bound on gradients, KL or std."""

GROUP = RLConfig(
    ratio="per_step",
    advantage="rloo",
    groups=10,
    episodes=2,
    epochs=16,
    clip_low=0.2,
    clip_high=2.0,
    gamma=0.99,
    learning_rate=0.03,
    kl_stop=0.03,
    fall=3.0,
)
"""Ours for programs: many initial states, a wide trust region that ends on KL, and a
way back. Chosen on the selection seeds of Car Racing."""

PRESETS: Mapping[str, RLConfig] = {
    "paper": PAPER,
    "group": GROUP,
    "network": replace(GROUP, epochs=8, gamma=0.98, learning_rate=3e-3, fall=30.0),
    "gspo": replace(
        GROUP,
        ratio="sequence_geometric",
        advantage="group_return",
        groups=4,
        episodes=5,
        clip_low=3e-4,
        clip_high=4e-4,
    ),
    "grpo": replace(
        GROUP, advantage="group_return", groups=4, episodes=5, clip_high=0.2
    ),
    "reinforce": replace(GROUP, epochs=1, learning_rate=3e-3),
    "ppo": RLConfig(
        advantage="gae",
        groups=20,
        episodes=1,
        minibatches=4,
        epochs=4,
        max_grad_norm=0.5,
        learning_rate=3e-4,
        learning_rate_schedule="constant",
        gamma=0.99,
    ),
}
"""Named recipes for gradients; `structjax rl --preset NAME`."""
