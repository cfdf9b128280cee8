"""The entry point, before any command is known."""

import sys

import pytest

from structjax.__main__ import run


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
