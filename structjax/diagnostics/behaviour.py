"""What happened in the episodes: outcomes, lapses, nervous actions, sampling noise."""

from typing import Any

import numpy as np
import pandas as pd

from structjax.diagnostics.result import InvariantResult, number, percent, warn_if
from structjax.diagnostics.rows import Rows
from structjax.schema import Schema
from structjax.table import RolloutTable

# Mean change per step, as a share of the action's range, that counts as nervous; and
# the share of steps on which a discrete action changes.
JERK_LIMIT, SWITCH_LIMIT = 0.1, 0.5
# Changes below this share of the range are no turns.
RIPPLE = 0.01
GAP_LIMIT = 0.05


def episodes(table: RolloutTable) -> InvariantResult | None:
    """Worst, median and best episode, and how episodes end; None without rewards."""
    frame = table.frame
    if "reward" not in frame:
        return None
    groups = frame.groupby("episode", sort=True)
    last = groups.tail(1).set_index("episode")
    returns = groups["reward"].sum()
    outcomes = pd.DataFrame({"return": returns, "steps": groups.size()})
    if "info_progress" in frame:
        outcomes["progress"] = last["info_progress"]
    outcomes["end"] = np.select(
        [last["terminated"], last["truncated"]], ["terminated", "truncated"], "open"
    )
    order = outcomes.sort_values("return", kind="stable").index
    picks = {"worst": order[0], "median": order[(len(order) - 1) // 2]}
    picks["best"] = order[-1]
    values = returns.to_numpy(np.float64)
    ends = outcomes["end"].value_counts().sort_index()
    text = (
        f"{len(values)} episodes, return {number(values.mean())} +- "
        f"{number(values.std())}, " + ", ".join(f"{n} {end}" for end, n in ends.items())
    )
    for word, label in picks.items():
        text += f"; {word}: episode {label}, {_outcome(outcomes.loc[label])}"
    figures = {"mean": float(values.mean()), "std": float(values.std())}
    rows = outcomes.reset_index().to_dict("records")
    named = {word: int(label) for word, label in picks.items()}
    return InvariantResult(
        "episodes", "pass", text, {**figures, **named, "episodes": rows}
    )


def _outcome(row: Any) -> str:
    text = f"return {number(row['return'])} in {int(row['steps'])} steps, {row['end']}"
    return text + (f", progress {number(row['progress'])}" if "progress" in row else "")


def off_nominal(rows: Rows, mask: np.ndarray) -> InvariantResult:
    """Segments of consecutive rows off the track.

    A segment recovers when it is followed by a row of the same episode without it.

    Args:
      rows: the table's arrays.
      mask: `[N]` bool, True off the track.
    """
    joined = np.r_[False, mask[:-1] & mask[1:] & rows.follows]
    starts = np.flatnonzero(mask & ~joined)
    stops = np.flatnonzero(mask & ~np.r_[joined[1:], False])
    lengths = stops - starts + 1
    recovered = np.r_[rows.follows, False][stops] if len(stops) else np.zeros(0, bool)
    share = float(mask.mean())
    values: dict[str, Any] = {
        "share": share,
        "segments": len(starts),
        "longest": int(np.max(lengths, initial=0)),
        "mean_length": float(lengths.mean()) if len(lengths) else 0.0,
        "recovered": int(recovered.sum()),
        "share_by_episode": {
            int(e): float(mask[rows.episode == e].mean())
            for e in np.unique(rows.episode)
        },
    }
    if not len(starts):
        return InvariantResult("off_track", "pass", "never", values)
    longest = int(np.argmax(lengths))
    worst = max(values["share_by_episode"], key=values["share_by_episode"].get)
    text = (
        f"{percent(share)} of rows in {len(starts)} segments, longest "
        f"{lengths[longest]} steps (episode {rows.episode[starts[longest]]}), "
        f"{int(recovered.sum())} of {len(starts)} recover; most in episode {worst} "
        f"({percent(values['share_by_episode'][worst])})"
    )
    return InvariantResult("off_track", "warn", text, values)


def jerk(rows: Rows, schema: Schema) -> InvariantResult | None:
    """How much actions change from step to step, and how often they turn back.

    None when no row follows another.
    """
    before = np.flatnonzero(rows.follows)
    if not len(before):
        return None
    change = rows.action[before + 1] - rows.action[before]
    # Two changes in a row exist where two following pairs are adjacent.
    pairs = np.flatnonzero(np.diff(before) == 1)
    ripple = RIPPLE * (schema.action_high - schema.action_low)[None]
    steps = np.where(np.abs(change) > ripple, change, 0)
    turns = steps[pairs] * steps[pairs + 1] < 0
    flips = rows.action[before] * rows.action[before + 1] < 0
    values: dict[str, dict[str, float]] = {}
    parts, nervous = [], False
    for i, action in enumerate(schema.actions):
        if schema.discrete:
            switched = float((change[:, i] != 0).mean())
            values[action.name] = {"switches": switched}
            parts.append(f"{action.name} switches on {percent(switched)} of steps")
            nervous = nervous or switched > SWITCH_LIMIT
            continue
        size = float(np.abs(change[:, i]).mean())
        turn = float(turns[:, i].mean()) if len(pairs) else 0.0
        flip = float(flips[:, i].mean())
        values[action.name] = {"change": size, "flips": flip, "reversals": turn}
        part = f"{action.name} changes by {number(size)} a step, turns back on "
        part += f"{percent(turn)} of steps"
        parts.append(part + (f", flips sign on {percent(flip)}" if flip else ""))
        rough = size > JERK_LIMIT * (action.high - action.low)
        nervous = nervous or rough
    return InvariantResult("jerk", warn_if(nervous), "; ".join(parts), values)


def sampling_gap(mean: np.ndarray, sampled: np.ndarray) -> InvariantResult:
    """Returns `[B]` with mean actions against returns `[C]` with sampled ones.

    A large gap in either direction says that the policy lives on, or suffers from, its
    noise.
    """
    mean, sampled = np.asarray(mean, np.float64), np.asarray(sampled, np.float64)
    gap = float(sampled.mean() - mean.mean())
    large = abs(gap) > GAP_LIMIT * max(abs(mean.mean()), abs(sampled.mean()))
    text = (
        f"sampled actions return {number(sampled.mean())} +- {number(sampled.std())}, "
        f"mean actions {number(mean.mean())} +- {number(mean.std())}: "
        f"{'+' if gap >= 0 else ''}{number(gap)}"
    )
    values = {"gap": gap, "mean": float(mean.mean()), "sampled": float(sampled.mean())}
    return InvariantResult("sampling_gap", warn_if(large), text, values)
