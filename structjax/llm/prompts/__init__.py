"""The prompt files, as templates with `$placeholders`."""

from functools import cache
from pathlib import Path
from string import Template


@cache
def _template(name: str) -> Template:
    return Template((Path(__file__).parent / f"{name}.md").read_text().strip())


def fill(name: str, **values: object) -> str:
    """The prompt `name` with every placeholder filled.

    Raises:
      KeyError: a placeholder has no value.
    """
    return _template(name).substitute({k: str(v) for k, v in values.items()})
