"""`structjax tasks`, `operators`, `runs` and `report`: looking, not computing."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tyro

from structjax.cli.output import print_json, progress, text_table
from structjax.errors import StructjaxError


@dataclass(frozen=True)
class Tasks:
    """List the tasks, or show one with its observation and action fields.

    Under `--json`: {"tasks": [names]}, or {"task", "description", "horizon", "seeds",
    "observations", "actions"}.
    """

    task: tyro.conf.Positional[str | None] = None
    """Name of a task, or path/to/file.py:function."""
    json: bool = False
    """Print one JSON object as the last line of stdout."""

    def run_command(self) -> int:
        """Prints the list, or one task."""
        from structjax.tasks.registry import task_names

        if self.task is None:
            names = list(task_names())
            if self.json:
                print_json({"tasks": names})
            else:
                print("\n".join(names))
            return 0
        self._show(self.task)
        return 0

    def _show(self, name: str) -> None:
        from structjax.prompting import action_lines, observation_lines
        from structjax.tasks.loading import load_task

        task = load_task(name)
        seeds = {use: f"{s.start}:{s.stop}" for use, s in task.seeds.items()}
        if self.json:
            print_json(
                {
                    "task": task.name,
                    "description": task.description,
                    "horizon": task.horizon,
                    "seeds": seeds,
                    "observations": [vars(f) for f in task.schema.observations],
                    "actions": [vars(a) for a in task.schema.actions],
                }
            )
            return
        print(f"{task.name}\n\n{task.description}\n\nObservation fields")
        print(observation_lines(task.schema))
        print(f"\nActions\n{action_lines(task.schema)}\n\nSeeds")
        print("\n".join(f"- {use}: {text}" for use, text in seeds.items()))


@dataclass(frozen=True)
class Runs:
    """List the runs below a directory.

    Under `--json`: {"runs": [{"run", "kind", "task", "status", "best_round", "mean"}]};
    the last two are null in runs of `rl`, whose figures `compare` shows.
    """

    directory: tyro.conf.Positional[Path] = Path("runs")
    """Where to look."""
    json: bool = False
    """Print one JSON object as the last line of stdout."""

    def run_command(self) -> int:
        """Prints one line per run."""
        from structjax.manifest import read_manifest

        rows = []
        for manifest in sorted(self.directory.glob("*/manifest.json")):
            try:
                rows.append(_run_row(manifest.parent, read_manifest(manifest.parent)))
            except StructjaxError:
                rows.append({"run": str(manifest.parent), "status": "unreadable"})
        if self.json:
            print_json({"runs": rows})
            return 0
        if not rows:
            print(f"no runs below {self.directory}")
            return 0
        header = ("run", "kind", "task", "status", "best_round", "mean")
        cells = [[_cell(row.get(name)) for name in header] for row in rows]
        print(text_table(header, cells))
        return 0


def _cell(value: object) -> str:
    return "-" if value is None else str(value)


def _run_row(path: Path, manifest: dict[str, Any]) -> dict[str, Any]:
    evaluation = manifest.get("evaluation")
    mean = evaluation.get("mean") if isinstance(evaluation, dict) else None
    return {
        "run": str(path),
        "kind": manifest.get("kind"),
        "task": manifest.get("task"),
        "status": manifest.get("status"),
        "best_round": manifest.get("best_round"),
        "mean": round(mean, 1) if isinstance(mean, int | float) else None,
    }


@dataclass(frozen=True)
class Report:
    """Draw a run's report again: one self-contained HTML page.

    Under `--json`: {"report"}.
    """

    run: tyro.conf.Positional[Path]
    """The run directory."""
    json: bool = False
    """Print one JSON object as the last line of stdout."""

    def run_command(self) -> int:
        """Writes report.html into the run directory."""
        from structjax.report import write_report
        from structjax.runs import read_json

        path = write_report(self.run)
        if read_json(self.run / "manifest.json").get("best_round") is None:
            progress(f"run {self.run} is unfinished: this shows its rounds so far")
        if self.json:
            print_json({"report": str(path)})
        else:
            print(path)
        return 0


@dataclass(frozen=True)
class Operators:
    """List the operators of the structure language, or the page that teaches it.

    Under `--json`: {"operators": [{"name", "spelling", "arguments", "result",
    "meaning"}]}.
    """

    page: bool = False
    """Print the whole page, as it stands in prompts."""
    json: bool = False
    """Print one JSON object as the last line of stdout."""

    def run_command(self) -> int:
        """Prints the table or the page."""
        from structjax.language.reference import language_page, operator_rows

        if self.page:
            print(language_page())
            return 0
        rows = operator_rows()
        if self.json:
            print_json({"operators": rows})
            return 0
        header = ("operator", "arguments", "result", "meaning")
        keys = ("spelling", "arguments", "result", "meaning")
        cells = [tuple(row[key] for key in keys) for row in rows]
        print(text_table(header, cells, words=True))
        return 0
