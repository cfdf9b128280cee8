"""What an unfinished or changed run directory says of its best round."""

import json

import pytest
from test_refine_start import VALUES, run
from toy import PROGRAM, SCHEMA, toy_task

from structjax.errors import StructjaxError
from structjax.language.parse import parse
from structjax.policy_file import load_policy, save_policy
from structjax.report import write_report
from structjax.runs import best_round, finished_rounds
from structjax.start_policy import load_start

FIRST = {"phase": "refine", "round": 0, "accepted": True, "gate_mean": 1.0,
         "gate_worst": 0.5}  # fmt: skip
SECOND = {**FIRST, "round": 1, "gate_mean": 2.0}
FAILED = {"phase": "refine", "round": 1, "accepted": False, "failed": "NaN"}


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    save_policy(folder / "p.json", parse(PROGRAM, SCHEMA), VALUES, toy_task())
    return run(folder, folder / "p.json", {}, config={"rounds": 0}).run


@pytest.fixture
def unfinished(finished):
    """The run without an end."""
    path = finished / "manifest.json"
    kept, log = path.read_text(), (finished / "metrics.jsonl").read_text()
    manifest = json.loads(kept)
    for name in ("best_round", "evaluation"):
        del manifest[name]
    path.write_text(json.dumps(manifest))
    yield finished
    path.write_text(kept)
    (finished / "metrics.jsonl").write_text(log)


def write_log(path, *rows):
    (path / "metrics.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))


def test_a_round_that_failed_after_its_gate_is_not_the_best(unfinished):
    write_log(unfinished, FIRST, SECOND)
    assert best_round(unfinished, {}) == 1
    write_log(unfinished, FIRST, SECOND, FAILED)
    assert best_round(unfinished, {}) == 0
    assert [row["gate_mean"] for row in finished_rounds(unfinished)] == [1.0, 2.0]
    page = write_report(unfinished, toy_task()).read_text()
    assert "<tr><td>1<td>refused<td>2.0<td>0.5</tr>" in page
    write_log(unfinished, FIRST, FAILED)
    page = write_report(unfinished, toy_task()).read_text()
    assert "<tr><td>1<td>refused<td>-<td>-</tr>" in page


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (b"{bad", "Expecting property name"),
        (b"\xff\xfe", "Expecting value|can't decode"),
        (b"[1]", "it is a list"),
        (b'{"phase": "refine"}', "round is missing"),
        (b'{"phase": "refine", "round": "x", "accepted": true}', "round is 'x'"),
        (b'{"phase": "refine", "round": 1}', "accepted is missing"),
    ],
)
@pytest.mark.parametrize("read", [load_policy, load_start])
def test_a_changed_log_is_one_line(unfinished, line, told, read):
    log = unfinished / "metrics.jsonl"
    log.write_bytes(json.dumps(FIRST).encode() + b"\n" + line + b"\n")
    with pytest.raises(StructjaxError, match=f"line 2 of {log} is no row.*({told})"):
        read(unfinished, toy_task())


def test_counters_that_this_version_does_not_know_are_left_out(finished):
    path = finished / "manifest.json"
    kept = path.read_text()
    manifest = json.loads(kept)
    spent = load_start(finished, toy_task()).facts.spent
    manifest["ledger"]["watts"] = 3
    path.write_text(json.dumps(manifest))
    assert load_start(finished, toy_task()).facts.spent == spent
    assert write_report(finished, toy_task()).exists()
    path.write_text(kept)
