"""A trained network on disk: the black-box baseline, with its weights as JSON."""

from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from structjax.errors import StructjaxError
from structjax.files import read_json, write_json
from structjax.language.heads import MIN_STD
from structjax.policy import MLPPolicy
from structjax.provenance import git_commit, versions
from structjax.tasks.base import Task

SAVED = "give a file written by `structjax fit` or `structjax rl`, or a program (.py)"
"""What is accepted where a saved policy of either kind is."""


class LoadedNetwork(NamedTuple):
    """A network ready to act."""

    policy: MLPPolicy
    variables: Any
    note: str = ""


def save_network(path: Path, policy: MLPPolicy, variables: Any, task: Task) -> None:
    """Saves a network, its weights and where they come from."""
    leaves = [np.asarray(leaf).tolist() for leaf in jax.tree.leaves(variables)]
    write_json(
        path,
        {
            "task": task.name,
            "network": {
                "hidden": list(policy.hidden),
                "initial_std": policy.initial_std,
                "std_floor": policy.std_floor,
            },
            "leaves": leaves,
            "versions": versions(),
            "commit": git_commit(),
        },
    )


def is_network(path: Path) -> bool:
    """Whether a file is a saved network.

    Raises:
      StructjaxError: it is to be a saved policy (.json) and cannot be read.
    """
    if path.suffix != ".json":
        return False
    saved = read_json(path, kind="policy", hint=SAVED)
    return isinstance(saved, dict) and "network" in saved


def network_task(path: Path) -> str | None:
    """The task a saved network was made for; None for another kind of file.

    Raises:
      StructjaxError: as `is_network`.
    """
    if not is_network(path):
        return None
    found = read_json(path, kind="policy", hint=SAVED).get("task")
    return found if isinstance(found, str) else None


def load_network(path: Path, task: Task) -> LoadedNetwork:
    """The network of a file.

    Raises:
      StructjaxError: damaged, or made for another task.
    """
    saved = read_json(path, kind="policy", hint=SAVED)
    if saved.get("task") != task.name:
        raise StructjaxError(
            f"{path} was made for task {saved.get('task')!r}",
            kind="policy",
            hint=f"the task here is {task.name!r}",
        )
    try:
        options = saved["network"]
        policy = MLPPolicy(
            task.schema,
            tuple(map(int, options["hidden"])),
            _share(options, "initial_std", MIN_STD),
            _share(options, "std_floor"),
        )
        return LoadedNetwork(policy, _variables(policy, saved["leaves"]))
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise StructjaxError(
            f"{path} is no saved network: {error}",
            kind="policy",
            hint="write it again with `structjax rl`",
        ) from error


def _share(options: Any, name: str, low: float = 0.0) -> float:
    """A std as a share of the widest."""
    value = float(options[name])
    if not low <= value <= 1:
        raise ValueError(f"{name} is {value}, {low:g} to 1 is accepted")
    return value


def _variables(policy: MLPPolicy, leaves: Any) -> Any:
    obs = jnp.zeros(policy.schema.observation_size)
    like, structure = jax.tree.flatten(policy.init(jax.random.key(0), obs))
    found = [jnp.asarray(leaf, jnp.float32) for leaf in leaves]
    if [leaf.shape for leaf in found] != [leaf.shape for leaf in like]:
        raise ValueError("its weights do not fit its layers")
    if not all(np.isfinite(leaf).all() for leaf in found):
        raise ValueError("one of its weights is not finite")
    return jax.tree.unflatten(structure, found)
