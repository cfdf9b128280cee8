"""`structjax rl`: reinforcement learning of a policy's weights."""

import time
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import tyro

from structjax.cli.options import one_run, restored, stored
from structjax.cli.output import print_error, print_json, progress, seed_range, tell
from structjax.cli.rl_result import failed_seeds, result_of, save_policies, summary
from structjax.compilation import compile_clock, enable_compile_cache
from structjax.errors import StructjaxError
from structjax.ranges import whole_number

if TYPE_CHECKING:
    from structjax.rl.starting import Start
    from structjax.runs import RunDirectory
    from structjax.tasks.base import Task


@dataclass(frozen=True)
class Rl:
    """Train a policy's weights by reinforcement learning, several seeds side by side.

    Writes curve.csv (return on the selection seeds against resets, steps, seconds and
    FLOPs), evaluations.csv (every test episode) and the policies of every seed. Under
    `--json`: {"run", "seeds": [{"seed", "start_mean_mode", "final_mean_mode",
    "final_sampled_mode", "best_mean_mode", "resets", "env_steps", "note"}], "outcomes":
    {name: {"start", "final", "best"}}, "curve", "best_policy", "ledger", "preset",
    "seconds": {"total", "compile"}}; a seed whose returns stopped being finite has a
    note, and null from there on.
    """

    policy: tyro.conf.Positional[str | None] = None
    """A program (.py), a saved policy (.json), a run directory, or mlp: a new network
    for every seed."""
    task: str | None = None
    """Name of the task, or path/to/file.py:function (default: the policy's own, else
    car_racing)."""
    preset: str = "recommended"
    """Recipe: paper (arXiv 2610.01652), group, network, gspo, grpo, reinforce, ppo, es,
    es_small, es_network; recommended is es_small for programs and es_network for
    networks."""
    settings: tyro.conf.UseAppendAction[tuple[str, ...]] = ()
    """One option of the recipe as name=value, e.g. learning_rate=0.001; may be given
    several times."""
    resets: int = 400
    """Training episodes of each seed."""
    training_seeds: int = 4
    """Number of independent runs, with the random numbers of seeds 0, 1, ..."""
    milestones: tuple[int, ...] = ()
    """Resets after which the policies are also kept and evaluated."""
    tracks: str = "training"
    """Initial states to train on: a seed set of the task, or A:B."""
    mapping: Literal["vmap", "map"] = "vmap"
    """How the training seeds run: vmap, all at once, or map, one by one on each
    device: about as fast on a CPU, slower on a GPU, and a seed then has the same bits
    whatever the number of seeds and devices, with the same NPROC."""
    hidden: tuple[int, ...] = (64, 64)
    """For mlp: widths of the hidden layers."""
    run: Path | None = None
    """Run directory (default: runs/<task>-<date>-<time>-<hex>)."""
    resume: Path | None = None
    """Continue this run directory, with the options it was started with."""
    json: bool = False
    """Print one JSON object as the last line of stdout."""

    def __post_init__(self) -> None:
        """Checks the ranges."""
        whole_number(self, "resets", low=1)
        whole_number(self, "training_seeds", low=1, high=4096)
        for width in self.hidden:
            if not 0 < width <= 4096:
                raise StructjaxError(
                    f"a hidden layer of width {width}",
                    kind="options",
                    hint="widths between 1 and 4096",
                )

    def run_command(self) -> int:
        """Trains, evaluates, prints one line per seed."""
        one_run(self.run, self.resume)
        if self.resume is not None:
            return restored(self, self.resume)._run()
        return self._run()

    def _run(self) -> int:
        from structjax.runs import default_directory

        enable_compile_cache()
        if self.policy is None:
            raise StructjaxError(
                "no policy was named",
                kind="options",
                hint="`structjax rl POLICY`: a program, a saved policy, a run, or mlp",
            )
        task = self._task(self.policy)
        path = self.resume or self.run or default_directory(task.name)
        started = time.monotonic()
        with compile_clock() as clock:
            try:
                result = self._train(self.policy, task, path)
            except KeyboardInterrupt:
                return self._interrupted(path)
        total = time.monotonic() - started
        result["seconds"] = {"total": total, "compile": clock.seconds}
        if self.json:
            print_json(result)
        else:
            print(summary(result))
        return 0

    def _interrupted(self, path: Path) -> int:
        begun = (path / "manifest.json").exists()
        hint = f"continue with `structjax rl --resume {path}`" if begun else ""
        error = StructjaxError("interrupted", kind="interrupted", hint=hint)
        progress(str(error))
        if self.json:
            print_error(error, as_json=True)
        return 130

    def _task(self, policy: str) -> "Task":
        from structjax.policy_file import policy_task
        from structjax.rl.starting import MLP, check_named
        from structjax.tasks.loading import DEFAULT_TASK, load_task

        if policy == MLP:
            return load_task(self.task or DEFAULT_TASK)
        check_named(policy)
        return policy_task(self.task, Path(policy))

    def _train(self, policy: str, task: "Task", path: Path) -> dict[str, Any]:
        from structjax.rl.config import RLConfig
        from structjax.rl.plan import Plan
        from structjax.rl.presets import changed, recipe, resolved
        from structjax.rl.starting import check_noise, start
        from structjax.rl.trainer import check_begin
        from structjax.rl.training import Training

        name = resolved(self.preset, _is_network(policy))
        config = changed(name, self.settings)
        seeds = tuple(range(self.training_seeds))
        begun = start(
            policy, task, seeds, std_floor=config.std_floor, hidden=self.hidden
        )
        if isinstance(config, RLConfig):
            check_noise(begun, task)
        tell(begun.note)
        algorithm, scalars = recipe(begun.policy, task, config, self.resets, len(seeds))
        check_begin(algorithm, begun.stacked)
        each = config.resets_per_update
        if self.resets > each and self.resets % each:
            spent = self.resets - self.resets % each
            tell(f"{spent} of {self.resets} resets: an update takes {each}")
        plan = Plan(
            algorithm=algorithm,
            policy=begun.policy,
            task=task,
            scalars=scalars,
            labels=tuple({"training_seed": seed} for seed in seeds),
            resets=self.resets,
            milestones=self.milestones,
            tracks=_tracks(self.tracks, task),
            mapping=self.mapping,
        )
        options = {
            "policy": _identity(begun),
            "preset": name,
            "recipe": asdict(config),
            "resets": self.resets,
            "training_seeds": list(seeds),
            "milestones": list(self.milestones),
            "tracks": self.tracks,
            "mapping": self.mapping,
        }
        opened = self._opened(path, task, options)
        progress("compiling, half a minute or so unless it is cached")
        with opened as directory, _Bar(plan.updates, len(seeds)) as bar:
            outcome = Training(directory, plan, begun.stacked, bar.update).run()
            best = save_policies(directory, begun, outcome, task, seeds)
            failed = failed_seeds(outcome, seeds)
            directory.manifest |= {
                "status": "done",
                "best_policy": best,
                "failed_seeds": failed,
            }
            return {**result_of(directory, outcome, seeds), "preset": name}

    def _opened(
        self, path: Path, task: "Task", options: dict[str, Any]
    ) -> "AbstractContextManager[RunDirectory]":
        from structjax.runs import RunDirectory
        from structjax.tasks.loading import absolute

        if self.resume is not None:
            before = {"mapping": "vmap"}  # earlier versions had no other
            return RunDirectory.resume(
                path, config=options, task=task.name, defaults=before
            )
        command = {**stored(self), "task": absolute(self.task or task.name)}
        return RunDirectory.create(
            path, kind="rl", task=task.name, config=options, command=command
        )


def _tracks(chosen: str, task: "Task") -> range:
    from structjax.rl.plan import training_tracks

    named = None if chosen == "training" else seed_range(chosen, task.seeds)
    return training_tracks(task, named)


def _is_network(policy: str) -> bool:
    from structjax.network_file import is_network
    from structjax.policy_file import acting_file
    from structjax.rl.starting import MLP

    return policy == MLP or is_network(acting_file(policy))


class _Bar:
    """Progress on stderr: updates done, and the mean return on the selection seeds."""

    def __init__(self, updates: int, seeds: int) -> None:
        from tqdm import tqdm

        self._bar = tqdm(total=updates, desc=f"{seeds} seeds", unit="update")

    def __enter__(self) -> "_Bar":
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.close()

    def update(self, done: int, score: float) -> None:
        """Moves the bar to the updates that are done."""
        self._bar.set_postfix_str(f"selection return {score:.1f}")
        self._bar.update(done - self._bar.n)


def _identity(begun: "Start") -> dict[str, Any]:
    """What tells one starting policy from another, for `--resume`."""
    import hashlib

    import jax
    import numpy as np

    from structjax.language.hashing import semantic_hash

    digest = hashlib.sha256()
    for leaf in jax.tree.leaves(begun.stacked):
        digest.update(np.asarray(leaf).tobytes())
    program = begun.program
    name = "network" if program is None else semantic_hash(program.structure)
    return {"structure": name, "weights": digest.hexdigest()}
