"""Names of weights and latents, from attributes and from keys of the info dictionary."""

import keyword
import re
from collections.abc import Iterable, Mapping

from structjax.language.names import RESERVED
from structjax.language.structure import Weight
from structjax.language.torch_source.machine import Machine
from structjax.language.torch_source.outputs import Entry


def stem(key: str) -> tuple[str, str]:
    """Kind and name of a key: `("latent", "offset")`."""
    kind, _, name = key.partition("_")
    return (kind, name) if kind in ("latent", "weight") and name else ("latent", key)


def accepted(name: str, prefix: str, taken: Iterable[str], machine: Machine) -> str:
    """The name itself, or one like it that a program can have; a change is a warning."""
    clean = re.sub(r"\W", "_", name, flags=re.ASCII).lstrip("_")
    used = set(taken)
    fits = clean.isidentifier() and clean not in RESERVED and clean not in used
    if not fits or keyword.iskeyword(clean):
        clean = f"{prefix}_{clean}"
        while clean in used:
            clean += "_"
    if clean != name:
        hint = "the language needs the name for itself, or it is taken"
        machine.trace.warn("RENAMED", f"`{name}` becomes `{clean}`", hint)
    return clean


def weight_names(entries: Iterable[Entry], machine: Machine) -> dict[str, str]:
    """Parameter -> its name: its `weight_` entry's, else its attribute's."""
    wanted: dict[str, str] = {}
    for entry in entries:
        kind, name = stem(entry.key)
        if kind == "weight" and all(isinstance(e, Weight) for e in entry.elements):
            for i, element in enumerate(entry.elements):
                assert isinstance(element, Weight)
                full = f"{name}_{i}" if entry.vector else name
                wanted.setdefault(element.name, full)
    names: dict[str, str] = {}
    machine.trace.line = machine.methods["forward"].node.lineno
    shown = _shown(entries)
    for parameter in machine.parameters:
        name = wanted.get(parameter, parameter)
        if name in shown and name not in wanted.values():
            name = f"raw_{name}"  # the entry of that name is a function of it
        names[parameter] = accepted(name, "weight", names.values(), machine)
    return names


def _shown(entries: Iterable[Entry]) -> set[str]:
    """Names of `weight_` entries that are functions of parameters."""
    return {
        stem(entry.key)[1]
        for entry in entries
        if stem(entry.key)[0] == "weight"
        and not all(isinstance(e, Weight) for e in entry.elements)
    }


def latent_names(
    entries: Iterable[Entry], weights: Mapping[str, str], machine: Machine
) -> list[tuple[str, Entry]]:
    """The entries that become latents, with their names."""
    found: list[tuple[str, Entry]] = []
    for entry in entries:
        kind, name = stem(entry.key)
        if kind == "weight" and all(isinstance(e, Weight) for e in entry.elements):
            continue
        taken = {*weights.values(), *(n for n, _ in found)}
        found.append((accepted(name, kind, taken, machine), entry))
    return found
