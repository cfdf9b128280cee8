"""Reads calls: PyTorch's functions and methods, the module's own, a few of Python's."""

import ast
import inspect
from collections.abc import Callable
from typing import Any

from structjax.language.names import did_you_mean
from structjax.language.structure import Number
from structjax.language.torch_source.cleaning import CLEANING
from structjax.language.torch_source.creation import CREATION
from structjax.language.torch_source.functions import ELEMENTWISE
from structjax.language.torch_source.indexing import item
from structjax.language.torch_source.linear import LINEAR
from structjax.language.torch_source.machine import Frame, Machine
from structjax.language.torch_source.python import MATH, PYTHON, list_method
from structjax.language.torch_source.reductions import REDUCTIONS
from structjax.language.torch_source.refusal import Refused, Silent
from structjax.language.torch_source.types import check_dtype, retyped
from structjax.language.torch_source.values import (
    FAULT,
    Extremes,
    Function,
    Method,
    Namespace,
    NewParameter,
    Self,
    Tensor,
    kind,
    tensor,
)
from structjax.language.torch_source.views import VIEWS

FUNCTIONS: dict[str, Callable[..., Any]] = {
    **ELEMENTWISE,
    **REDUCTIONS,
    **VIEWS,
    **LINEAR,
    **CREATION,
    **CLEANING,
}
"""PyTorch's functions and methods that are accepted."""

_RETYPING = ("float", "to", "type_as", "bool", "type")
_ALIASES = {"axis": "dim", "keepdims": "keepdim"}
_PLACES = ("dtype", "device", "requires_grad")
_ROOTS = (
    *(("torch",), ("torch", "nn", "functional"), ("torch", "linalg")),
    ("torch", "special"),
)

_NOISE = "noise belongs to the distribution of the action"
_DIFFERENTIATED = "the whole policy is differentiated and trained from outside"
_TRAINING = {
    **dict.fromkeys(("rand", "randn", "randint", "normal", "bernoulli"), _NOISE),
    **dict.fromkeys(("rand_like", "randn_like", "sample", "rsample"), _NOISE),
    **dict.fromkeys(("dropout", "multinomial", "normal_", "uniform_"), _NOISE),
    **dict.fromkeys(("manual_seed",), _NOISE),
    **dict.fromkeys(("detach", "backward", "requires_grad_"), _DIFFERENTIATED),
    **dict.fromkeys(("no_grad", "enable_grad", "zero_grad"), _DIFFERENTIATED),
    **dict.fromkeys(("train", "eval", "step", "load_state_dict"), _DIFFERENTIATED),
    **dict.fromkeys(("parameters", "named_parameters"), _DIFFERENTIATED),
}
_UNUSABLE = {
    **dict.fromkeys(("double", "half", "int", "long"), "values are float32"),
    **dict.fromkeys(("item", "tolist", "numpy", "cpu"), "values stay tensors"),
    **dict.fromkeys(
        ("argmax", "argmin", "argsort", "sort", "topk"), "choose by `where`"
    ),
    **dict.fromkeys(("round", "floor", "ceil", "trunc"), "rounding has no derivative"),
    **dict.fromkeys(("gather", "index_select", "take"), "indices are constants"),
}


def lower_call(node: ast.Call, frame: Frame, machine: Machine) -> Any:
    """The value of a call.

    Raises:
      Refused: the function or its arguments are not accepted.
    """
    callee = machine.evaluate(node.func, frame)
    _check(callee, machine)
    values = [machine.attempt(a, frame) for a in node.args]
    options = {k.arg or "**": machine.attempt(k.value, frame) for k in node.keywords}
    if isinstance(callee, Function):
        return machine.run_function(callee, values, options, machine)
    if any(v is FAULT for v in (*values, *options.values())) and not (
        isinstance(callee, Method) and isinstance(callee.receiver, list | dict)
    ):
        raise Silent
    if isinstance(callee, Method):
        return _method(callee, values, options, machine)
    if isinstance(callee, Namespace):
        return _library(callee, values, options, machine)
    raise Refused("CALL", f"{kind(callee)} is not a function")


def _check(callee: Any, machine: Machine) -> None:
    """Refuses what can be refused by its name alone."""
    name = callee.name if isinstance(callee, Method) else ""
    if isinstance(callee, Namespace) and callee.path[0] == "torch":
        name = callee.path[-1]
        if callee.path[1:2] == ("optim",) or callee.path[1:2] == ("autograd",):
            raise Refused("TRAINING", "training in a policy", _DIFFERENTIATED)
        if callee.path[1:2] == ("distributions",):
            hint = "return the mean and the Cholesky factor"
            raise Refused("TRAINING", "a distribution object", hint)
    if name in _TRAINING:
        what = "randomness" if _TRAINING[name] is _NOISE else "training"
        raise Refused("TRAINING", f"{what} in a policy", _TRAINING[name])
    if name.endswith("_") and not name.startswith("_"):
        hint = f"write `x = x.{name.rstrip('_')}(...)`"
        raise Refused("IN_PLACE", "an operation in place", hint)
    if name == "register_buffer":
        hint = "a trained tensor is `nn.Parameter`, a constant is a number"
        raise Refused("BUFFER", "a buffer is not trained", hint)
    if name in _UNUSABLE and not isinstance(getattr(callee, "receiver", None), dict):
        raise Refused("CALL", f"`{name}` is not accepted", _UNUSABLE[name])


def _method(callee: Method, values: Any, options: Any, machine: Machine) -> Any:
    receiver, name = callee.receiver, callee.name
    if isinstance(receiver, list | dict):
        return list_method(receiver, name, values, options)
    if isinstance(receiver, Self):
        hint = "helper methods are defined in the class"
        raise Refused("CALL", f"the module has no method `{name}`", hint)
    if isinstance(receiver, Extremes):
        raise Refused(
            "CALL", f"`.{name}` of values and indices", "take `.values` first"
        )
    operand = tensor(receiver)
    if name in _RETYPING:
        return retyped(operand, name, values, options)
    if name in ("size", "dim", "numel"):
        return _measure(operand, name, values, machine)
    if name not in FUNCTIONS or name in ("cat", "stack", "zeros", "ones"):
        raise _unknown(f"tensors have no `{name}` here", name)
    if name == "where":
        condition, other = [*values, None, None][:2]
        return call("where", machine, [condition, operand, other], options)
    return call(name, machine, [operand, *values], options)


def _measure(operand: Tensor, name: str, values: Any, machine: Machine) -> Any:
    if name == "dim":
        return operand.ndim
    if name == "size":
        return item(operand.shape, values[0]) if values else operand.shape
    if operand.batch is not None:
        raise Refused("SHAPE", "the number of elements of a batch")
    return operand.elements.size


def _library(callee: Namespace, values: Any, options: Any, machine: Machine) -> Any:
    *root, name = callee.path
    if root == ["builtins"] and name in PYTHON:
        return _bound(PYTHON[name], name, machine, values, options)
    if root == ["math"] and name in MATH:
        return MATH[name](machine.trace, *values)
    if tuple(root) == ("torch", "nn") and name == "Parameter":
        return _parameter(values, options, machine)
    if tuple(root) == ("torch", "nn"):
        hint = "every weight is an `nn.Parameter` with a name; layers have none"
        raise Refused("CALL", f"`nn.{name}` is not accepted", hint)
    qualified = (
        f"{root[-1]}.{name}" if root and root[-1] in ("linalg", "special") else name
    )
    if tuple(root) in _ROOTS and qualified in FUNCTIONS:
        return call(qualified, machine, values, options)
    if tuple(root) in _ROOTS and name in FUNCTIONS and qualified != name:
        return call(name, machine, values, options)
    raise _unknown(f"`{callee.text}` is not accepted", name)


def _unknown(message: str, name: str) -> Refused:
    guess = did_you_mean(name, FUNCTIONS)
    return Refused("CALL", message, guess or "docs/torch.md lists what is accepted")


def call(
    name: str, machine: Machine, values: list[Any], options: dict[str, Any]
) -> Any:
    """One of PyTorch's functions on evaluated arguments.

    Raises:
      Refused: the arguments do not fit.
    """
    options = {_ALIASES.get(key, key): value for key, value in options.items()}
    if "out" in options:
        raise Refused(
            "IN_PLACE", "`out=` changes a tensor in place", "assign the result"
        )
    boolean = "dtype" in options and check_dtype(options["dtype"])
    if boolean:
        raise Refused("TYPE", "a constant of truth values", "write a comparison")
    options = {k: v for k, v in options.items() if k not in _PLACES}
    return _bound(FUNCTIONS[name], name, machine, values, options)


def _bound(
    function: Callable[..., Any],
    name: str,
    machine: Machine,
    values: list[Any],
    options: dict[str, Any],
) -> Any:
    signature = inspect.signature(function)
    try:
        signature.bind(machine.trace, *values, **options)
    except TypeError as error:
        accepted = [str(p) for p in list(signature.parameters.values())[1:]]
        text = ", ".join(p.split(":")[0] + _default(p) for p in accepted)
        raise Refused(
            "ARITY", f"{name}: {error}", f"accepted: {name}({text})"
        ) from error
    return function(machine.trace, *values, **options)


def _default(parameter: str) -> str:
    return f"={parameter.rpartition('= ')[2]}" if "= " in parameter else ""


def _parameter(values: list[Any], options: dict[str, Any], machine: Machine) -> Any:
    if not machine.initialising:
        hint = "parameters are set in `__init__`"
        raise Refused("WEIGHT", "a parameter made outside `__init__`", hint)
    if options.pop("requires_grad", True) is not True:
        hint = "a trained tensor is `nn.Parameter`, a constant is a number"
        raise Refused("BUFFER", "a parameter that is not trained", hint)
    values = [*values, *options.values()]
    if len(values) != 1:
        raise Refused("ARITY", "nn.Parameter takes one tensor")
    if not isinstance(values[0], Tensor):
        hint = "write `nn.Parameter(torch.tensor(0.5))`"
        raise Refused("WEIGHT", f"a parameter from {kind(values[0])}", hint)
    elements = values[0].elements
    if not all(isinstance(e, Number) for e in elements.flat):
        raise Refused("WEIGHT", "a start that is not constant", "write numbers")
    return NewParameter(elements)
