"""Left-right symmetry: what the policy does in the mirrored world.

In a task that a mirror maps onto itself, an odd action (steering) must change its sign
with the world and an even one (throttle) must not. A term that breaks this pulls to one
side everywhere; `-|w| * omega`, meant as damping, is one (arXiv 2610.01652, appendix).
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from structjax.diagnostics.alignment import flatten_latents
from structjax.diagnostics.answers import Answers
from structjax.diagnostics.result import InvariantResult, percent, warn_if
from structjax.diagnostics.wiring import additive_terms, label
from structjax.language.structure import Expression, Latent, Structure
from structjax.schema import Schema

# Share of an action's mean square that may have the wrong parity.
PARITY_LIMIT = 0.01
# Relative root mean square below which a latent is called purely even or odd.
_PURE = 1e-3


def mirrors(schema: Schema) -> bool:
    """Whether every field and action says what it becomes in a mirror."""
    signs = [field.mirror for field in schema.observations]
    signs += [action.mirror for action in schema.actions]
    return not schema.discrete and None not in signs


def with_terms(structure: Structure, schema: Schema) -> Structure:
    """The structure with the additive terms of every odd action as extra latents.

    Their names hold spaces, so that none can be a program's own.
    """
    extra = [
        Latent(name, term)
        for action in schema.actions
        if action.mirror == -1
        for name, term in _named_terms(structure, action.name).items()
    ]
    return replace(structure, latents=structure.latents + tuple(extra))


def parity(
    schema: Schema,
    structure: Structure | None,
    answers: Answers,
    mirrored: Answers,
) -> InvariantResult:
    """How much of each action has the wrong parity, and which terms bring it in.

    Shares are of the mean square over the observations and their mirror images
    together, where even and odd parts are orthogonal.

    Args:
      schema: with mirror signs (`mirrors(schema)`).
      structure: None for a policy without one.
      answers: at the observations; of the policy of `with_terms(structure, schema)`.
      mirrored: the same policy's at their mirror images.
    """
    count = len(schema.actions)
    low, high = schema.action_low[None], schema.action_high[None]
    here = np.clip(answers.outputs[:, :count], low, high)
    there = np.clip(mirrored.outputs[:, :count], low, high)
    wrong: dict[str, float] = {}
    guilty: dict[str, dict[str, float]] = {}
    for i, action in enumerate(schema.actions):
        even, odd = _energies(here[:, i], there[:, i])
        wrong[action.name] = (even if action.mirror == -1 else odd) / (
            even + odd + 1e-12
        )
        if action.mirror == -1 and structure is not None:
            guilty[action.name] = _even_terms(
                structure, action.name, answers.latents, mirrored.latents
            )
    classes = _classes(structure, answers.latents, mirrored.latents)
    broken = [name for name, share in wrong.items() if share > PARITY_LIMIT]
    parts = [f"{name} {percent(share)}" for name, share in wrong.items()]
    text = f"share of wrong mirror parity: {', '.join(parts)}"
    for name in broken:
        for term, share in guilty.get(name, {}).items():
            text += f"; {name} contains the even part of {term} ({percent(share)})"
    values = {"wrong_share": wrong, "even_terms": guilty, "classes": classes}
    return InvariantResult("parity", warn_if(bool(broken)), text, values)


def _energies(here: np.ndarray, there: np.ndarray) -> tuple[float, float]:
    """Mean squares of the even and the odd part."""
    here, there = here.astype(np.float64), there.astype(np.float64)
    even, odd = (here + there) / 2, (here - there) / 2
    return float(np.mean(even**2)), float(np.mean(odd**2))


def _named_terms(structure: Structure, action: str) -> dict[str, Expression]:
    terms = additive_terms(structure, action)
    return {f"{action} term {i}": term for i, term in enumerate(terms)}


def _even_terms(
    structure: Structure,
    action: str,
    here: Mapping[str, np.ndarray],
    there: Mapping[str, np.ndarray],
) -> dict[str, float]:
    """Terms of an odd action with an even part: label -> share, largest first.

    The share is the root mean square of the even part, over that of all terms.
    """
    terms = _named_terms(structure, action)
    energies = {name: _energies(here[name], there[name]) for name in terms}
    total = sum(even + odd for even, odd in energies.values()) + 1e-12
    shares = {
        label(term)[:80]: float(np.sqrt(energies[name][0] / total))
        for name, term in terms.items()
    }
    large = {name: share for name, share in shares.items() if share > PARITY_LIMIT}
    return dict(sorted(large.items(), key=lambda item: (-item[1], item[0])))


def _classes(
    structure: Structure | None,
    here: Mapping[str, np.ndarray],
    there: Mapping[str, np.ndarray],
) -> dict[str, str]:
    """Logged latent column -> even, odd, mixed, or zero."""
    if structure is None:
        return {}
    logged = [latent.name for latent in structure.latents if latent.logged]
    flat = flatten_latents({name: here[name] for name in logged})
    image = flatten_latents({name: there[name] for name in logged})
    return {name: _class(flat[name], image[name]) for name in flat}


def _class(here: np.ndarray, there: np.ndarray) -> str:
    even, odd = np.sqrt(_energies(here, there))
    if even + odd == 0:
        return "zero"
    if odd <= _PURE * even:
        return "even"
    return "odd" if even <= _PURE * odd else "mixed"
