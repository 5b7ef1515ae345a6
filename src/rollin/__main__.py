"""`python -m rollin` and the `rollin` command."""

import sys

from rollin.cli import main


def run() -> None:
    """Exit with the code of the command."""
    sys.exit(main())


if __name__ == "__main__":
    run()
