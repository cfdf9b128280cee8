"""The page and the summary of a run: everything that happened, and odd runs too."""

from dataclasses import replace

import pytest
from test_refine import REPLIES, TESTS, revise, run
from toy import toy_task

from structjax.cli.refine import summary
from structjax.llm.scripted import ScriptedModel
from structjax.refinement import RefinementConfig
from structjax.session import refine


def test_the_report_shows_every_additional_test(tmp_path):
    # Round 0: tests, then three extra ones, in the order in which they were asked for.
    asked = [
        f"Look.\n\nACTION: test\n\n{TESTS.replace('rows', f'look_{i}')}"
        for i in range(3)
    ]
    slots = ("round0/revise", "round0/extra1", "round0/extra2")
    replies = {**REPLIES, **dict(zip(slots, asked, strict=True))}
    replies["round0/extra3"] = revise(1.0)
    outcome = run(tmp_path, ScriptedModel(replies), rounds=1, extra_tests=3)
    page = (outcome.run / "report.html").read_text()
    places = [page.index(f"look_{i} 40") for i in range(3)]
    assert places == sorted(places)


def test_a_single_gate_seed_ends_in_a_report(tmp_path):
    task = toy_task()
    task = replace(task, seeds={**task.seeds, "gate": range(2001, 2002)})
    outcome = refine(
        task,
        ScriptedModel(REPLIES),
        config=RefinementConfig(rounds=1),
        directory=tmp_path / "run",
    )
    gate = outcome.rounds[1].gate
    # From x0 = 0.1: -0.1 * 31 / 32 with gain 1, against gain 0.5.
    better = 0.1 * (sum(0.75**k for k in range(1, 6)) - 31 / 32)
    assert gate.difference == pytest.approx(better, rel=1e-5)
    assert gate.interval is None
    assert "+0.1" in (outcome.run / "report.html").read_text()
    assert "+0.1" in summary(outcome, {"total": 0.0, "compile": 0.0})
