"""Coverage-guided fuzzing of both parsers: anything but a program is a StructureError.

    pip install atheris && python benchmarks/fuzz_parser.py --seconds 300

Mutates the fixtures and what the fuzzer finds on its way. Reports the number of inputs,
the accepted share, the slowest one and every input that raised something else; exits
with status 1 if there was one.
"""

import argparse
import os
import sys
import time
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["structjax.language"]):
    from structjax.language.parse import StructureError, parse
    from structjax.language.torch_source.parse import parse_torch

from rows import write_rows

from structjax.tasks.car_racing.schema import CAR_RACING_SCHEMA

FIXTURES = Path(__file__).parents[1] / "tests" / "fixtures"


class Tally:
    """What happened so far; ends the process when its time is over."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.end = seconds, time.monotonic() + seconds
        self.inputs = self.accepted = 0
        self.slowest, self.slowest_input = 0.0, b""
        self.faults: list[str] = []

    def one(self, data: bytes) -> None:
        """Reads one input with the parser that its first byte chooses."""
        if time.monotonic() > self.end:
            self.finish()
        reader = parse_torch if data[:1] == b"T" else parse
        text = data[1:].decode("utf-8", "surrogateescape")
        started = time.perf_counter()
        try:
            reader(text, CAR_RACING_SCHEMA)
            self.accepted += 1
        except StructureError:
            pass
        except Exception as error:
            self.faults.append(f"{type(error).__name__}: {error} on {data!r}")
        seconds = time.perf_counter() - started
        self.inputs += 1
        if seconds > self.slowest:
            self.slowest, self.slowest_input = seconds, data

    def finish(self) -> None:
        """Prints and writes the figures."""
        row = {
            "seconds": self.seconds,
            "inputs": self.inputs,
            "accepted": self.accepted,
            "slowest_instrumented_ms": round(1e3 * self.slowest, 1),
            "slowest_input": self.slowest_input[:300].decode("utf-8", "replace"),
            "faults": self.faults[:20],
        }
        path = write_rows("fuzz_parser", [row])
        print(f"{self.inputs:,} inputs, {self.accepted:,} accepted")
        print(f"slowest {1e3 * self.slowest:.0f} ms (instrumented)")
        print("\n".join(self.faults[:20]) or "no fault", f"\nrows: {path}", flush=True)
        os._exit(bool(self.faults))  # libFuzzer does not return


def main() -> None:
    """Fuzzes for the given time."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seconds", type=float, default=300.0)
    options.add_argument("--corpus", type=Path, default=Path("runs/fuzz_corpus"))
    chosen = options.parse_args()
    chosen.corpus.mkdir(parents=True, exist_ok=True)
    for kind, prefix in (("programs", b"S"), ("torch", b"T")):
        for path in (FIXTURES / kind).glob("*.py"):
            seed = chosen.corpus / f"{kind}_{path.stem}"
            seed.write_bytes(prefix + path.read_bytes())
    tally = Tally(chosen.seconds)
    arguments = [sys.argv[0], str(chosen.corpus), "-max_len=8192", "-rss_limit_mb=4096"]
    atheris.Setup(arguments, tally.one)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
