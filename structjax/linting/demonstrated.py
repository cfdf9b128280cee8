"""Rules that look at a program along a demonstration."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from structjax.demonstration import Demonstration, check_demonstration
from structjax.language.lint.places import Part, parts, text_of
from structjax.language.parse import Program
from structjax.language.problem import Problem
from structjax.language.structure import (
    Call,
    Expression,
    Head,
    Latent,
    Structure,
    Variable,
    walk,
)
from structjax.linting.copies import copy_problems
from structjax.memory import along
from structjax.policy import StructuredPolicy, variables_from
from structjax.schema import ActionField, Schema

# An output that moves less than this, in half ranges per unit of a weight, is rounding.
_NO_EFFECT = 1e-6
# Share of steps at a clip's bounds, and of steps at which a mean is stuck at the edge
# of its range while the demonstration is elsewhere.
_SATURATED = 0.5
_STUCK = 0.25
_ELSEWHERE = 0.05
_OUTSIDE = 0.1


def demonstrated_problems(
    program: Program,
    schema: Schema,
    demonstration: Demonstration,
    known: frozenset[str] = frozenset(),
) -> Iterator[Problem]:
    """What a demonstration shows.

    Args:
      program: its initial values are the ones that are judged.
      schema: of its task.
      demonstration: one episode, in order.
      known: weights about which something was said already.

    Raises:
      StructjaxError: the demonstration does not fit the schema.
    """
    shown = check_demonstration(demonstration, schema)
    places = parts(program)
    clips = _clips(places)
    structure = program.structure
    policy = StructuredPolicy(_with_clips(structure, clips), schema)
    variables = variables_from(structure, {})
    observations = jnp.asarray(shown.observations)
    outputs, slopes, latents = _look(policy, variables, observations)
    latents = {name: np.asarray(values) for name, values in latents.items()}
    raw = {name: float(value) for name, value in variables["params"].items()}
    yield from _zero_gradients(program, schema, raw, slopes, known)
    if not schema.discrete:
        means = np.asarray(outputs)[:, : len(schema.actions)]
        yield from _heads(structure, schema, places, means, shown.actions)
        yield from copy_problems(structure, schema, places, shown)
    yield from _saturated(structure, schema, clips, latents, shown.actions)


@partial(jax.jit, static_argnums=0)
def _look(policy: StructuredPolicy, variables: Any, observations: jax.Array) -> Any:
    """Outputs `[N, D]`, largest derivative by weight, and latents `[N, ...]`."""
    names = sorted(variables["params"])

    def outputs(raw: jax.Array) -> Any:
        params = {name: raw[i] for i, name in enumerate(names)}
        named = {**variables, "params": params}
        distribution, latents = along(policy, named, observations)
        return _flat(distribution), latents

    raw = jnp.stack([variables["params"][name] for name in names])

    def along_one(direction: jax.Array) -> Any:
        value, slope, latents = jax.jvp(outputs, (raw,), (direction,), has_aux=True)
        return value, jnp.max(jnp.abs(slope)), latents

    value, slopes, latents = jax.vmap(along_one, out_axes=(None, 0, None))(
        jnp.eye(len(names))
    )
    return value, dict(zip(names, slopes, strict=True)), latents


def _flat(distribution: Any) -> jax.Array:
    """`[N, D]`: log-probabilities; or means, stds and couplings."""
    if hasattr(distribution, "logits"):
        return jax.nn.log_softmax(distribution.logits)
    kinds = ("mean", "std", "coupling")
    columns = [getattr(distribution, k) for k in kinds if hasattr(distribution, k)]
    return jnp.concatenate(columns, axis=-1)


def _zero_gradients(
    program: Program,
    schema: Schema,
    raw: Mapping[str, float],
    slopes: Mapping[str, jax.Array],
    known: frozenset[str],
) -> Iterator[Problem]:
    for parameter in program.structure.parameters:
        name = parameter.name
        # A small slope of a large weight still counts: its scale is its own.
        largest = float(slopes[name]) * max(1.0, abs(raw[name]))
        if name in known or not largest <= _NO_EFFECT * _least_range(schema):
            continue
        text = (
            f"weight `{name}` has no effect along the demonstration: the largest "
            f"derivative of an action is {largest:.1e}"
        )
        hint = "start it where it acts, or delete it"
        line = program.lines.get(name, 1)
        yield Problem("ZERO_GRADIENT", "warning", line, text, hint)


def _least_range(schema: Schema) -> float:
    return 1.0 if schema.discrete else min(a.half_range for a in schema.actions)


def _clips(places: Sequence[Part]) -> dict[str, tuple[Part, Call]]:
    """Clips of values that depend on something: name of the extra latents -> clip."""
    found: dict[str, tuple[Part, Call]] = {}
    for part in places:
        if part.name.startswith(("std of", "coupling")):
            continue
        for node in walk(part.expression):
            if isinstance(node, Call) and node.operator == "clip":
                found[f"clip {len(found)}"] = part, node
    return found


def _with_clips(
    structure: Structure, clips: Mapping[str, tuple[Part, Call]]
) -> Structure:
    """The structure with what is clipped, and the bounds, as extra latents.

    Their names hold a space, so that none can be a program's own. Only the clips
    decide the size of a comparison: 1 at the upper bound, -1 at the lower one.
    """
    extra = []
    for name, (_, clip) in clips.items():
        value, low, high = clip.arguments
        extra.append(Latent(f"{name} low", Call("lt", (value, low)), boolean=True))
        extra.append(Latent(f"{name} high", Call("gt", (value, high)), boolean=True))
    return replace(structure, latents=structure.latents + tuple(extra))


def _saturated(
    structure: Structure,
    schema: Schema,
    clips: Mapping[str, tuple[Part, Call]],
    latents: Mapping[str, np.ndarray],
    actions: np.ndarray,
) -> Iterator[Problem]:
    """Clips at their bounds on most steps; those of a head are judged by `_heads`."""
    ends = {id(node) for head in structure.heads for node in _outer(head, structure)}
    for name, (part, clip) in clips.items():
        low = float(latents[f"{name} low"].mean())
        high = float(latents[f"{name} high"].mean())
        if id(clip) in ends or low + high <= _SATURATED:
            continue
        bounds = [text_of(bound) for bound in clip.arguments[1:]]
        shares = zip((low, high), bounds, strict=True)
        texts = [f"{share:.1%} at {bound}" for share, bound in shares if share > 0]
        text = (
            f"`{part.owner}` is clipped on {low + high:.1%} of the demonstration's "
            f"steps: {', '.join(texts)}; no gradient passes there"
        )
        hint = "widen the bounds, or start the weights so that it lies inside"
        yield Problem("SATURATED", "warning", part.line, text, hint)


def _outer(head: Head, structure: Structure) -> Iterator[Expression]:
    """What a mean consists of: clips, and factors, and what they bound."""
    latents = {latent.name: latent for latent in structure.latents}
    pending, seen = [head.arguments[0]], set()
    while pending:
        node = pending.pop()
        yield node
        match node:
            case Variable(name) if name not in seen:
                seen.add(name)
                pending.append(latents[name].expression)
            case Call("clip" | "relu" | "div" | "neg", (inside, *_)):
                pending.append(inside)
            case Call("mul" | "minimum" | "maximum", arguments):
                pending += arguments


def _heads(
    structure: Structure,
    schema: Schema,
    places: Sequence[Part],
    means: np.ndarray,
    actions: np.ndarray,
) -> Iterator[Problem]:
    """Means outside the range, or stuck at its edge where the demonstration is not."""
    by_name = {part.name: part for part in places}
    families = {head.action: head.family for head in structure.heads}
    for i, action in enumerate(schema.actions):
        line = by_name[f"mean of `{action.name}`"].line
        mean, done = means[:, i].astype(np.float64), actions[:, i]
        if families[action.name] == "tanh_normal":
            continue  # its mean is that before the tanh
        yield from _outside(action, mean, line)
        yield from _stuck(action, mean, done, line)


def _outside(action: ActionField, mean: np.ndarray, line: int) -> Iterator[Problem]:
    slack = 1e-5 * (action.high - action.low)
    below, above = mean < action.low - slack, mean > action.high + slack
    share = float((below | above).mean())
    if share <= _OUTSIDE:
        return
    ends = f"{below.mean():.1%} below {action.low:g}, {above.mean():.1%} above "
    text = (
        f"the mean of `{action.name}` lies outside its range on {share:.1%} of the "
        f"demonstration's steps: {ends}{action.high:g}"
    )
    hint = f"clip it to [{action.low:g}, {action.high:g}], or bound it smoothly"
    yield Problem("HEAD_OUTSIDE", "warning", line, text, hint)


def _stuck(
    action: ActionField, mean: np.ndarray, done: np.ndarray, line: int
) -> Iterator[Problem]:
    away = _ELSEWHERE * (action.high - action.low)
    slack = 1e-5 * (action.high - action.low)
    for bound, at in (
        (action.low, np.abs(mean - action.low) <= slack),
        (action.high, np.abs(mean - action.high) <= slack),
    ):
        share = float((at & (np.abs(done - bound) > away)).mean())
        if share > _STUCK:
            text = (
                f"the mean of `{action.name}` is stuck at {bound:g} on {share:.1%} of "
                "the demonstration's steps although the demonstration does otherwise "
                "there"
            )
            hint = "start the weights so that it lies inside, or bound it smoothly"
            yield Problem("SATURATED", "warning", line, text, hint)
