"""`python -m rollin` and the `rollin` command."""

import codecs
import io
import sys

from rollin.cli import main
from rollin.errors import plainly


def run() -> None:
    """Exit with the code of the command; letters that the output's encoding lacks become ASCII."""
    codecs.register_error("rollin", plainly)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="rollin")
    sys.exit(main())


if __name__ == "__main__":
    run()
