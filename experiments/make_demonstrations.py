"""Regenerates the bundled demonstrations: `python experiments/make_demonstrations.py`.

Records our driver in Gymnasium's simulator (extra `original`), a few seconds in all.
"""

from pathlib import Path

from structjax.original.car_demonstrations import make_demonstrations
from structjax.tasks.car_racing.schema import CAR_RACING_SCHEMA

FOLDER = Path(__file__).parent.parent / "structjax" / "demonstrations" / "car_racing"


def main() -> None:
    """Records all of them and prints a line for each."""
    for name, demonstration in make_demonstrations(FOLDER, CAR_RACING_SCHEMA).items():
        facts = demonstration.provenance
        print(f"{name}: track {facts['seed']}, return {facts['return']}")


if __name__ == "__main__":
    main()
