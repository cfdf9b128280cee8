"""What the content of a JSON file must look like, and what is wrong when it does not.

A form is a type, or is made of forms: `{key: form}` needs these keys and allows others,
`[form]` is a list, `Many(form, n)` one of n items, `Each(form)` an object with any
keys, `Maybe(form)` also null or absent.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from structjax.errors import StructjaxError
from structjax.files import read_json

LARGEST = 3.4028234663852886e38
"""Numbers beyond it are infinite in single precision."""

_NAMES: dict[Any, str] = {
    str: "a text",
    bool: "true or false",
    int: "a whole number of at least 0",
    float: "a finite number",
    dict: "an object",
    list: "a list",
}
_WORDS = {"None": "null", "True": "true", "False": "false"}


@dataclass(frozen=True)
class Each:
    """An object whose values all have one form."""

    form: Any


@dataclass(frozen=True)
class Many:
    """A list of so many items of one form."""

    form: Any
    count: int


@dataclass(frozen=True)
class Maybe:
    """A form, or null, or (of a key) nothing."""

    form: Any


def mismatch(value: Any, form: Any, place: str = "") -> str:
    """Where a value differs from a form, and what is accepted; empty if nowhere."""
    if isinstance(form, Maybe):
        return "" if value is None else mismatch(value, form.form, place)
    if isinstance(form, Many):
        if isinstance(value, list) and len(value) != form.count:
            return f"{place or 'it'} has {len(value)} items, {form.count} are accepted"
        form = [form.form]
    if isinstance(form, type):
        return "" if _is(value, form) else _differs(value, place, _NAMES[form])
    if isinstance(form, list):
        if not isinstance(value, list):
            return _differs(value, place, "a list")
        parts = [(f"{place}[{i}]", item, form[0]) for i, item in enumerate(value)]
    elif not isinstance(value, dict):
        return _differs(value, place, "an object")
    elif isinstance(form, Each):
        parts = [(_inside(place, k), item, form.form) for k, item in value.items()]
    else:
        absent = [k for k in form if k not in value and not isinstance(form[k], Maybe)]
        if absent:
            return f"{_inside(place, absent[0])} is missing"
        parts = [(_inside(place, k), value.get(k), form[k]) for k in form]
    return next((m for p, v, f in parts if (m := mismatch(v, f, p))), "")


def _is(value: Any, kind: type) -> bool:
    if kind is float:
        number = isinstance(value, int | float) and not isinstance(value, bool)
        return number and abs(value) <= LARGEST  # no NaN either
    if kind is int:
        return isinstance(value, int) and not isinstance(value, bool) and value >= 0
    return isinstance(value, kind)


def _inside(place: str, key: Any) -> str:
    return f"{place}.{key}" if place else str(key)


def _differs(value: Any, place: str, accepted: str) -> str:
    if isinstance(value, dict | list):
        shown = "an object" if isinstance(value, dict) else "a list"
    else:
        shown = _WORDS.get(repr(value), repr(value)[:40])
    return f"{place or 'it'} is {shown}, {accepted} is accepted"


def read_form(path: Path, form: Any, *, what: str, kind: str, hint: str) -> Any:
    """The content of a JSON file that has a form.

    Raises:
      StructjaxError: it cannot be read, or its content is something else.
    """
    value = read_json(path, kind=kind, hint=hint)
    if problem := mismatch(value, form):
        text = f"{path} is not {what}: {problem}"
        raise StructjaxError(text, kind=kind, hint=hint)
    return value
