"""Importing what users name, from where they stand."""

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

FACTORY = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")  # module:factory


def is_factory(name: str) -> bool:
    """Whether a name is of the form module:factory."""
    return FACTORY.fullmatch(name) is not None


@contextmanager
def from_here() -> Iterator[None]:
    """While inside, modules in the working directory can be imported, as with `python -m`."""
    here = str(Path.cwd())
    sys.path.insert(0, here)
    try:
        yield
    finally:
        sys.path.remove(here)
