"""Names of weights and latents: from attributes and keys of the info dictionary."""

import keyword
import re
from collections.abc import Iterable

from structjax.language.names import RESERVED
from structjax.language.structure import Weight
from structjax.language.torch_source.machine import Machine
from structjax.language.torch_source.outputs import Entry


def stem(key: str) -> tuple[str, str]:
    """Kind and name of a key: `("latent", "offset")`."""
    kind, _, name = key.partition("_")
    return (kind, name) if kind in ("latent", "weight") and name else ("latent", key)


def accepted(name: str, prefix: str, taken: Iterable[str], machine: Machine) -> str:
    """The name, or one like it that a program can have; a change is a warning."""
    used = set(taken)
    if _fits(name, used):
        return name
    changed = _free(f"{prefix}_{re.sub(r'[^A-Za-z0-9]+', '_', name).strip('_')}", used)
    hint = "the language needs the name for itself, or it is taken"
    machine.trace.warn("RENAMED", f"latent `{name}` becomes `{changed}`", hint)
    return changed


def latent_names(entries: Iterable[Entry], machine: Machine) -> list[tuple[str, Entry]]:
    """The entries that become latents, with their names."""
    found: list[tuple[str, Entry]] = []
    machine.trace.line = machine.methods["forward"].node.lineno
    for entry in entries:
        kind, name = stem(entry.key)
        if not _is_weight(entry):
            taken = [name for name, _ in found]
            found.append((accepted(name, kind, taken, machine), entry))
    return found


def _is_weight(entry: Entry) -> bool:
    """Whether an entry is a parameter itself, not a function of parameters."""
    kind, _ = stem(entry.key)
    return kind == "weight" and all(isinstance(e, Weight) for e in entry.elements)


def weight_names(
    entries: Iterable[Entry], latents: Iterable[str], machine: Machine
) -> dict[str, str]:
    """Parameter -> its name: its `weight_` entry's, else its attribute's.

    Latents go first: where a latent has the name, the attribute's is taken, or
    `raw_<attribute>`.
    """
    wanted: dict[str, str] = {}
    for entry in filter(_is_weight, entries):
        _, name = stem(entry.key)
        for i, element in enumerate(entry.elements):
            assert isinstance(element, Weight)
            wanted.setdefault(element.name, f"{name}_{i}" if entry.vector else name)
    names: dict[str, str] = {}
    for parameter in machine.parameters:
        taken = {
            *latents,
            *names.values(),
            *(set(wanted.values()) - {wanted.get(parameter)}),
        }
        bare = parameter.lstrip("_")
        candidates = (wanted.get(parameter, bare), bare, f"raw_{bare}")
        fitting = [name for name in candidates if _fits(name, taken)]
        names[parameter] = fitting[0] if fitting else _free(f"weight_{bare}", taken)
    return names


def _fits(name: str, taken: set[str]) -> bool:
    return (
        re.fullmatch(r"[A-Za-z]\w*", name, re.ASCII) is not None
        and name not in RESERVED
        and name not in taken
        and not keyword.iskeyword(name)
    )


def _free(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    return name
