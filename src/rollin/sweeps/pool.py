"""Many small tasks in processes of their own, for studies whose runs are too short to resume.

A task is done or not done: who stops the pool, or loses a worker, loses the tasks that were under
way, no others.
"""

import multiprocessing
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack
from typing import Any, TypeVar

from rollin.checks import at_least
from rollin.errors import RollinError
from rollin.sweeps.local import ignore_interrupts, one_thread_each

Task = TypeVar("Task")
Result = TypeVar("Result")
LOOK_SECONDS = 0.2  # between two looks at whether to stop
AHEAD = 2  # tasks a worker, handed out before they are begun


def _leave_with_parent() -> None:
    """End this worker when the process that started it is gone, even by kill -9."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _good(waiting: dict[Future[Any], Task]) -> Iterator[tuple[Task, Any]]:
    """Take out the tasks that are done, with their results, but for those that failed."""
    for future in [f for f in waiting if f.done() and f.exception() is None]:
        yield waiting.pop(future), future.result()


def run_in_pool(
    function: Callable[[Task], Result],
    tasks: Sequence[Task],
    workers: int,
    should_stop: Callable[[], bool] = lambda: False,
) -> Iterator[tuple[Task, Result]]:
    """Results as they come, in any order; `function` must be importable from its module.

    Workers are spawned and use one BLAS thread each. When it is left, or should stop, the workers
    end at once, with the tasks that they have under way.
    """
    at_least(1, "--jobs", workers)
    before = set(multiprocessing.active_children())
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(workers, mp_context=context, initializer=_leave_with_parent)
    waiting: dict[Future[Any], Task] = {}
    todo = iter(tasks)
    try:
        while not should_stop():
            with ExitStack() as stack:  # what is spawned here inherits both
                stack.enter_context(one_thread_each())
                stack.enter_context(ignore_interrupts())
                for task in todo:
                    waiting[pool.submit(function, task)] = task
                    if len(waiting) >= AHEAD * workers:
                        break
            if not waiting:
                return
            wait(waiting, LOOK_SECONDS, FIRST_COMPLETED)
            yield from _good(waiting)
            for future in waiting:
                if future.done():
                    future.result()  # raises what the task raised, or that its worker died
        yield from _good(waiting)
    except Exception as error:
        yield from _good(waiting)  # done beside the one that failed
        if not isinstance(error, BrokenProcessPool):
            raise
        raise RollinError(
            "A worker process died (killed, or out of memory): the same command goes on with what "
            "is left, --jobs 1 takes the least memory."
        ) from error
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        for process in set(multiprocessing.active_children()) - before:
            process.terminate()
            process.join()
