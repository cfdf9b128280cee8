"""Small synthetic run directories in the format of `structjax rl`."""

import json
from dataclasses import asdict

from structjax.ledger import Ledger

EVALUATIONS = "training_seed,checkpoint,resets,mode,simulator,seeds,episode_seed,return"
CURVE = (
    "training_seed,update,resets,env_steps,gradient_steps,flops,seconds,"
    "mean,std_ddof0,worst,return,kl"
)


def write_manifest(run, task="car_racing", status="done", **more):
    run.mkdir(parents=True, exist_ok=True)
    manifest = {
        "kind": "rl",
        "task": task,
        "status": status,
        "config": {"preset": "paper"},
        "command": {},
        "notes": [],
        "ledger": asdict(Ledger()),
        **more,
    }
    (run / "manifest.json").write_text(json.dumps(manifest))


def write_evaluations(run, returns, *, more=(), **conditions):
    """`returns[i][j]`: training seed i on track 1000 + j.

    `more`: further lines. Conditions: those of the columns of that name.
    """
    said = {
        "checkpoint": "final",
        "resets": 2000,
        "mode": "mean",
        "simulator": "jax",
        "seeds": "test",
        **conditions,
    }
    middle = ",".join(str(said[k]) for k in EVALUATIONS.split(",")[1:6])
    lines = [
        f"{i},{middle},{1000 + j},{value}"
        for i, row in enumerate(returns)
        for j, value in enumerate(row)
    ]
    write_manifest(run)
    (run / "evaluations.csv").write_text("\n".join([EVALUATIONS, *lines, *more]) + "\n")
    return run


def write_curve(run, returns, *, every=20):
    """`returns[i][k]`: mean return of training seed i after `every` x k resets."""
    lines = [
        f"{i},{k},{every * k},{every * k * 1000},{3 * k},{1e6 * k},{0.5 * k},"
        f"{value},1.0,{value - 5},{value - 300},0.01"
        for i, row in enumerate(returns)
        for k, value in enumerate(row)
    ]
    write_manifest(run)
    (run / "curve.csv").write_text("\n".join([CURVE, *lines]) + "\n")
    return run


def write_evaluation(path, returns, *, mode="mean", first=1000, **more):
    """A file as `structjax evaluate --json` prints it."""
    evaluation = {
        "task": "car_racing",
        "simulator": "jax",
        "mode": mode,
        "seeds": list(range(first, first + len(returns))),
        "returns": returns,
        "metric": "return",
        "values": returns,
        "mean": sum(returns) / len(returns),
        "std_ddof0": 1.0,
        "resets": len(returns),
        "env_steps": 1000 * len(returns),
        **more,
    }
    path.write_text(json.dumps(evaluation))
    return path
