"""What a confined child does: parse the code, run its top level, call one function.

Imports numpy and pandas only through the server that forked it.
"""

import ast
import io
import json
import os
import random
import sys
import traceback
import types
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from structjax.diagnostics import precheck

FILE = "<diagnostic>"
MODULE = "module"
EXIT_OK, EXIT_EXCEPTION, EXIT_MEMORY = 0, 10, 11
_MAX_MESSAGE, _MAX_LINE = 2000, 160


@dataclass(frozen=True)
class Job:
    """One child's work.

    Attributes:
      code: the program text.
      name: the function to call, or `"module"` for the top level alone.
      wall: seconds until it is killed.
      memory_mb: MiB it may map on top of what the server has.
      static_check: whether refused imports and names are reported before anything runs.
    """

    code: str
    name: str
    wall: float
    memory_mb: int
    static_check: bool


def execute(job: Job, table: Any, announce: Callable[[bytes], None]) -> int:
    """Runs the job with its text on stdout; returns the exit status.

    Args:
      job: what to run.
      table: the rollout table, or None.
      announce: takes the functions' names as JSON, before any of the code runs.
    """
    sys.stdout = _text_stream(1)
    sys.stderr = sys.stdout
    status = EXIT_EXCEPTION
    try:
        compiled = _compile(job, announce)
        if compiled is not None:
            _run(job, compiled, table)
            status = EXIT_OK
    except MemoryError:
        status = EXIT_MEMORY
        _write("MemoryError: the memory limit is reached")
    except BaseException as error:
        _write(_describe(error, job.code))
    try:
        sys.stdout.flush()
    except BaseException:
        os.write(1, b"(output lost)")
    return status


def _text_stream(descriptor: int) -> io.TextIOWrapper:
    raw = io.FileIO(descriptor, "w", closefd=False)
    # By line: what a diagnostic printed before it was stopped is not lost.
    return io.TextIOWrapper(
        io.BufferedWriter(raw), "utf-8", errors="replace", line_buffering=True
    )


def _compile(job: Job, announce: Callable[[bytes], None]) -> types.CodeType | None:
    try:
        tree = ast.parse(job.code, FILE)
    except (SyntaxError, ValueError) as error:
        announce(b"[]")
        print(_syntax_message(error))
        return None
    announce(json.dumps(precheck.functions(tree)).encode())
    name = None if job.name == MODULE else job.name
    refused = precheck.problems(tree, name) if job.static_check else []
    if refused:
        print("\n".join(refused))
        return None
    return compile(tree, FILE, "exec")


def _syntax_message(error: SyntaxError | ValueError) -> str:
    if not isinstance(error, SyntaxError):
        return f"{type(error).__name__}: {error}"
    line = (error.text or "").rstrip("\n")[:_MAX_LINE]
    return f"line {error.lineno}: {type(error).__name__}: {error.msg}\n    {line}"


def _run(job: Job, compiled: types.CodeType, table: Any) -> None:
    warnings.simplefilter("ignore")
    random.seed(0)
    module = types.ModuleType("diagnostic")
    sys.modules["diagnostic"] = module  # dataclasses look their module up
    namespace = module.__dict__
    for name, library in (("np", "numpy"), ("pd", "pandas")):
        if library in sys.modules:
            namespace[name] = sys.modules[library]
    if "np" in namespace:
        namespace["np"].random.seed(0)
    if table is not None:
        namespace["df"] = table.copy(deep=False)
    output = sys.stdout
    if job.name != MODULE:
        sys.stdout = sys.stderr = io.StringIO()  # shown once, by the module's own job
    try:
        exec(compiled, namespace)
    finally:
        sys.stdout = sys.stderr = output
    if job.name != MODULE:
        _call(namespace[job.name], table)


def _call(function: Any, table: Any) -> None:
    code = getattr(function, "__code__", None)
    bare = code is not None and code.co_argcount == 0 and not code.co_flags & 0x04
    arguments = () if bare else (None if table is None else table.copy(deep=False),)
    value = function(*arguments)
    if value is not None:
        print(value)


def _describe(error: BaseException, code: str) -> str:
    """The frames of the code itself, then the last line of the traceback."""
    lines = code.splitlines()
    text = []
    for frame in traceback.extract_tb(error.__traceback__):
        if frame.filename == FILE and frame.lineno is not None:
            text.append(f"line {frame.lineno}, in {frame.name}")
            if frame.lineno <= len(lines):
                text.append(f"    {lines[frame.lineno - 1].strip()[:_MAX_LINE]}")
    if len(text) > 20:  # a recursion
        text = [*text[:10], "...", *text[-10:]]
    last = "".join(traceback.format_exception_only(error)).strip()
    if len(last) > _MAX_MESSAGE:
        last = f"{last[:_MAX_MESSAGE]}... ({len(last)} characters)"
    return "\n".join([*text, last])


def _write(text: str) -> None:
    """Past `sys.stdout`, which the code may have replaced or closed."""
    try:
        sys.stdout.flush()
    except BaseException:
        sys.stdout = _text_stream(1)
    try:
        os.write(1, text.encode("utf-8", "replace"))
    except BaseException:
        os._exit(EXIT_EXCEPTION)
