"""What reading any text costs: seconds and memory, at the limits of the language.

    python benchmarks/reading.py [--repeats 7]

Texts near 64 kB, 2,000 lines and the other limits, valid and refused, and mutations of
real programs. Targets: 0.1 s of CPU time and 100 MB for each. Needs no JAX program, so
it runs quickly on every Python; the rows go to `results/reading_<version>.jsonl`.
"""

import argparse
import ast
import contextlib
import random
import sys
import tracemalloc
from pathlib import Path
from typing import Any

from rows import measure, write_rows

from structjax.language.parse import StructureError, parse
from structjax.tasks.car_racing.schema import CAR_RACING_SCHEMA

FIXTURES = Path(__file__).parents[1] / "tests" / "fixtures" / "programs"
RETURN = "    return action(steer=normal(a1), gas=normal(a1), brake=normal(a1))\n"


def program(*lines: str, module: str = "w = weight(0.5)\n") -> str:
    """A program of these lines, the first of which is `a1 = obs.speed`."""
    body = "".join(f"    {line}\n" for line in ("a1 = obs.speed", *lines))
    return f"{module}def policy(obs):\n{body}{RETURN}"


def loop(*lines: str) -> str:
    """64 turns of these lines."""
    return "for i in range(64):\n" + "\n".join(f"        {line}" for line in lines)


def wide() -> dict[str, str]:
    """Many lines."""
    numbers = range(2, 1900)
    chance = random.Random(0)
    signs = chance.choices("+-", k=2000)
    earlier = [chance.randrange(1, i) for i in range(2, 1500)]
    weights = "".join(f"w{i} = weight(0.5, low=0, high=2)\n" for i in range(900))
    unknown = "".join(f"    a{i} = weihgt_{i} + spede\n" for i in numbers)
    return {
        "long": program(*(f"a{i} = obs.speed * {i}" for i in numbers)),
        "chain": program(*(f"a{i} = a{i - 1} * {i}" for i in numbers)),
        "comments": program(*(f"a{i} = obs.speed  # doc {i}" for i in numbers)),
        "weights": program(
            *(f"b{i} = w{i} * obs.speed" for i in range(900)), module=weights
        ),
        "calls": program(*(f"b{i} = abs(obs.speed) * {i}" for i in range(1900))),
        "vectors": program(
            *(f"b{i} = mean(obs.tiles.x * {i} + obs.tiles.y)" for i in range(900))
        ),
        "equal lines": program(*(f"b{i} = w * w + {i} * w" for i in range(1980))),
        "unlike lines": program(
            *(f"b{i} = w * w {signs[i]} {i} * w" for i in range(1980))
        ),
        "scattered": program(
            *(f"a{i} = a{j} * w + w * a{j}" for i, j in enumerate(earlier, 2))
        ),
        "repeated lines": program(
            *(
                f"a{i} = a{i - 1} * w + w * a{max(1, i - 1 - i % 3)}"
                for i in range(2, 1500)
            )
        ),
        "unknown names": f"def policy(obs):\n    a1 = 1\n{unknown}{RETURN}",
        "helpers": "".join(f"def f{i}(x):\n    return x\n" for i in range(950)),
        "statements": program("; ".join(f"b{i} = w" for i in range(4000))),
    }


def deep() -> dict[str, str]:
    """Long lines, and short texts that expand."""
    helper = "def f(x):\n    y = x * x\n    z = y + x\n    return z * y\n"
    twice = "a1 = f(a1) + f(a1)"
    return {
        "sums": program(*(f"b{i} = " + "+".join(["a1"] * 60) for i in range(110))),
        "comparisons": program(
            *(f"b{i} = " + "<".join(["a1"] * 60) for i in range(100))
        ),
        "logic": program(
            *(f"b{i} = " + " and ".join(["(a1 > 0)"] * 30) for i in range(70))
        ),
        "maxima": program(
            *(f"b{i} = max({', '.join(['a1'] * 31)})" for i in range(200))
        ),
        "nested calls": program(
            *(f"b{i} = " + "tanh(" * 45 + "a1" + ")" * 45 for i in range(85))
        ),
        "loops": program(loop(*(f"a1 = a1 * a1 + {i} * a1 + a1" for i in range(8)))),
        "helpers in loops": program(loop(*[twice] * 8), module=helper),
        "wrong fields": program(
            *(f"b{i} = " + "+".join(["obs.sped"] * 60) for i in range(70))
        ),
        "heads": program().replace(
            "brake", ", ".join(f"x{i}=normal(a1)" for i in range(3000)) + ", brake"
        ),
        "one line": "a = " + "1 + " * 16_000 + "1",
        "brackets": program("a = " + "(" * 90 + "1" + ")" * 90),
        "quotes": "'" * 60_000,
        "hashes": "#" * 60_000,
        "bytes": "\x00\xff" * 30_000,
    }


def mutated() -> dict[str, str]:
    """Real programs with a few characters replaced."""
    chance = random.Random(0)
    texts = {}
    for path in sorted(FIXTURES.glob("*.py")):
        for i in range(20):
            characters = list(path.read_text())
            for _ in range(chance.randrange(1, 30)):
                place = chance.randrange(len(characters))
                characters[place] = chance.choice("()=*:\n x0")
            texts[f"{path.stem} {i}"] = "".join(characters)
    return texts


def read(text: str) -> str:
    """`ok`, or the first code that refuses the text."""
    try:
        parse(text, CAR_RACING_SCHEMA)
    except StructureError as error:
        return error.problems[0].code
    return "ok"


def row(name: str, text: str, repeats: int) -> dict[str, Any]:
    """Least seconds of reading and of Python's own parser; peak memory.

    The least, for whatever else the machine does only adds to them.
    """
    timings = measure(lambda: read(text), repeats)
    tracemalloc.start()
    verdict = read(text)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    def alone() -> None:
        with contextlib.suppress(SyntaxError, ValueError, MemoryError, RecursionError):
            ast.parse(text)

    python = min(timing["cpu_s"] for timing in measure(alone, repeats))
    return {
        "arm": name,
        "verdict": verdict,
        "cpu_s": min(timing["cpu_s"] for timing in timings),
        "wall_s": min(timing["wall_s"] for timing in timings),
        "cpu_all_s": [timing["cpu_s"] for timing in timings],
        "python_s": python,
        "peak_mb": peak / 1e6,
    }


def main() -> None:
    """Measures, prints the worst, writes raw rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=7)
    repeats = parser.parse_args().repeats
    texts = wide() | deep() | mutated()
    rows = [row(name, text, repeats) for name, text in texts.items()]
    slowest = sorted(rows, key=lambda r: -r["cpu_s"])[:5]
    for found in slowest:
        print(
            f"{found['arm']:18s} {found['verdict']:9s} {1e3 * found['cpu_s']:6.0f} ms, "
            f"{found['cpu_s'] / found['python_s']:4.1f} times ast.parse"
        )
    largest = max(rows, key=lambda r: r["peak_mb"])
    print(f"most memory: {largest['peak_mb']:.0f} MB ({largest['arm']})")
    version = f"{sys.version_info.major}{sys.version_info.minor}"
    print(write_rows(f"reading_{version}", rows))


if __name__ == "__main__":
    main()
