"""The host's side of training: chunks, checkpoints, curve and final evaluation."""

from collections.abc import Callable, Mapping
from functools import cached_property, partial
from time import perf_counter
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd

from structjax.compilation import compile_clock
from structjax.errors import ProgramFailed
from structjax.files import write_atomic
from structjax.forms import Many, Maybe
from structjax.outcomes import OUTCOME
from structjax.rl.curve import (
    check_any,
    failures,
    rows_of,
    summary,
    told_failures,
)
from structjax.rl.flops import flops_per_update
from structjax.rl.plan import Plan
from structjax.rl.saving import load_tree, save_tree
from structjax.rl.trainer import (
    COUNTED,
    Appraisal,
    TrainState,
    appraise,
    begin,
    better,
    current,
    examine,
    spread,
    train_chunk,
)
from structjax.rollout import Mode
from structjax.runs import RunDirectory

MODES: tuple[Mode, ...] = ("mean", "sampled")
Listener = Callable[[int, float], None]
"""Told (updates done, mean selection return) after every chunk."""


_ROWS = [
    {
        "run": int,
        "update": int,
        **dict.fromkeys(COUNTED, int),
        "seconds": float,
        "failed": Maybe(int),
        **dict.fromkeys(("mean", "std_ddof0", "worst"), Maybe(float)),
    }
]
_EPISODE = {
    "training_seed": int,
    "checkpoint": str,
    "mode": str,
    "episode_seed": int,
    "return": Maybe(float),
}


class Outcome(NamedTuple):
    """What a training run gives.

    Attributes:
      curve: one row per run and appraisal; also `curve.csv`.
      evaluations: one row per run, checkpoint, mode and test episode, with `return`
        and a column `outcome_<name>` per outcome of the task; also `evaluations.csv`.
      checkpoints: name -> variables `[S, ...]`: `start`, `final`, `best`, and
        `resets400`, `best400` for a milestone of 400 resets.
      best_update: `[S]`.
      failed: run -> the first update whose return was not finite, 0 for the start; from
        there on its returns on selection and test episodes are NaN.
      lost: checkpoint -> the runs that had failed by then.
    """

    curve: pd.DataFrame
    evaluations: pd.DataFrame
    checkpoints: dict[str, Any]
    best_update: np.ndarray
    failed: Mapping[int, int]
    lost: Mapping[str, frozenset[int]]


class Training:
    """One plan in one run directory; `run()` starts or continues it."""

    def __init__(
        self,
        directory: RunDirectory,
        plan: Plan,
        stacked: Any,
        listen: Listener | None = None,
    ) -> None:
        """Takes the starting variables `[S, ...]`."""
        self.directory = directory
        self.plan = plan
        self.stacked = stacked
        self.listen = listen
        self._state: TrainState | None = None
        self._failed: dict[int, int] = {}

    def run(self) -> Outcome:
        """Trains, evaluates on the test seeds, writes both tables.

        Raises:
          StructjaxError: a checkpoint to go on from is damaged.
          ProgramFailed: every run has a return of the start or of training that is not
            finite.
        """
        rows = list(self.directory.step("start", self._start, _ROWS))
        self._failed = told_failures(rows)
        for first, last in self.plan.chunks():
            compute = partial(self._chunk, first, last)
            rows += self.directory.step(f"chunk{last}", compute, _ROWS)
            self._failed = told_failures(rows)
            self._tell(rows, last)
        flops = self.directory.step("flops", self._flops, float)
        curve = self._curve(rows, flops)
        checkpoints = self._checkpoints()
        evaluate = partial(self._evaluate, checkpoints)
        columns = [f"{OUTCOME}{name}" for name in self.plan.task.outcomes]
        form = _EPISODE | dict.fromkeys(columns, Maybe(float))
        each = len(MODES) * self.plan.runs * len(self.plan.task.seeds["test"])
        rows_form = Many(form, each * len(checkpoints))
        found = self.directory.step("evaluation", evaluate, rows_form)
        evaluations = pd.DataFrame(found)
        # JSON has no NaN: the figures of a policy that cannot be played are null.
        figures = ["return", *(c for c in columns if c in evaluations)]
        evaluations = evaluations.astype(dict.fromkeys(figures, float))
        self._write("curve.csv", curve)
        self._write("evaluations.csv", evaluations)
        best = self._snapshot(self.plan.updates)["update"]
        lost = {name: self._lost(name) for name in checkpoints}
        failed = dict(sorted(self._failed.items()))
        return Outcome(curve, evaluations, checkpoints, np.asarray(best), failed, lost)

    # What is played

    @cached_property
    def _training(self) -> Any:
        return self.plan.task.initial(self.plan.tracks)

    def _starts(self, use: str) -> Any:
        return self.plan.task.initial(self.plan.task.seeds[use])

    @cached_property
    def _selection(self) -> Any:
        return self._starts("selection")

    # Steps of the run

    def _begin(self) -> TrainState:
        seeds = [int(label["training_seed"]) for label in self.plan.labels]
        keys = jnp.stack([jax.random.key(seed) for seed in seeds])
        state = begin(self.plan.algorithm, keys, self.stacked)
        return spread(state, self.plan.runs)

    def _start(self) -> list[dict[str, Any]]:
        key = jax.random.key(0)
        plan = self.plan
        found = appraise(plan.policy, self.stacked, plan.task, *self._selection, key)
        returns = np.asarray(found.returns)
        broken = ~np.isfinite(returns).all(axis=1)
        if broken.all():
            raise ProgramFailed(
                "the untrained policy has a return that is not finite on "
                f"{int((~np.isfinite(returns)).sum())} of {returns.size} selection "
                "episodes",
                kind="policy",
                hint="an action or a reward is not finite: `structjax evaluate` says "
                "which",
            )
        self._book("selection", found)
        state = self._begin()
        none = jnp.zeros(self.plan.runs, jnp.int32)
        best = better(state.best, self.stacked, found.returns, none)
        self._keep(state._replace(best=best), 0, 0)
        counts = dict.fromkeys(COUNTED, 0)
        return [
            {
                "run": i,
                "update": 0,
                "failed": 0 if broken[i] else None,
                **counts,
                "seconds": 0.0,
                **summary(row),
            }
            for i, row in enumerate(returns)
        ]

    def _chunk(self, first: int, last: int) -> list[dict[str, Any]]:
        state = self._state_after(first)
        flags = self.plan.looks(first, last)
        before = jax.tree.map(np.asarray, state.totals)
        with compile_clock() as clock, _Stopwatch() as watch:
            state, metrics, appraisal = train_chunk(
                self.plan.algorithm,
                self.plan.policy,
                self.plan.task,
                state,
                self._training,
                self._selection,
                self.plan.scalars,
                jnp.asarray(flags),
                mapping=self.plan.mapping,
            )
            metrics = jax.tree.map(np.asarray, metrics)
            appraisal = jax.tree.map(np.asarray, appraisal)
        failed = failures(metrics["return"], first) | self._failed
        check_any(failed, self.plan)
        self.directory.ledger.book(
            "training",
            resets=metrics["resets"].sum(),
            env_steps=metrics["env_steps"].sum(),
        )
        self._book("selection", Appraisal(*(x[flags] for x in appraisal)))
        self._keep(state, first, last)
        seconds = max(watch.seconds - clock.seconds, 0.0) / (last - first)
        seconds /= self.plan.runs
        return rows_of(metrics, appraisal, before, flags, first, seconds, failed)

    def _keep(self, state: TrainState, first: int, last: int) -> None:
        """Saves the state, and at milestones the variables for good.

        The state before stays until the chunk is entered in the run.
        """
        folder = self.directory.path / "checkpoints"
        save_tree(folder / f"state{last}.npz", state)
        if last in self.plan.kept() or last == self.plan.updates:
            save_tree(folder / f"kept{last}.npz", self._variables(state))
        for old in folder.glob("state*.npz"):
            if int(old.stem.removeprefix("state")) < first:
                old.unlink(missing_ok=True)
        self._state = state

    def _variables(self, state: TrainState) -> dict[str, Any]:
        now = current(self.plan.algorithm, state, mapping=self.plan.mapping)
        best = state.best
        return {"current": now, "best": best.variables, "update": best.update}

    def _state_after(self, update: int) -> TrainState:
        if self._state is not None and int(self._state.update) == update:
            return self._state
        path = self.directory.path / "checkpoints" / f"state{update}.npz"
        return spread(load_tree(path, self._begin()), self.plan.runs)

    def _snapshot(self, update: int) -> dict[str, Any]:
        path = self.directory.path / "checkpoints" / f"kept{update}.npz"
        like = self._variables(self._begin())
        found: dict[str, Any] = load_tree(path, like)
        return found

    def _checkpoints(self) -> dict[str, Any]:
        found = {"start": self.stacked}
        for update, resets in sorted(self.plan.kept().items()):
            kept = self._snapshot(update)
            found[f"resets{resets}"] = kept["current"]
            found[f"best{resets}"] = kept["best"]
        last = self._snapshot(self.plan.updates)
        return {**found, "final": last["current"], "best": last["best"]}

    def _evaluate(self, checkpoints: Mapping[str, Any]) -> list[dict[str, Any]]:
        plan, rows = self.plan, []
        params, starts = self._starts("test")
        for name, stacked in checkpoints.items():
            for mode in MODES:
                key = jax.random.key(0)
                found, outcomes = examine(
                    plan.policy, stacked, plan.task, params, starts, key, mode
                )
                self._book("evaluation", found)
                figures = {"return": found.returns} | {
                    f"{OUTCOME}{k}": outcomes[k] for k in plan.task.outcomes
                }
                rows += self._episodes(name, mode, figures)
        return rows

    def _resets(self, checkpoint: str) -> int:
        """The training episodes behind a checkpoint."""
        plan = self.plan
        done = plan.updates * plan.algorithm.resets_per_update
        resets = {"start": 0, "final": done, "best": done}
        resets |= {f"resets{n}": n for n in plan.milestones}
        resets |= {f"best{n}": n for n in plan.milestones}
        return resets[checkpoint]

    def _lost(self, checkpoint: str) -> frozenset[int]:
        """The runs that had failed by a checkpoint."""
        update = self._resets(checkpoint) // self.plan.algorithm.resets_per_update
        return frozenset(run for run, at in self._failed.items() if update >= at)

    def _episodes(
        self,
        checkpoint: str,
        mode: Mode,
        figures: Mapping[str, jax.Array],
    ) -> list[dict[str, Any]]:
        """Rows of S runs and E test episodes from figures `[S, E]` by column."""
        arrays = {column: np.array(values) for column, values in figures.items()}
        for values in arrays.values():
            values[list(self._lost(checkpoint))] = np.nan
        return [
            {
                **label,
                "checkpoint": checkpoint,
                "resets": self._resets(checkpoint),
                "mode": mode,
                "simulator": "jax",
                "seeds": "test",
                "episode_seed": seed,
                **{column: float(values[run, i]) for column, values in arrays.items()},
            }
            for run, label in enumerate(self.plan.labels)
            for i, seed in enumerate(self.plan.task.seeds["test"])
        ]

    # Tables

    def _flops(self) -> float:
        variables = jax.tree.map(lambda leaf: leaf[0], self.stacked)
        plan = self.plan
        return flops_per_update(plan.algorithm, variables, plan.task, self._training)

    def _curve(self, rows: list[dict[str, Any]], flops: float) -> pd.DataFrame:
        labelled = [{**self.plan.labels[row["run"]], **row} for row in rows]
        table = pd.DataFrame(labelled)
        table["seconds"] = table.groupby("run")["seconds"].cumsum()
        place = list(table.columns).index("seconds")
        table.insert(place, "flops", flops * table["update"])
        told = table.drop(columns="failed", errors="ignore")
        return told.sort_values(["run", "update"]).drop(columns="run")

    def _write(self, name: str, table: pd.DataFrame) -> None:
        write_atomic(self.directory.path / name, table.to_csv(index=False))

    def _book(self, purpose: Any, found: Appraisal) -> None:
        steps = np.asarray(found.steps)
        self.directory.ledger.book(purpose, resets=steps.size, env_steps=steps.sum())

    def _tell(self, rows: list[dict[str, Any]], last: int) -> None:
        if self.listen is None:
            return
        latest = [
            row["mean"]
            for row in rows
            if row["update"] == rows[-1]["update"] and row["run"] not in self._failed
        ]
        self.listen(last, float(np.mean(np.array(latest, float))))


class _Stopwatch:
    """Wall seconds of a block."""

    def __enter__(self) -> "_Stopwatch":
        self._began = perf_counter()
        self.seconds = 0.0
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds = perf_counter() - self._began
