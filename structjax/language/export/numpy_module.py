"""A program as a Python file that needs nothing but NumPy."""

import ast
import builtins
import keyword
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

from structjax.language.export.kinds import Kinds, fitting_heads, weight_values
from structjax.language.export.numpy_expressions import NUMPY_NAMES, Writer
from structjax.language.export.numpy_policy import (
    CATEGORICAL,
    CONTINUOUS,
    PREDICT,
    acting,
)
from structjax.language.operators import OPERATORS
from structjax.language.structure import (
    Expression,
    Head,
    Observation,
    Structure,
    Variable,
    Weight,
)
from structjax.language.usage import memory
from structjax.schema import Schema

_RUNTIME = Path(__file__).with_name("numpy_operators.py")
_TAKEN = {
    *("np", "math", "statistics", "NamedTuple", "Decision", "Policy", "act", "mode"),
    *("sample", "obs", "rng", "INITIAL_MEMORY", "OBSERVATION_SIZE", "ACTIONS", "LOW"),
    *("HIGH", "CHOICES", "memory", "latents", "mean", "std", "logits", "coupling"),
    *dir(builtins),
    *keyword.kwlist,
    *keyword.softkwlist,
}


def numpy_module(
    structure: Structure,
    schema: Schema,
    values: Mapping[str, float],
    docs: Mapping[str, str] | None = None,
) -> str:
    """The text of a Python module that computes a policy in float64.

    The module has `act(obs, memory=None)`, which gives the distribution's arguments,
    every logged latent and the memory for the next step, and a class `Policy` with
    Stable-Baselines3's `predict`.

    Args:
      structure: the program.
      schema: the task's fields.
      values: weight values by name; others are as written.
      docs: name -> documentation, printed as comments; `""` as the docstring.

    Raises:
      StructjaxError: the program was made for another schema, or has no such weight.
    """
    docs = docs or {}
    heads = fitting_heads(structure, schema)
    kinds = Kinds(structure, schema)
    names = _names(structure, schema)
    writer = Writer(kinds, names)
    body = _act(structure, schema, heads, writer)
    policy, called = acting(heads, schema, coupled=bool(structure.coupling))
    weights = [
        _commented(f"{names[Weight(name)]} = np.float64({value!r})", docs.get(name, ""))
        for name, value in weight_values(structure, values).items()
    ]
    functions = _functions({*writer.used, *called})
    parts = [
        _docstring(docs.get("", "")),
        _imports(functions + policy),
        _constants(structure, schema),
        "\n".join(["# Weights.", *weights]) if weights else "",
        functions,
        CATEGORICAL if schema.discrete else CONTINUOUS,
        body,
        policy,
        PREDICT,
    ]
    return _layout(parts)


def _layout(parts: Iterable[str]) -> str:
    """The parts, two blank lines before functions and classes, one before others."""
    text = ""
    for part in filter(None, parts):
        block = part.strip("\n")
        gap = "\n\n" if block.startswith(("def ", "class ", "@")) else "\n"
        text += f"{gap if text else ''}{block}\n"
    return text


def _docstring(text: str) -> str:
    plain = "".join(c if c.isprintable() or c == "\n" else " " for c in text).strip()
    plain = plain.replace("\\", "\\\\").replace('"', '\\"') or "A control policy."
    return f'"""{plain}\n\nWritten by structjax; needs nothing but NumPy.\n"""\n'


def _imports(text: str) -> str:
    standard = [f"import {m}" for m in ("math", "statistics") if f"{m}." in text]
    return "\n".join(
        [*standard, "from typing import NamedTuple", "", "import numpy as np"]
    )


def _constants(structure: Structure, schema: Schema) -> str:
    initial = {p.latent: float(p.initial) for p in memory(structure)}
    if schema.discrete:
        action = schema.actions[0]
        lines = [f"CHOICES = {action.choices!r}"]
    else:
        names = tuple(action.name for action in schema.actions)
        lines = [
            f"ACTIONS = {names!r}",
            f"LOW = np.array({[float(a.low) for a in schema.actions]})",
            f"HIGH = np.array({[float(a.high) for a in schema.actions]})",
        ]
    lines += [
        f"OBSERVATION_SIZE = {schema.observation_size}",
        f"INITIAL_MEMORY = {initial!r}",
    ]
    return "\n".join(lines)


def _names(structure: Structure, schema: Schema) -> dict[Expression, str]:
    """Python names for fields, weights and latents, none of them twice."""
    wanted: dict[Expression, str] = {}
    for parameter in structure.parameters:
        wanted[Weight(parameter.name)] = parameter.name
    for latent in structure.latents:
        wanted[Variable(latent.name)] = latent.name
    for field in schema.observations:
        name = "obs_" + field.name.replace(".", "_")
        wanted[Observation(field.name)] = name
    taken = _TAKEN | set(_sources()) | set(NUMPY_NAMES) | set(OPERATORS)
    names = {}
    for key, name in wanted.items():
        while name in taken:
            name += "_"
        taken.add(name)
        names[key] = name
    return names


def _act(
    structure: Structure, schema: Schema, heads: Iterable[Head], writer: Writer
) -> str:
    """The function `act`."""
    body = [
        f"{writer.names[Variable(latent.name)]} = {writer.statement(latent.expression)}"
        for latent in structure.latents
    ]
    result = _result(structure, list(heads), schema, writer)
    text = "\n".join(f"    {line}" for line in (*body, *result))
    fields = [
        f"    {writer.names[Observation(field.name)]} = "
        + _taken(schema.slice_of(field.name), field.size)
        for field in schema.observations
        if writer.names[Observation(field.name)] in _words(text)
    ]
    return "\n".join([_ACT, *fields, text])


_ACT = '''@np.errstate(all="ignore")
def act(obs, memory=None):
    """What the policy does with one observation of OBSERVATION_SIZE values.

    NaN and infinities count as 0. `memory` is what the last decision returned, None in
    the first step of an episode.
    """
    obs = np.asarray(obs, np.float64)
    if obs.shape != (OBSERVATION_SIZE,):
        raise ValueError(f"obs has shape {obs.shape}, needed is ({OBSERVATION_SIZE},)")
    obs = np.where(np.isfinite(obs), obs, 0.0)
    memory = INITIAL_MEMORY if memory is None else memory'''


def _words(text: str) -> set[str]:
    """The names that a piece of code mentions."""
    tree = ast.parse("def body():\n" + text)
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


def _taken(place: slice, size: int | None) -> str:
    return f"obs[{place.start}]" if size is None else f"obs[{place.start}:{place.stop}]"


def _result(
    structure: Structure, heads: list[Head], schema: Schema, writer: Writer
) -> list[str]:
    """The last lines of `act`."""
    logged = [latent for latent in structure.latents if latent.logged]
    lines = ["latents = {"]
    for latent in logged:
        name = writer.names[Variable(latent.name)]
        value = f"float({name})" if latent.size is None else f"1.0 * {name}"
        lines.append(f"    {latent.name!r}: {value},")
    kept = ", ".join(
        f"{p.latent!r}: float({writer.names[Variable(p.latent)]})"
        for p in memory(structure)
    )
    lines += ["}", f"memory = {{{kept}}}"]
    if schema.discrete:
        columns = {"logits": heads[0].arguments}
    else:
        columns = {
            name: tuple(head.arguments[i] for head in heads)
            for i, name in enumerate(("mean", "std"))
        }
    for name, column in columns.items():
        lines += _array(name, column, writer)
    results = [*columns, "latents", "memory"]
    if structure.coupling:
        lines += _array("coupling", structure.coupling, writer)
        results.append("coupling")
    return [*lines, f"return Decision({', '.join(results)})"]


def _array(name: str, column: Iterable[Expression], writer: Writer) -> list[str]:
    rows = [f"    {writer.real(expression)}," for expression in column]
    return [f"{name} = np.array([", *rows, "], np.float64)"]


def _commented(text: str, doc: str) -> str:
    plain = " ".join("".join(c if c.isprintable() else " " for c in doc).split())
    return f"{text}  # {plain}" if plain else text


@cache
def _sources() -> dict[str, tuple[str, frozenset[str]]]:
    """Name -> (source, names it mentions) of the functions that modules copy."""
    text = _RUNTIME.read_text(encoding="utf-8")
    found = {}
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef):
            source = ast.get_source_segment(text, node) or ""
            words = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
            plain = source.replace("  # type: ignore[no-untyped-def]", "")
            found[node.name] = plain, frozenset(words)
    return found


def _functions(names: Iterable[str]) -> str:
    """The functions, and those that they call, in the order of the source file."""
    sources = _sources()
    needed: set[str] = set()
    stack = list(names)
    while stack:
        name = stack.pop()
        if name not in needed and name in sources:
            needed.add(name)
            stack += sources[name][1]
    return "\n\n\n".join(
        source for name, (source, _) in sources.items() if name in needed
    )
