"""The entry point, before any command is known."""

import errno
import io
import sys

import pytest
from cli.commands import refused
from cli.commands import run as command

from structjax.__main__ import run
from structjax.cli.main import _refuse
from structjax.errors import StructjaxError


class Interrupted:
    """An importer in whose work Ctrl-C falls."""

    @staticmethod
    def find_spec(name, *_):
        if name == "structjax.cli":
            raise KeyboardInterrupt


def test_ctrl_c_during_the_imports_is_one_line(capsys, monkeypatch):
    monkeypatch.delitem(sys.modules, "structjax.cli", raising=False)
    monkeypatch.setattr(sys, "meta_path", [Interrupted, *sys.meta_path])
    with pytest.raises(SystemExit) as stopped:
        run()
    assert stopped.value.code == 130
    assert capsys.readouterr().err == "structjax: interrupted\n"


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (
            RuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 9 bytes.\nmore"),
            "not enough memory: Out of memory allocating 9 bytes; play fewer",
        ),
        (MemoryError(), "not enough memory; play fewer"),
    ],
)
def test_a_lack_of_memory_is_one_line(capsys, monkeypatch, error, words):
    def fail(*_):
        raise error

    monkeypatch.setattr("structjax.tasks.registry.task_names", fail)
    assert words in refused(capsys, "tasks")


def test_another_error_is_not_taken_for_a_lack_of_memory(capsys, monkeypatch):
    def fail():
        raise RuntimeError("a fault of ours")

    monkeypatch.setattr("structjax.tasks.registry.task_names", fail)
    with pytest.raises(RuntimeError, match="a fault of ours"):
        command(capsys, "tasks")


def test_a_stdout_that_is_full_every_time_is_told_once(monkeypatch, capsys):
    """Python may keep what it could not write, and fail again at the next flush."""

    class Full(io.StringIO):
        def flush(self):
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(sys, "stdout", Full())
    error = StructjaxError("no", kind="system", hint="yes")
    assert _refuse(error, []) == 2
    assert capsys.readouterr().err == "structjax: error: no; yes\n"
