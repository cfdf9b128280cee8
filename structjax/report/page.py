"""Assembles a run's page from what lies in its directory."""

import difflib
import json
import math
import textwrap
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from structjax.errors import StructjaxError
from structjax.forms import read_form
from structjax.gate import difference_text
from structjax.language.parse import Program
from structjax.ledger import Ledger
from structjax.manifest import FINDING, read_finished, read_manifest, task_spec
from structjax.outcomes import read_back, table_rows
from structjax.policy import initial_values
from structjax.policy_file import read_program, saved_round
from structjax.report.charts import rounds_chart
from structjax.report.episodes import episode_data
from structjax.report.graph import graph_svg
from structjax.rounds import fitted_text
from structjax.runs import best_round, finished_rounds, write_atomic
from structjax.start_policy import start_facts
from structjax.table import load_table
from structjax.tasks.base import Task
from structjax.tasks.loading import load_task

_ASSETS = Path(__file__).parent / "assets"


def write_report(run: Path, task: Task | None = None) -> Path:
    """Writes `report.html` into a run's directory; of an unfinished run a short one.

    The page is self-contained: no script, style or font is fetched from anywhere.

    Args:
      run: the run directory.
      task: its task; looked up by name when omitted.

    Raises:
      StructjaxError: not a run directory, or no round is finished yet.
    """
    manifest = read_manifest(run)
    if manifest.get("kind") == "rl":
        raise StructjaxError(
            f"run {run} is of `structjax rl`: it has no rounds to report",
            kind="run",
            hint="`structjax curves` and `structjax compare` show it",
        )
    best = best_round(run, manifest)
    if best is None:
        raise StructjaxError(
            f"run {run} has no accepted round yet (status {manifest['status']})",
            kind="run",
            hint=f"continue it with --resume {run}",
        )
    task = load_task(task_spec(manifest)) if task is None else task
    if "evaluation" in manifest:
        sections = _whole(run, read_finished(run), task)
    else:
        manifest["best_round"] = best
        sections = [
            _unfinished(run, manifest),
            _best(run, manifest, saved_round(run, best, task)),
            _provenance(manifest),
        ]
    html = (
        "<!doctype html>\n<html lang=en><head><meta charset=utf-8>"
        '<meta name=viewport content="width=device-width">'
        f"<title>{escape(run.name)} · structjax</title>"
        f"<style>{_asset('report.css')}</style></head>"
        f"<body><main>{''.join(sections)}</main>"
        f"<script>{_asset('scene.js')}{_asset('report.js')}</script></body></html>\n"
    )
    write_atomic(run / "report.html", html)
    return run / "report.html"


def _asset(name: str) -> str:
    return (_ASSETS / name).read_text()


def _whole(run: Path, manifest: dict[str, Any], task: Task) -> list[str]:
    programs = [saved_round(run, r["round"], task) for r in manifest["rounds"]]
    return [
        _head(manifest),
        _rounds(manifest),
        _best(run, manifest, programs[manifest["best_round"]]),
        _episodes(run, manifest, task),
        _edits(run, manifest, programs),
        _provenance(manifest),
    ]


def _unfinished(run: Path, manifest: dict[str, Any]) -> str:
    """What is known before the evaluation: the gate of every round so far."""
    rows = "".join(
        f"<tr><td>{row['round']}<td>{'accepted' if row['accepted'] else 'refused'}"
        f"<td>{_gate(row, 'mean')}<td>{_gate(row, 'worst')}</tr>"
        for row in finished_rounds(run)
    )
    return (
        f"<h1>{escape(manifest['task'])}: refinement run, unfinished</h1>"
        f"<p class=lead>status {escape(manifest['status'])} · round "
        f"{manifest['best_round']} is the best so far; not evaluated yet</p>"
        f"{_start(manifest)}"
        f"<table><tr><th>round<th>gate<th>gate mean<th>gate worst</tr>{rows}</table>"
    )


def _gate(row: Mapping[str, Any], name: str) -> str:
    """A figure of the log; older rows may lack it."""
    value = row.get(f"gate_{name}")
    return "-" if value is None else f"{value:.1f}"


def _card(label: str, value: str) -> str:
    return f"<div class=card><b>{escape(value)}</b><span>{escape(label)}</span></div>"


def _head(manifest: dict[str, Any]) -> str:
    mean, sampled = manifest["evaluation"], manifest["sampled_evaluation"]
    ledger = Ledger()
    ledger.add(manifest["ledger"])
    model = manifest["model"]
    reason = f": {manifest['reason']}" if manifest.get("reason") else ""
    cards = [
        _card(
            f"test seeds, mean actions, {mean['simulator']} simulator, "
            f"n = {len(mean['seeds'])}",
            f"{mean['mean']:.1f} ± {mean['std_ddof0']:.1f}",
        ),
        _card(
            "test seeds, sampled actions",
            f"{sampled['mean']:.1f} ± {sampled['std_ddof0']:.1f}",
        ),
        _card("best round", str(manifest["best_round"])),
        _card("resets, diagnosis + training", str(ledger.headline_resets)),
        _card("resets, with gate and selection", str(ledger.total_resets)),
        _card(
            "LLM calls, live + replayed",
            f"{ledger.llm_calls} + {ledger.replayed_calls}",
        ),
    ]
    notes = "".join(f"<p class=note>{escape(n)}</p>" for n in manifest["notes"])
    return (
        f"<h1>{escape(manifest['task'])}: refinement run</h1><p class=lead>status "
        f"{escape(manifest['status'] + reason)} · answered by "
        f"{escape(str(model.get('model')))} ({escape(str(model.get('provider')))})"
        f"</p>{_start(manifest)}<div class=cards>{''.join(cards)}</div>"
        f"{_outcomes(mean, sampled)}{notes}"
    )


def _outcomes(mean: dict[str, Any], sampled: dict[str, Any]) -> str:
    """The task's outcomes on the test seeds, where it has some."""
    rows = "".join(
        "<tr>" + "".join(f"<td>{escape(cell.replace('+-', '±'))}" for cell in row)
        for row in table_rows([mean, sampled])
    )
    if not rows:
        return ""
    head = "<tr><th>on the test seeds<th>mean actions<th>sampled actions</tr>"
    return f"<table>{head}{rows}</table>"


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _rounds(manifest: dict[str, Any]) -> str:
    rounds = manifest["rounds"]
    test = [
        [math.nan if value is None else value for value in row]
        for row in manifest["test_returns"]
    ]
    chart = rounds_chart(
        [r["gate"] for r in rounds],
        test,
        [r["accepted"] for r in rounds],
        metric=manifest["evaluation"]["metric"],
    )
    names = list(dict.fromkeys(n for r in rounds for n in r.get("outcomes") or {}))
    rows = []
    for r, reported in zip(rounds, test, strict=True):
        kind = "best" if r["round"] == manifest["best_round"] else ""
        kind = kind if r["accepted"] else "refused"
        difference = difference_text(r["difference"], r["interval"])
        verdict = "accepted" if r["accepted"] else "refused"
        rows.append(
            f"<tr class={kind or 'plain'}><td>{r['round']}</td><td>{verdict}</td>"
            f"<td>{_mean(r['gate']):.1f}</td><td>{min(r['gate']):.1f}</td>"
            f"<td>{difference}</td>{_gate_outcomes(r, names)}"
            f"<td>{_mean(reported):.1f}</td>"
            f"<td class=words>{escape(_opening(r['words']))}</td></tr>"
        )
    outcomes = "".join(f"<th>gate {escape(name)}" for name in names)
    return (
        f"<h2>Rounds</h2>{chart}<table><tr><th>round<th>gate<th>gate mean<th>gate worst"
        f"<th>against the best so far, 95 % interval{outcomes}<th>test mean"
        "<th class=words>what the model said"
        f"</tr>{''.join(rows)}</table>"
    )


def _opening(words: str) -> str:
    """How an explanation begins; the whole of it stands with the edits."""
    return textwrap.shorten(words, 240, placeholder=" ...")


def _gate_outcomes(round_: dict[str, Any], names: Sequence[str]) -> str:
    """One cell per outcome: its mean over the gate episodes, where there are any."""
    found = read_back(round_.get("outcomes"))
    means = [_mean(found[n]) if found.get(n) else None for n in names]
    return "".join(f"<td>{_cell(mean)}</td>" for mean in means)


def _cell(mean: float | None) -> str:
    if mean is None:
        return "-"
    return f"{mean:.4g}" if math.isfinite(mean) else "not finite"


def _best(
    run: Path, manifest: dict[str, Any], best: tuple[Program, dict[str, float]]
) -> str:
    program, values = best
    fitted = manifest["config"].get("fit") != "none"
    tuned = manifest["best_round"] == 0 and _tuned_start(manifest)
    text = program.source.strip()
    if fitted or tuned:
        text = fitted_text(program, values)
    svg = graph_svg(program.structure, program.docs, values)
    written = " with fitted weights" if fitted else ""
    return (
        f"<h2>The best program{written} (round {manifest['best_round']})</h2>"
        f"<pre>{escape(text)}</pre><h3>Its graph</h3><div class=scroll>{svg}</div>"
    )


def _tuned_start(manifest: dict[str, Any]) -> bool:
    """Whether round 0 has the values of a tuned policy, all digits of them."""
    return bool(manifest.get("start") and manifest["start"]["tuned"])


def _start(manifest: dict[str, Any]) -> str:
    if not manifest.get("start"):
        return ""
    return f"<p>started from {escape(start_facts(manifest['start']).line())}</p>"


def _episodes(run: Path, manifest: dict[str, Any], task: Task) -> str:
    table = load_table(run / "tables" / "evaluation.parquet")
    seeds = manifest["evaluation"]["seeds"]
    data = json.dumps(episode_data(table.frame, task, seeds)).replace("</", "<\\/")
    return (
        "<h2>Episodes (test seeds, mean actions)</h2>"
        "<div class=player id=player>"
        "<div class=controls><select></select><button>play</button>"
        "<input type=range min=0 value=0><span class=clock></span>"
        "<span class=outcomes></span></div>"
        "<div class=views></div><div class=series></div>"
        "<div class=picker></div></div>"
        f'<script type="application/json" id=episodes>{data}</script>'
    )


def _diff(old: str, new: str) -> str:
    lines = difflib.unified_diff(old.splitlines(), new.splitlines(), lineterm="", n=2)
    parts = []
    for line in list(lines)[2:]:
        kind = {"+": "add", "-": "del", "@": "hunk"}.get(line[:1], "same")
        text = escape(line) or " "
        parts.append(
            f"<span class={kind}>{text}</span>" if kind != "same" else text + "\n"
        )
    return f"<pre>{''.join(parts)}</pre>"


def _findings(run: Path, stem: str, title: str) -> str:
    path = run / "diagnostics" / f"{stem}.json"
    if not path.exists():
        return ""
    parts = []
    for finding in _read(path, [FINDING], "a list of findings"):
        if finding["name"] == "module" and not finding["text"].strip():
            continue
        state = "" if finding["status"] == "ok" else f" ({finding['status']})"
        label = " · recorded output" if finding.get("recorded") else ""
        parts.append(
            f"<h4>{escape(finding['name'])}{state}{label}</h4>"
            f"<pre>{escape(finding['text'].strip())}</pre>"
        )
    code = read_program(run / "diagnostics" / f"{stem}.py")
    return (
        f"<details><summary>{title}</summary>{''.join(parts)}"
        f"<details><summary>code</summary><pre>{escape(code)}</pre></details></details>"
    )


def _read(path: Path, form: Any, what: str) -> Any:
    hint = "restore it from where structjax wrote it"
    return read_form(path, form, what=what, kind="run", hint=hint)


def _edits(
    run: Path,
    manifest: dict[str, Any],
    programs: Sequence[tuple[Program, dict[str, float]]],
) -> str:
    """Per revision: the findings that led to it, the words, the diff."""
    rounds, extra_tests = manifest["rounds"], manifest["config"]["extra_tests"]
    parts = ["<h2>Edits, and the findings that led to them</h2>"]
    texts = [program.source for program, _ in programs]
    if _tuned_start(manifest):
        first = programs[0][0]
        texts[0] = fitted_text(first, initial_values(first.structure)) + "\n"
    best = 0
    asked = ["revise", *(f"extra{i}" for i in range(1, extra_tests))]
    extra = [(name, f"additional checks {i}") for i, name in enumerate(asked, 1)]
    for index in range(len(rounds) - 1):
        if rounds[index]["accepted"]:
            best = index
        checkpoint = run / "checkpoints" / f"r{index}_rollout.json"
        if checkpoint.exists():
            form = {"result": {"invariants": str}}
            kept = _read(checkpoint, form, "a result of a round's rollouts")
            built_in = kept["result"]["invariants"]
            checks = (
                f"<details><summary>built-in checks of round {index}</summary>"
                f"<pre>{escape(built_in)}</pre></details>"
            )
        else:
            checks = ""
        new = rounds[index + 1]
        verdict = "accepted" if new["accepted"] else "refused by the gate"
        parts += [
            f"<h3>Round {index} → {index + 1} ({verdict})</h3>",
            f"<p>{escape(new['words'])}</p>",
            checks,
            _findings(run, f"r{index}", f"generated checks of round {index}"),
            *(_findings(run, f"r{index}_{name}", title) for name, title in extra),
            f"<details open><summary>diff against round {best}</summary>",
            _diff(texts[best], texts[index + 1]),
            "</details>",
        ]
    return "".join(parts)


def _provenance(manifest: dict[str, Any]) -> str:
    ledger = manifest["ledger"]
    rows = "".join(
        f"<tr><td>{purpose}</td><td>{n}</td><td>{ledger['env_steps'][purpose]:,}</td></tr>"
        for purpose, n in ledger["resets"].items()
    )
    facts = {
        key: manifest.get(key)
        for key in (
            "started",
            "device",
            "commit",
            "versions",
            "sandbox",
            "model",
            "config",
        )
    }
    return (
        "<h2>Counted</h2><table><tr><th>purpose<th>resets<th>steps</tr>"
        f"{rows}</table><p>{ledger['input_tokens']:,} tokens in, "
        f"{ledger['output_tokens']:,} out.</p><h2>Provenance</h2>"
        f"<pre>{escape(json.dumps(facts, indent=1))}</pre>"
    )
