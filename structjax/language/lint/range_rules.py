"""What ranges show: actions out of reach, decided conditions, flats, zero divisors."""

import math
from collections.abc import Iterator, Sequence

from structjax.language.lint.forward import Reading, read
from structjax.language.lint.intervals import Intervals, Range
from structjax.language.lint.places import Part, definitions_of, text_of
from structjax.language.problem import Problem
from structjax.language.structure import (
    Call,
    Expression,
    Head,
    Index,
    Latent,
    Number,
    Observation,
    Slice,
    Structure,
    Variable,
    children,
    walk,
)
from structjax.language.usage import reach
from structjax.schema import ActionField, Schema

# Share of an action's range, at one end, that may be out of reach: a limit that is
# written on purpose leaves more than half.
_UNREACHED = 0.4
# A latent that is constant over more than this share of a distance is flat.
_FLAT = 0.5
_GRID = 64


def range_problems(
    structure: Structure, schema: Schema, parts: Sequence[Part]
) -> Iterator[Problem]:
    """Everything that follows from the schema's ranges and the weights' bounds."""
    reading = read(structure, schema, Intervals())
    by_name = {part.name: part for part in parts}
    actions = {action.name: action for action in schema.actions}
    for head in structure.heads:
        action = actions[head.action]
        if head.family == "categorical":
            yield from _never_chosen(head, action, reading, by_name)
            continue
        part = by_name[f"mean of `{head.action}`"]
        yield from _unreachable(head, action, reading, part)
    yield from _decided(structure, reading, parts)
    written = read(structure, schema, Intervals(fixed=True))
    yield from _one_sided(structure, actions, by_name, written)
    yield from _flats(structure, written, parts)
    yield from _zero_divisors(written, parts)


def _unreachable(
    head: Head, action: ActionField, reading: Reading[Range], part: Part
) -> Iterator[Problem]:
    """A mean that stays away from a part of the range."""
    low, high = _reached(head, action, reading)
    below = max(0.0, low - action.low)
    above = max(0.0, action.high - high)
    least = _UNREACHED * (action.high - action.low)
    if max(below, above) <= least:
        return
    text = (
        f"the mean of `{action.name}` {_span(low, high)}; the range is "
        f"[{action.low:g}, {action.high:g}]"
    )
    ends = [(above, high, action.high), (below, action.low, low)]
    missed = [f"{a:.4g} to {b:.4g}" for size, a, b in ends if size > least]
    hint = f"it never asks for {' or '.join(missed)}; widen it, or say why in a comment"
    yield Problem("UNREACHABLE_ACTION", "warning", part.line, text, hint)


def _span(low: float, high: float) -> str:
    ends = f"{low:.4g}", f"{high:.4g}"
    return (
        f"is always {ends[0]}" if ends[0] == ends[1] else f"lies in [{', '.join(ends)}]"
    )


def _reached(
    head: Head, action: ActionField, reading: Reading[Range]
) -> tuple[float, float]:
    """The range of the mean, cut to the action's own."""
    mean = reading.of(head.arguments[0])
    low, high = mean.low, mean.high
    if head.family == "tanh_normal":
        middle = 0.5 * (action.low + action.high)
        low, high = (
            middle + action.half_range * math.tanh(bound) for bound in (low, high)
        )
    return (
        min(max(low, action.low), action.high),
        max(min(high, action.high), action.low),
    )


def _never_chosen(
    head: Head,
    action: ActionField,
    reading: Reading[Range],
    by_name: dict[str, Part],
) -> Iterator[Problem]:
    """A choice whose logit is always below that of another."""
    logits = [reading.of(argument) for argument in head.arguments]
    highest = max(logit.low for logit in logits)
    for i, (choice, logit) in enumerate(
        zip(action.choices or (), logits, strict=False)
    ):
        if logit.high < highest:
            text = (
                f"choice `{choice}` of `{action.name}` is never the likeliest: its "
                f"logit is at most {logit.high:.4g}, another at least {highest:.4g}"
            )
            line = by_name[f"logit {i} of `{head.action}`"].line
            yield Problem("UNREACHABLE_ACTION", "warning", line, text)


def _decided(
    structure: Structure, reading: Reading[Range], parts: Sequence[Part]
) -> Iterator[Problem]:
    """Conditions on observations that hold always or never."""
    for part in parts:
        for node in walk(part.expression):
            if not (isinstance(node, Call) and node.operator == "where"):
                continue
            condition = node.arguments[0]
            truth = reading.of(condition)
            found = reach(structure, [condition])
            if truth.point and any(isinstance(leaf, Observation) for leaf in found):
                word = "always" if truth.low else "never"
                shown = text_of(condition, definitions_of(parts))
                text = f"condition `{shown}` {word} holds"
                hint = "the schema's ranges decide it; delete the other branch"
                yield Problem("UNREACHABLE_BRANCH", "warning", part.line, text, hint)


def _zero_divisors(written: Reading[Range], parts: Sequence[Part]) -> Iterator[Problem]:
    """Divisors that can be 0 for the written weights, whatever stands around them.

    A branch of `where` that is not taken is computed all the same: an infinite quotient
    in it makes the gradient NaN.
    """
    for part in parts:
        for node in walk(part.expression):
            match node:
                case Call("div", (_, divisor)):
                    hint = "write `safe_div(a, b)`, or keep the divisor away from 0"
                case Call("pow", (divisor, Number(exponent))) if (
                    exponent < 0 and exponent == int(exponent)
                ):
                    hint = "keep the base away from 0"
                case _:
                    continue
            span = written.of(divisor)
            if span.low <= 0 <= span.high:
                shown = text_of(divisor, definitions_of(parts))
                text = f"`{part.owner}` divides by `{shown}`, which can be 0"
                yield Problem("ZERO_DIVISOR", "warning", part.line, text, hint)


def _one_sided(
    structure: Structure,
    actions: dict[str, ActionField],
    by_name: dict[str, Part],
    written: Reading[Range],
) -> Iterator[Problem]:
    """Normal actions whose mean rests at 0 where 0 is the edge of the range.

    Half of the noise is clipped there: the action is 0.4 std on average, not 0.
    """
    latents = {latent.name: latent for latent in structure.latents}
    found = [
        head.action
        for head in structure.heads
        if head.family == "normal"
        and 0 in (actions[head.action].low, actions[head.action].high)
        and _rests(head.arguments[0], latents, written)
    ]
    if not found:
        return
    names = " and ".join(f"`{name}`" for name in found)
    text = (
        f"the noise of {names} is one-sided where the mean rests at 0, the edge of the "
        "range: sampled actions are 0.4 std there on average, not 0"
    )
    hint = "`truncated_normal`, `beta` or `tanh_normal` know the range"
    line = by_name[f"mean of `{found[0]}`"].line
    yield Problem("ONE_SIDED_NOISE", "warning", line, text, hint)


def _rests(
    mean: Expression, latents: dict[str, Latent], written: Reading[Range]
) -> bool:
    """Whether a clip, relu, min or max holds a mean at 0, for the written weights."""
    pending, seen = [mean], set()
    while pending:
        node = pending.pop()
        match node:
            case Variable(name) if name not in seen:
                seen.add(name)
                pending.append(latents[name].expression)
            case Call("neg" | "div" | "safe_div", (inside, *_)):
                pending.append(inside)
            case Call("mul", factors):
                pending += factors
            case Call("relu" | "clip" | "minimum" | "maximum", arguments):
                if _stops_at_zero(node, written):
                    return True
                pending += arguments if node.operator != "clip" else arguments[:1]
    return False


def _stops_at_zero(node: Call, written: Reading[Range]) -> bool:
    """Whether this is where negative, or positive, values become 0."""
    ranges = [written.of(argument) for argument in node.arguments]
    match node:
        case Call("relu") | Call("clip", (_, Number(0.0), _)):
            return ranges[0].low < 0
        case Call("clip", (_, _, Number(0.0))):
            return ranges[0].high > 0
        case Call("maximum", arguments) if Number(0.0) in arguments:
            return min(value.low for value in ranges) < 0
        case Call("minimum", arguments) if Number(0.0) in arguments:
            return max(value.high for value in ranges) > 0
    return False


def _flats(
    structure: Structure, reading: Reading[Range], parts: Sequence[Part]
) -> Iterator[Problem]:
    """Clips of one distance that are constant over most of it, at the far end."""
    for part in parts:
        if part.name.startswith("std of"):  # its floor is the head's own
            continue
        for node in walk(part.expression):
            match node:
                case Call("clip", (inside, Number(low), Number(high))):
                    bounds = Range(low, high)
                case Call("relu", (inside,)):
                    bounds = Range(0.0, math.inf)
                case _:
                    continue
            yield from _flat(inside, bounds, part, structure, reading)


def _flat(
    inside: Expression,
    bounds: Range,
    part: Part,
    structure: Structure,
    reading: Reading[Range],
) -> Iterator[Problem]:
    distance = _only_input(inside, structure)
    if distance is None or not _is_length(distance, structure):
        return
    span = reading.of(distance)
    if span.low < 0 or not span.low < span.high < math.inf or span.size is not None:
        return

    def outside(share: float) -> int:
        at = span.low + share * (span.high - span.low)
        value = reading.of(_replaced(inside, distance, Number(at)))
        return (value.low > bounds.high) - (value.high < bounds.low)

    sides = [outside(i / _GRID) for i in range(_GRID + 1)]
    far = sides[-1]
    first = next((i for i in range(_GRID, -1, -1) if sides[i] != far), -1)
    if far == 0 or first < 0 or first > (1 - _FLAT) * _GRID:
        return
    inner, outer = first / _GRID, (first + 1) / _GRID
    for _ in range(30):
        middle = 0.5 * (inner + outer)
        inner, outer = (inner, middle) if outside(middle) == far else (middle, outer)
    at = span.low + outer * (span.high - span.low)
    stays = bounds.low if far < 0 else bounds.high
    text = (
        f"`{part.owner}` stays at {stays:g} where `{text_of(distance)}` is above "
        f"{at:.3g}, {1 - outer:.0%} of its range: there is no gradient there"
    )
    hint = "let it fall off smoothly, e.g. `exp(-k * distance)` or `1 / (1 + distance)`"
    yield Problem("FLAT_FAR", "warning", part.line, text, hint)


def _is_length(expression: Expression, structure: Structure) -> bool:
    """Whether a value is a norm or a root, by its definition."""
    latents = {latent.name: latent for latent in structure.latents}
    while isinstance(expression, Variable):
        expression = latents[expression.name].expression
    match expression:
        case Call("norm" | "sqrt") | Call("pow", (_, Number(0.5))):
            return True
    return False


def _only_input(inside: Expression, structure: Structure) -> Expression | None:
    """The single scalar through which an expression sees the observation."""
    found: set[Expression] = set()
    pending = [inside]
    while pending:
        node = pending.pop()
        leaf = isinstance(node, Variable | Observation | Index | Slice)
        if not leaf and not _is_length(node, structure):
            pending += children(node)
        elif _sees(node, structure):
            found.add(node)
    return found.pop() if len(found) == 1 else None


def _sees(node: Expression, structure: Structure) -> bool:
    leaves = reach(structure, [node])
    return any(isinstance(leaf, Observation) for leaf in leaves)


def _replaced(expression: Expression, old: Expression, new: Expression) -> Expression:
    """The expression with one sub-expression replaced."""
    if expression == old:
        return new
    if isinstance(expression, Call):
        parts = tuple(_replaced(e, old, new) for e in expression.arguments)
        return Call(expression.operator, parts)
    return expression
