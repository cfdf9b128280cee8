"""The built-in diagnostics: run on every table, in milliseconds once compiled.

They look for the faults that programs and pipelines of this kind really have, so that
generated analyses can spend themselves on what is special about a task.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np

from structjax.diagnostics.alignment import alignment, continuity, reconstruction
from structjax.diagnostics.answers import Answers, differentiate, evaluate, spread_rows
from structjax.diagnostics.behaviour import episodes, jerk, off_nominal, sampling_gap
from structjax.diagnostics.coverage import ranges, saturation
from structjax.diagnostics.dependence import copycat, liveness
from structjax.diagnostics.finite import finite
from structjax.diagnostics.parity import mirrors, parity, with_terms
from structjax.diagnostics.residuals import residuals
from structjax.diagnostics.result import InvariantResult, Verdict
from structjax.diagnostics.rows import Rows, rows_of
from structjax.language.structure import Structure
from structjax.memory import Memory, initial_memory, remembered
from structjax.schema import Schema
from structjax.table import RolloutTable

__all__ = ["InvariantResult", "Verdict", "run_invariants", "summary"]


def run_invariants(
    table: RolloutTable,
    *,
    schema: Schema,
    policy: Any = None,
    variables: Any = None,
    structure: Structure | None = None,
    returns_sampled: np.ndarray | None = None,
) -> tuple[InvariantResult, ...]:
    """All invariants that apply to the table, in a fixed order.

    Args:
      table: a rollout's or a demonstration's table.
      schema: of the table's task.
      policy: the policy that filled the table (`apply(variables, obs [O])`). Without it
        the checks that ask the policy anew are left out.
      variables: the policy's.
      structure: the policy's, where it has one; the policy must then be a
        `StructuredPolicy`, which is asked for further latents.
      returns_sampled: returns with sampled actions, to hold against the table's.

    Raises:
      StructjaxError: the table is empty or of another task.
    """
    rows = rows_of(table, schema)
    with np.errstate(all="ignore"):  # what is not finite is reported
        unusable = finite(rows)
        found: list[InvariantResult | None]
        if unusable is not None and unusable.verdict == "fail":
            found = [ranges(rows, schema), episodes(table)]
        else:
            found = _found(
                rows, table, schema, policy, variables, structure, returns_sampled
            )
    return tuple(result for result in (unusable, *found) if result is not None)


def _found(
    rows: Rows,
    table: RolloutTable,
    schema: Schema,
    policy: Any,
    variables: Any,
    structure: Structure | None,
    returns_sampled: np.ndarray | None,
) -> list[InvariantResult | None]:
    """The invariants of a table whose actions are finite."""
    found: list[InvariantResult | None] = []
    if policy is not None:
        found += _asked(rows, schema, policy, variables, structure)
    found += [
        continuity(rows),
        reconstruction(table, rows, schema) if _normal(policy) else None,
        ranges(rows, schema),
        saturation(rows, schema, structure),
        jerk(rows, schema),
        residuals(table, schema),
        episodes(table),
    ]
    if "info_on_road" in table.frame:
        off_track = table.frame["info_on_road"].to_numpy() < 0.5
        found.append(off_nominal(rows, off_track))
    if returns_sampled is not None:
        returns = table.frame.groupby("episode")["reward"].sum().to_numpy()
        found.append(sampling_gap(returns, returns_sampled))
    return found


def _asked(
    rows: Rows,
    schema: Schema,
    policy: Any,
    variables: Any,
    structure: Structure | None,
) -> Iterable[InvariantResult | None]:
    """The invariants for which the policy is evaluated again."""
    symmetric = mirrors(schema)
    if structure is not None and symmetric:
        policy = policy.clone(structure=with_terms(structure, schema))
    memory = _memory(policy, rows)
    answers = evaluate(policy, variables, rows.obs, memory)
    some = spread_rows(len(rows.obs))
    kept = {name: values[some] for name, values in memory.items()}
    slopes = differentiate(policy, variables, rows.obs[some], kept)
    own = {k: v for k, v in answers.latents.items() if " " not in k}
    yield alignment(rows, own, answers.outputs)
    yield liveness(rows, structure, slopes.weights)
    if symmetric and not memory:  # the mirror sign of a memory is not known
        here = Answers(
            {name: values[some] for name, values in answers.latents.items()},
            answers.outputs[some],
        )
        image = schema.mirror_observation(rows.obs[some])
        mirrored = evaluate(policy, variables, image)
        yield parity(schema, structure, here, mirrored)
    yield copycat(rows, schema, slopes.obs)


def _normal(policy: Any) -> bool:
    """Whether actions are independent normals, whose columns say everything."""
    structure = getattr(policy, "structure", None)
    if structure is None:
        return True
    families = {head.family for head in structure.heads}
    return families == {"normal"} and not structure.coupling


def _memory(policy: Any, rows: Rows) -> Memory:
    """What the policy remembered in each row `[N]`, from the logged latents."""
    start = initial_memory(policy)
    first = np.concatenate([[True], ~rows.follows])
    logged = {name: rows.latents[f"latent_{name}"] for name in start}
    return remembered(start, logged, first)


def summary(results: Iterable[InvariantResult]) -> str:
    """One line per result: `[warn] jerk: ...`; equal results give equal text."""
    return "\n".join(f"[{r.verdict}] {r.name}: {r.text}" for r in results)
