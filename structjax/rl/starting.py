"""What training starts from: a program, a saved policy, a run, or a new network."""

import os
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from structjax.errors import StructjaxError
from structjax.language.parse import Program
from structjax.network_file import save_network
from structjax.policy import MLPPolicy, variables_from, weights
from structjax.policy_file import LoadedPolicy, load_actor, save_policy
from structjax.rl.presets import ALL
from structjax.rl.trainer import repeat
from structjax.starts import floor_values
from structjax.tasks.base import Task

MLP = "mlp"


class Start(NamedTuple):
    """A policy with starting variables for S runs.

    Attributes:
      policy: with its std floor.
      stacked: `[S, ...]`.
      program: None for a network.
      note: what the user is to know.
    """

    policy: Any
    stacked: Any
    program: Program | None
    note: str = ""


def start(
    spec: str,
    task: Task,
    seeds: tuple[int, ...],
    *,
    std_floor: float,
    hidden: tuple[int, ...] = (64, 64),
) -> Start:
    """The start of one run per training seed.

    Args:
      spec: `"mlp"` for networks drawn with the training seeds, or a run directory, a
        saved policy, a program: the same start for every seed.
      task: the task.
      seeds: training seeds `[S]`.
      std_floor: least std, as a share of each action's widest; written stds below it
        are raised.
      hidden: widths of a new network.

    Raises:
      StructjaxError: nothing of that kind there.
    """
    if spec == MLP:
        network = MLPPolicy(task.schema, hidden, std_floor=std_floor)
        keys = jnp.stack([jax.random.key(seed) for seed in seeds])
        obs = jnp.zeros(task.schema.observation_size)
        drawn = jax.vmap(network.init, in_axes=(0, None))(keys, obs)
        return Start(network, drawn, None)
    found = load_actor(Path(spec), task)
    policy: Any = found.policy.clone(std_floor=max(std_floor, found.policy.std_floor))
    if not isinstance(found, LoadedPolicy):
        return Start(policy, repeat(found.variables, len(seeds)), None, found.note)
    values = floor_values(policy, found.values)
    variables = variables_from(found.program.structure, values)
    return Start(policy, repeat(variables, len(seeds)), found.program, found.note)


def check_named(spec: str) -> None:
    """Refuses a name of nothing that training can start from.

    Raises:
      StructjaxError: it is neither `"mlp"` nor a file or directory.
    """
    if spec == MLP or os.path.exists(spec):
        return
    preset = f" (it is a preset: --preset {spec})" if spec in ALL else ""
    raise StructjaxError(
        f"there is no policy {spec!r:.200}{preset}",
        kind="policy",
        hint="give a program (.py), a saved policy (.json), a run directory, or mlp "
        "for a new network",
    )


def save_trained(path: Path, begun: Start, variables: Any, task: Task) -> None:
    """Saves one run's variables as a policy that can be loaded."""
    if begun.program is None:
        save_network(path, begun.policy, variables, task)
        return
    values = {k: float(v) for k, v in weights(begun.policy, variables).items()}
    floor = begun.policy.std_floor
    save_policy(path, begun.program, values, task, std_floor=floor)


def check_noise(begun: Start, task: Task) -> None:
    """Refuses a policy whose sampled actions are its mean actions.

    Raises:
      StructjaxError: there is nothing to explore with.
    """
    variables = jax.tree.map(lambda leaf: leaf[0], begun.stacked)
    obs = jnp.zeros(task.schema.observation_size)
    moments = begun.policy.apply(variables, obs)[0].moments()
    if "std" in moments and not np.any(np.asarray(moments["std"]) > 1e-6):
        raise StructjaxError(
            "the policy has no sampled actions: every std is 0",
            kind="policy",
            hint="give the heads a std, or train with --settings std_floor=0.05",
        )
