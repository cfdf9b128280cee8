"""`structjax rollout` and `diagnose`."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import tyro

from structjax.cli.output import print_json, progress, seed_range, tell
from structjax.compilation import enable_compile_cache
from structjax.ranges import MAX_SEED, whole_number


@dataclass(frozen=True)
class Rollout:
    """Roll a policy out, save every step as a table, print the built-in checks.

    Under `--json`: {"table", "rows", "columns", "resets", "env_steps", "returns",
    "invariants": [{"name", "verdict", "text", "values"}]}. The resets and steps of mean
    actions hold those of the sampled ones that the checks compare with.
    """

    policy: tyro.conf.Positional[Path]
    """A run directory, a saved policy (.json), or a program (.py) as written."""
    task: str | None = None
    """Name of the task, or path/to/file.py:function (default: the run's or saved
    policy's own, else car_racing)."""
    mode: Literal["mean", "sampled"] = "mean"
    """Act with the mean of the action distribution, or with samples."""
    seeds: str = "debug"
    """Half-open range A:B, or the name of one of the task's seed sets."""
    key: int = 0
    """Seed of sampled actions."""
    output: Path = Path("rollout.parquet")
    """Where the table goes."""
    json: bool = False
    """Print one JSON object as the last line of stdout."""

    def __post_init__(self) -> None:
        """Checks the ranges."""
        whole_number(self, "key", low=0, high=MAX_SEED)

    def run_command(self) -> int:
        """Rolls out, saves, checks."""
        import jax

        from structjax.diagnostics.invariants import run_invariants, summary
        from structjax.ledger import Ledger
        from structjax.policy_file import load_policy, policy_task
        from structjax.rollout import (
            broken_steps,
            check_finite,
            collect,
            play,
            returns_of,
        )
        from structjax.rounds import Candidate, candidate_table
        from structjax.table import save_table

        enable_compile_cache()
        task = policy_task(self.task, self.policy)
        found = load_policy(self.policy, task)
        tell(found.note)
        seeds = seed_range(self.seeds, task.seeds)
        progress(f"{len(seeds)} episodes of at most {task.horizon} steps")
        key = jax.random.key(self.key)
        arm = found.policy, found.variables
        ledger = Ledger()
        trajectory = collect(
            *arm, task, seeds, key=key, mode=self.mode, ledger=ledger, check=False
        )
        broken = broken_steps(trajectory)
        candidate = Candidate(0, found.program, found.values, {}, task)
        table = candidate_table(trajectory, candidate, mode=self.mode)
        save_table(table, self.output)
        sampled = None  # the gap between the modes, for a table of mean actions
        if self.mode == "mean" and not broken:
            sampled = play(
                *arm,
                task,
                seeds,
                key=key,
                mode="sampled",
                ledger=ledger,
                purpose="diagnosis",
            ).returns
        results = run_invariants(
            table,
            policy=found.policy,
            variables=found.variables,
            schema=task.schema,
            structure=found.program.structure,
            returns_sampled=sampled,
        )
        if broken:
            print(summary(results), file=sys.stderr if self.json else sys.stdout)
            check_finite(broken, len(table.frame))
        returns = returns_of(trajectory)
        if self.json:
            print_json(
                {
                    "table": str(self.output),
                    "rows": len(table.frame),
                    "columns": list(table.frame.columns),
                    "resets": ledger.resets["diagnosis"],
                    "env_steps": ledger.env_steps["diagnosis"],
                    "returns": returns,
                    "invariants": [vars(r) for r in results],
                }
            )
            return 0
        print(summary(results))
        print(
            f"\nreturn {returns.mean():.1f} +- {returns.std():.1f}; {len(table.frame)} "
            f"rows, {len(table.frame.columns)} columns: {self.output}"
        )
        return 0


@dataclass(frozen=True)
class Diagnose:
    """Run analysis code on a rollout table, in the sandbox.

    Under `--json`: {"findings": [{"name", "status", "text", "seconds"}], "sandbox"}:
    one finding per function whose name begins with `check_` or `test_`, called with
    the table as a DataFrame, and one named `module` for what runs at top level.
    """

    code: tyro.conf.Positional[Path]
    """Python file with the functions."""
    table: Path
    """Table written by `structjax rollout`, or one of a run's tables."""
    sandbox: Literal["strict", "container", "off"] = "strict"
    """Isolation; `off` runs the code unprotected."""
    json: bool = False
    """Print one JSON object as the last line of stdout."""

    def run_command(self) -> int:
        """Runs the functions and prints what they found."""
        from structjax.diagnostics.diagnose import diagnose
        from structjax.policy_file import read_program

        result = diagnose(read_program(self.code), self.table, level=self.sandbox)
        if self.json:
            print_json(result)
            return 0
        for finding in result["findings"]:
            if finding["name"] == "module" and not finding["text"].strip():
                continue
            seconds = f"{finding['seconds']:.2f} s"
            print(f"== {finding['name']} ({finding['status']}, {seconds})")
            print(finding["text"].rstrip() + "\n")
        return 0
