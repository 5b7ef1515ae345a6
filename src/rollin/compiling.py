"""Compiled functions whose machine code is kept on the disk, whatever state that disk is in.

Numba keeps machine code beside the sources, or in the user's cache directory, apart for each kind
of CPU. Where it can neither read nor write there (a read-only installation, a full disk, a damaged
file), functions are compiled anew, and nobody has to know.
"""

import hashlib
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any

import llvmlite.binding
from numba import njit
from numba.core import event

from rollin import compile_time


class _Clock(event.Listener):
    """Tells `compile_time` of every function that numba compiles, not of those that it loads."""

    def on_start(self, event: Any) -> None:
        compile_time.begin()

    def on_end(self, event: Any) -> None:
        compile_time.end()


event.register("numba:compile", _Clock())


def host_features() -> Mapping[str, bool]:
    """What LLVM knows of this CPU; nothing if it does not know it."""
    try:
        return llvmlite.binding.get_host_cpu_features()
    except RuntimeError:
        return {}


def kept(
    *, helpers: Iterable[ModuleType] = (), variant: object = None, **options: Any
) -> Callable[[Callable[..., Any]], Any]:
    """A decorator: `numba.njit(**options)` with machine code that is kept.

    helpers: modules whose compiled functions it calls; numba sees edits in the function's own file
    only, so that their contents become part of its name, as does `variant`.
    """
    marks = [] if variant is None else [str(variant)]
    if sources := [Path(str(module.__file__)).read_bytes() for module in helpers]:
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


def _forgive(cache: Any) -> None:
    """Let what goes wrong with a cache be no more than a cache without that function."""
    load, save = cache.load_overload, cache.save_overload

    def load_overload(*args: Any) -> Any:
        try:
            return load(*args)
        except Exception:  # damaged files end in many kinds of errors
            with suppress(Exception):
                cache.flush()  # so that the next save has a sound index to add to
            return None

    def save_overload(*args: Any) -> None:
        with suppress(Exception):
            save(*args)

    cache.load_overload, cache.save_overload = load_overload, save_overload
