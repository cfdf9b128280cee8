"""What a language model is told: prompt texts built from task, program and results.

Texts are deterministic: no clocks, no paths, numbers to four significant digits. So a
transcript can be matched with the run that replays it.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from structjax.diagnostics.finding import Finding
from structjax.diagnostics.result import number
from structjax.gate import GateResult, worse
from structjax.language.reference import language_page
from structjax.language.structure import Structure
from structjax.llm.prompts import fill
from structjax.schema import ActionField, Field, Schema
from structjax.tasks.base import Task

FitMode = Literal["none", "imitation", "anchored"]

OUTPUT_LIMIT = 12_000
"""Characters of generated checks' output shown to the model per request."""

INITIAL_VALUES: Mapping[FitMode, str] = {
    "none": "There is no fit and no demonstration: the program runs exactly with the "
    "initial values you write.",
    "imitation": "The weights start at your initial values and are then fitted to a "
    "demonstration by maximum likelihood, within the bounds you give.",
    "anchored": "The weights start at your initial values; a fit to a demonstration "
    "may move them within the bounds you give, held back towards your values as far as "
    "validation episodes ask for it.",
}


def _size(field: Field) -> str:
    """`[4: front_left, ...]`; elements that are only numbered go without names."""
    if field.size is None:
        return ""
    named = field.elements and not any(c.isdigit() for c in field.elements[0])
    names = f": {', '.join(field.elements or ())}" if named else ""
    return f"[{field.size}{names}]"


def observation_lines(schema: Schema) -> str:
    """One line per observation field: name, meaning, unit, range."""
    return "\n".join(
        f"- `obs.{field.name}`{_size(field)}: {field.meaning}"
        f"{f' (unit: {field.unit})' if field.unit else ''}"
        f" [{number(field.low)} .. {number(field.high)}]"
        for field in schema.observations
    )


def _action_line(action: ActionField) -> str:
    if action.choices is not None:
        choices = ", ".join(f"{i} = {name}" for i, name in enumerate(action.choices))
        return f"- `{action.name}`: {action.meaning} (one of {choices})"
    return (
        f"- `{action.name}` in [{number(action.low)}, {number(action.high)}]: "
        f"{action.meaning}"
    )


def action_lines(schema: Schema) -> str:
    """One line per action: name, range or choices, meaning."""
    return "\n".join(map(_action_line, schema.actions))


def _columns_of(name: str, size: int | None) -> str:
    return f"`{name}`" if size is None else f"`{name}_0` ... `{name}_{size - 1}`"


def table_columns(task: Task, structure: Structure) -> str:
    """The columns of a rollout table; what is documented above is only named."""
    schema = task.schema
    observations = ", ".join(
        _columns_of(f"obs_{field.name.replace('.', '_')}", field.size)
        for field in schema.observations
    )
    latents = ", ".join(
        _columns_of(f"latent_{v.name}", v.size) for v in structure.latents if v.logged
    )
    weights = ", ".join(f"`weight_{p.name}`" for p in structure.parameters)
    lines = [
        "`episode`, `step`: numbers of the episode and of the step within it, from 0",
        f"{observations}: the observation fields",
        f"{latents}: the latents, truth values as 0 and 1",
        f"{weights}: the weights, constant",
        *map(_action_columns, schema.actions),
        "`log_prob`: of the action taken; `reward`: of this step",
        "`terminated`, `truncated`: whether the episode ended here, by the rules of "
        "the task or by the step limit",
        "`next_obs_...`: the observation fields one step later",
        *(f"`info_{name}`: {meaning}" for name, meaning in (task.info or {}).items()),
    ]
    return "\n".join(f"- {line}" for line in lines)


def _action_columns(action: ActionField) -> str:
    name = f"action_{action.name}"
    if action.choices is not None:
        logits = ", ".join(f"`{column}`" for column in action.logit_columns)
        return f"`{name}`: the choice taken; {logits}: the logits"
    return (
        f"`{name}_mean`, `{name}_std`: of the policy's distribution; "
        f"`{name}_sampled`: the action taken, unclipped; `{name}`: clipped, as the "
        "environment got it"
    )


def _task_values(task: Task) -> dict[str, str]:
    return {
        "language": language_page(),
        "task": task.name,
        "description": task.description,
        "observations": observation_lines(task.schema),
        "actions": action_lines(task.schema),
    }


def generate_prompt(task: Task, fit: FitMode) -> str:
    """Asks for the first program; no demonstration and no value is shown."""
    return fill(
        "generate", use_of_initial_values=INITIAL_VALUES[fit], **_task_values(task)
    )


def context(task: Task, program: str, note: str) -> str:
    """Task and program, as every request of a round begins."""
    longest = max(map(len, re.findall(r"^\s*(`+)", program, re.M)), default=0)
    return fill(
        "context",
        program=program,
        # Text in the program that looks like a fence does not end the block.
        fence="`" * max(3, longest + 1),
        round_note=note,
        **_task_values(task),
    )


def tests_prompt(context: str, columns: str, *, episodes: int, horizon: int) -> str:
    """Asks for analysis code, blind: structure and columns, no values."""
    return fill(
        "tests",
        context=context,
        columns=columns,
        episodes=episodes,
        horizon=horizon,
        output_limit=OUTPUT_LIMIT,
    )


def decide_prompt(
    results: str, history: str, standing: str, *, fit: FitMode, tests_left: int
) -> str:
    """Asks for Revise | Test | Stop."""
    test_option = (
        "- `ACTION: test`, followed by one fenced python block with new "
        "`check_*(df)` functions on the same table, when the decision needs one more "
        f"measurement ({tests_left} left in this round). They must not repeat old "
        "ones.\n"
    )
    return fill(
        "decide",
        results=results,
        history=history,
        standing=standing,
        use_of_initial_values=INITIAL_VALUES[fit],
        test_option=test_option if tests_left > 0 else "",
    )


def repair_prompt(problems: str) -> str:
    """Says what was wrong with a reply, verbatim."""
    return fill("repair", problems=problems)


def gate_line(gate: GateResult, *, outcomes: bool = False) -> str:
    """What a model may know of the gate episodes: mean, spread and worst.

    With `outcomes` also mean and range of each of the task's outcomes.
    """
    line = (
        f"mean {number(gate.mean)}, std {number(gate.std)}, worst {number(gate.worst)}"
    )
    if not (outcomes and gate.outcomes):
        return line
    told = ", ".join(_outcome(name, v) for name, v in gate.outcomes.items())
    return f"{line}; {told}"


def _outcome(name: str, values: Sequence[float]) -> str:
    finite = [value for value in values if math.isfinite(value)]
    told = name
    if lost := len(values) - len(finite):
        told += f" not finite in {lost} of {len(values)} episodes"
    if not finite:
        return told
    low, high = number(min(finite)), number(max(finite))
    others = ", in the others" if lost else ""
    return f"{told}{others} {number(sum(finite) / len(finite))} (from {low} to {high})"


def findings_text(findings: Iterable[Finding], limit: int = OUTPUT_LIMIT) -> str:
    """The output of generated checks, cut fairly to `limit` characters in all."""
    shown = [f for f in findings if f.name != "module" or f.status != "ok" or f.text]
    share = limit // max(len(shown), 1)
    blocks = []
    for finding in shown:
        status = "" if finding.status == "ok" else f" ({finding.status})"
        text = finding.text.strip() or "(no output)"
        if len(text) > share:
            text = text[:share] + f"\n... ({len(text) - share} characters cut)"
        blocks.append(f"### {finding.name}{status}\n{text}")
    return "\n\n".join(blocks)


def history_lines(
    rounds: Sequence[tuple[int, GateResult, str]], best: int, *, outcomes: bool = False
) -> str:
    """One line per round: gate figures, verdict, the model's words on the change."""
    lines = []
    for index, gate, words in rounds:
        reason = "worse than the best" if worse(gate) else "it failed in its rollouts"
        verdict = "accepted" if gate.accepted else f"REFUSED ({reason})"
        mark = ", the best so far" if index == best else ""
        line = gate_line(gate, outcomes=outcomes)
        lines.append(f"- round {index}: {line}; {verdict}{mark}. {words}")
    return "\n".join(lines)


def shortened(words: str, limit: int = 600) -> str:
    """The model's words in one line, for the history."""
    line = " ".join(words.split())
    return line if len(line) <= limit else line[: limit - 3] + "..."
