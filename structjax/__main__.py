"""The command line, as `structjax` and as `python -m structjax`."""

import sys


def run() -> None:
    """Runs the command line; Ctrl-C is one line from the first import on."""
    try:
        from structjax.cli import main  # takes seconds
    except KeyboardInterrupt:
        print("structjax: interrupted", file=sys.stderr)
        sys.exit(130)
    main()


if __name__ == "__main__":
    run()
