"""`python -m structjax`."""

from structjax.cli import main

if __name__ == "__main__":
    main()
