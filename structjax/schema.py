"""Named, documented observation and action fields. No JAX here."""

import keyword
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral

import numpy as np

from structjax.errors import StructjaxError


@dataclass(frozen=True)
class Field:
    """One observation field.

    Attributes:
      name: `"speed"`, or `"tiles.x"` for a member of the group `tiles`.
      size: None for a scalar, n for a vector of n values.
      unit: e.g. `"100 m/s"`; the empty string for a dimensionless one.
      low, high: expected range of the values, in that unit.
      meaning: one sentence, used in prompts and column descriptions.
      mirror: sign of the field in the left-right mirrored world: +1 even, -1 odd,
        None when the task has no mirror symmetry.
      mirror_order: permutation of the elements in the mirrored world, if any.
      elements: names of the elements of a vector, for documentation.
    """

    name: str
    size: int | None
    unit: str
    low: float
    high: float
    meaning: str
    mirror: int | None = None
    mirror_order: tuple[int, ...] | None = None
    elements: tuple[str, ...] | None = None

    @property
    def width(self) -> int:
        """Number of values in the flat observation."""
        return 1 if self.size is None else self.size

    def columns(self, prefix: str = "obs_") -> tuple[str, ...]:
        """Table columns: `obs_speed`, or `obs_tiles_x_0 ...`."""
        stem = prefix + self.name.replace(".", "_")
        if self.size is None:
            return (stem,)
        return tuple(f"{stem}_{i}" for i in range(self.size))


@dataclass(frozen=True)
class ActionField:
    """One action: continuous within [low, high], or discrete with named choices."""

    name: str
    meaning: str
    unit: str = ""
    low: float = -1.0
    high: float = 1.0
    mirror: int | None = None
    choices: tuple[str, ...] | None = None

    @property
    def half_range(self) -> float:
        """Half of the range of a continuous action; the unit of its std."""
        return 0.5 * (self.high - self.low)

    @property
    def columns(self) -> tuple[str, ...]:
        """Table columns of the action and of its distribution."""
        stem = f"action_{self.name}"
        if self.choices is not None:
            return (stem, *self.logit_columns)
        return (f"{stem}_mean", f"{stem}_std", f"{stem}_sampled", stem)

    @property
    def logit_columns(self) -> tuple[str, ...]:
        """Table columns of the choices' logits: `action_push_logit_left ...`."""
        words = (
            "".join(c if c.isalnum() else "_" for c in x) for x in self.choices or ()
        )
        return tuple(f"action_{self.name}_logit_{word}" for word in words)


@dataclass(frozen=True)
class Schema:
    """Observation and action fields, in the order of the flat arrays.

    The observation of one step is a flat array `[O]`, the fields concatenated. Actions
    are a flat array `[A]` when continuous, one integer when discrete.
    """

    observations: tuple[Field, ...]
    actions: tuple[ActionField, ...]

    def __post_init__(self) -> None:
        """Checks that programs can name, and tables can hold, every field.

        Raises:
          StructjaxError: a name, size or range that cannot be used.
        """
        for field in self.observations:
            _check_name(field.name, "observation field", field.name.split("."))
            _check_size(field)
        for action in self.actions:
            _check_name(action.name, "action", [action.name])
            _check_action(action)
        if self.discrete and len(self.actions) > 1:
            names = ", ".join(action.name for action in self.actions)
            raise _refused(f"{len(self.actions)} actions ({names}), one with choices")
        _check_distinct([f.name for f in self.observations], "observation field")
        _check_distinct([a.name for a in self.actions], "action")
        _check_distinct(self.columns(), "observation column")
        _check_distinct([c for a in self.actions for c in a.columns], "action column")

    @property
    def observation_size(self) -> int:
        """O, the length of the flat observation."""
        return sum(field.width for field in self.observations)

    @property
    def discrete(self) -> bool:
        """Whether the single action is a choice."""
        return any(action.choices is not None for action in self.actions)

    def slice_of(self, name: str) -> slice:
        """Where the field `name` lies in the flat observation."""
        start = 0
        for field in self.observations:
            if field.name == name:
                return slice(start, start + field.width)
            start += field.width
        raise KeyError(name)

    def columns(self, prefix: str = "obs_") -> tuple[str, ...]:
        """One column per value of the flat observation."""
        return tuple(c for field in self.observations for c in field.columns(prefix))

    @property
    def action_low(self) -> np.ndarray:
        """`[A]` lower bounds."""
        return np.array([action.low for action in self.actions], np.float32)

    @property
    def action_high(self) -> np.ndarray:
        """`[A]` upper bounds."""
        return np.array([action.high for action in self.actions], np.float32)

    def mirror_observation(self, obs: np.ndarray) -> np.ndarray:
        """The observation `[..., O]` in the left-right mirrored world.

        Raises:
          ValueError: a field has no mirror sign.
        """
        mirrored = np.array(obs, copy=True)
        for field in self.observations:
            if field.mirror is None:
                raise ValueError(f"field {field.name!r} has no mirror sign")
            part = obs[..., self.slice_of(field.name)]
            if field.mirror_order is not None:
                part = part[..., list(field.mirror_order)]
            mirrored[..., self.slice_of(field.name)] = field.mirror * part
        return mirrored


def _refused(message: str) -> StructjaxError:
    return StructjaxError(
        f"the schema has {message}",
        kind="schema",
        hint="distinct names as in Python, ranges with low < high and one choice, or "
        "continuous actions, are accepted",
    )


def _check_name(name: str, what: str, parts: Sequence[str]) -> None:
    """Refuses a name that no program can write."""
    for part in parts:
        if (
            not (part.isascii() and part.isidentifier())
            or keyword.iskeyword(part)
            or part.startswith("__")
        ):
            raise _refused(f"the {what} {name!r}, which no program can name")


def _check_size(field: Field) -> None:
    size = field.size
    if size is not None and (not isinstance(size, Integral) or size < 1):
        raise _refused(f"the observation field {field.name!r} of size {size!r}")
    if not field.low <= field.high:
        raise _refused(
            f"the observation field {field.name!r} with the range [{field.low:g}, "
            f"{field.high:g}]"
        )


def _check_action(action: ActionField) -> None:
    if action.choices is not None:
        if len(set(action.choices)) < max(1, len(action.choices)):
            raise _refused(f"the action {action.name!r} of choices {action.choices}")
    elif not -math.inf < action.low < action.high < math.inf:
        raise _refused(
            f"the action {action.name!r} with the range [{action.low:g}, "
            f"{action.high:g}]"
        )


def _check_distinct(names: Sequence[str], what: str) -> None:
    """Refuses names that occur twice."""
    for name, count in Counter(names).items():
        if count > 1:
            raise _refused(f"the {what} {name!r} {count} times")
