"""Regenerates the bundled Door Opening demonstrations, in Meta-World.

Run `python experiments/make_door_demonstrations.py` in the environment of
`scripts/test-metaworld`; it takes a few seconds.
"""

from pathlib import Path

from structjax.original.door_demonstrations import make_demonstrations
from structjax.tasks.door_open.schema import DOOR_OPEN_SCHEMA

FOLDER = Path(__file__).parent.parent / "structjax" / "demonstrations" / "door_open"


def main() -> None:
    """Records all of them and prints a line for each."""
    for name, demonstration in make_demonstrations(FOLDER, DOOR_OPEN_SCHEMA).items():
        facts = demonstration.provenance
        print(f"{name}: door {facts['seed']}, {facts['outcomes']}")


if __name__ == "__main__":
    main()
