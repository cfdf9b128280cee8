"""What a run of `structjax rl` came to: its policies, its JSON object, its table."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from structjax.cli.output import text_table

if TYPE_CHECKING:
    import pandas as pd

    from structjax.rl.starting import Start
    from structjax.rl.training import Outcome
    from structjax.runs import RunDirectory
    from structjax.tasks.base import Task

_COLUMNS = {
    "start_mean_mode": "start",
    "final_mean_mode": "final",
    "final_sampled_mode": "final, sampled",
    "best_mean_mode": "best",
}


def save_policies(
    directory: "RunDirectory",
    begun: "Start",
    outcome: "Outcome",
    task: "Task",
    seeds: tuple[int, ...],
) -> str:
    """Saves the policies of every seed as long as it had not failed.

    Returns:
      The best by the selection seeds, of a seed that did not fail; its path in the run.
    """
    import jax

    from structjax.rl.starting import save_trained

    for name, stacked in outcome.checkpoints.items():
        # A program's start is the same for every seed, a new network's is not.
        same = name == "start" and begun.program is not None
        for index, seed in enumerate(seeds[:1] if same else seeds):
            if index in outcome.lost[name]:
                continue
            variables = jax.tree.map(lambda leaf, i=index: leaf[i], stacked)
            path = directory.path / "params" / f"seed{seed}_{name}.json"
            save_trained(path, begun, variables, task)
    failed = failed_seeds(outcome, seeds)
    curve = outcome.curve[~outcome.curve["training_seed"].isin(failed)]
    # NaN: a policy that could not be played.
    highest = np.nanargmax(curve["mean"].to_numpy())
    best = curve["training_seed"].to_numpy()[highest]
    return f"params/seed{best}_best.json"


def result_of(
    directory: "RunDirectory", outcome: "Outcome", seeds: tuple[int, ...]
) -> dict[str, Any]:
    """The object that `structjax rl --json` prints, without preset and seconds."""
    table = outcome.evaluations

    def mean(seed: int, checkpoint: str, mode: str) -> float:
        found = _rows(table, seed, checkpoint, mode)
        return float(found["return"].mean(skipna=False))

    counts = ["resets", "env_steps"]
    last = outcome.curve.groupby("training_seed")[counts].max().to_dict("index")
    return {
        "run": str(directory.path),
        "seeds": [
            {
                "seed": seed,
                "start_mean_mode": mean(seed, "start", "mean"),
                "final_mean_mode": mean(seed, "final", "mean"),
                "final_sampled_mode": mean(seed, "final", "sampled"),
                "best_mean_mode": mean(seed, "best", "mean"),
                **last[seed],
                "note": _note(outcome.failed.get(index)),
            }
            for index, seed in enumerate(seeds)
        ],
        "outcomes": _outcomes(
            table[~table["training_seed"].isin(failed_seeds(outcome, seeds))]
        ),
        "curve": str(directory.path / "curve.csv"),
        "best_policy": str(directory.path / directory.manifest["best_policy"]),
        "ledger": asdict(directory.ledger),
    }


def failed_seeds(outcome: "Outcome", seeds: Sequence[int]) -> list[int]:
    """The training seeds with a return that is not finite."""
    return [seeds[index] for index in outcome.failed]


def _note(failed: int | None) -> str | None:
    """What became of a seed, where it failed at an update."""
    if failed is None:
        return None
    if failed == 0:
        return "failed: the untrained policy has a return that is not finite"
    return f"failed: a return of update {failed} is not finite"


def _outcomes(table: "pd.DataFrame") -> dict[str, dict[str, float]]:
    """The task's outcomes by checkpoint, mean actions, over seeds and episodes."""
    from structjax.outcomes import OUTCOME

    names = [str(name) for name in table if str(name).startswith(OUTCOME)]
    played = table[table["mode"] == "mean"]

    def mean(name: str, checkpoint: str) -> float:
        return float(played[played["checkpoint"] == checkpoint][name].mean())

    return {
        name.removeprefix(OUTCOME): {
            checkpoint: mean(name, checkpoint)
            for checkpoint in ("start", "final", "best")
        }
        for name in names
    }


def _rows(
    table: "pd.DataFrame", seed: int, checkpoint: str, mode: str
) -> "pd.DataFrame":
    return table[
        (table["training_seed"] == seed)
        & (table["checkpoint"] == checkpoint)
        & (table["mode"] == mode)
    ]


def summary(result: dict[str, Any]) -> str:
    """The end of a run, for the terminal."""
    header = ("seed", *_COLUMNS.values(), "resets")
    lines = ["", text_table(header, map(_row, result["seeds"])), ""]
    whole = [row for row in result["seeds"] if row["note"] is None]
    failed = [row for row in result["seeds"] if row["note"] is not None]
    for column in list(_COLUMNS)[1:]:
        lines.append(_mean_line(_COLUMNS[column], [row[column] for row in whole]))
    for name, means in result["outcomes"].items():
        told = ", ".join(
            f"{value:.4g} {checkpoint}" for checkpoint, value in means.items()
        )
        lines.append(f"{name:15s} {told}")
    ledger, seconds = result["ledger"], result["seconds"]
    lines += [
        "test seeds, mean actions unless said, JAX simulator; `best` was chosen on the "
        "selection seeds",
        f"preset          {result['preset']}",
        "resets          "
        + ", ".join(f"{n} {use}" for use, n in ledger["resets"].items() if n),
        f"seconds         {seconds['total']:.1f}, {seconds['compile']:.1f} to compile",
        f"best policy     {result['best_policy']}",
        f"curve           {result['curve']}",
    ]
    lines += [f"training seed {row['seed']} {row['note']}" for row in failed]
    return "\n".join(lines)


def _row(row: dict[str, Any]) -> list[str]:
    """One line of the table; a failed seed has no figures from its failure on."""
    lost = "failed" if row["note"] else "nan"
    cells = [lost if np.isnan(row[c]) else f"{row[c]:.1f}" for c in _COLUMNS]
    return [str(row["seed"]), *cells, str(row["resets"])]


def _mean_line(words: str, found: list[float]) -> str:
    values = np.array(found)
    spread = f" +- {values.std(ddof=1):.1f}" if len(values) > 1 else ""
    seeds = f"{len(values)} training seed{'s' if len(values) > 1 else ''}"
    return f"{words:15s} {values.mean():.1f}{spread} (over {seeds})"
