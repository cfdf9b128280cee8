"""Ranges of options, checked when a configuration is made."""

import math
from collections.abc import Sequence
from numbers import Integral
from typing import Any

from structjax.errors import StructjaxError

MAX_SEED = 2**32 - 1
"""The largest seed that every random generator in use takes."""


def whole_number(options: Any, name: str, *, low: int, high: int | None = None) -> None:
    """Checks an option that is a whole number; None stands for no value.

    Raises:
      StructjaxError: it is no whole number, or out of range.
    """
    value = getattr(options, name)
    whole = isinstance(value, int) and not isinstance(value, bool)
    if not whole or value < low or (high is not None and value > high):
        raise _refused(name, value, f"a whole number {_between(low, high)}")


def real_number(
    options: Any, name: str, *, low: float, high: float | None = None
) -> None:
    """Checks an option that is a finite number.

    Raises:
      StructjaxError: it is no number, not finite, or out of range.
    """
    value = getattr(options, name)
    real = isinstance(value, int | float) and not isinstance(value, bool)
    if not (real and low <= value < math.inf) or (high is not None and value > high):
        raise _refused(name, value, f"a finite number {_between(low, high)}")


def one_of(options: Any, name: str, accepted: Sequence[str]) -> None:
    """Checks an option that is one of a few words.

    Raises:
      StructjaxError: it is another.
    """
    value = getattr(options, name)
    if value not in accepted:
        raise StructjaxError(
            f"option {name} is {value!r:.60}",
            kind="options",
            hint=f"accepted: {', '.join(accepted)}",
        )


def seed_number(value: int, name: str) -> int:
    """A seed as every random generator takes it.

    Raises:
      StructjaxError: it is negative or too large.
    """
    if not 0 <= value <= MAX_SEED:
        raise _refused(name, value, f"a whole number {_between(0, MAX_SEED)}")
    return value


def episode_seed(seed: Any) -> int:
    """The seed of an episode.

    Raises:
      StructjaxError: it is no whole number, negative or too large.
    """
    whole = isinstance(seed, Integral) and not isinstance(seed, bool)
    if not whole or not 0 <= seed <= MAX_SEED:
        raise StructjaxError(
            f"seed {seed!r:.60}",
            kind="seeds",
            hint=f"accepted: whole numbers {_between(0, MAX_SEED)}",
        )
    return int(seed)


def episode_seeds(seeds: Sequence[Any]) -> tuple[int, ...]:
    """The seeds of one or more episodes.

    Raises:
      StructjaxError: there are none, or one is none.
    """
    if len(seeds) == 0:
        raise StructjaxError(
            "no seeds",
            kind="seeds",
            hint=f"accepted: one or more whole numbers {_between(0, MAX_SEED)}",
        )
    return tuple(episode_seed(seed) for seed in seeds)


def _between(low: float, high: float | None) -> str:
    return (
        f"of at least {low:.15g}" if high is None else f"in [{low:.15g}, {high:.15g}]"
    )


def _refused(name: str, value: Any, accepted: str) -> StructjaxError:
    return StructjaxError(
        f"option {name} is {value!r:.60}", kind="options", hint=f"it must be {accepted}"
    )
