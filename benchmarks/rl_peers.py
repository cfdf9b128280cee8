"""structjax's RL trainer against rejax, purejaxrl, brax, stable-baselines3 and evosax.

    python benchmarks/rl_peers.py pairs [--column matched full-batch tuned] [--seeds 16]
    python benchmarks/rl_peers.py startup | learning | seeds-scaling | devices
    python benchmarks/rl_peers.py pairs --quick

Peers that are missing are skipped; `peers/requirements.txt` has the versions that the
adapters were written for, and `--purejaxrl PATH` names a checkout of purejaxrl, which
is no package. Task: gymnax's Pendulum-v1 (`learning` also CartPole-v1), policies 2x64
tanh, float32.

- `pairs`: one process, runs in ABBA order, warm; the ratio of a pair is that of
  environment steps per wall second, and the median over the pairs is printed.
- `startup`: import, compile and run in fresh processes, empty and filled cache.
- `learning`: held-out returns after whole runs of growing length.
- `seeds-scaling`: our trainer with 1, 4, 16, 64 vmapped seeds in one process each.
- `devices`: our trainer's seeds sharded over 1, 2, 4 forced host devices.

What is not like for like: `window` and `group` have no critic and take one Adam step
an epoch on the whole batch, the peers' PPO has a critic and takes four (`full-batch`:
one); `ppo` is the same algorithm as the peers' and says how fast the engine is. Fewer,
larger steps are faster and not better: read `learning` beside `pairs`. Each adapter's
docstring says what else differs. On a CPU, vmapped seeds save compiling, not time.
"""

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from peers.arm import Arm, Job, Unavailable
from peers.learning import learning_rows, learning_table
from peers.pairs import (
    OURS,
    PEERS,
    comparable,
    interleaved,
    machine,
    prepare,
    rate,
    ratios,
)
from peers.scaling import devices_rows, run_devices, run_seeds, seeds_rows
from peers.startup import start, startup_rows
from rows import median, write_rows

COLUMNS = ("matched", "full-batch", "tuned")
SB3_STEPS = 40_000  # a tenth, as it is more than ten times slower
Rows = Iterator[list[dict[str, Any]]]
CHILDREN = {"startup": start, "seeds": run_seeds, "devices": run_devices}


def pairs_mode(options: argparse.Namespace) -> Rows:
    """Every one of our arms against every peer, in every column."""
    for column in options.column:
        job = replace(options.job, column=column)
        print(f"\n{column}, {job.seeds} seeds: steps per second, ratio (all pairs)")
        arms = prepared([*options.ours, *options.peers], job)
        both = [(a, b) for b in options.peers for a in options.ours]
        for ours, peer in both:
            if ours in arms and peer in arms and comparable(ours, peer):
                found = interleaved(arms, ours, peer, options.pairs)
                label = {"column": column, "seeds": job.seeds}
                print(pair_line(found), flush=True)
                yield [row | label for row in found]


def pair_line(rows: list[dict[str, Any]]) -> str:
    """A line of Markdown about one arm against one peer."""
    ours, peer = rows[0]["of"]
    wall, cpu = ratios(rows), ratios(rows, "cpu_s")
    each = " ".join(f"{ratio:.2f}" for ratio in wall)
    return (
        f"| {ours} / {peer} | {rate(rows, ours):,.0f} | {rate(rows, peer):,.0f} | "
        f"{median(wall):.2f} | {median(cpu):.2f} | {each} |"
    )


def prepared(names: list[str], job: Job) -> dict[str, Arm]:
    """The arms that can be had, compiled."""
    arms = {}
    for name in names:
        steps = min(job.steps, SB3_STEPS) if name == "sb3" else job.steps
        try:
            arms[name] = prepare(name, replace(job, steps=steps))
        except Unavailable as problem:
            print(f"skipped: {problem}")
    return arms


def startup_mode(options: argparse.Namespace) -> Rows:
    """Cold and warm starts of every arm."""
    for row in startup_rows([*options.ours, *options.peers], options.job):
        end_to_end = row["env_steps"] / row["total_s"]
        print(
            f"| {row['arm']} | {row['state']} | {row['import_s']:.1f} | "
            f"{row['compile_s']:.1f} | {row['run_s']:.2f} | {end_to_end:,.0f} | "
            f"{row['peak_mb']:.0f} |",
            flush=True,
        )
        yield [row]


def learning_mode(options: argparse.Namespace) -> Rows:
    """Returns by budget, in every column."""
    for column in options.column:
        job = replace(options.job, column=column)
        names = [*options.ours, *options.peers]
        rows = []
        for row in learning_rows(names, job, options.budgets, options.slow_budget):
            rows.append(row)
            yield [row]
        print(
            f"\n{column}: median return over {job.seeds} seeds (seeds past threshold)"
        )
        print("\n".join(learning_table(rows, job.environment)), flush=True)


def scaling_mode(options: argparse.Namespace) -> Rows:
    """Vmapped seeds."""
    for row in seeds_rows(options.job, options.counts or [1, 4, 16, 64], "group"):
        steps = row["env_steps"] / median(row["wall_s"])
        print(
            f"| {row['seeds']} | {steps:,.0f} | {row['temp_mb']:.0f} | "
            f"{row['peak_mb']:.0f} |",
            flush=True,
        )
        yield [row]


def devices_mode(options: argparse.Namespace) -> Rows:
    """Seeds sharded over devices."""
    counts = options.counts or [1, 2, 4]
    for mapping in ("vmap", "map"):
        for row in devices_rows(options.job, counts, "group", mapping):
            steps = row["env_steps"] / median(row["wall_s"])
            print(
                f"| {mapping} | {row['devices']} | {steps:,.0f} | {row['same_bits']} | "
                f"{row['first_update_apart']:.2g} | {row['last_update_apart']:.2g} |",
                flush=True,
            )
            yield [row]


MODES: dict[str, Callable[[argparse.Namespace], Rows]] = {
    "pairs": pairs_mode,
    "startup": startup_mode,
    "learning": learning_mode,
    "seeds-scaling": scaling_mode,
    "devices": devices_mode,
}


def options_of(arguments: list[str]) -> argparse.Namespace:
    """The command line, with the job it describes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("mode", choices=MODES)
    parser.add_argument("--environment", default="Pendulum-v1")
    parser.add_argument("--column", nargs="+", choices=COLUMNS, default=["matched"])
    parser.add_argument("--ours", nargs="*", choices=OURS)
    parser.add_argument("--peers", nargs="*", choices=PEERS, default=list(PEERS))
    parser.add_argument("--steps", type=int, help="per seed; default 400,000")
    parser.add_argument("--seeds", type=int, help="side by side; default by mode")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--counts", type=int, nargs="+", help="seeds, or devices")
    parser.add_argument(
        "--budgets", type=int, nargs="+", default=[50_000, 100_000, 200_000, 400_000]
    )
    parser.add_argument("--slow-budget", type=int, default=50_000, help="SB3's largest")
    parser.add_argument("--purejaxrl", help="a checkout of purejaxrl")
    parser.add_argument("--sb3-python", help="the Python that has stable-baselines3")
    parser.add_argument("--quick", action="store_true", help="a smoke run of a minute")
    parser.add_argument("--name", help="results file; default rl_peers_MODE")
    options = parser.parse_args(arguments)
    if options.quick:
        options.steps, options.pairs = options.steps or 20_000, 2
        options.seeds = options.seeds or {"devices": 4}.get(options.mode, 1)
        options.budgets, options.counts = [20_000], options.counts or [1, 2]
        options.ours = options.ours or ["window"]
        options.name = options.name or "rl_peers_quick"
    if (
        options.mode in ("pairs", "seeds-scaling")
        and options.environment != "Pendulum-v1"
    ):
        # Our arms and evosax compute, and would count, the steps behind the mask.
        parser.error(f"{options.mode} counts steps right where no episode ends early")
    options.ours = list(OURS) if options.ours is None else options.ours
    options.job = Job(
        environment=options.environment,
        steps=options.steps or 400_000,
        seeds=options.seeds or {"learning": 8, "devices": 16}.get(options.mode, 1),
        purejaxrl=options.purejaxrl,
        sb3_python=options.sb3_python,
    )
    return options


def main() -> None:
    """Runs the mode, prints lines of Markdown, writes raw rows as they come."""
    options = options_of(sys.argv[1:])
    name = options.name or f"rl_peers_{options.mode.replace('-', '_')}"
    rows = [machine()]
    path = write_rows(name, rows)
    for found in MODES[options.mode](options):
        rows += found
        path = write_rows(name, rows)
    print(path)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        kind, request = json.loads(sys.argv[2])
        print(json.dumps(CHILDREN[kind](request)))
    else:
        main()
