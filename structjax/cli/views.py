"""`structjax graph`, `diff` and `export`: a program in other forms."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import tyro

from structjax.cli.output import print_json, progress, tell
from structjax.errors import StructjaxError

if TYPE_CHECKING:
    from structjax.policy_file import LoadedPolicy
    from structjax.tasks.base import Task


@dataclass(frozen=True)
class Graph:
    """Draw a program's graph: fields, weights, latents, actions.

    Under `--json`: {"graph"}.
    """

    policy: tyro.conf.Positional[Path]
    """A run directory, a saved policy (.json), or a program (.py)."""
    task: str | None = None
    """Name of the task, or path/to/file.py:function (default: the run\'s or saved
    policy\'s own, else car_racing)."""
    format: Literal["svg", "dot", "html"] | None = None
    """The drawing, Graphviz's language, or a page that describes what is pointed at;
    by default what the name of the output says, else svg."""
    rollout: bool = False
    """Play the debug episodes and show the values on the page (html)."""
    output: Path | None = None
    """Where the drawing goes; by default graph.FORMAT."""
    json: bool = False
    """Print one JSON object as the last line of stdout."""

    def run_command(self) -> int:
        """Writes the graph."""
        from structjax.policy_file import load_policy, policy_task
        from structjax.runs import write_atomic

        form = self._form()
        task = policy_task(self.task, self.policy)
        found = load_policy(self.policy, task)
        tell(found.note)
        path = self.output or Path(f"graph.{form}")
        write_atomic(path, self._text(form, found, task))
        if self.json:
            print_json({"graph": str(path)})
        else:
            print(path)
        return 0

    def _form(self) -> str:
        suffix = self.output.suffix.removeprefix(".") if self.output else ""
        form = self.format or (suffix if suffix in ("dot", "html") else "svg")
        if self.rollout and form != "html":
            raise StructjaxError(
                f"a graph as {form} shows no rollout",
                kind="options",
                hint="add --format html",
            )
        return form

    def _text(self, form: str, found: "LoadedPolicy", task: "Task") -> str:
        from structjax.report.graph import graph_svg
        from structjax.report.graph_dot import graph_dot
        from structjax.report.graph_page import graph_html

        program = found.program
        drawn = program.structure, program.docs, found.values
        if form != "html":
            return (graph_dot if form == "dot" else graph_svg)(*drawn)
        frame = _debug_episodes(found, task) if self.rollout else None
        return graph_html(
            *drawn, title=self.policy.stem, schema=task.schema, frame=frame
        )


def _debug_episodes(found: "LoadedPolicy", task: "Task") -> Any:
    """The rows of a rollout of the debug seeds, with mean actions."""
    import jax

    from structjax.compilation import enable_compile_cache
    from structjax.rollout import collect
    from structjax.table import build_table

    enable_compile_cache()
    seeds = task.seeds["debug"]
    progress(f"{len(seeds)} episodes of at most {task.horizon} steps")
    arm = found.policy, found.variables
    trajectory = collect(*arm, task, seeds, key=jax.random.key(0))
    structure, docs = found.program.structure, found.program.docs
    return build_table(
        trajectory, task.schema, found.values, docs, structure=structure
    ).frame


@dataclass(frozen=True)
class Diff:
    """Tell what changes from one program to another: wiring, bounds, values, heads.

    Renamed weights and latents are recognised; comments and order do not count.

    Under `--json`: {"differ", "added", "removed", "renamed", "rewired",
    "reconstrained", "restarted", "heads", "refitted"}, each but the first a list.
    """

    old: tyro.conf.Positional[Path]
    """A run directory, a saved policy (.json), or a program (.py)."""
    new: tyro.conf.Positional[Path]
    """The same, for the other program."""
    task: str | None = None
    """Name of the task, or path/to/file.py:function (default: the run\'s or saved
    policy\'s own, else car_racing)."""
    html: Path | None = None
    """Write a page that marks what changed, too."""
    json: bool = False
    """Print one JSON object as the last line of stdout."""

    def run_command(self) -> int:
        """Prints the changes."""
        from structjax.language.compare import difference
        from structjax.language.compare_views import difference_html, difference_text
        from structjax.policy_file import load_policy, policy_task
        from structjax.runs import write_atomic

        task = policy_task(self.task, self.old)
        old, new = (load_policy(path, task) for path in (self.old, self.new))
        tell(old.note)
        tell(new.note)
        structures = old.program.structure, new.program.structure
        found = difference(*structures, (old.values, new.values))
        if self.html is not None:
            names = self.old.name, self.new.name
            write_atomic(self.html, difference_html(found, *names))
        if self.json:
            print_json({"differ": bool(found), **asdict(found)})
        else:
            print(difference_text(found), end="")
        return 0


@dataclass(frozen=True)
class Export:
    """Write a policy in another form, with its fitted weights.

    numpy: a Python file that needs nothing but NumPy; onnx: a model; sympy and latex:
    formulas of the program, or of one latent or action.

    Under `--json`: {"export", "text"}: the file, or else the text.
    """

    policy: tyro.conf.Positional[Path]
    """A run directory, a saved policy (.json), or a program (.py) as written."""
    to: Literal["numpy", "onnx", "sympy", "latex"]
    """The form."""
    task: str | None = None
    """Name of the task, or path/to/file.py:function (default: the run\'s or saved
    policy\'s own, else car_racing)."""
    latent: str | None = None
    """Of sympy and latex: one latent or action; `action.NAME` for an action whose name
    a latent has too. By default all of them."""
    inline: bool = False
    """Of sympy and latex: in terms of observations and weights, without latents."""
    values: bool = False
    """Of sympy and latex: numbers in place of the weights."""
    output: Path | None = None
    """Where it goes; by default text is printed."""
    json: bool = False
    """Print one JSON object as the last line of stdout."""

    def run_command(self) -> int:
        """Writes or prints the policy."""
        from structjax.policy_file import load_policy, policy_task

        self._check()
        task = policy_task(self.task, self.policy)
        found = load_policy(self.policy, task)
        tell(found.note)
        result = self._result(found, task)
        if self.output is not None:
            _save(self.output, result)
        text = result if self.output is None else None
        if self.json:
            print_json({"export": self.output and str(self.output), "text": text})
        else:
            print(self.output or str(text).rstrip("\n"))
        return 0

    def _check(self) -> None:
        if self.to == "onnx" and self.output is None:
            raise StructjaxError(
                "an ONNX model is not text",
                kind="options",
                hint="say where it goes: --output policy.onnx",
            )
        formulas = self.latent is not None or self.inline or self.values
        if formulas and self.to in ("numpy", "onnx"):
            raise StructjaxError(
                f"--to {self.to} writes the whole policy",
                kind="options",
                hint="--latent, --inline and --values belong to sympy and latex",
            )

    def _result(self, found: "LoadedPolicy", task: "Task") -> str | bytes:
        from structjax.language.export.latex import latex
        from structjax.language.export.numpy_module import numpy_module
        from structjax.language.export.onnx_model import onnx_model

        structure, docs = found.program.structure, found.program.docs
        values = found.values if self.values else None
        if self.to == "numpy":
            return numpy_module(structure, task.schema, found.values, docs)
        if self.to == "onnx":
            return onnx_model(structure, task.schema, found.values)
        if self.to == "latex":
            text = latex(structure, self.latent, inline=self.inline, values=values)
            return f"{text}\n"
        return self._sympy(found, task)

    def _sympy(self, found: "LoadedPolicy", task: "Task") -> str:
        from structjax.language.export.formula import formula_names
        from structjax.language.export.symbolic import sympy_expression

        structure = found.program.structure
        names = formula_names(structure) if self.latent is None else [self.latent]
        values = found.values if self.values else None
        formulas = {
            name: sympy_expression(
                structure, task.schema, name, inline=self.inline, values=values
            )
            for name in names
        }
        return "".join(f"{name} = {text}\n" for name, text in formulas.items())


def _save(path: Path, content: str | bytes) -> None:
    from structjax.runs import write_atomic

    write_atomic(path, content)
