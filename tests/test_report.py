"""The page and the summary of a run: everything that happened, and odd runs too."""

from dataclasses import replace

import pytest
from test_refine import REPLIES, TESTS, revise, run
from toy import toy_task

from structjax.cli.refine import summary
from structjax.errors import StructjaxError
from structjax.llm.scripted import ScriptedModel
from structjax.policy_file import load_policy
from structjax.refinement import RefinementConfig
from structjax.report import write_report
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


def test_an_unfinished_run_has_its_best_round_so_far(tmp_path):
    def reply(request):
        if request.slot == "round2/tests":
            raise KeyboardInterrupt
        return REPLIES[request.slot]

    told = []
    with pytest.raises(KeyboardInterrupt):
        refine(
            toy_task(),
            ScriptedModel(reply),
            config=RefinementConfig(rounds=3),
            directory=tmp_path / "run",
            progress=told.append,
        )
    # Gain 0.5, then 1, then 0.25, which the gate refuses.
    gates = [line for line in told if "gate " in line]
    mean = -0.45 * sum(0.75**k for k in range(1, 6))
    assert gates[0] == f"round 0: gate {mean:.1f}, accepted"
    assert [line.split(", ")[-1] for line in gates] == [
        *("accepted", "accepted", "refused")
    ]
    found = load_policy(tmp_path / "run", toy_task())
    assert found.values["gain"] == 1.0
    assert "unfinished (status interrupted): round 1 is its best so far" in found.note
    page = write_report(tmp_path / "run", toy_task()).read_text()
    assert "round 1 is the best so far; not evaluated yet" in page
    assert "<tr><td>2<td>refused" in page


def test_before_the_first_round_there_is_nothing_to_report(tmp_path):
    def reply(request):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, ScriptedModel(reply))
    with pytest.raises(StructjaxError, match="has no accepted round yet"):
        write_report(tmp_path / "run", toy_task())
    with pytest.raises(StructjaxError, match="has no best round yet"):
        load_policy(tmp_path / "run", toy_task())


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
