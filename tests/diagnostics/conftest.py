"""A table, and a sandbox that the tests of a module share."""

from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

from structjax.diagnostics.sandbox import Sandbox


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("table") / "table.parquet"
    pd.DataFrame({"episode": [0, 0, 1], "x": [1.0, 2.0, 6.0]}).to_parquet(path)
    return path


@pytest.fixture(scope="module")
def shared(table: Path) -> Iterator[Sandbox]:
    with Sandbox(table) as sandbox:
        yield sandbox
