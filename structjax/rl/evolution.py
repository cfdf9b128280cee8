"""Evolution strategies on mean actions: a population of weights, ranked by return.

The strategies are evosax's. Each generation plays every member on the same initial
states, so that members differ by their weights alone.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, get_args

import jax
import jax.numpy as jnp

from structjax.errors import StructjaxError
from structjax.forms import LARGEST
from structjax.ranges import one_of, real_number, whole_number
from structjax.rl.batch import choose
from structjax.rl.config import MOST
from structjax.rl.coordinates import Coordinates, at, coordinates
from structjax.rl.strategies import (
    MIRRORED,
    Strategy,
    ask,
    begin_search,
    make_strategy,
    tell,
)
from structjax.rl.trainer import appraise
from structjax.rollout import Policy
from structjax.tasks.base import Task

MOST_COVARIED = 1_000
"""Weights of a search with a full covariance."""


@dataclass(frozen=True)
class EvolutionConfig:
    """Options of an evolution strategy; hashable, a static argument of `jit`.

    An update is a generation: `population * episodes` episodes with mean actions.
    """

    strategy: Strategy = "snes"
    """`open_es`: Adam on a smoothed gradient, sigma as scheduled; `pgpe`: the same with
    a sigma per weight that adapts; `snes`: natural gradient, a sigma per weight;
    `sep_cma_es` and `cma_es`: covariance matrix adaptation, diagonal and full."""
    population: int = 20
    """Members of a generation."""
    episodes: int = 32
    """Initial states of a generation, the same for all members. With few of them the
    rare ones that a faster policy fails on are missing from most generations."""
    sigma: float = 0.3
    """Standard deviation of the first generation, in units of a weight: of its size,
    or of its unconstrained value where it has two bounds."""
    sigma_end: float = 1.0
    """Share of sigma that is left in the last generation, reached geometrically; only
    with `open_es`, as the others adapt it."""
    learning_rate: float = 1.0
    """Of Adam for `open_es` and `pgpe`; a factor on the step of the mean for others,
    1 being their own."""
    learning_rate_end: float = 0.1
    """Share of the learning rate that is left in the last generation, reached
    geometrically."""

    def __post_init__(self) -> None:
        """Checks values and ranges.

        Raises:
          StructjaxError: a value that is not accepted.
        """
        one_of(self, "strategy", get_args(Strategy))
        whole_number(self, "population", low=4, high=MOST)
        whole_number(self, "episodes", low=1, high=MOST)
        for name in ("sigma", "learning_rate"):
            real_number(self, name, low=1e-9, high=LARGEST)
        for name in ("sigma_end", "learning_rate_end"):
            real_number(self, name, low=1e-9, high=1.0)
        _check_pairs(self)

    @property
    def resets_per_update(self) -> int:
        """Episodes that one update plays."""
        return self.population * self.episodes

    @property
    def std_floor(self) -> float:
        """Stds are not trained, so none can collapse: no floor."""
        return 0.0


def _check_pairs(config: EvolutionConfig) -> None:
    """Options that only make sense together."""
    if config.strategy in MIRRORED and config.population % 2:
        raise StructjaxError(
            f"strategy {config.strategy} draws members in pairs, and population is "
            f"{config.population}",
            kind="options",
            hint="an even population",
        )
    if config.strategy != "open_es" and config.sigma_end != 1:
        raise StructjaxError(
            f"strategy {config.strategy} adapts sigma, and sigma_end is "
            f"{config.sigma_end!r}",
            kind="options",
            hint="leave it at 1, or use strategy open_es",
        )


def _check_size(strategy: Strategy, weights: int) -> None:
    """A full covariance has the square of the weights, and costs their cube."""
    if strategy == "cma_es" and weights > MOST_COVARIED:
        raise StructjaxError(
            f"strategy cma_es keeps a covariance of all weights, and these are "
            f"{weights:,}",
            kind="options",
            hint=f"up to {MOST_COVARIED:,}; for more --settings strategy=sep_cma_es or "
            "snes",
        )


class EvolutionScalars(NamedTuple):
    """The scalar hyperparameters as arrays, `[]` or stacked `[S]` for a sweep."""

    learning_rate: jax.Array
    learning_rate_end: jax.Array
    sigma: jax.Array
    sigma_end: jax.Array


def evolution_scalars(config: EvolutionConfig) -> EvolutionScalars:
    """The scalars of a configuration, float32."""
    return EvolutionScalars(
        *(jnp.float32(getattr(config, name)) for name in EvolutionScalars._fields)
    )


class EvolutionState(NamedTuple):
    """Everything that the next generation depends on.

    Attributes:
      key: consumed and replaced by every update.
      update: generations done, int32.
      start: the variables that training began with.
      space: the coordinates around them.
      search: evosax's state, with `mean` `[D]` and `std` `[]` or `[D]`.
    """

    key: jax.Array
    update: jax.Array
    start: Any
    space: Coordinates
    search: Any


@dataclass(frozen=True)
class EvolutionStrategy:
    """A search distribution over a policy's weights; its mean is the policy.

    Attributes:
      policy: structured or MLP.
      task: where it is trained.
      config: the recipe.
      updates: planned generations, over which the schedules run.
    """

    policy: Policy
    task: Task
    config: EvolutionConfig
    updates: int

    @property
    def resets_per_update(self) -> int:
        """Episodes that one update plays."""
        return self.config.resets_per_update

    def init(self, key: jax.Array, variables: Any) -> EvolutionState:
        """The state before the first generation, its mean at the variables."""
        space = coordinates(self.policy, variables)
        _check_size(self.config.strategy, space.scale.shape[0])
        search = begin_search(self._strategy(space))
        return EvolutionState(key, jnp.int32(0), variables, space, search)

    def variables(self, state: EvolutionState) -> Any:
        """The policy's variables at the distribution's mean."""
        return at(state.space, self.policy, state.start, state.search.mean)

    def update(
        self, state: EvolutionState, params: Any, bank: Any, scalars: EvolutionScalars
    ) -> tuple[EvolutionState, dict[str, jax.Array]]:
        """One generation: drawn, played, ranked, and the distribution moved."""
        key, start_key, play_key, ask_key = jax.random.split(state.key, 4)
        strategy = self._strategy(state.space)
        search = self._scheduled(state, scalars)
        points, search = ask(strategy, ask_key, search)
        members = jax.vmap(partial(at, state.space, self.policy, state.start))(points)
        starts = draw(start_key, bank, self.config.episodes)
        played = appraise(self.policy, members, self.task, params, starts, play_key)
        costs = cost(played.returns)
        rate = self._now(state, scalars.learning_rate, scalars.learning_rate_end)
        metrics = {
            "resets": jnp.int32(played.returns.size),
            "env_steps": jnp.sum(played.steps, dtype=jnp.int32),
            "gradient_steps": jnp.int32(1),
            "return": jnp.nanmean(played.returns),
            "return_best": -jnp.min(costs),
            "sigma": jnp.mean(search.std),
        }
        search = tell(strategy, points, costs, search, rate)
        return state._replace(key=key, update=state.update + 1, search=search), metrics

    def looked(
        self,
        state: EvolutionState,
        variables: Any,
        deficit: jax.Array,
        scalars: EvolutionScalars,
    ) -> EvolutionState:
        """The state as it is: a population forgets its failures by itself."""
        return state

    def _strategy(self, space: Coordinates) -> Any:
        return make_strategy(
            self.config.strategy, self.config.population, space.scale.shape[0]
        )

    def _scheduled(self, state: EvolutionState, scalars: EvolutionScalars) -> Any:
        """The search state with the sigma of this generation."""
        sigma = self._now(state, scalars.sigma, scalars.sigma_end)
        std = state.search.std
        fixed = self.config.strategy == "open_es"
        chosen = jnp.where(fixed | (state.update == 0), sigma, std)
        return state.search.replace(std=jnp.broadcast_to(chosen, std.shape))

    def _now(
        self, state: EvolutionState, first: jax.Array, end: jax.Array
    ) -> jax.Array:
        """A value that falls geometrically to a share of itself."""
        planned = max(self.updates - 1, 1)
        done = jnp.minimum(state.update.astype(jnp.float32) / planned, 1.0)
        return first * end**done


def draw(key: jax.Array, bank: Any, episodes: int) -> Any:
    """Initial states of the bank, `[E, ...]`; different ones where it has as many."""
    chosen = choose(key, bank, episodes)
    return jax.tree.map(lambda leaf: leaf[chosen], bank)


def cost(returns: jax.Array) -> jax.Array:
    """What is minimised, `[P]`, from returns `[P, E]`; infinite for a broken member."""
    mean = jnp.mean(returns, axis=1)
    return jnp.where(jnp.isfinite(mean), -mean, jnp.inf)


SMALL = EvolutionConfig(strategy="snes", episodes=4, sigma=0.25, learning_rate_end=0.5)

EVOLUTION_PRESETS: Mapping[str, EvolutionConfig] = {
    "es": EvolutionConfig(),
    "es_small": SMALL,
    "es_network": replace(SMALL, sigma=0.1),
}
"""Named recipes without gradients: for 10,000 resets and more, for 400 to a few
thousand and, with the smaller sigma that thousands of weights want, for networks.
Chosen on tracks of Car Racing that are neither training nor test tracks."""
