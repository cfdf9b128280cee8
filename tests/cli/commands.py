"""Commands as a user gives them."""

from pathlib import Path

import pytest

from structjax.cli import main

TOY = f"{Path(__file__).parent.parent / 'toy.py'}:toy_task"


def run(capsys, *arguments):
    """Exit status, stdout and stderr of one command."""
    with pytest.raises(SystemExit) as stopped:
        main([str(a) for a in arguments])
    captured = capsys.readouterr()
    return stopped.value.code, captured.out, captured.err


def refused(capsys, *arguments):
    """The one line of a refused command."""
    code, out, err = run(capsys, *arguments)
    assert code == 2
    assert "Traceback" not in out + err
    lines = [line for line in err.splitlines() if line.startswith("structjax: error")]
    assert len(lines) == 1
    return lines[0]
