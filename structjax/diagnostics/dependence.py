"""What the policy depends on: dead weights, dead latents, copied actions."""

from collections.abc import Mapping

import numpy as np

from structjax.diagnostics.result import InvariantResult, number, percent, warn_if
from structjax.diagnostics.rows import Rows
from structjax.diagnostics.wiring import observed
from structjax.language.structure import Structure
from structjax.schema import Schema

# Below this share of rows a weight's branch is almost never taken.
RARE = 0.01
COPY_CORRELATION = 0.95
COPY_DEPENDENCE = 0.05


def liveness(
    rows: Rows,
    structure: Structure | None,
    weight_slopes: Mapping[str, np.ndarray],
) -> InvariantResult | None:
    """Latents that never change and weights that change no action on these rows.

    Args:
      rows: the table's arrays.
      structure: tells constants by construction from latents that are stuck.
      weight_slopes: parameter -> `[S, D]` derivatives of the outputs.

    Returns:
      None for a policy without latents and named weights.
    """
    constant = sorted(
        name for name, values in rows.latents.items() if _unchanging(values)
    )
    if structure is not None:
        alive = observed(structure)
        sees = {c for x in structure.latents if x.name in alive for c in x.columns}
        constant = [name for name in constant if name in sees]
    active = {
        name: float((np.abs(slopes).max(axis=1) > 0).mean())
        for name, slopes in sorted(weight_slopes.items())
    }
    if not rows.latents and not active:
        return None
    dead = [name for name, share in active.items() if share == 0]
    rare = [f"{n} ({percent(s)})" for n, s in active.items() if 0 < s < RARE]
    parts = []
    if constant:
        parts.append(f"constant latents: {', '.join(constant)}")
    if dead:
        parts.append(f"weights without any effect on these rows: {', '.join(dead)}")
    if rare:
        parts.append(f"weights with an effect in few rows: {', '.join(rare)}")
    text = "; ".join(parts) or "every latent changes and every weight has an effect"
    verdict = warn_if(bool(constant or dead))
    values = {"constant": constant, "dead": dead, "active_share": active}
    return InvariantResult("liveness", verdict, text, values)


def _unchanging(values: np.ndarray) -> bool:
    low, high = np.nanmin(values), np.nanmax(values)
    return bool(high - low <= 1e-6 * max(abs(low), abs(high)))


def copycat(
    rows: Rows, schema: Schema, obs_slopes: np.ndarray
) -> InvariantResult | None:
    """Observations that merely repeat the previous action, and steer the next one.

    A column is a copy when it correlates with the previous action beyond 0.95, and more
    closely than with its own previous value: any slowly changing feature correlates
    with the action it caused one step ago. It matters where the action depends on it
    (arXiv 1905.11979, the copycat problem).

    Args:
      rows: the table's arrays.
      schema: names the columns.
      obs_slopes: `[S, D, O]` derivatives of the outputs; the first A of D are means.

    Returns:
      None for discrete actions or when no row follows another.
    """
    before = np.flatnonzero(rows.follows)
    if schema.discrete or len(before) < 3:
        return None
    obs = np.nan_to_num(rows.obs)
    previous, now = rows.action[before], obs[before + 1]
    with_action = _correlation(now, previous)
    with_itself = _correlation_by_column(now, obs[before])[:, None]
    closer = 1 - with_action**2 < 0.8 * (1 - with_itself**2)
    copied = (np.abs(with_action) > COPY_CORRELATION) & closer
    actions = range(len(schema.actions))
    slopes = np.abs(obs_slopes[:, : len(actions)]).mean(axis=0).T
    spread = np.maximum(rows.action.std(axis=0), 1e-6)
    dependence = slopes * obs.std(axis=0)[:, None] / spread[None]
    columns, found = schema.columns(), []
    for o, a in zip(*np.nonzero(copied & (dependence > COPY_DEPENDENCE)), strict=True):
        found.append(
            {
                "column": columns[o],
                "action": schema.actions[a].name,
                "correlation": float(with_action[o, a]),
                "dependence": float(dependence[o, a]),
            }
        )
    text = "; ".join(
        f"{x['column']} repeats the previous {x['action']} (r = "
        f"{number(x['correlation'])}) and feeds the next one (by "
        f"{number(x['dependence'])} of its spread)"
        for x in found
    )
    return InvariantResult(
        "copycat",
        warn_if(bool(found)),
        text or "no observation that the policy uses repeats the previous action",
        {"found": found},
    )


def _standardised(values: np.ndarray) -> np.ndarray:
    """`[N, C]` with mean 0 and norm 1 per column; constant columns become 0."""
    values = values.astype(np.float64)
    centred = values - values.mean(axis=0, keepdims=True)
    norm = np.linalg.norm(centred, axis=0, keepdims=True)
    floor = 1e-6 * (1e-6 + np.abs(values).max(axis=0, keepdims=True))
    return centred / np.where(norm > floor, norm, np.inf)


def _correlation(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """`[C, D]` correlations of the columns of `[N, C]` with those of `[N, D]`."""
    return _standardised(a).T @ _standardised(b)


def _correlation_by_column(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return (_standardised(a) * _standardised(b)).sum(axis=0)
