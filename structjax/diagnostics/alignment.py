"""Does the table say what happened? Identity checks between its own columns.

A latent in row i must be what the policy computes from the observation in row i. An
analysis of a table that is off by one step finds causes before or after their effects.
"""

from collections.abc import Mapping

import numpy as np

from structjax.diagnostics.result import InvariantResult, fail_if, number, percent
from structjax.diagnostics.rows import Rows, mean_actions
from structjax.schema import Schema
from structjax.table import RolloutTable

# Rounding may turn a comparison over in a few rows; a shift changes nearly all.
MISMATCH_LIMIT = 0.01


def alignment(
    rows: Rows, latents: Mapping[str, np.ndarray], outputs: np.ndarray
) -> InvariantResult:
    """Recomputed latents and action distributions equal the logged ones, row by row.

    Args:
      rows: the table's arrays.
      latents: recomputed from `rows.obs`: name -> `[N]` or `[N, n]`.
      outputs: recomputed: `[N, D]`, in the order of `rows.outputs`.
    """
    recomputed = flatten_latents(latents)
    recomputed |= dict(zip(rows.outputs, outputs.T, strict=True))
    stored = rows.latents | rows.outputs
    if unmatched := sorted(stored.keys() ^ recomputed.keys()):
        text = f"the table is of another policy: no counterpart for {unmatched[0]}"
        return InvariantResult("alignment", "fail", text, {"unmatched": unmatched})
    names = list(stored)
    table = np.stack([stored[name] for name in names], axis=1)
    policy = np.stack([recomputed[name] for name in names], axis=1)
    shares = _different(table, policy).mean(axis=0)
    worst = int(np.argmax(shares))
    values = {"mismatch_share": float(shares[worst]), "column": names[worst]}
    if shares[worst] <= MISMATCH_LIMIT:
        text = f"{len(names)} columns recomputed from obs_*, all equal in every row"
        if shares[worst] > 0:
            text += f" but {percent(shares[worst])} ({names[worst]}, rounding)"
        return InvariantResult("alignment", "pass", text, {**values, "shift": 0})
    shift = _shift(table, policy, rows.follows)
    text = (
        f"{percent(shares[worst])} of rows: {names[worst]} is not what the policy "
        f"computes from obs_* of that row"
    )
    if shift:
        where = "one step ahead of" if shift > 0 else "one step behind"
        text += f"; the observations are {where} the rest of the row"
    return InvariantResult("alignment", "fail", text, {**values, "shift": shift})


def flatten_latents(latents: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Name -> `[N]` or `[N, n]` becomes column name -> `[N]`."""
    flat: dict[str, np.ndarray] = {}
    for name, values in latents.items():
        if values.ndim == 1:
            flat[f"latent_{name}"] = values
        else:
            flat |= {f"latent_{name}_{i}": v for i, v in enumerate(values.T)}
    return flat


def _different(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """`[N, C]` whether values differ by more than the rounding of their column."""
    size = np.nan_to_num(np.abs(b))
    scale = np.quantile(size, 0.95, axis=0, keepdims=True)
    tolerance = 1e-4 * size + 1e-5 * scale + 1e-6
    with np.errstate(invalid="ignore"):
        close = (np.abs(a - b) <= tolerance) | (a == b)
    return ~(close | (np.isnan(a) & np.isnan(b)))


def _shift(table: np.ndarray, policy: np.ndarray, follows: np.ndarray) -> int:
    """By how many steps (1, -1, or 0: neither) the observations run ahead."""
    if not follows.any():
        return 0
    before = np.flatnonzero(follows)
    pairs = {1: (table[before + 1], policy[before])}
    pairs[-1] = (table[before], policy[before + 1])
    for shift, (logged, computed) in pairs.items():
        if np.max(_different(logged, computed).mean(axis=0)) <= MISMATCH_LIMIT:
            return shift
    return 0


def continuity(rows: Rows) -> InvariantResult | None:
    """`next_obs_*` of a row is `obs_*` of the next; None without such columns."""
    if rows.next_obs is None:
        return None
    before = np.flatnonzero(rows.follows)
    if not len(before):
        text = "no row follows another: nothing to compare"
        return InvariantResult("continuity", "pass", text, {"mismatch_share": 0.0})
    wrong = _different(rows.next_obs[before], rows.obs[before + 1]).any(axis=1)
    share = float(wrong.mean())
    if share:
        text = f"{percent(share)} of rows: next_obs_* is not obs_* of the next row"
    else:
        text = f"next_obs_* equals obs_* of the next row in all {len(before)} pairs"
    verdict = fail_if(share > 0)
    return InvariantResult("continuity", verdict, text, {"mismatch_share": share})


def reconstruction(
    table: RolloutTable, rows: Rows, schema: Schema
) -> InvariantResult | None:
    """Clipped actions and log-probabilities follow from the row's own columns.

    None for discrete actions, which have no clipping.
    """
    if schema.discrete:
        return None
    stems = [f"action_{action.name}" for action in schema.actions]
    sampled = table.values([f"{stem}_sampled" for stem in stems])
    std = table.values([f"{stem}_std" for stem in stems])
    mean = mean_actions(rows, schema)
    low, high = schema.action_low[None], schema.action_high[None]
    errors = {"clipping": np.abs(np.clip(sampled, low, high) - rows.action).max()}
    if table.metadata.get("mode") == "mean":
        errors["mean mode"] = np.abs(sampled - mean).max()
    if "log_prob" in table.frame:
        z = (sampled - mean).astype(np.float64) / std
        expected = (-0.5 * z**2 - np.log(std) - 0.5 * np.log(2 * np.pi)).sum(axis=1)
        difference = np.abs(table.frame["log_prob"].to_numpy() - expected)
        errors["log_prob"] = (difference / (1 + np.abs(expected))).max()
    worst = max(errors, key=lambda name: errors[name])
    wrong = not errors[worst] <= 1e-3
    text = f"actions and log_prob follow from the row; worst error {worst} "
    if wrong:
        text = f"the row contradicts itself: {worst} is off by "
    return InvariantResult(
        "reconstruction",
        fail_if(wrong),
        text + number(errors[worst]),
        {name: float(error) for name, error in errors.items()},
    )
