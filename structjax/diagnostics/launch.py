"""Script that becomes the sandbox server; started by path, in an isolated interpreter.

It imports the server's few modules without running `structjax/__init__.py`.
"""

import json
import shutil
import sys
import types
from pathlib import Path


def _adopt(name: str, directory: Path) -> None:
    """A package at `directory` whose `__init__` does not run."""
    package = types.ModuleType(name)
    package.__path__ = [str(directory)]
    sys.modules[name] = package


def main() -> None:
    """Takes `{"level", "readable", "paths", "directory"}` as JSON, the one argument."""
    settings = json.loads(sys.argv[1])
    here = Path(__file__).resolve().parent
    sys.path[:] = [p for p in sys.path if p and Path(p).resolve() != here]
    sys.path += [p for p in settings["paths"] if p not in sys.path]
    _adopt("structjax", here.parent)
    _adopt("structjax.diagnostics", here)
    from structjax.diagnostics.server import serve

    try:
        serve(settings["level"], settings["readable"] + sys.path)
    finally:  # the client may have been killed
        shutil.rmtree(settings["directory"], ignore_errors=True)


if __name__ == "__main__":
    main()
