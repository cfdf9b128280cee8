"""Seconds of the numeric part of a refinement round, and from text to a first return.

    python benchmarks/refinement_round.py

Each figure is taken in a process of its own, cold (empty compile cache) and warm (the
cache filled by the cold one), because a run starts as a process.
- text: parse a program, compile it, play the ten test tracks;
- round: fit 64 restarts to a demonstration, 8 debug and 10 gate episodes, table,
  invariants, report.

Targets on two cores: text <= 20 s cold; round <= 15 s warm.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rows import write_rows

HERE = Path(__file__).parent
PROGRAM = HERE.parent / "tests/fixtures/programs/car_a.py"


def text() -> None:
    """From the program's text to the test return."""
    from structjax.evaluation import evaluate
    from structjax.policy_file import load_policy
    from structjax.tasks.registry import make_task

    task = make_task("car_racing")
    found = load_policy(PROGRAM, task)
    evaluate(found.policy, found.variables, task, task.seeds["test"])


def a_round() -> None:
    """One round of a scripted run, with a fit of 64 restarts."""
    from structjax.demonstration import load_demonstration
    from structjax.likelihood import ImitationConfig
    from structjax.llm.scripted import ScriptedModel
    from structjax.refinement import RefinementConfig
    from structjax.session import refine
    from structjax.tasks.registry import make_task

    task = make_task("car_racing")
    demonstration = load_demonstration("car_racing/human_1", task.schema)
    program = f"```python\n{PROGRAM.read_text()}\n```"
    model = ScriptedModel(
        {"generate": program, "round0/revise": "Enough.\n\nACTION: stop\nMeasured."}
    )
    config = RefinementConfig(
        fit="imitation", feedback="reward", imitation=ImitationConfig(restarts=64)
    )
    with tempfile.TemporaryDirectory() as folder:
        refine(
            task,
            model,
            config=config,
            demonstration=demonstration,
            directory=Path(folder) / "run",
        )


def child(name: str) -> None:
    """Runs one arm in this process and prints its seconds as JSON."""
    started = time.perf_counter()
    from structjax.compilation import compile_clock, enable_compile_cache

    enable_compile_cache()
    with compile_clock() as clock:
        {"text": text, "round": a_round}[name]()
    seconds = time.perf_counter() - started
    print(json.dumps({"wall_s": seconds, "compile_s": clock.seconds}))


def main() -> None:
    """Runs every arm cold and warm, prints and writes the rows."""
    rows = []
    for name in ("text", "round"):
        with tempfile.TemporaryDirectory() as cache:
            for state in ("cold", "warm", "warm"):
                command = [sys.executable, __file__, name]
                done = subprocess.run(
                    command,
                    env={**os.environ, "STRUCTJAX_CACHE": cache},
                    capture_output=True,
                    text=True,
                    check=True,
                )
                row = json.loads(done.stdout.splitlines()[-1])
                rows.append({"arm": name, "state": state, **row})
                print(
                    f"{name:6s} {state}: {row['wall_s']:6.1f} s, "
                    f"{row['compile_s']:.1f} s of them to compile"
                )
    print(write_rows("refinement_round", rows))


if __name__ == "__main__":
    child(sys.argv[1]) if len(sys.argv) > 1 else main()
