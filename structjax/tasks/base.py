"""What a task is: an environment, a named schema, a description and its seeds."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any, Literal, NamedTuple

import jax

from structjax.errors import StructjaxError
from structjax.outcomes import Outcomes, problem
from structjax.ranges import MAX_SEED
from structjax.schema import Schema
from structjax.tasks.scene import Scene

NEEDED_SEEDS = ("test", "gate", "selection", "debug")
"""What a refinement run needs."""
MAX_SEEDS = 1_000_000

DEFAULT_SEEDS: Mapping[str, range] = {
    "test": range(1000, 1010),
    "gate": range(2000, 2010),
    "selection": range(2100, 2110),
    "debug": range(3000, 3008),
    "demonstration": range(4000, 5000),
    "training": range(10000, 10512),
}
"""Use -> seeds, the same for every task that does not name its own."""


class Step(NamedTuple):
    """What one environment step returns, before any auto-reset."""

    obs: jax.Array
    state: Any
    reward: jax.Array
    terminated: jax.Array
    truncated: jax.Array
    info: dict[str, jax.Array]


@dataclass(frozen=True, eq=False)
class Task:
    """An environment with everything an LLM, a fit and a table need to know of it.

    Attributes:
      name: e.g. `"car_racing"`.
      description: task text for prompts: goal, reward, length, what goes wrong.
      schema: observation and action fields.
      horizon: episode cap in steps.
      metric: name of the reported figure: `"return"`, the undiscounted return.
      seeds: use -> seeds, disjoint; the uses are test, gate, selection, debug,
        demonstration and training.
      initial: seeds `[B]` -> `(params, starts)`: environment parameters shared by the
        batch, and a pytree of `[B, ...]` per-episode starts.
      reset: `(start, params) -> (obs [O], state)`; pure JAX, one episode.
      step: `(key, state, action, params) -> Step`; pure JAX, no auto-reset.
      info: names of the scalar values in `Step.info`, with their meaning.
      environment: the gymnax environment behind it, for other people's trainers.
      outcomes: what an evaluation reports per episode beside the return: name ->
        (info value, `"min"`, `"max"`, `"last"` or `"mean"` over the steps taken).
      simulators: original simulators by name, e.g. `"gymnasium"`: each maps
        `(act, seeds)` to `(returns [B], steps [B])`, or to these and `{outcome: [B]}`,
        where `act` maps observations `[B, O]` to clipped actions `[B, A]` and is
        called once per step.
      scene: seed -> what reports draw of its episode: views and shapes, some of which
        follow values of `info`.
    """

    name: str
    description: str
    schema: Schema
    horizon: int
    seeds: Mapping[str, range]
    initial: Callable[[Sequence[int]], tuple[Any, Any]]
    reset: Callable[[Any, Any], tuple[jax.Array, Any]]
    step: Callable[[jax.Array, Any, jax.Array, Any], Step]
    metric: Literal["return"] = "return"
    info: Mapping[str, str] | None = None
    environment: Any = None
    outcomes: Outcomes = field(default_factory=dict)
    simulators: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    scene: Callable[[int], Scene] | None = None

    def __post_init__(self) -> None:
        """Checks name, horizon, info, outcomes, simulators and seeds.

        Raises:
          StructjaxError: one of them cannot be used.
        """
        if not re.fullmatch(r"\w[\w.-]{0,99}", self.name):
            raise self._refused(f"its name is {self.name!r:.60}", "letters, digits, _")
        if not isinstance(self.horizon, Integral) or self.horizon < 1:
            raise self._refused(
                f"its horizon is {self.horizon!r}", "a whole number of at least 1"
            )
        self._check_named()
        for use in NEEDED_SEEDS:
            if use not in self.seeds:
                raise self._refused(
                    f"it has no {use!r} seeds", f"sets for {', '.join(NEEDED_SEEDS)}"
                )
        for use, seeds in self.seeds.items():
            self._check_seeds(use, seeds)
        self._check_disjoint()

    def _check_named(self) -> None:
        """Info, outcomes and simulators: what has names of the user's own."""
        if not isinstance(self.info, Mapping | None):
            raise self._refused(f"its info is {self.info!r:.60}", "name -> its meaning")
        if found := problem(self.outcomes, self.info or {}):
            raise self._refused(*found)
        if not isinstance(self.simulators, Mapping):
            raise self._refused(
                f"its simulators are {self.simulators!r:.60}", "name -> function"
            )
        for name, play in self.simulators.items():
            if name == "jax" or not callable(play):
                raise self._refused(
                    f"its simulator {name!r:.60} is {play!r:.60}",
                    'functions by names other than "jax", which is the task itself',
                )

    def _refused(self, problem: str, accepted: str) -> StructjaxError:
        return StructjaxError(
            f"task {self.name!r}: {problem}", kind="task", hint=f"accepted: {accepted}"
        )

    def _check_seeds(self, use: str, seeds: range) -> None:
        usable = isinstance(seeds, range) and 0 < len(seeds) <= MAX_SEEDS
        if not usable or min(seeds) < 0 or max(seeds) > MAX_SEED:
            raise self._refused(
                f"its {use!r} seeds are {seeds!r:.60}",
                f"a range of 1 to {MAX_SEEDS:,} seeds in [0, {MAX_SEED}]",
            )

    def _check_disjoint(self) -> None:
        owner: dict[int, str] = {}
        for use, seeds in self.seeds.items():
            for seed in seeds:
                if seed in owner:
                    raise StructjaxError(
                        f"task {self.name!r}: seed {seed} is in {owner[seed]!r} and "
                        f"{use!r}",
                        kind="task",
                        hint="the seed sets of a task must be disjoint",
                    )
                owner[seed] = use
