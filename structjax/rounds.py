"""The numeric half of a round: fit, gate, debug rollouts, table, invariants.

Every function is deterministic and returns plain data, so that a run directory can keep
its result and a resumed run can go on from there.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from structjax.demonstration import Demonstration
from structjax.diagnostics.invariants import run_invariants, summary
from structjax.diagnostics.residuals import residuals
from structjax.diagnostics.result import number
from structjax.evaluation import evaluate
from structjax.fit_report import FitReport
from structjax.forms import Each, Many, Maybe
from structjax.imitation import AnchoredFit, ImitationConfig, fit_anchored, fit_best
from structjax.language.hashing import interface_hash, semantic_hash
from structjax.language.parse import Program
from structjax.language.substitute import with_values
from structjax.ledger import Ledger
from structjax.manifest import DIAGNOSIS
from structjax.outcomes import read_back
from structjax.policy import StructuredPolicy, initial_values, variables_from, weights
from structjax.prompting import FitMode, table_columns
from structjax.rollout import Mode, Trajectory, collect, play_stacked, returns_of
from structjax.runs import RunDirectory, write_atomic, write_json
from structjax.start_policy import StartPolicy
from structjax.table import (
    RolloutTable,
    build_table,
    demonstration_table,
    save_table,
)
from structjax.tasks.base import Task


@dataclass(frozen=True, eq=False)
class Candidate:
    """A program with the values its weights have after the fit.

    Attributes:
      index: number of the round.
      program: the parsed program.
      values: constrained weight values by name.
      fit: report of the fit, JSON-ready; empty for `none`.
      attempt: how many programs failed before in this round.
      tuned: whether the values are a tuned policy's as it came, not its author's.
    """

    index: int
    program: Program
    values: Mapping[str, float]
    fit: Mapping[str, Any]
    task: Task
    attempt: int = 0
    tuned: bool = False

    @property
    def policy(self) -> StructuredPolicy:
        """The compiled policy."""
        return StructuredPolicy(self.program.structure, self.task.schema)

    @property
    def variables(self) -> Any:
        """Its parameters, from the values."""
        return variables_from(self.program.structure, self.values)

    @property
    def text(self) -> str:
        """The program as text; fitted values in place, to four significant digits."""
        if not (self.fit or self.tuned):
            return self.program.source.strip()
        return fitted_text(self.program, self.values)


def fitted_text(program: Program, values: Mapping[str, float]) -> str:
    """The program with values in place of the written ones, for reading."""
    short = {name: float(number(value)) for name, value in values.items()}
    return with_values(program, short).strip()


def same_program(first: Program, second: Program) -> bool:
    """Whether a revision changes nothing: equal meaning and equal initial values."""
    return semantic_hash(first.structure) == semantic_hash(second.structure) and list(
        initial_values(first.structure).values()
    ) == list(initial_values(second.structure).values())


def fit_candidate(
    run: RunDirectory,
    index: int,
    program: Program,
    task: Task,
    *,
    fit: FitMode,
    demonstration: Demonstration | None,
    config: ImitationConfig,
    seed: int,
    attempt: int = 0,
    start: StartPolicy | None = None,
) -> Candidate:
    """Saves the program, fits it as asked, saves the values.

    Without a fit they are the written ones, or the exact ones of a given start.

    Raises:
      ProgramFailed: it cannot be fitted; the next attempt at this round may.
    """

    def compute() -> dict[str, Any]:
        write_atomic(run.path / "structures" / f"r{index}.py", program.source)
        values, report = fit_program(
            program, task, fit, demonstration, config, seed, run.ledger
        )
        if start is not None and not report:
            values = dict(start.values)
        arrays: dict[str, Any] = {k: np.float32(v) for k, v in values.items()}
        np.savez(run.path / "params" / f"r{index}.npz", **arrays)
        write_json(
            run.path / "structures" / f"r{index}.json",
            {
                "semantic_hash": semantic_hash(program.structure),
                "interface_hash": interface_hash(program.structure),
                "values": values,
                "docs": dict(program.docs),
                "fit": report,
            },
        )
        return {"values": values, "fit": report}

    named = {parameter.name: float for parameter in program.structure.parameters}
    form = {"values": named, "fit": dict}
    result = run.step(_step(index, "fit", attempt), compute, form)
    found = result["values"], result["fit"]
    tuned = start is not None and start.facts.tuned and not found[1]
    return Candidate(index, program, *found, task, attempt, tuned)


def _step(index: int, name: str, attempt: int) -> str:
    """Name of a step: programs that failed before in this round have their own."""
    return f"r{index}/{name}" if attempt == 0 else f"r{index}/{name}_again{attempt}"


def fit_program(
    program: Program,
    task: Task,
    fit: FitMode,
    demonstration: Demonstration | None,
    config: ImitationConfig,
    seed: int,
    ledger: Ledger,
) -> tuple[dict[str, float], dict[str, Any]]:
    """Weight values after the fit, and its report (empty for `none`).

    The resets of choosing an anchoring strength are booked under selection.
    """
    structure = program.structure
    if fit == "none" or demonstration is None:
        return initial_values(structure), {}
    if not structure.parameters:
        return {}, {"report": None, "text": "The program has no weights to fit."}
    policy = StructuredPolicy(structure, task.schema)
    data = demonstration.observations, demonstration.actions
    key = jax.random.key(seed)
    if fit == "imitation":
        fitted = fit_best(policy, *data, config=config, key=key)
        return _plain(weights(policy, fitted.variables)), {
            "report": fitted.report.to_dict(),
            "text": fit_text(fitted.report),
        }

    def selection(stacked: Any) -> np.ndarray:
        return play_stacked(
            policy, stacked, task, task.seeds["selection"], ledger=ledger
        ).mean(1)

    anchored = fit_anchored(policy, *data, evaluate=selection, config=config, key=key)
    report: dict[str, Any] = {
        "rows": [asdict(row) for row in anchored.rows],
        "chosen": anchored.chosen,
        "report": anchored.report.to_dict() if anchored.report else None,
        "text": anchored_text(anchored),
    }
    return _plain(weights(policy, anchored.variables)), report


def _plain(values: Mapping[str, Any]) -> dict[str, float]:
    return {name: float(value) for name, value in values.items()}


def fit_text(report: FitReport) -> str:
    """A fit in a few lines, for prompts and pages."""
    moved = sorted(report.weights, key=lambda row: -abs(row.move))[:8]
    moves = ", ".join(
        f"{row.name} {number(row.start)} -> {number(row.fitted)}" for row in moved
    )
    saturated = ", ".join(f"{k} {number(v)}" for k, v in report.saturation.items())
    return "\n".join(
        [
            f"NLL per step: {number(report.nll_start)} as written, "
            f"{number(report.nll_fitted)} fitted (held out: "
            f"{number(report.nll_validation)}); "
            f"{'converged' if report.converged else 'NOT converged'}.",
            f"Largest moves: {moves}.",
            f"Share of demonstration steps with the mean outside the action range: "
            f"{saturated}.",
            f"Weights without gradient on the demonstration: "
            f"{', '.join(report.dead) or 'none'}.",
        ]
    )


def fit_section(candidate: Candidate) -> str:
    """What a fit did, for a prompt; empty without one."""
    return f"\n## Fit\n\n{candidate.fit['text']}\n" if candidate.fit else ""


def anchored_text(fit: AnchoredFit) -> str:
    """The strengths tried and the one chosen, for prompts and pages."""
    lines = [
        f"- strength {number(row.strength)}: NLL {number(row.nll)}, distance "
        f"{number(row.distance)}, return on selection episodes "
        f"{number(row.selection_return)}{' <- chosen' if i == fit.chosen else ''}"
        for i, row in enumerate(fit.rows)
    ]
    head = "Fits held back towards the written values (inf: the values as written):"
    detail = fit_text(fit.report) if fit.report else "The written values stand."
    return "\n".join([head, *lines, detail])


class GateValues(NamedTuple):
    """Figures per gate episode.

    Attributes:
      metric: what the gate decides on.
      outcomes: the task's outcomes by name.
    """

    metric: list[float]
    outcomes: dict[str, list[float]]


def gate_values(run: RunDirectory, candidate: Candidate) -> GateValues:
    """What the gate episodes gave: mean actions, JAX simulator."""
    task = candidate.task

    def compute() -> Any:
        result = evaluate(
            candidate.policy,
            candidate.variables,
            task,
            task.seeds["gate"],
            ledger=run.ledger,
            purpose="gate",
        )
        values = list(result.values)
        if not task.outcomes:
            return values
        return {"values": values, "outcomes": result.outcomes}

    name = _step(candidate.index, "gate", candidate.attempt)
    episodes = len(task.seeds["gate"])
    form: Any = Many(float, episodes)
    if task.outcomes:
        told = Maybe(Each(Many(Maybe(float), episodes)))
        form = {"values": form, "outcomes": told}
    found = run.step(name, compute, form)
    if not task.outcomes:
        return GateValues(found, {})
    outcomes = read_back(found.get("outcomes"))
    named = {k: outcomes[k] for k in task.outcomes if k in outcomes}
    return GateValues(found["values"], named)


def diagnose_candidate(
    run: RunDirectory, candidate: Candidate, demonstration: Demonstration | None = None
) -> dict[str, Any]:
    """Debug rollouts, table and invariants; residuals on the demonstration, if any.

    Returns:
      `{"columns": text, "episodes": n, "invariants": text, "returns": [...]}`; the
      table is `tables/r<index>.parquet`.
    """
    task = candidate.task

    def compute() -> dict[str, Any]:
        trajectory = collect(
            candidate.policy,
            candidate.variables,
            task,
            task.seeds["debug"],
            key=jax.random.key(0),
            ledger=run.ledger,
            purpose="diagnosis",
        )
        table = candidate_table(trajectory, candidate)
        save_table(table, table_path(run, candidate.index))
        results = run_invariants(
            table,
            policy=candidate.policy,
            variables=candidate.variables,
            schema=task.schema,
            structure=candidate.program.structure,
        )
        if demonstration is not None:
            shown = residuals(_beside(candidate, demonstration), task.schema)
            results = (*results, shown) if shown else results
        return {
            "columns": table_columns(task, candidate.program.structure),
            "episodes": len(task.seeds["debug"]),
            "invariants": summary(results),
            "returns": returns_of(trajectory),
        }

    result: dict[str, Any] = run.step(f"r{candidate.index}/rollout", compute, DIAGNOSIS)
    return result


def candidate_table(
    trajectory: Trajectory, candidate: Candidate, *, mode: Mode = "mean"
) -> RolloutTable:
    """The table of a candidate's episodes in the JAX simulator."""
    return build_table(
        trajectory,
        candidate.task.schema,
        candidate.values,
        candidate.program.docs,
        structure=candidate.program.structure,
        info=candidate.task.info,
        task=candidate.task.name,
        metadata={"mode": mode, "simulator": "jax"},
    )


def _beside(candidate: Candidate, demonstration: Demonstration) -> RolloutTable:
    """A demonstration beside what the candidate would have done in its states."""
    obs = jnp.asarray(demonstration.observations)
    act = jax.jit(jax.vmap(candidate.policy.apply, in_axes=(None, 0)))
    distribution, latents = act(candidate.variables, obs)
    return demonstration_table(
        obs,
        demonstration.actions,
        distribution,
        latents,
        candidate.task.schema,
        candidate.values,
        candidate.program.docs,
        structure=candidate.program.structure,
        task=candidate.task.name,
    )


def table_path(run: RunDirectory, index: int) -> Path:
    """Where a round's rollout table lies."""
    return run.path / "tables" / f"r{index}.parquet"
