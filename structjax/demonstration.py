"""Demonstrations: what somebody observed and did, step by step, and who it was.

One file holds one episode: a NumPy archive (.npz) with `observations [T, O]`, `actions`
(`[T, A]`, or integers `[T]` for a choice), and optionally `observation_columns`,
`action_names` and `provenance` (JSON). Nothing in it is ever unpickled.
"""

import io
import json
import os
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from structjax.errors import StructjaxError
from structjax.files import write_atomic
from structjax.schema import Schema

_SLACK = 1e-5  # float32 rounding at the edge of an action's range


@dataclass(frozen=True, eq=False)
class Demonstration:
    """One demonstrated episode of T steps.

    Attributes:
      observations: `[T, O]` float32, before each action, in the order of the schema.
      actions: `[T, A]` float32 within the schema's range, or `[T]` int32 choices.
      provenance: who drove, which simulator and versions, seed, return.
    """

    observations: np.ndarray
    actions: np.ndarray
    provenance: Mapping[str, Any] = field(default_factory=dict)


def bundled_demonstrations() -> tuple[str, ...]:
    """Names of the demonstrations that ship, e.g. `"car_racing/human_1"`."""
    root = resources.files("structjax") / "demonstrations"
    if not root.is_dir():
        return ()
    return tuple(
        f"{task.name}/{file.name.removesuffix('.npz')}"
        for task in sorted(root.iterdir(), key=lambda entry: entry.name)
        if task.is_dir()
        for file in sorted(task.iterdir(), key=lambda entry: entry.name)
        if file.name.endswith(".npz")
    )


def load_demonstration(path_or_name: str | Path, schema: Schema) -> Demonstration:
    """A demonstration from a file, or a bundled one by its name.

    Raises:
      StructjaxError: no such file or name, not such a file, another task's
        demonstration, or values that no episode can have had.
    """
    label = str(path_or_name)
    with resources.as_file(_locate(label)) as path:
        content = _read(path, label)
    _check_columns(content, schema, label)
    demonstration = Demonstration(
        content["observations"], content["actions"], content["provenance"]
    )
    return check_demonstration(demonstration, schema, label)


def save_demonstration(
    demonstration: Demonstration, path: str | Path, schema: Schema
) -> None:
    """Writes a demonstration with its column names; the folder is made if absent.

    Raises:
      StructjaxError: the demonstration does not fit the schema, or cannot be written.
    """
    path = Path(path)
    checked = check_demonstration(demonstration, schema, str(path))
    content = io.BytesIO()
    np.savez_compressed(
        content,
        observations=checked.observations,
        actions=checked.actions,
        observation_columns=np.array(schema.columns("")),
        action_names=np.array([action.name for action in schema.actions]),
        provenance=np.array(json.dumps(dict(checked.provenance))),
    )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _problem(
            f"demonstration {str(path)!r} cannot be written: {error.strerror}",
            "a writable folder with free space is accepted",
        ) from error
    write_atomic(path, content.getvalue())


def check_demonstration(
    demonstration: Demonstration, schema: Schema, label: str = "demonstration"
) -> Demonstration:
    """The demonstration as float32 (choices as int32), when it fits the schema.

    Raises:
      StructjaxError: wrong sizes, no steps, NaN or infinity, or an action out of range.
    """
    obs, actions = demonstration.observations, demonstration.actions
    _check_shapes(obs, actions, schema, label)
    names = [f"action {action.name}" for action in schema.actions]
    _check_finite(obs, schema.columns(""), label)
    _check_finite(actions.reshape(len(actions), -1), names, label)
    _check_range(actions, schema, label)
    kind = np.int32 if schema.discrete else np.float32
    return Demonstration(
        obs.astype(np.float32), actions.astype(kind), demonstration.provenance
    )


def _locate(label: str) -> Any:
    """The file of a bundled name, or of a path."""
    bundled = bundled_demonstrations()
    if label in bundled:
        return resources.files("structjax") / "demonstrations" / f"{label}.npz"
    if os.path.isfile(label):  # no error for a name that no file can have
        return Path(label)
    raise _problem(
        f"demonstration {label!r} does not exist",
        f"a file, or one of {', '.join(bundled)} is accepted",
    )


def _read(path: Path, label: str) -> dict[str, Any]:
    """The arrays and the provenance of a file."""
    try:
        if not zipfile.is_zipfile(path):
            raise ValueError("it is not a NumPy archive")
        # Opened here: np.load leaves a damaged archive open.
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as file:
            content: dict[str, Any] = {name: file[name] for name in file.files}
        for name, member in content.items():
            if not isinstance(member, np.ndarray):
                raise ValueError(f"its member {name!r} is no array")
        content["provenance"] = json.loads(str(content.get("provenance", "{}")))
    except Exception as error:  # damage shows in many ways, all with one remedy
        raise _problem(
            f"demonstration {label!r} cannot be read: {error}",
            "a .npz file written by numpy.savez without object arrays is accepted",
        ) from error
    if absent := {"observations", "actions"} - content.keys():
        raise _problem(
            f"demonstration {label!r} has no array {sorted(absent)[0]!r}",
            "the arrays observations [T, O] and actions [T, A] are accepted",
        )
    return content


def _check_columns(content: Mapping[str, Any], schema: Schema, label: str) -> None:
    """Compares the recorded names, where there are any, with the schema's."""
    expected = {
        "observation_columns": schema.columns(""),
        "action_names": tuple(action.name for action in schema.actions),
    }
    for key, names in expected.items():
        if key not in content:
            continue
        found = [str(name) for name in np.atleast_1d(content[key])]
        # The first name that differs says more than "another task".
        for i in range(max(len(found), len(names))):
            ours = names[i] if i < len(names) else "nothing more"
            theirs = found[i] if i < len(found) else "nothing more"
            if ours != theirs:
                raise _problem(
                    f"demonstration {label!r} is of another task: "
                    f"{key}[{i}] is {theirs}",
                    f"{ours} is accepted there",
                )


def _check_shapes(
    obs: np.ndarray, actions: np.ndarray, schema: Schema, label: str
) -> None:
    """Checks types, `[T, O]`, `[T, A]` or `[T]`, and T > 0."""
    steps = len(obs) if obs.ndim else 0
    width = () if schema.discrete else (len(schema.actions),)
    wanted = {
        "observations": (obs, (steps, schema.observation_size), "iuf"),
        "actions": (actions, (steps, *width), "iu" if schema.discrete else "iuf"),
    }
    for name, (array, shape, kinds) in wanted.items():
        if array.shape != shape or array.dtype.kind not in kinds:
            accepted = "integers" if kinds == "iu" else "numbers"
            raise _problem(
                f"demonstration {label!r}: {name} are {array.dtype} of shape "
                f"{list(array.shape)}",
                f"{accepted} of shape {['T', *shape[1:]]} with one T for both are "
                "accepted".replace("'T'", "T"),
            )
    if steps == 0:
        raise _problem(
            f"demonstration {label!r} has no steps", "one or more are accepted"
        )


def _check_finite(array: np.ndarray, names: Any, label: str) -> None:
    """Reports the first NaN or infinity of `[T, n]`."""
    wrong = np.argwhere(~np.isfinite(array.astype(np.float64)))
    if len(wrong):
        step, i = wrong[0]
        raise _problem(
            f"demonstration {label!r}: {names[i]} is {array[step, i]} at step {step} "
            f"({len(wrong)} such values)",
            "finite numbers are accepted",
        )


def _check_range(actions: np.ndarray, schema: Schema, label: str) -> None:
    """Reports the first action outside the schema's range."""
    for i, action in enumerate(schema.actions):
        column = actions if schema.discrete else actions[:, i]
        low, high = action.low, action.high
        if action.choices is not None:
            low, high = 0, len(action.choices) - 1
        outside = np.flatnonzero((column < low - _SLACK) | (column > high + _SLACK))
        if len(outside):
            step = outside[0]
            raise _problem(
                f"demonstration {label!r}: action {action.name} is {column[step]} at "
                f"step {step} ({len(outside)} such values)",
                f"[{low}, {high}] is accepted",
            )


def _problem(message: str, hint: str) -> StructjaxError:
    """An error about a demonstration."""
    return StructjaxError(message, kind="demonstration", hint=hint)
