"""The state of reading one module, and how expressions are read."""

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from structjax.language.names import did_you_mean
from structjax.language.syntax import excerpt
from structjax.language.torch_source.refusal import Refused, Silent
from structjax.language.torch_source.trace import Trace
from structjax.language.torch_source.values import FAULT, Function, Namespace, Tensor


@dataclass
class Declared:
    """A scalar parameter of the module.

    Attributes:
      attribute: name of the tensor that holds it.
      initial: written start.
      line: of its declaration.
    """

    attribute: str
    initial: float
    line: int


@dataclass
class Frame:
    """The names of one function while its body is read."""

    names: dict[str, Any] = field(default_factory=dict)
    function: str = ""


@dataclass
class Machine:
    """Everything that is known about one file.

    Attributes:
      trace: the operations so far.
      refused: nodes that are noted already.
      handlers: how each type of expression is read.
      run_function: executes a function of the module.
      names: of the file: imports, constants, functions.
      attributes: of `self`.
      methods: of the class.
      parameters: scalar parameters by name.
      calling: functions being executed.
      initialising: whether `__init__` is being read.
      inputs: what the inputs of `forward` hold, for messages.
    """

    trace: Trace
    refused: set[ast.AST]
    handlers: "Mapping[type, Callable[..., Any]]"
    run_function: "Callable[..., Any]"
    names: dict[str, Any] = field(default_factory=dict)
    attributes: dict[str, Any] = field(default_factory=dict)
    methods: dict[str, Function] = field(default_factory=dict)
    parameters: dict[str, Declared] = field(default_factory=dict)
    calling: list[str] = field(default_factory=list)
    initialising: bool = False
    inputs: str = ""

    def evaluate(self, node: ast.expr, frame: Frame) -> Any:
        """The value of an expression.

        Raises:
          Refused: it is not accepted; the exception holds the line.
          Silent: a part of it is noted already.
        """
        if node in self.refused:
            raise Silent
        self.trace.spend()
        line = self.trace.line
        self.trace.line = node.lineno
        try:
            value = self.handlers[type(node)](node, frame, self)
        except Refused as refusal:
            if refusal.line is None:
                refusal.line = node.lineno
                refusal.message = f"`{excerpt(node)}`: {refusal.message}"
            raise
        self.trace.line = line
        if isinstance(value, Tensor):
            self.trace.spend(value.elements.size // 16)
        if value is FAULT:
            raise Silent
        return value

    def attempt(self, node: ast.expr, frame: Frame) -> Any:
        """The value of an expression, or `FAULT` with the reason noted."""
        try:
            return self.evaluate(node, frame)
        except Refused as refusal:
            self.note(refusal, node)
        except Silent:
            pass
        return FAULT

    def note(self, refusal: Refused, node: ast.AST) -> None:
        """Notes why something is not accepted."""
        line = refusal.line or cast(ast.expr, node).lineno
        hint = refusal.hint
        if refusal.code == "INDEX" and self.inputs:
            hint = "; ".join(filter(None, (hint, f"inputs: {self.inputs}")))
        self.trace.problems.error(refusal.code, line, refusal.message, hint)

    def name(self, name: str, frame: Frame) -> Any:
        """What a name means.

        Raises:
          Refused: it means nothing.
        """
        for names in (frame.names, self.names, IMPLICIT):
            if name in names:
                return names[name]
        if name in FORBIDDEN:
            raise Refused("CALL", "not accepted", FORBIDDEN[name])
        if name in BUILTINS:
            return Namespace(("builtins", name))
        known = (*frame.names, *self.names, *BUILTINS)
        raise Refused("NAME", "the name is not known", did_you_mean(name, known))


#: What a file means without importing it.
IMPLICIT: dict[str, Any] = {
    "torch": Namespace(("torch",)),
    "nn": Namespace(("torch", "nn")),
    "F": Namespace(("torch", "nn", "functional")),
    "math": Namespace(("math",)),
}

BUILTINS = (
    *("abs", "min", "max", "sum", "len", "range", "enumerate", "zip", "list", "tuple"),
    *("dict", "float", "int", "bool", "str", "super", "reversed", "isinstance"),
)

_NOTHING = "a policy computes actions from an observation, nothing else"
FORBIDDEN = {
    name: _NOTHING
    for name in (
        *("eval", "exec", "compile", "open", "input", "getattr", "setattr", "delattr"),
        *("globals", "locals", "vars", "dir", "type", "object", "breakpoint", "exit"),
        *("hasattr", "callable", "id", "iter", "next", "map", "filter", "any", "all"),
    )
} | {"print": "info entries are logged without it", "round": "it has no derivative"}
