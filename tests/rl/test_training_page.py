"""docs/training.md: its presets are the presets, its Python runs as it stands."""

import re
from pathlib import Path

from structjax.rl.presets import ALL

PAGE = Path(__file__).parent.parent.parent / "docs" / "training.md"


def test_the_table_has_every_preset():
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    named = {name for row in rows for name in re.findall("`(\\w+)`", row.split("|")[1])}
    assert named == set(ALL)


def test_the_python_block_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(PAGE.parent.parent)
    block = re.search(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)[1]
    block = block.replace("runs/pendulum_example", str(tmp_path / "run"))
    exec(compile(block, str(PAGE), "exec"), {})
    printed = capsys.readouterr().out.split()
    assert printed[:3] == ["training_seed", "resets", "mean"]
    assert (tmp_path / "run" / "evaluations.csv").exists()
