"""Types of tensors: everything is a float32, or a truth value."""

from typing import Any

from structjax.language.torch_source.functions import truth
from structjax.language.torch_source.refusal import Refused
from structjax.language.torch_source.values import Namespace, Tensor, tensor

_REAL = ("float32", "float", "get_default_dtype")
_SINGLE = "values are float32"


def check_dtype(value: Any) -> bool:
    """Whether a dtype is a truth value's; float32 is the other one.

    Raises:
      Refused: another type.
    """
    name = value.path[-1] if isinstance(value, Namespace) else str(value)
    if name == "bool":
        return True
    if value is None or name in _REAL:
        return False
    raise Refused("TYPE", f"the type `{name}`", _SINGLE)


def retyped(receiver: Tensor, name: str, values: Any, options: Any) -> Tensor:
    """`float`, `to`, `type_as`, `bool`, `type`.

    Raises:
      Refused: another type is wanted.
    """
    if name == "bool":
        return truth(receiver)
    if name == "type_as":
        return Tensor(receiver.elements, receiver.batch, tensor(values[0]).boolean)
    if name == "float":
        return Tensor(receiver.elements, receiver.batch)
    boolean = receiver.boolean
    for value in (*values, *options.values()):
        if isinstance(value, Tensor):
            boolean = value.boolean
        elif isinstance(value, Namespace) and value.path[-1] not in ("device",):
            boolean = check_dtype(value)
    if boolean:
        truth(receiver)
    return Tensor(receiver.elements, receiver.batch, boolean)
