"""Ranges and saturation: where values leave, or stick to, the ends of their range."""

import numpy as np

from structjax.diagnostics.result import InvariantResult, number, percent, warn_if
from structjax.diagnostics.rows import Rows, mean_actions
from structjax.diagnostics.wiring import saturation_bounds
from structjax.language.structure import Structure
from structjax.schema import Schema

# A program whose action sticks to its bounds this often is hardly controlled by them.
SATURATION_LIMIT = 0.95


def ranges(rows: Rows, schema: Schema) -> InvariantResult:
    """Every observation is finite and within the range that the schema promises."""
    outside: dict[str, dict[str, float]] = {}
    broken: dict[str, int] = {}
    for field in schema.observations:
        values = rows.obs[:, schema.slice_of(field.name)]
        finite = np.isfinite(values)
        if count := int((~finite).sum()):
            broken[field.name] = count
        slack = 1e-6 * max(1.0, np.nan_to_num(abs(field.high - field.low), posinf=1.0))
        out = finite & ((values < field.low - slack) | (values > field.high + slack))
        if out.any():
            excess = np.where(
                out, np.maximum(field.low - values, values - field.high), 0
            )
            worst = float(values.flat[np.argmax(excess)])
            share = float(out.any(axis=1).mean())
            outside[field.name] = {"share": share, "worst": worst}
    parts = [f"{name}: {count} values not finite" for name, count in broken.items()]
    for name, found in sorted(outside.items(), key=lambda item: -item[1]["share"]):
        often, extreme = percent(found["share"]), number(found["worst"])
        parts.append(f"{name} outside its range in {often} of rows, worst {extreme}")
    text = "; ".join(parts) or "all observations finite and within the schema's ranges"
    verdict = "fail" if broken else warn_if(bool(outside))
    figures = {"outside": outside, "not_finite": broken}
    return InvariantResult("ranges", verdict, text, figures)


def saturation(
    rows: Rows, schema: Schema, structure: Structure | None
) -> InvariantResult | None:
    """How often actions and bounded latents sit at their bounds.

    An action counts as saturated where its mean is at or beyond the bound (there
    the environment no longer sees what the program computes), a latent where the
    clip, tanh or sigmoid that makes it is flat. None if there is nothing to check.
    """
    shares: dict[str, tuple[float, float]] = {}
    if not schema.discrete:
        mean = mean_actions(rows, schema)
        for i, action in enumerate(schema.actions):
            at_low = (mean[:, i] <= action.low) & (rows.action[:, i] <= action.low)
            at_high = (mean[:, i] >= action.high) & (rows.action[:, i] >= action.high)
            shares[f"action_{action.name}"] = _means(at_low, at_high)
    bounds = {} if structure is None else saturation_bounds(structure)
    for latent in () if structure is None else structure.latents:
        if latent.name not in bounds:
            continue
        low, high = bounds[latent.name]
        values = np.stack([rows.latents[column] for column in latent.columns])
        shares[f"latent_{latent.name}"] = _means(values <= low, values >= high)
    if not shares:
        return None
    stuck = [name for name, ends in shares.items() if sum(ends) > SATURATION_LIMIT]
    parts = [
        f"{name} {percent(low)} low, {percent(high)} high"
        for name, (low, high) in shares.items()
        if low + high > 0
    ]
    text = "at the bounds: " + ("; ".join(parts) or "never")
    if stuck:
        limit = percent(SATURATION_LIMIT)
        text += f". In more than {limit} of rows: {', '.join(stuck)}"
    verdict = warn_if(bool(stuck))
    ends = {name: {"low": low, "high": high} for name, (low, high) in shares.items()}
    return InvariantResult("saturation", verdict, text, ends)


def _means(low: np.ndarray, high: np.ndarray) -> tuple[float, float]:
    return float(low.mean()), float(high.mean())
