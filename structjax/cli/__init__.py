"""The command line: thin commands over the Python API."""

from structjax.cli.main import main

__all__ = ["main"]
