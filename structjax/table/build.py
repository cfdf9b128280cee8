"""Lays a batch of episodes, or a demonstration, out as a table."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from structjax.language.structure import Structure
from structjax.schema import ActionField, Schema
from structjax.table.column import Column, Kind, RolloutTable

if TYPE_CHECKING:
    from structjax.rollout import Trajectory

Part = tuple[Column, np.ndarray]


def build_table(
    trajectory: "Trajectory",
    schema: Schema,
    weights: Mapping[str, Any],
    docs: Mapping[str, str],
    *,
    structure: Structure | None = None,
    info: Mapping[str, str] | None = None,
    task: str = "",
    metadata: Mapping[str, Any] | None = None,
) -> RolloutTable:
    """The table of a batch of episodes; only steps that were taken become rows.

    Args:
      trajectory: arrays `[T, B, ...]` with the mask `valid`.
      schema: names the observations and actions.
      weights: constrained value of every parameter, constant over the table.
      docs: documentation of latents and weights by name.
      structure: gives latents and weights the program's order, and weights their
        bounds; without it they keep the order of their mappings.
      info: meaning of the scalars to keep of `trajectory.info`; default: all scalars.
      task: name of the task.
      metadata: passed on; must be JSON.
    """
    valid = np.asarray(trajectory.valid).T
    flat = _Flat(valid)
    rows = [
        *_index_parts(valid),
        *_observation_parts(flat(trajectory.obs), schema, "obs_", "observation"),
        *_latent_parts(_each(flat, trajectory.latents), docs, structure),
        *_weight_parts(weights, docs, structure, int(valid.sum())),
        *_action_parts(
            schema,
            _each(flat, trajectory.distribution.moments()),
            sampled=flat(trajectory.action),
            taken=flat(trajectory.environment_action),
        ),
        (_column("log_prob", "action", _LOG_PROB), flat(trajectory.log_prob)),
        (_column("reward", "outcome", "reward of this step"), flat(trajectory.reward)),
        *_end_parts(flat(trajectory.terminated), flat(trajectory.truncated)),
        *_observation_parts(
            flat(trajectory.next_obs), schema, "next_obs_", "next_observation"
        ),
        *_info_parts(flat, trajectory.info, info),
    ]
    return _assemble(rows, task, metadata)


def demonstration_table(
    obs: Any,
    action: Any,
    distribution: Any,
    latents: Mapping[str, Any],
    schema: Schema,
    weights: Mapping[str, Any],
    docs: Mapping[str, str],
    *,
    structure: Structure | None = None,
    task: str = "",
) -> RolloutTable:
    """A demonstration beside what the policy would have done in its states.

    `residual_<name>` is the demonstrated action minus the policy's clipped mean action;
    for a discrete action it is 1 where the policy would have chosen otherwise, else 0.

    Args:
      obs: `[N, O]`.
      action: `[N, A]`, or integers `[N]`: what was demonstrated.
      distribution: the policy's, with a leading axis N.
      latents: the policy's, `[N]` or `[N, n]`.
      schema: names the observations and actions.
      weights: constrained value of every parameter.
      docs: documentation of latents and weights by name.
      structure: order and bounds, as in `build_table`.
      task: name of the task.
    """
    obs, demo = np.asarray(obs), np.asarray(action)
    rows = len(obs)
    mode = np.asarray(distribution.mode())
    taken = mode if schema.discrete else _clip(mode, schema)
    parts = [
        *_index_parts(np.ones((1, rows), bool)),
        *_observation_parts(obs, schema, "obs_", "observation"),
        *_latent_parts({k: np.asarray(v) for k, v in latents.items()}, docs, structure),
        *_weight_parts(weights, docs, structure, rows),
        *_action_parts(
            schema,
            {k: np.asarray(v) for k, v in distribution.moments().items()},
            sampled=mode,
            taken=taken,
        ),
        *_demonstration_parts(schema, demo, taken),
    ]
    return _assemble(parts, task, {"mode": "demonstration"})


_EPISODE = Column("episode", "", 0.0, None, "number of the episode", "index")
_STEP = Column("step", "", 0.0, None, "time step within the episode", "index")
_LOG_PROB = "log-probability of the unclipped action that was taken"


class _Flat:
    """Turns `[T, B, ...]` into `[rows, ...]`: valid steps, episode after episode."""

    def __init__(self, valid: np.ndarray) -> None:
        self.valid = valid

    def __call__(self, array: Any) -> np.ndarray:
        return np.swapaxes(np.asarray(array), 0, 1)[self.valid]


def _each(flat: _Flat, arrays: Mapping[str, Any]) -> dict[str, np.ndarray]:
    return {name: flat(array) for name, array in arrays.items()}


def _column(name: str, kind: Kind, doc: str, unit: str = "") -> Column:
    return Column(name, unit, None, None, doc, kind)


def _finite(bound: float | None) -> float | None:
    return float(bound) if bound is not None and np.isfinite(bound) else None


def _index_parts(valid: np.ndarray) -> list[Part]:
    episode, step = np.nonzero(valid)
    return [(_EPISODE, episode), (_STEP, step)]


def _observation_parts(
    flat: np.ndarray, schema: Schema, prefix: str, kind: Kind
) -> list[Part]:
    parts: list[Part] = []
    for item in schema.observations:
        doc = item.meaning if prefix == "obs_" else f"{item.meaning} (one step later)"
        if item.elements is not None:
            doc = f"{doc} (elements: {', '.join(item.elements)})"
        low, high = _finite(item.low), _finite(item.high)
        values = flat[:, schema.slice_of(item.name)]
        for i, name in enumerate(item.columns(prefix)):
            parts.append((Column(name, item.unit, low, high, doc, kind), values[:, i]))
    return parts


def _ordered(names: Iterable[str], order: Iterable[str]) -> list[str]:
    """The names in the given order, those it lacks last."""
    present = dict.fromkeys(names)
    return list(dict.fromkeys([n for n in order if n in present] + list(present)))


def _latent_parts(
    latents: Mapping[str, np.ndarray],
    docs: Mapping[str, str],
    structure: Structure | None,
) -> list[Part]:
    known = {} if structure is None else {x.name: x for x in structure.latents}
    parts: list[Part] = []
    for name in _ordered(latents, known):
        boolean = name in known and known[name].boolean
        low, high = (0.0, 1.0) if boolean else (None, None)
        values, doc = latents[name], docs.get(name, "")
        stem = f"latent_{name}"
        if values.ndim == 1:
            parts.append((Column(stem, "", low, high, doc, "latent"), values))
            continue
        for i in range(values.shape[1]):
            column = Column(f"{stem}_{i}", "", low, high, doc, "latent")
            parts.append((column, values[:, i]))
    return parts


def _weight_parts(
    weights: Mapping[str, Any],
    docs: Mapping[str, str],
    structure: Structure | None,
    rows: int,
) -> list[Part]:
    known = {} if structure is None else {x.name: x for x in structure.parameters}
    parts: list[Part] = []
    for name in _ordered(weights, known):
        low = known[name].low if name in known else None
        high = known[name].high if name in known else None
        doc = docs.get(name, "")
        column = Column(f"weight_{name}", "", low, high, doc, "weight")
        parts.append((column, np.full(rows, np.asarray(weights[name]), np.float32)))
    return parts


def _action_parts(
    schema: Schema,
    distribution: Mapping[str, np.ndarray],
    *,
    sampled: np.ndarray,
    taken: np.ndarray,
) -> list[Part]:
    if schema.discrete:
        return _choice_parts(schema.actions[0], distribution["logits"], taken)
    parts: list[Part] = []
    for i, action in enumerate(schema.actions):
        stem, unit, doc = f"action_{action.name}", action.unit, action.meaning
        mean = f"mean of the policy's distribution: {doc}"
        std = f"standard deviation of the policy's distribution: {doc}"
        raw = f"action before clipping to its range: {doc}"
        low, high = _finite(action.low), _finite(action.high)
        got = Column(stem, unit, low, high, f"{doc} (what the world got)", "action")
        parts += [
            (_column(f"{stem}_mean", "action", mean, unit), distribution["mean"][:, i]),
            (_column(f"{stem}_std", "action", std, unit), distribution["std"][:, i]),
            (_column(f"{stem}_sampled", "action", raw, unit), sampled[:, i]),
            (got, taken[:, i]),
        ]
    return parts


def _choice_parts(
    action: ActionField, logits: np.ndarray, taken: np.ndarray
) -> list[Part]:
    choices = action.choices or ()
    legend = ", ".join(f"{i} {choice}" for i, choice in enumerate(choices))
    stem, doc = f"action_{action.name}", f"{action.meaning} (choices: {legend})"
    column = Column(stem, "", 0.0, len(choices) - 1.0, doc, "action")
    parts: list[Part] = [(column, taken)]
    columns = zip(choices, action.logit_columns, strict=True)
    for i, (choice, name) in enumerate(columns):
        parts.append((_column(name, "action", f"logit of {choice}"), logits[:, i]))
    return parts


def _end_parts(terminated: np.ndarray, truncated: np.ndarray) -> list[Part]:
    over = "the episode ended here by the task's rules"
    cut = "the episode was cut here by its step limit"
    return [
        (Column("terminated", "", 0.0, 1.0, over, "outcome"), terminated.astype(bool)),
        (Column("truncated", "", 0.0, 1.0, cut, "outcome"), truncated.astype(bool)),
    ]


def _info_parts(
    flat: _Flat, values: Mapping[str, Any], docs: Mapping[str, str] | None
) -> list[Part]:
    wanted = sorted(values) if docs is None else [n for n in docs if n in values]
    return [
        (_column(f"info_{name}", "info", (docs or {}).get(name, "")), array)
        for name in wanted
        if (array := flat(values[name])).ndim == 1
    ]


def _demonstration_parts(
    schema: Schema, demo: np.ndarray, taken: np.ndarray
) -> list[Part]:
    parts: list[Part] = []
    if schema.discrete:
        demo, taken = demo.reshape(-1, 1), taken.reshape(-1, 1)
    for i, action in enumerate(schema.actions):
        name, unit = action.name, action.unit
        low, high = _finite(action.low), _finite(action.high)
        shown, residual = demo[:, i], demo[:, i] - taken[:, i]
        doc = "demonstrated minus the policy's clipped mean action"
        if schema.discrete:
            low, high = 0.0, len(action.choices or ()) - 1.0
            residual, doc = residual != 0, "1 where the policy would choose otherwise"
        meaning = f"demonstrated action: {action.meaning}"
        given = Column(f"demo_action_{name}", unit, low, high, meaning, "demonstration")
        rest = _column(f"residual_{name}", "demonstration", doc, unit)
        parts += [(given, shown), (rest, residual)]
    # All demonstrated actions first, then all residuals.
    return parts[0::2] + parts[1::2]


def _clip(action: np.ndarray, schema: Schema) -> np.ndarray:
    return np.clip(action, schema.action_low[None], schema.action_high[None])


def _assemble(
    parts: Sequence[Part], task: str, metadata: Mapping[str, Any] | None
) -> RolloutTable:
    frame = pd.DataFrame({part[0].name: _stored(*part) for part in parts})
    columns = tuple(column for column, _ in parts)
    return RolloutTable(frame, columns, task, dict(metadata or {}))


def _stored(column: Column, values: np.ndarray) -> np.ndarray:
    """Float32; but flags stay boolean, and episodes, steps and choices integers."""
    if column.kind == "outcome" and values.dtype == bool:
        return values
    choice = column.kind in ("action", "demonstration")
    if column.kind == "index" or (choice and values.dtype.kind == "i"):
        return values.astype(np.int32)
    return values.astype(np.float32)
