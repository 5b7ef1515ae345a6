"""`python -m rollin` and the `rollin` command."""

import io
import sys

from rollin.cli import main


def run() -> None:
    """Exit with the code of the command; letters that the output's encoding lacks become `?`."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    sys.exit(main())


if __name__ == "__main__":
    run()
