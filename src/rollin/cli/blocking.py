"""An environment that does not return from a call: a hint, and a Ctrl-C that still works.

A run sees the wish to stop between two steps. One that waits inside of a step sees nothing.
"""

import _thread
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from rollin.calls import CALLS

SILENT_SECONDS = 30.0  # in one call, after which there is a hint
BLOCKED_SECONDS = 2.0  # in one call, after which a wish to stop interrupts it


def interrupt_blocked(signum: int, left: threading.Event) -> None:
    """Send a signal again if a call of the environment does not return, until the run is left."""
    call = CALLS.count
    while not left.wait(BLOCKED_SECONDS):
        if call % 2 and CALLS.count == call:
            if hasattr(signal, "pthread_kill"):  # which also ends what the thread waits for
                signal.pthread_kill(threading.main_thread().ident or 0, signum)
            else:
                _thread.interrupt_main(signal.Signals(signum))
            return
        call = CALLS.count


@contextmanager
def hint_at_silence() -> Iterator[None]:
    """While inside, print one line if a call of the environment does not return for long."""
    left = threading.Event()
    thread = threading.Thread(target=_watch, args=(left,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        left.set()
        thread.join()


def _watch(left: threading.Event) -> None:
    call, since = -1, 0.0
    while not left.wait(min(1.0, SILENT_SECONDS / 4)):
        if CALLS.count != call:
            call, since = CALLS.count, time.monotonic()
        elif call % 2 and time.monotonic() - since >= SILENT_SECONDS:
            print(
                f"rollin: no step for {SILENT_SECONDS:.0f} s: the environment has not returned. "
                "Ctrl-C stops the run.",
                file=sys.stderr,
            )
            return
