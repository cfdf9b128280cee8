"""The arms of the experiment: what is trained, what it starts from, where it is."""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from tqdm import tqdm

from structjax.demonstration import load_demonstration
from structjax.errors import StructjaxError
from structjax.imitation import PRESETS, fit_anchored, fit_best
from structjax.ledger import Ledger
from structjax.manifest import read_manifest
from structjax.policy import MLPPolicy, StructuredPolicy, variables_from, weights
from structjax.policy_file import LoadedPolicy, load_policy
from structjax.rl.plan import Plan
from structjax.rl.trainer import stack
from structjax.rl.training import Training
from structjax.rollout import play_stacked
from structjax.runs import RunDirectory
from structjax.starts import floor_values
from structjax.tasks.base import Task

ROOT = Path(__file__).parent.parent.parent
FIXTURES = ROOT / "tests/fixtures/programs"
REFINED = ROOT / "experiments/refined_programs"
PROGRAMS = {
    "car_racing": {
        "initial": FIXTURES / "r0.py",
        "refined": FIXTURES / "r3.py",
        "zero_shot": FIXTURES / "car_b.py",
        "best": REFINED / "run_10.json",
    },
    "door_open": {
        "zero_shot": FIXTURES / "door_a.py",
        "refined": REFINED / "door_1.json",
    },
}
DEMONSTRATIONS = {
    "car_racing": tuple(f"car_racing/human_{i}" for i in range(1, 6)),
    "door_open": ("door_open/expert_1",),
}
FIT_KEY = 0


@dataclass(frozen=True)
class Arm:
    """One row of the design.

    Attributes:
      policy: one of the task's `PROGRAMS`, or `mlp`.
      fit: `none` (the written values), `imitation` (the paper's recipe) or `anchored`.
      seeds: number of training seeds.
      task: what is trained on.
      shown: demonstrations it is fitted to, unless `fit` is `none`; empty: all of the
        task's.
    """

    policy: str
    fit: str
    seeds: int
    task: str = "car_racing"
    shown: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """E.g. `refined_imitation`."""
        return f"{self.policy}_{self.fit}"

    @property
    def demonstrations(self) -> tuple[str, ...]:
        """What it is fitted to; one empty name when to nothing."""
        if self.fit == "none":
            return ("",)
        return self.shown or DEMONSTRATIONS[self.task]

    def facts(self) -> dict[str, Any]:
        """What names the arm in its run."""
        return {"policy": self.policy, "fit": self.fit, "seeds": self.seeds}

    def labels(self) -> tuple[Mapping[str, Any], ...]:
        """What tells its runs apart: demonstration and training seed."""
        return tuple(
            {"demonstration": demonstration, "training_seed": seed}
            for demonstration in self.demonstrations
            for seed in range(self.seeds)
        )


ARMS = (
    Arm("initial", "imitation", 10),
    Arm("refined", "imitation", 10),
    Arm("mlp", "imitation", 10),
    Arm("initial", "anchored", 5),
    Arm("refined", "anchored", 5),
    Arm("zero_shot", "none", 5),
    Arm("zero_shot", "imitation", 5),
    Arm("zero_shot", "anchored", 5),
    Arm("best", "none", 5),
    *(
        Arm(policy, fit, 5, "door_open")
        for policy, fit in (
            ("zero_shot", "none"),
            ("zero_shot", "imitation"),
            ("refined", "none"),
            ("refined", "imitation"),
            ("mlp", "imitation"),
        )
    ),
)
"""The paper's three starts first."""


class Begun(NamedTuple):
    """A policy with the starting variables of an arm's runs, `[S, ...]`."""

    policy: Any
    stacked: Any


def train(
    path: Path,
    task: Task,
    options: dict[str, Any],
    prepare: Callable[[Ledger], tuple[Plan, Any]],
) -> None:
    """Trains in a run directory, unless an earlier call has finished it.

    Args:
      path: the directory, new or to be continued.
      task: the task.
      options: what the run is to be told from others by.
      prepare: what it books -> the plan and the starting variables `[S, ...]`.
    """
    begun = (path / "manifest.json").exists()
    if begun and (manifest := read_manifest(path))["status"] == "done":
        if manifest["task"] != task.name:
            raise SystemExit(f"{path} is of {manifest['task']}; choose other --runs")
        return
    opened = (
        RunDirectory.resume(path, config=options, task=task.name)
        if begun
        else RunDirectory.create(path, kind="rl", task=task.name, config=options)
    )
    with opened as directory:
        began = time.monotonic()
        try:
            _train(directory, path.name, *prepare(directory.ledger))
            directory.manifest["status"] = "done"
        finally:
            spent = directory.manifest.get("seconds", 0.0)
            directory.manifest["seconds"] = spent + time.monotonic() - began


def _train(directory: RunDirectory, name: str, plan: Plan, stacked: Any) -> None:
    with tqdm(total=plan.updates, desc=name, unit="update") as bar:

        def listen(done: int, score: float) -> None:
            bar.set_postfix_str(f"selection return {score:.1f}")
            bar.update(done - bar.n)

        failed = Training(directory, plan, stacked, listen).run().failed
        if failed:
            raise StructjaxError(
                f"{len(failed)} of {plan.runs} runs of {name} have returns that are "
                "not finite",
                kind="policy",
                hint="an arm needs all of its runs",
            )


def recorded(path: Path) -> dict[str, Any]:
    """What a run counted, how long it took and at which commit it was begun."""
    manifest = read_manifest(path)
    return {key: manifest.get(key) for key in ("commit", "ledger", "seconds")}


def collect(runs: Mapping[str, Path], folder: Path, name: str) -> None:
    """Writes `NAME_evaluations.csv.gz` and `NAME_curve.csv.gz`, the rows of all runs.

    Args:
      runs: label of each arm -> its run directory.
      folder: where to write.
      name: of the files.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for table in ("evaluations", "curve"):
        parts = [
            pd.read_csv(path / f"{table}.csv").assign(arm=arm)
            for arm, path in runs.items()
        ]
        found = pd.concat(parts, ignore_index=True)
        numbers = found.select_dtypes("float").columns
        found[numbers] = found[numbers].round(5)
        found.to_csv(folder / f"{name}_{table}.csv.gz", index=False)


def begin(arm: Arm, task: Task, std_floor: float, ledger: Ledger) -> Begun:
    """Fits the arm's policy to each demonstration, once for all training seeds."""
    policy, written = _policy(arm, task, std_floor)
    fitted = [
        _raised(policy, variables)
        for variables in _fits(arm, policy, written, task, ledger)
    ]
    rows = [variables for variables in fitted for _ in range(arm.seeds)]
    return Begun(policy, stack(rows))


def _policy(arm: Arm, task: Task, std_floor: float) -> tuple[Any, Any]:
    """The policy and its variables as written."""
    if arm.policy == "mlp":
        network = MLPPolicy(task.schema, std_floor=std_floor)
        obs = jnp.zeros(task.schema.observation_size)
        return network, network.init(jax.random.key(FIT_KEY), obs)
    found: LoadedPolicy = load_policy(PROGRAMS[arm.task][arm.policy], task)
    policy = StructuredPolicy(found.program.structure, task.schema, std_floor)
    return policy, found.variables


def _fits(
    arm: Arm, policy: Any, written: Any, task: Task, ledger: Ledger
) -> Iterator[Any]:
    """The variables fitted to each demonstration."""
    if arm.fit == "none":
        yield written
        return
    key = jax.random.key(FIT_KEY)
    plain = policy.clone(std_floor=0.0)

    def selection(stacked: Any) -> np.ndarray:
        seeds = task.seeds["selection"]
        return play_stacked(plain, stacked, task, seeds, ledger=ledger).mean(1)

    for name in arm.demonstrations:
        shown = load_demonstration(name, task.schema)
        data = shown.observations, shown.actions
        if arm.fit == "imitation":
            recipe = PRESETS["paper"]
            yield fit_best(plain, *data, config=recipe, key=key).variables
        else:
            yield fit_anchored(plain, *data, evaluate=selection, key=key).variables


def _raised(policy: Any, variables: Any) -> Any:
    """The variables with the std weights raised to the policy's floor."""
    structure = getattr(policy, "structure", None)
    if structure is None or policy.std_floor == 0:
        return variables
    values = {k: np.asarray(v) for k, v in weights(policy, variables).items()}
    return variables_from(structure, floor_values(policy, values))
