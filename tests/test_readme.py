"""The README's code runs as it stands and prints the numbers written beside it."""

import contextlib
import io
import re
from pathlib import Path

import pytest

README = (Path(__file__).parent.parent / "README.md").read_text()


def test_the_first_block_prints_the_numbers_beside_it():
    block = re.search(r"```python\n(.*?)```", README, re.DOTALL)[1]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(block, "README.md", "exec"), {})
    written = re.findall(r"print\(.*# (-?[\d.]+)", block)
    assert len(written) == 2
    # Another processor rounds differently: a tile more or less on one of ten tracks as
    # written (0.35 each), a little more after a fit, which amplifies it.
    tolerances = (1.0, 8.0)
    numbers = zip(printed.getvalue().split(), written, tolerances, strict=True)
    for line, number, tolerance in numbers:
        assert float(line) == pytest.approx(float(number), abs=tolerance)
