"""Importing what users name, from where they stand."""

import ast
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


def factory_here(name: str) -> str:
    """A question with the factory of a module in the working directory; empty if there is none.

    The file is read, not run.
    """
    module = name.removesuffix(".py").replace("/", ".")
    path = Path(*module.split(".")).with_suffix(".py") if module else Path()
    if not path.is_file():
        return ""
    try:
        body = ast.parse(path.read_text(encoding="utf-8")).body
    except (OSError, SyntaxError, ValueError):
        return ""
    made = [part.name for part in body if isinstance(part, ast.FunctionDef)]
    made = [part for part in made if not part.startswith("_")]
    likely = [part for part in made if part.startswith("make")] or made
    return f" Did you mean {module}:{likely[0]}?" if likely else ""


def where_looked(name: str, error: Exception) -> str:
    """Where a module was looked for, if that is what failed."""
    if not isinstance(error, ModuleNotFoundError) or error.name != name.split(".")[0]:
        return ""
    return (
        f" It was looked for in {Path.cwd()} and where Python looks (PYTHONPATH, installed "
        f"packages): go to the directory of {name.split('.')[0]}.py, or add it to PYTHONPATH."
    )
