"""Compiled functions whose machine code is kept on the disk, and how long compiling took.

Numba keeps machine code beside the sources, or in the user's cache directory, apart for each kind
of CPU. Where it can neither read nor write there (a read-only installation, a full disk, a damaged
file), functions are silently compiled again.

Machine code is made once per machine, inside whatever step needs it first. Clocks leave that time
out, because it does not show how fast a run is. Numba itself is imported with the first compiled
function.
"""

import hashlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any


def host_features() -> Mapping[str, bool]:
    """Return what LLVM knows of this CPU; nothing if it does not know it."""
    import llvmlite.binding

    try:
        return llvmlite.binding.get_host_cpu_features()
    except RuntimeError:
        return {}


def cached_njit(
    *, helpers: Iterable[ModuleType] = (), variant: object = None, **options: Any
) -> Callable[[Callable[..., Any]], Any]:
    """Return a decorator: `numba.njit(**options)` with machine code that is kept on the disk.

    helpers: modules and packages whose compiled functions it calls. Numba sees edits in the
    function's own file only, so the sources of helpers become part of its name, as does `variant`.
    """
    from numba import njit

    _watch_numba()
    marks = [] if variant is None else [str(variant)]
    if sources := [path.read_bytes() for module in helpers for path in _files(module)]:
        marks.append(hashlib.sha256(b"".join(sources)).hexdigest()[:12])

    def decorate(function: Callable[..., Any]) -> Any:
        function.__qualname__ = "_".join([function.__qualname__, *marks])
        try:
            dispatcher: Any = njit(cache=True, **options)(function)
        except RuntimeError:  # numba found no directory that it may write
            return njit(**options)(function)
        _forgive(dispatcher._cache)
        return dispatcher

    return decorate


def _files(module: ModuleType) -> list[Path]:
    """Return the sources of a module, or of all modules of a package."""
    path = Path(str(module.__file__))
    return sorted(path.parent.glob("*.py")) if hasattr(module, "__path__") else [path]


def _forgive(code: Any) -> None:
    """Let what goes wrong with a cache be no more than a cache without that function."""
    load, save = code.load_overload, code.save_overload

    def load_overload(*args: Any) -> Any:
        try:
            return load(*args)
        except Exception:  # damaged files end in many kinds of errors
            with suppress(Exception):
                code.flush()  # so that the next save has a sound index to add to
            return None

    def save_overload(*args: Any) -> None:
        with suppress(Exception):
            save(*args)

    code.load_overload, code.save_overload = load_overload, save_overload


# ------------------------------------------------------------------ time of compiling

_depth = 0  # one function is compiled inside another
_began = 0.0
_spent = 0.0
_listeners: list[Callable[[], None]] = []


def begin() -> None:
    """Note that numba begins to compile a function."""
    global _depth, _began
    _depth += 1
    if _depth == 1:
        _began = time.perf_counter()
        for callback in tuple(_listeners):
            callback()


def end() -> None:
    """Note that the function is compiled."""
    global _depth, _spent
    _depth -= 1
    if _depth == 0:
        _spent += time.perf_counter() - _began


def seconds() -> float:
    """Return the seconds in which this process compiled."""
    return _spent + (time.perf_counter() - _began if _depth else 0.0)


@contextmanager
def listening(callback: Callable[[], None]) -> Iterator[None]:
    """Call `callback` whenever compiling begins, while inside."""
    _listeners.append(callback)
    try:
        yield
    finally:
        _listeners.remove(callback)


@cache
def _watch_numba() -> None:
    """Count every function that numba compiles, not those that it loads."""
    from numba.core import event

    class Clock(event.Listener):
        def on_start(self, event: Any) -> None:
            begin()

        def on_end(self, event: Any) -> None:
            end()

    event.register("numba:compile", Clock())
