"""Why a module is not accepted: an exception that becomes a Problem."""

#: Codes of problems that only PyTorch modules have; the others are the language's own.
TORCH_CODES = {
    "IN_PLACE": "an operation that changes a tensor in place",
    "BUFFER": "state of a module that is not a trainable parameter",
    "TRAINING": "training, gradients or sampling inside a policy",
    "CONTROL": "Python control flow that depends on a tensor",
    "INPUT": "an input of `forward` that is no part of the observation",
    "OUTPUT": "a return value that is not a distribution of the actions",
    "INFO": "an entry of the info dictionary that cannot be logged",
    "GUARDED": "warning: plain in PyTorch, guarded here",
    "CLEANED": "warning: infinities that PyTorch replaces by other numbers",
    "RENAMED": "warning: a name that the language needs for itself",
}


class Refused(Exception):
    """A part of a module that is not accepted.

    Attributes:
      code, message, hint: of the problem.
      line: where it is; None until the expression that holds it adds its own.
    """

    def __init__(
        self, code: str, message: str, hint: str = "", line: int | None = None
    ) -> None:
        super().__init__(message)
        self.code, self.message, self.hint, self.line = code, message, hint, line


class Silent(Exception):
    """A value is missing because of a problem that is noted already."""


class Exhausted(Exception):
    """The module expands beyond its budget; the problem is noted already."""
