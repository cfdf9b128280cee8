"""What a sample must be: finite numbers, and enough of them."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from structjax.errors import StructjaxError

Values = NDArray[np.float64]


def sample(values: ArrayLike, *, unit: str, least: int = 2) -> Values:
    """The values as `[n]` float64.

    Raises:
      StructjaxError: not one list of numbers, fewer than `least`, or one not finite.
    """
    array = np.asarray(values, np.float64)
    if array.ndim != 1:
        text = f"values of shape {list(array.shape)} are not one number per {unit}"
        raise StructjaxError(text, kind="statistics", hint="give a flat list")
    if len(array) < least:
        raise StructjaxError(
            f"{len(array)} {unit}: no interval and no test is possible",
            kind="statistics",
            hint=f"give at least {least}",
        )
    if count := int((~np.isfinite(array)).sum()):
        raise StructjaxError(
            f"{count} of {len(array)} values are not finite",
            kind="statistics",
            hint="find out which runs failed; none is dropped silently",
        )
    return array


def pairs(first: ArrayLike, second: ArrayLike, *, unit: str) -> tuple[Values, Values]:
    """Two samples of the same units, in the same order.

    Raises:
      StructjaxError: as `sample`, or their lengths differ.
    """
    a, b = sample(first, unit=unit), sample(second, unit=unit)
    if len(a) != len(b):
        raise StructjaxError(
            f"{len(a)} and {len(b)} values are not pairs",
            kind="statistics",
            hint="pair the same units, or use the Welch test",
        )
    return a, b


def strata_of(strata: ArrayLike | None, n: int) -> list[NDArray[np.intp]]:
    """The indices of each stratum `[n_s]`, in order of appearance.

    A stratum of one unit would never vary when it is resampled. If there is one, all
    units form one stratum.

    Raises:
      StructjaxError: not one label per unit.
    """
    whole = [np.arange(n)]
    if strata is None:
        return whole
    labels = [str(label) for label in np.asarray(strata).tolist()]
    if len(labels) != n:
        raise StructjaxError(
            f"{len(labels)} strata for {n} values",
            kind="statistics",
            hint="give one label per value",
        )
    places: dict[str, list[int]] = {}
    for index, label in enumerate(labels):
        places.setdefault(label, []).append(index)
    found = [np.asarray(indices) for indices in places.values()]
    return whole if any(len(indices) < 2 for indices in found) else found
