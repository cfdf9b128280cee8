"""`structjax check`, `fit` and `evaluate`."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from structjax.cli.output import print_json, progress, seed_range, tell, text_table
from structjax.compilation import enable_compile_cache
from structjax.errors import StructjaxError
from structjax.likelihood import ImitationConfig
from structjax.ranges import MAX_SEED, whole_number
from structjax.schema import Schema

if TYPE_CHECKING:
    from structjax.language.parse import Program
    from structjax.language.problem import Problem
    from structjax.tasks.base import Task

_FEW = 3
"""How many problems are shown where another task accepts the program."""


@dataclass(frozen=True)
class Check:
    """Check a program of the structure language; status 1 when it is not ok.

    With `--from torch` the file holds a PyTorch module instead (docs/torch.md).
    Warnings, those of the lint too, leave the status at 0.

    Under `--json`: {"ok", "task", "accepted_by", "semantic_hash", "interface_hash",
    "parameters", "latents", "problems": [{"code", "severity", "line", "message",
    "hint"}]}; `accepted_by` names the built-in tasks that accept what `task` does not.
    """

    program: tyro.conf.Positional[Path]
    """File with the program."""
    task: str = "car_racing"
    """Name of the task, or path/to/file.py:function."""
    source: Annotated[Literal["structjax", "torch"], tyro.conf.arg(name="from")] = (
        "structjax"
    )
    """What the file is written in; torch: a class derived from nn.Module."""
    output: Path | None = None
    """Where to write an accepted module as a program of the structure language."""
    lint: bool = False
    """Warn about what is accepted but suspicious, too."""
    demonstration: str | None = None
    """Lint along this demonstration, a bundled name or a file; implies --lint."""
    json: bool = False
    """Print one JSON object as the last line of stdout."""

    def run_command(self) -> int:
        """Parses the program and prints its problems, or what it consists of."""
        from structjax.language.hashing import interface_hash, semantic_hash
        from structjax.language.parse import StructureError
        from structjax.policy_file import accepting_tasks, read_program
        from structjax.tasks.loading import load_task

        task = load_task(self.task)
        text = read_program(self.program)
        result: dict[str, Any] = {
            "ok": False,
            "task": task.name,
            "accepted_by": [],
            "semantic_hash": None,
            "interface_hash": None,
            "parameters": [],
            "latents": [],
        }
        try:
            program = self._parse(text, task.schema)
        except StructureError as error:
            problems = error.problems
            others = accepting_tasks(lambda schema: self._parse(text, schema), task)
            result["accepted_by"] = list(others)
        else:
            self._write(program, task.schema)
            problems = self._warnings(program, task.schema)
            structure = program.structure
            result |= {
                "ok": True,
                "semantic_hash": semantic_hash(structure),
                "interface_hash": interface_hash(structure),
                "parameters": [
                    {**asdict(p), "doc": program.docs.get(p.name, "")}
                    for p in structure.parameters
                ],
                "latents": [
                    {
                        "name": v.name,
                        "size": v.size,
                        "doc": program.docs.get(v.name, ""),
                    }
                    for v in structure.latents
                    if v.logged
                ],
            }
        result["problems"] = [asdict(problem) for problem in problems]
        if self.json:
            print_json(result)
        elif result["ok"]:
            _print_problems(problems)
            _print_program(result)
        else:
            self._print_refusal(text, task, problems, result["accepted_by"])
        return 0 if result["ok"] else 1

    def _print_refusal(
        self,
        text: str,
        task: "Task",
        problems: "Sequence[Problem]",
        others: Sequence[str],
    ) -> None:
        """Every problem; a few where the program is one of another task."""
        from structjax.policy_file import TORCH, is_torch, told_task, torch_hint

        if self.source != "torch" and is_torch(text):
            print(f"{TORCH}: {torch_hint(self.program)}")
        read = f"{self.program}, read for {told_task(task)}"
        if not others:
            print(f"{read}:")
            _print_problems(problems)
            return
        print(
            f"{read}, is refused, but accepted for task {others[0]!r}: "
            f"add --task {others[0]}"
        )
        _print_problems(problems[:_FEW])
        if len(problems) > _FEW:
            print(f"and {len(problems) - _FEW} more")

    def _warnings(self, program: "Program", schema: Schema) -> "tuple[Problem, ...]":
        """Those of the parser, or those of the lint."""
        if not self.lint and self.demonstration is None:
            return program.warnings
        from structjax.demonstration import load_demonstration
        from structjax.linting.lint import lint

        shown = None
        if self.demonstration is not None:
            enable_compile_cache()
            shown = load_demonstration(self.demonstration, schema)
        return lint(program, schema, demonstration=shown)

    def _parse(self, text: str, schema: Schema) -> "Program":
        if self.source == "torch":
            from structjax.language.torch_source.parse import parse_torch

            return parse_torch(text, schema)
        from structjax.language.parse import parse

        return parse(text, schema)

    def _write(self, program: "Program", schema: Schema) -> None:
        """Writes an accepted module in the structure language."""
        if self.output is None:
            return
        if self.source != "torch":
            raise StructjaxError(
                "--output without --from torch",
                kind="options",
                hint="the program is in the structure language already",
            )
        from structjax.language.torch_source.written import program_text
        from structjax.runs import write_atomic

        write_atomic(self.output, program_text(program, schema))


def _print_problems(problems: "Sequence[Problem]") -> None:
    for p in problems:
        hint = f" ({p.hint})" if p.hint else ""
        print(f"line {p.line}: {p.severity} {p.code}: {p.message}{hint}")


def _print_program(result: dict[str, Any]) -> None:
    rows = [
        (p["name"], f"{p['initial']:.4g}", p["low"], p["high"], p["doc"])
        for p in result["parameters"]
    ]
    print(text_table(("parameter", "initial", "low", "high", "meaning"), rows))
    print(f"\n{len(result['latents'])} latents: ", end="")
    print(", ".join(v["name"] for v in result["latents"]))
    print(f"semantic hash  {result['semantic_hash']}")
    print(f"interface hash {result['interface_hash']}")


@dataclass(frozen=True)
class Fit:
    """Fit a program's weights to a demonstration and save the policy.

    Under `--json`: {"policy", "values", "report"}.
    """

    program: tyro.conf.Positional[Path]
    """File with the program."""
    demonstration: str
    """Name of a bundled demonstration, or a file."""
    task: str = "car_racing"
    """Name of the task, or path/to/file.py:function."""
    fit: Literal["imitation", "anchored"] = "imitation"
    """Maximum likelihood, or held back towards the written values as far as the
    selection episodes ask for it."""
    preset: Literal["default", "paper"] | None = None
    """Named options, under those that are given; `paper` is the recipe of
    arXiv 2610.01652."""
    output: Path = Path("policy.json")
    """Where the fitted policy goes."""
    seed: int = 0
    """Seed of restarts, split and minibatches."""
    json: bool = False
    """Print one JSON object as the last line of stdout."""
    config: ImitationConfig = field(default_factory=ImitationConfig)

    def __post_init__(self) -> None:
        """Checks the ranges."""
        whole_number(self, "seed", low=0, high=MAX_SEED)

    def on_preset(self, arguments: list[str]) -> "Fit":
        """The command with the options that are given on top of its preset's."""
        from structjax.likelihood import PRESETS

        if self.preset is None:
            return self
        # Parsed again: equal to a default does not mean that it was not given.
        config, _ = tyro.cli(
            ImitationConfig,
            default=PRESETS[self.preset],
            args=arguments,
            return_unknown_args=True,
        )
        return replace(self, config=config)

    def run_command(self) -> int:
        """Fits and saves."""
        from structjax.demonstration import load_demonstration
        from structjax.ledger import Ledger
        from structjax.policy_file import program_of, save_policy
        from structjax.rounds import fit_program
        from structjax.tasks.loading import load_task

        enable_compile_cache()
        task = load_task(self.task)
        program = program_of(self.program, task)
        demonstration = load_demonstration(self.demonstration, task.schema)
        ledger = Ledger()
        progress(f"fitting {len(program.structure.parameters)} weights")
        values, report = fit_program(
            program, task, self.fit, demonstration, self.config, self.seed, ledger
        )
        save_policy(self.output, program, values, task)
        if self.json:
            print_json(
                {
                    "policy": str(self.output),
                    "values": values,
                    "report": report,
                    "ledger": asdict(ledger),
                }
            )
            return 0
        rows = [
            (p.name, f"{p.initial:.4g}", f"{values[p.name]:.4g}")
            for p in program.structure.parameters
        ]
        print(text_table(("parameter", "written", "fitted"), rows))
        print(f"\n{report['text']}\n")
        if report["report"] and not report["report"]["converged"]:
            print(
                f"NOT converged after {self.config.num_updates} updates: raise "
                "--num-updates (or --learning-rate)\n"
            )
        print(f"saved {self.output}")
        return 0


@dataclass(frozen=True)
class Evaluate:
    """Play one episode per seed and print the returns.

    Under `--json`: {"task", "simulator", "mode", "seeds", "returns", "metric",
    "values", "mean", "std_ddof0", "resets", "env_steps", "outcomes": {name: {"values",
    "mean", "std_ddof0"}}}; the outcomes are the task's own, such as a least distance,
    one value per episode, and are absent where it has none.
    """

    policy: tyro.conf.Positional[Path]
    """A run directory, a saved policy (.json), or a program (.py) as written."""
    task: str | None = None
    """Name of the task, or path/to/file.py:function (default: the run's or saved
    policy's own, else car_racing)."""
    simulator: str = "jax"
    """jax, or an original simulator of the task, e.g. gymnasium or metaworld."""
    mode: Literal["mean", "sampled"] = "mean"
    """Act with the mean (mode) of the action distribution, or with samples."""
    seeds: str = "test"
    """Half-open range A:B, or the name of one of the task's seed sets."""
    key: int = 0
    """Seed of sampled actions."""
    json: bool = False
    """Print one JSON object as the last line of stdout."""

    def __post_init__(self) -> None:
        """Checks the ranges."""
        whole_number(self, "key", low=0, high=MAX_SEED)

    def run_command(self) -> int:
        """Evaluates and prints."""
        import jax

        from structjax.evaluation import evaluate
        from structjax.outcomes import table_rows
        from structjax.policy_file import load_actor, policy_task

        enable_compile_cache()
        task = policy_task(self.task, self.policy)
        found = load_actor(self.policy, task)
        tell(found.note)
        seeds = seed_range(self.seeds, task.seeds)
        result = evaluate(
            found.policy,
            found.variables,
            task,
            seeds,
            simulator=self.simulator,
            mode=self.mode,
            key=jax.random.key(self.key),
        )
        if self.json:
            print_json(result.as_dict())
            return 0
        pairs = zip(result.seeds, result.returns, strict=True)
        rows = [
            (seed, f"{value:.1f}", *(f"{v[i]:.4g}" for v in result.outcomes.values()))
            for i, (seed, value) in enumerate(pairs)
        ]
        print(text_table(("seed", "return", *result.outcomes), rows))
        print(
            f"\n{result.metric} {result.mean:.1f} +- {result.std_ddof0:.1f} "
            f"(population std over {len(rows)} episodes; {result.mode} actions, "
            f"{result.simulator} simulator, {result.env_steps} steps)"
        )
        for name, told in table_rows([result.as_dict()]):
            print(f"{name} {told}")
        return 0
