"""Values that are not numbers: where a policy stops knowing what it does."""

import numpy as np

from structjax.diagnostics.result import InvariantResult
from structjax.diagnostics.rows import Rows


def finite(rows: Rows) -> InvariantResult | None:
    """Every action and latent is finite; None when they are.

    Fails for an action or its distribution, warns for latents alone: an operator may
    have made a number of them again.
    """
    actions = _counts({**rows.outputs, "action": rows.action})
    latents = _counts(rows.latents)
    if not actions and not latents:
        return None
    steps = len(rows.obs)
    counts = {**actions, **latents}
    parts = [f"{name} in {count} of {steps} steps" for name, count in counts.items()]
    text = f"not finite: {'; '.join(parts)}. The earliest: {_first(rows)}"
    return InvariantResult("finite", "fail" if actions else "warn", text, counts)


def _counts(columns: dict[str, np.ndarray]) -> dict[str, int]:
    """Steps in which a column is not finite, by column; none for those that are."""
    counts = {
        name: int((~np.isfinite(values.reshape(len(values), -1))).any(axis=1).sum())
        for name, values in columns.items()
    }
    return {name: count for name, count in counts.items() if count}


def _first(rows: Rows) -> str:
    """The column whose values cease to be finite first, latents before outputs."""
    earliest, name = len(rows.obs), ""
    for column, values in {**rows.latents, **rows.outputs}.items():
        broken = np.flatnonzero(~np.isfinite(values))
        if len(broken) and broken[0] < earliest:
            earliest, name = int(broken[0]), column
    return f"{name} in row {earliest}"
