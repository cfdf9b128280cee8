"""The plan of a training run: how many updates, when to look, what to keep."""

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from structjax.errors import StructjaxError
from structjax.rl.algorithm import Algorithm
from structjax.rl.trainer import RunMapping
from structjax.rollout import Policy
from structjax.tasks.base import Task

DENSE = 20
"""The first updates after each of which the selection seeds are played."""
SPARSE = 5
"""After that, every so many updates."""
CHUNK = 5
"""Updates between two checkpoints."""
COUNTABLE = 2**31 - 1
"""The most steps of one run: they are counted in int32."""
KEPT_APART = ("test", "gate", "selection")
"""Seed sets that training never sees."""


@dataclass(frozen=True, eq=False)
class Plan:
    """One training run of S runs side by side.

    Attributes:
      algorithm: the update rule.
      policy: the policy that is trained.
      task: the task.
      scalars: hyperparameters, `[S]` each.
      labels: what tells the S runs apart, e.g. `{"training_seed": 3}`; each needs a
        `training_seed`, from which its random numbers come.
      resets: training episodes of each run.
      milestones: resets after which the variables are kept, e.g. `(400,)`.
      tracks: seeds of the initial states to train on.
      mapping: of the S runs; `map` gives the same bits on any number of devices.
    """

    algorithm: Algorithm
    policy: Policy
    task: Task
    scalars: Any
    labels: tuple[Mapping[str, Any], ...]
    resets: int
    milestones: tuple[int, ...] = ()
    tracks: range = field(kw_only=True)
    mapping: RunMapping = "vmap"

    def __post_init__(self) -> None:
        """Checks the budget and the seeds.

        Raises:
          StructjaxError: no update fits the budget, it is more than can be counted, a
            milestone is no number of whole updates, or training would see seeds that it
            is judged by.
        """
        each = self.algorithm.resets_per_update
        if self.resets < each:
            raise StructjaxError(
                f"{self.resets} resets are fewer than the {each} of one update",
                kind="options",
                hint=f"raise --resets to at least {each}",
            )
        most = COUNTABLE // self.task.horizon
        if self.resets > most:
            raise StructjaxError(
                f"{self.resets} resets of up to {self.task.horizon} steps are more "
                "than can be counted",
                kind="options",
                hint=f"at most {most} resets; train on from the policies of a run",
            )
        for milestone in self.milestones:
            if milestone % each or not 0 < milestone <= self.resets:
                raise StructjaxError(
                    f"milestone {milestone} resets",
                    kind="options",
                    hint=f"a multiple of {each}, up to {self.resets}",
                )
        _check_tracks(self.tracks, self.task)

    @property
    def updates(self) -> int:
        """Whole updates that the budget pays."""
        return self.resets // self.algorithm.resets_per_update

    @property
    def runs(self) -> int:
        """S."""
        return len(self.labels)

    def kept(self) -> dict[int, int]:
        """Milestones as update -> resets."""
        each = self.algorithm.resets_per_update
        return {resets // each: resets for resets in self.milestones}

    def chunks(self) -> list[tuple[int, int]]:
        """(first update, last update) of every chunk, exclusive of the first.

        A chunk ends at every milestone.
        """
        ends = {*range(CHUNK, self.updates, CHUNK), *self.kept(), self.updates}
        bounds = [0, *sorted(ends)]
        return list(itertools.pairwise(bounds))

    def looks(self, first: int, last: int) -> np.ndarray:
        """Whether the selection seeds are played after each update of a chunk."""
        numbers = np.arange(first + 1, last + 1)
        due = (numbers <= DENSE) | (numbers % SPARSE == 0)
        return due | np.isin(numbers, [self.updates, *self.kept()])


def training_tracks(task: Task, chosen: range | None) -> range:
    """The seeds to train on: those that are named, else the task's own.

    Raises:
      StructjaxError: the task has no training seeds and none are named.
    """
    if chosen is not None:
        return chosen
    if "training" not in task.seeds:
        raise StructjaxError(
            f"task {task.name!r} has no 'training' seeds",
            kind="task",
            hint="add them to its seeds, or name some with --tracks A:B",
        )
    return task.seeds["training"]


def _check_tracks(tracks: range, task: Task) -> None:
    for use in KEPT_APART:
        shared = sorted(set(tracks) & set(task.seeds.get(use, ())))
        if shared:
            raise StructjaxError(
                f"training seed {shared[0]} is one of the {use} seeds",
                kind="seeds",
                hint=f"the {use} seeds of {task.name} are {task.seeds[use]}; "
                "train on others",
            )
