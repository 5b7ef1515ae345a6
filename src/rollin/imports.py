"""User code: importing it by name, and counting calls of it.

On the command line (`only_named`) code is imported only if its name was typed, or is in a trusted
file (`rollin.runs.files`). In Python the caller names it.
"""

import ast
import importlib
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rollin.errors import RollinError, foreign

FACTORY = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")  # module:factory

_named: set[str] | None = None
"""The code that may be imported; None: any."""


class Calls:
    """Counts where a call of user code begins and where it ends: odd inside of one."""

    count = 0

    def __enter__(self) -> None:
        self.count += 1

    def __exit__(self, *about: object) -> None:
        self.count += 1


CALLS = Calls()


def is_factory(name: str) -> bool:
    """Return whether a name is of the form module:factory."""
    return FACTORY.fullmatch(name) is not None


@contextmanager
def only_named() -> Iterator[None]:
    """While inside, only code that `name_code` has noted is imported."""
    global _named
    before, _named = _named, set()
    try:
        yield
    finally:
        _named = before


def name_code(name: str) -> None:
    """Note that the user has typed or trusts a name."""
    if _named is not None:
        _named.add(name)


def check_code(name: str) -> None:
    """Raise if the user has not named module:attribute, or if it is of the standard library.

    A factory is called with options that may come from a file: too powerful for most of Python's.
    """
    module = name.partition(":")[0]
    if module.partition(".")[0] in sys.stdlib_module_names:
        raise RollinError(
            f"{name} is of Python's standard library, which makes no environments: if your module "
            "has that name, rename it."
        )
    if _named is not None and name not in _named:
        raise RollinError(
            f"{name} is code that a file names, and not you: it is not run. If you know it, name "
            "it on the command line, or give --trust where the command has that."
        )


def load_named(name: str, hint: str) -> Any:
    """Return what module:attribute names; hint: what to give instead if it cannot be loaded."""
    check_code(name)
    module, _, attribute = name.partition(":")
    try:
        with CALLS, from_here():
            return getattr(importlib.import_module(module), attribute)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a module's own code may raise anything
        more = f". {hint}{_search_path(module, error)}"
        raise foreign(f"{name} cannot be loaded:", error, more) from error


@contextmanager
def from_here() -> Iterator[None]:
    """While inside, modules in the working directory can be imported, as with `python -m`.

    Code that is called inside may import any other code.
    """
    global _named
    here = str(Path.cwd())
    sys.path.insert(0, here)
    before, _named = _named, None
    try:
        yield
    finally:
        _named = before
        if here in sys.path:  # what was imported may have changed it
            sys.path.remove(here)


def factory_here(name: str) -> str:
    """Return a hint for the name of a module in the working directory; empty if it is none.

    Only what can be called without arguments makes an environment. The file is read, not run.
    """
    module = name.removesuffix(".py").replace("/", ".")
    path = Path(*module.split(".")).with_suffix(".py") if module else Path()
    try:
        if not path.is_file():
            return ""
        body = ast.parse(path.read_text(encoding="utf-8")).body
    except (OSError, SyntaxError, ValueError):
        return ""
    made = [part.name for part in body if isinstance(part, ast.FunctionDef) and _is_free(part)]
    made = [part for part in made if not part.startswith("_") and part != "main"]
    made += [part.name for part in body if isinstance(part, ast.ClassDef) and _is_env(part)]
    likely = [part for part in made if part.startswith("make")] or made
    if not likely:
        return f" {path} has no function without arguments, which could make an environment."
    return f" Did you mean {module}:{likely[0]}?"


def _is_free(function: ast.FunctionDef) -> bool:
    """Return whether a function can be called without arguments."""
    given = function.args
    needed = len(given.posonlyargs) + len(given.args) - len(given.defaults)
    return needed == 0 and None not in given.kw_defaults


def _is_env(kind: ast.ClassDef) -> bool:
    """Return whether a class has an environment as base, and can be made without arguments."""
    begin = [p for p in kind.body if isinstance(p, ast.FunctionDef) and p.name == "__init__"]
    needed = [len(p.args.args) - 1 - len(p.args.defaults) for p in begin]
    return any("Env" in ast.unparse(base) for base in kind.bases) and not any(needed)


def _search_path(name: str, error: BaseException) -> str:
    """Return where a module was searched for, if it was not found."""
    if not isinstance(error, ModuleNotFoundError) or error.name != name.split(".")[0]:
        return ""
    return (
        f" It was looked for in {Path.cwd()} and where Python looks (PYTHONPATH, installed "
        f"packages): go to the directory of {name.split('.')[0]}.py, or add it to PYTHONPATH."
    )
