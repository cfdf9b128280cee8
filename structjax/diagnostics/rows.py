"""The arrays of a rollout table, taken out once for all invariants."""

from typing import NamedTuple

import numpy as np

from structjax.errors import StructjaxError
from structjax.schema import Schema
from structjax.table import RolloutTable


class Rows(NamedTuple):
    """N rows, float32 unless said otherwise.

    Attributes:
      episode: `[N]` int.
      follows: `[N - 1]` bool, whether row i + 1 is the step after row i.
      obs: `[N, O]`.
      next_obs: `[N, O]`, or None in a demonstration's table.
      latents: column name -> `[N]`.
      outputs: column name -> `[N]`: means and stds, or logits, in the order of the
        distribution's fields.
      action: `[N, A]` clipped actions; discrete `[N, 1]`.
    """

    episode: np.ndarray
    follows: np.ndarray
    obs: np.ndarray
    next_obs: np.ndarray | None
    latents: dict[str, np.ndarray]
    outputs: dict[str, np.ndarray]
    action: np.ndarray


def output_columns(schema: Schema, table: RolloutTable) -> tuple[str, ...]:
    """Columns of the distribution: all means, then all stds; or the logits."""
    if schema.discrete:
        return tuple(name for name in table.names("action") if "_logit_" in name)
    stems = [f"action_{action.name}" for action in schema.actions]
    return tuple(f"{stem}_{kind}" for kind in ("mean", "std") for stem in stems)


def rows_of(table: RolloutTable, schema: Schema) -> Rows:
    """The table's arrays.

    Raises:
      StructjaxError: no rows, or columns of the schema are missing.
    """
    frame = table.frame
    outputs = output_columns(schema, table)
    wanted = (*schema.columns(), *outputs)
    if missing := [name for name in wanted if name not in frame]:
        raise StructjaxError(
            f"the table lacks the columns {', '.join(missing[:5])} of its task; "
            f"it has {len(frame.columns)} others",
            kind="table",
            hint="diagnose a table with the task that it was recorded on",
        )
    if frame.empty:
        raise StructjaxError(
            "the table has no rows; a diagnosis needs at least one step", kind="table"
        )
    episode, step = frame["episode"].to_numpy(), frame["step"].to_numpy()
    follows = (episode[1:] == episode[:-1]) & (step[1:] == step[:-1] + 1)
    after = schema.columns("next_obs_")
    return Rows(
        episode=episode,
        follows=follows,
        obs=table.values(schema.columns()),
        next_obs=table.values(after) if after[0] in frame else None,
        latents={n: frame[n].to_numpy() for n in table.names("latent")},
        outputs={n: frame[n].to_numpy() for n in outputs},
        action=table.values([f"action_{action.name}" for action in schema.actions]),
    )


def mean_actions(rows: Rows, schema: Schema) -> np.ndarray:
    """`[N, A]` unclipped mean actions of a continuous policy."""
    return np.stack(
        [rows.outputs[f"action_{a.name}_mean"] for a in schema.actions], axis=1
    )
