"""What comes from others: files, read within bounds, and code, imported if the user named it.

Files are regular ones of bounded size, JSON of bounded depth and numbers.
A link may lead anywhere, a pipe waits for ever, a device has no end. The size of the opened file is
checked before any of it is read: a sparse file of terabytes takes no space on a disk.
"""

import ast
import errno
import importlib
import io
import json
import math
import os
import re
import stat
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from rollin.errors import RollinError, foreign, reason

LARGEST = 32 << 20  # bytes of a JSON file
LARGEST_STATUS = 1 << 20  # of a status.json, or of a study in TOML
LARGEST_TABLE = 512 << 20  # of a CSV
LARGEST_RECORDS = 128 << 20  # of a runs.csv, and of the files beside it
LARGEST_POLICY = 1 << 30  # of a policy, or of an MDP
LARGEST_STATE = 2 << 30  # of a checkpoint, whose replay is a file of its own
LARGEST_REPLAY = 64 << 30  # of all transitions of a run, which are read part by part
LARGEST_BUFFER = 8 << 30  # of a callback's file, which holds an explorer's replay
DEEPEST = 64  # lists and objects inside each other
MOST_DIGITS = 40  # of a whole number: 128 bits have 39


def open_regular(path: Path, flags: int, *, follow: bool = False) -> int:
    """Return a handle of a regular file; raise for a link, a pipe, a device or a directory.

    follow: open the target of a link, where the user has named the path.
    """
    safe = os.O_NONBLOCK  # a pipe would wait for its other end
    if not follow:
        safe |= os.O_NOFOLLOW
    try:
        handle = os.open(path, flags | safe, 0o644)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise RollinError(f"{path} is a link: replace it with a copy of the file.") from error
        if error.errno in (errno.ENXIO, errno.EISDIR):
            raise _not_regular(path) from error
        raise
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise _not_regular(path)
    return handle


def _not_regular(path: Path) -> RollinError:
    return RollinError(f"{path} is not a regular file: replace it with a copy.")


def check_regular(path: Path) -> None:
    """Raise for a link, a pipe, a device or a directory in the place of a file."""
    if os.path.lexists(path):
        try:
            os.close(open_regular(path, os.O_RDONLY))
        except OSError as error:
            raise RollinError(f"{path} could not be read: {reason(error)}.") from error


@contextmanager
def open_bounded(path: Path, most: int = LARGEST, *, follow: bool = False) -> Iterator[BinaryIO]:
    """Open a regular file to read it; raise if it has more than `most` bytes."""
    try:
        with open(open_regular(path, os.O_RDONLY, follow=follow), "rb") as file:
            check_size(path, os.fstat(file.fileno()).st_size, most)
            yield file
    except OSError as error:
        raise RollinError(f"{path} could not be read: {reason(error)}.") from error


def check_size(path: Path, size: int, most: int) -> None:
    """Raise if a file is larger than any of its kind."""
    if size > most:
        raise RollinError(
            f"{path} has {size:,} bytes, and rollin reads at most {most:,} of such a file: restore "
            "the original."
        )


def read_bounded(path: Path, most: int = LARGEST, *, follow: bool = False) -> bytes:
    """Return the bytes of a regular file of at most `most` bytes."""
    try:
        with open_bounded(path, most, follow=follow) as file:
            return file.read(min(os.fstat(file.fileno()).st_size, most))  # it may grow meanwhile
    except ValueError as error:  # a path that no system takes
        raise RollinError(f"{path} could not be read: {error}.") from error


class ExcessError(ValueError):
    """Well-formed values beyond all bounds; the text is the end of a sentence."""


def parse_json(text: str, parse_float: Callable[[str], float] = float) -> Any:
    """Return the value of a JSON text; raise ValueError, or ExcessError beyond the bounds."""
    try:
        value = json.loads(
            text, parse_float=parse_float, parse_constant=parse_float, parse_int=_whole
        )
    except RecursionError as error:
        raise too_deep() from error
    check_bounds(value)
    return value


def check_bounds(value: Any) -> None:
    """Raise ExcessError for values nested too deeply, and for numbers of too many digits."""
    layer = [value]
    depth = 0
    while layer:
        if depth > DEEPEST:
            raise too_deep()
        inner: list[Any] = []
        for part in layer:
            if isinstance(part, dict):
                inner.extend(part.values())
            elif isinstance(part, list | tuple):
                inner.extend(part)
            elif isinstance(part, int) and abs(part) >= 10**MOST_DIGITS:
                raise too_long()
        layer = inner
        depth += 1


def finite(text: str) -> float:
    """Return the number of a text; raise ValueError for NaN, Infinity and 1e999."""
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text[:MOST_DIGITS]} is not a finite number")
    return number


def _whole(text: str) -> int:
    if len(text) > MOST_DIGITS + 1:  # and a sign
        raise too_long()
    return int(text)


def too_deep() -> ExcessError:
    """Return the error for values nested too deeply."""
    return ExcessError(f"it is nested more than {DEEPEST} levels deep")


def too_long() -> ExcessError:
    """Return the error for whole numbers of too many digits."""
    return ExcessError(f"it holds a whole number of more than {MOST_DIGITS} digits")


# ------------------------------------------------------------------ tables
#
# A spreadsheet evaluates a cell that begins like a formula.

_FORMULA = re.compile("'*[=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")
"""The beginning of a formula in a spreadsheet, also in full-width letters or with apostrophes."""

_NUMBER = r"[+-]?(?:\d+\.?\d*(?:e[+-]?\d+)?|inf|nan)"
_NUMBERS = re.compile(f"{_NUMBER}(?: {_NUMBER})*", re.ASCII)
"""Numbers as rollin writes them: no formula, even if they begin with a sign."""

_END = "\r\n"  # cells that hold either letter are then in quotes; files have \n


def csv_text(rows: Iterable[Sequence[Any]]) -> str:
    """Return rows as CSV; an apostrophe precedes text that a spreadsheet would read as a formula.

    Numbers stay as they are, also negative ones.
    """
    import csv  # here: `rollin --help` needs no tables

    lines = []
    for row in rows:
        out = io.StringIO()
        writer = csv.writer(out, lineterminator=_END)
        writer.writerow([_quoted(cell) if isinstance(cell, str) else cell for cell in row])
        lines.append(out.getvalue().removesuffix(_END) + "\n")
    return "".join(lines)


def csv_rows(lines: Iterable[str]) -> Iterator[list[str]]:
    """Yield the rows of CSV without the apostrophes of `csv_text`; raise `csv.Error` if damaged."""
    import csv

    for row in csv.reader(lines, strict=True):
        yield [_unquoted(cell) for cell in row]


def _quoted(cell: str) -> str:
    return f"'{cell}" if _FORMULA.match(cell) and not _NUMBERS.fullmatch(cell) else cell


def _unquoted(cell: str) -> str:
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell


# ------------------------------------------------------------------ code
#
# On the command line (`only_named`) code is imported only if its name was typed, or is in a trusted
# file (`rollin.runs.files`). In Python the caller names it.

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
