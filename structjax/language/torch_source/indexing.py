"""`x[:, 0]`, `x[..., :3]`, `x[:, None]`: static indices only."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from structjax.language.torch_source.refusal import Refused
from structjax.language.torch_source.values import Batch, Tensor, kind

_ONE = "a policy treats every observation alike; the first index is `:`"


def index(operand: Tensor, key: Any) -> Tensor:
    """Elements, slices and new axes of a tensor.

    Raises:
      Refused: an index is not static, out of range, or selects within the batch.
    """
    keys = _complete(list(key) if isinstance(key, tuple) else [key], operand)
    numpy_keys: list[Any] = []
    batch, at, lists = None, 0, 0
    for position, one in enumerate(keys):
        if one is None:
            numpy_keys.append(None)
            continue
        if at == operand.batch:
            _check_batch(one)
            batch = sum(not isinstance(k, int) for k in keys[:position])
            numpy_keys.append(slice(None))
        else:
            numpy_keys.append(_static(one, operand, at))
            lists += isinstance(one, list)
        at += 1
    if lists > 1 or (lists and any(k is None or isinstance(k, int) for k in keys)):
        raise Refused(
            "INDEX", "a list of positions beside other indices", "index twice"
        )
    elements = operand.elements[tuple(numpy_keys)]
    if not isinstance(elements, np.ndarray):
        single = np.empty((), object)
        single[()] = elements
        elements = single
    if elements.size == 0:
        raise Refused("INDEX", f"an empty part of {operand.text}")
    return Tensor(elements, batch, operand.boolean)


def _complete(keys: list[Any], operand: Tensor) -> list[Any]:
    """One key per axis, the ellipsis replaced by full slices."""
    given = sum(k is not None and k is not Ellipsis for k in keys)
    if given > operand.ndim:
        raise Refused("INDEX", f"{given} indices for {operand.text}")
    full = [slice(None)] * (operand.ndim - given)
    dots = [i for i, k in enumerate(keys) if k is Ellipsis]
    if len(dots) > 1:
        raise Refused("INDEX", "two ellipses in an index")
    place = dots[0] if dots else len(keys)
    return keys[:place] + full + keys[place + 1 :]


def _check_batch(key: Any) -> None:
    if key == slice(None) or (isinstance(key, slice) and key.start in (None, 0)):
        if key.stop is None and key.step in (None, 1):
            return
        if isinstance(key.stop, Batch) and key.step in (None, 1):
            return
    raise Refused("INDEX", "an index selects within the batch", _ONE)


def _static(key: Any, operand: Tensor, at: int) -> Any:
    length = operand.elements.shape[at]
    if isinstance(key, slice):
        return _slice(key)
    if isinstance(key, list):
        return [_position(k, length, operand, at) for k in key]
    return _position(key, length, operand, at)


def _slice(key: slice) -> slice:
    for bound in (key.start, key.stop, key.step):
        if bound is not None and (
            isinstance(bound, bool) or not isinstance(bound, int)
        ):
            raise Refused("INDEX", f"{kind(bound)} as a bound of a slice")
    if key.step is not None and key.step < 1:
        raise Refused("INDEX", f"a slice with step {key.step}", "use `flip`")
    return key


def _position(key: Any, length: int, operand: Tensor, at: int) -> int:
    if isinstance(key, bool) or not isinstance(key, int):
        hint = "indices are constants; choose between values with `torch.where`"
        raise Refused("INDEX", f"{kind(key)} as an index", hint)
    if not -length <= key < length:
        hint = f"{-length} to {length - 1} is accepted"
        raise Refused("INDEX", f"index {key} of axis {at} of {operand.text}", hint)
    return key


def item(values: Sequence[Any], key: Any) -> Any:
    """An element or slice of a list or tuple.

    Raises:
      Refused: out of range, or not an integer.
    """
    if isinstance(key, slice):
        return values[_slice(key)]
    if isinstance(key, bool) or not isinstance(key, int):
        raise Refused("INDEX", f"{kind(key)} as an index of a list")
    if not -len(values) <= key < len(values):
        raise Refused("INDEX", f"index {key} of a list of {len(values)}")
    return values[key]
