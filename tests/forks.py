"""Processes that begin as copies of one that has imported everything: a second less for each.

What a process of its own is there for, to be killed or told to leave, is the same. Tests of how
processes start, and of programs as users call them, start theirs from nothing.
"""

import multiprocessing
import sys
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from typing import Any

from rollin.runs import driver
from rollin.sweeps import local
from rollin.sweeps.local import LocalExecutor

_HERE = sys.platform == "linux"  # Windows has no forks, and on macOS libraries may not bear them
CONTEXT: Any = multiprocessing.get_context("forkserver" if _HERE else "spawn")
if _HERE:
    CONTEXT.set_forkserver_preload(
        [
            "rollin.runs.driver",
            "rollin.runs.engines.rollin_run",
            "rollin.runs.engines.sac",
            "rollin.runs.engines.tabular_run",
            "rollin.sac.cpu.learner",
            "rollin.sweeps.queue",
            "rollin.sweeps.local",
        ]
    )


def begin(target: Callable[..., object], *arguments: Any) -> BaseProcess:
    """A process that calls a function of a module."""
    process = CONTEXT.Process(target=target, args=arguments, daemon=True)
    process.start()
    return process


def forking(*arguments: Any, **options: Any) -> LocalExecutor:
    """A `LocalExecutor` whose workers are such copies."""
    executor = LocalExecutor(*arguments, **options)
    executor._context = CONTEXT
    return executor


def serve_eagerly(*arguments: Any) -> None:
    """What a worker does, but its runs save and report at every step."""
    driver.CHECKPOINT_SECONDS = driver.STATUS_SECONDS = 0.0
    local._serve(*arguments)
