"""A run's manifest: what `manifest.json` holds, and how it is read."""

from pathlib import Path
from typing import Any

from structjax.errors import StructjaxError
from structjax.forms import Each, Maybe, read_form
from structjax.ledger import PURPOSES

OUTCOMES = Maybe(Each([Maybe(float)]))
_SUMMARISED = {
    "values": [Maybe(float)],
    "mean": Maybe(float),
    "std_ddof0": Maybe(float),
}
_COUNTERS = dict.fromkeys(PURPOSES, int)
LEDGER = {
    "resets": _COUNTERS,
    "env_steps": _COUNTERS,
    "llm_calls": int,
    "replayed_calls": int,
    "input_tokens": int,
    "output_tokens": int,
}
EVALUATION = {
    "task": str,
    "simulator": str,
    "mode": str,
    "seeds": [int],
    "returns": [float],
    "metric": str,
    "values": [float],
    "mean": float,
    "std_ddof0": float,
    "resets": int,
    "env_steps": int,
    "outcomes": Maybe(Each(_SUMMARISED)),
}
FINDING = {"name": str, "status": str, "text": str, "seconds": Maybe(float)}
DIAGNOSIS = {"columns": str, "episodes": int, "invariants": str, "returns": [float]}
VALUES = Each(float)
START = {
    "path": str,
    "semantic_hash": str,
    "values_hash": str,
    "tuned": bool,
    "spent": Maybe({"resets": int, "llm_calls": int}),
}
"""The policy that a refinement run was started from."""

_RUN: dict[str, Any] = {
    "task": str,
    "status": str,
    "config": dict,
    "command": Maybe(dict),
    "notes": [str],
    "ledger": LEDGER,
    "resumed": Maybe(int),
    "sandbox": Maybe(dict),
    "best_round": Maybe(int),
    "start": Maybe(START),
}
_ROUND = {
    "round": int,
    "words": str,
    "accepted": bool,
    "gate": [float],
    "difference": Maybe(float),
    "interval": Maybe([float]),
    "outcomes": OUTCOMES,
}
_FINISHED = {
    "config": {"fit": str, "extra_tests": int},
    "evaluation": EVALUATION,
    "sampled_evaluation": EVALUATION,
    "test_returns": [[Maybe(float)]],
    "best_round": int,
    "rounds": [_ROUND],
    "model": dict,
}
_READ = {
    "what": "the manifest of a run",
    "kind": "run",
    "hint": "give a run directory, as printed at the end of a run",
}


def read_manifest(run: Path) -> dict[str, Any]:
    """The manifest of a run directory.

    Raises:
      StructjaxError: no run there, or a manifest that structjax did not write.
    """
    manifest: dict[str, Any] = read_form(run / "manifest.json", _RUN, **_READ)
    return manifest


def read_finished(run: Path) -> dict[str, Any]:
    """The manifest of a run that has been evaluated.

    Raises:
      StructjaxError: as `read_manifest`, or the run has no evaluation yet.
    """
    manifest = read_manifest(run)
    if "evaluation" not in manifest:
        raise StructjaxError(
            f"run {run} has no evaluation yet (status {manifest['status']})",
            kind="run",
            hint=f"finish it with --resume {run}",
        )
    path = run / "manifest.json"
    manifest = read_form(path, {**_RUN, **_FINISHED}, **_READ)
    rounds, best = manifest["rounds"], manifest["best_round"]
    numbered = [r["round"] for r in rounds] == list(range(len(rounds)))
    if not (numbered and best < len(rounds) == len(manifest["test_returns"])):
        raise StructjaxError(
            f"{path} is not the manifest of a run: its rounds are not 0, 1, ... with "
            f"the best, {best}, among them",
            kind="run",
            hint=_READ["hint"],
        )
    return manifest


def task_spec(manifest: dict[str, Any]) -> str:
    """The task as the command line named it: for a user's own, with its file."""
    spec = (manifest.get("command") or {}).get("task")
    return spec if isinstance(spec, str) else str(manifest["task"])
