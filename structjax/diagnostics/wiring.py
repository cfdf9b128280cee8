"""Questions about a structure's wiring that the invariants ask."""

from collections.abc import Mapping

from structjax.language.structure import (
    Call,
    Expression,
    Index,
    Number,
    Observation,
    Previous,
    Slice,
    Structure,
    Variable,
    Weight,
)
from structjax.language.usage import Leaf, leaves

# Operators through which a sum is still a sum of terms for the purposes of parity: each
# is odd, so even terms inside are what makes the result uneven.
_ODD_WRAPPERS = ("clip", "tanh", "nan_clean")
_MOST_TERMS = 32
_TANH_EDGE, _SIGMOID_EDGE = 0.99, 0.01


def observed(structure: Structure) -> frozenset[str]:
    """Names of the latents and temporaries that depend on an observation."""
    found: set[str] = set()
    before = -1
    while len(found) > before:  # again where memory looks at a later latent
        before = len(found)
        for latent in structure.latents:
            if any(_sees(leaf, found) for leaf in leaves(latent.expression)):
                found.add(latent.name)
    return frozenset(found)


def _sees(leaf: Leaf, observed: set[str]) -> bool:
    if isinstance(leaf, Variable):
        return leaf.name in observed
    return isinstance(leaf, Observation)


def saturation_bounds(structure: Structure) -> dict[str, tuple[float, float]]:
    """Logged latents made by clip, tanh or sigmoid -> where they count as saturated."""
    bounds: dict[str, tuple[float, float]] = {}
    for latent in structure.latents:
        if not latent.logged:
            continue
        match latent.expression:
            case Call("clip", (_, Number(low), Number(high))):
                bounds[latent.name] = (low, high)
            case Call("tanh", _):
                bounds[latent.name] = (-_TANH_EDGE, _TANH_EDGE)
            case Call("sigmoid", _):
                bounds[latent.name] = (_SIGMOID_EDGE, 1.0 - _SIGMOID_EDGE)
    return bounds


def additive_terms(structure: Structure, action: str) -> tuple[Expression, ...]:
    """What is added up to the mean of an action.

    Sums, differences and odd wrappers (clip, tanh) are opened, also behind variables
    and under a constant or trained factor; whatever remains is a term.
    """
    terms: dict[str, tuple[Expression, ...]] = {}
    for latent in structure.latents:
        found = _terms(latent.expression, terms)
        # A variable that adds nothing up, or too much, is a term itself.
        few = 1 < len(found) <= _MOST_TERMS
        terms[latent.name] = found if few else (Variable(latent.name),)
    head = next(head for head in structure.heads if head.action == action)
    return _terms(head.arguments[0], terms)


def _terms(
    expression: Expression, known: Mapping[str, tuple[Expression, ...]]
) -> tuple[Expression, ...]:
    found: tuple[Expression, ...] = (expression,)
    match expression:
        case Variable(name):
            found = known[name]
        case Call("add" | "sub", (left, right)):
            found = _terms(left, known) + _terms(right, known)
        case Call("neg", (inside,)):
            found = _terms(inside, known)
        case Call(operator, (inside, *_)) if operator in _ODD_WRAPPERS:
            found = _terms(inside, known)
        case Call("mul", (Weight() | Number() as factor, inside)):
            found = _scaled(expression, factor, _terms(inside, known))
        case Call("mul", (inside, Weight() | Number() as factor)):
            found = _scaled(expression, factor, _terms(inside, known))
    return tuple(dict.fromkeys(found))


def _scaled(
    whole: Expression, factor: Expression, terms: tuple[Expression, ...]
) -> tuple[Expression, ...]:
    if len(terms) == 1:
        return (whole,)
    return tuple(Call("mul", (factor, term)) for term in terms)


def label(expression: Expression) -> str:
    """A short name for a term: `mul(damping, abs(yaw_rate))`."""
    match expression:
        case Number(value):
            return f"{value:.4g}"
        case Observation(field):
            return f"obs.{field}"
        case Weight(name) | Variable(name):
            return name
        case Call(operator, arguments):
            return f"{operator}({', '.join(label(a) for a in arguments)})"
        case Previous(latent, _):
            return f"previous({latent})"
        case Index(vector, position):
            return f"{label(vector)}[{position}]"
        case Slice(vector, start, stop):
            return f"{label(vector)}[{start}:{stop}]"
    raise TypeError(expression)
