"""How long this process has compiled, and who hears when that begins.

Machine code is made once per machine (`rollin.compiling`), inside whatever step needs it first.
That time says nothing of how fast a run goes, so that clocks leave it out.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_depth = 0  # one function is compiled inside another
_began = 0.0
_spent = 0.0
_hearing: list[Callable[[], None]] = []


def begin() -> None:
    """A function begins to be compiled."""
    global _depth, _began
    _depth += 1
    if _depth == 1:
        _began = time.perf_counter()
        for told in tuple(_hearing):
            told()


def end() -> None:
    """It is compiled."""
    global _depth, _spent
    _depth -= 1
    if _depth == 0:
        _spent += time.perf_counter() - _began


def seconds() -> float:
    """Seconds of this process in which it compiled."""
    return _spent + (time.perf_counter() - _began if _depth else 0.0)


@contextmanager
def heard_by(told: Callable[[], None]) -> Iterator[None]:
    """While inside, `told` is called whenever compiling begins."""
    _hearing.append(told)
    try:
        yield
    finally:
        _hearing.remove(told)
