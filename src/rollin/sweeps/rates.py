"""How fast this machine trains: steps per second of a short real run, on all cores at once.

Measured when asked, and kept in the user's cache directory, for the hours that a table will take.
Reading what is kept loads nothing that computes.
"""

import json
import math
import multiprocessing
import os
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from rollin import __version__
from rollin.errors import RollinError, reason
from rollin.regular import read_bounded
from rollin.runs.engines import engine_of
from rollin.runs.files import write_json
from rollin.runs.spec import RunSpec
from rollin.runs.systems import processor

SECONDS = 2.0  # of training that are measured
CACHE = "rates.json"


def kept_rates(tasks: Iterable[str], workers: int) -> dict[str, float]:
    """Steps per second of those tasks that were measured here, with `workers` runs side by side."""
    known = _read().get(_key(workers), {})
    return {task: known[task] for task in tasks if task in known}


def keep_rates(rates: Mapping[str, float], workers: int) -> None:
    """Keep what was measured here; a cache that cannot be written is a RollinError."""
    path, kept, key = _cache(), _read(), _key(workers)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RollinError(f"{path.parent} could not be made: {reason(error)}.") from error
    write_json(path, kept | {key: kept.get(key, {}) | dict(rates)})


def measure_side_by_side(
    specs: Mapping[str, RunSpec[Any]], workers: int
) -> Iterator[tuple[str, float]]:
    """Each task with its steps per second, measured now, with `workers` runs of it side by side."""
    from rollin.sweeps.local import one_thread_each  # loads all that computes

    with one_thread_each(), multiprocessing.get_context("spawn").Pool(workers) as pool:
        for task, spec in specs.items():
            yield task, sum(pool.map(measure, [spec] * workers, chunksize=1)) / workers


def measure(spec: RunSpec[Any], seconds: float = SECONDS) -> float:
    """Steps per second of a run, from its first update on."""
    from rollin.runs.directory import RunDirectory

    engine = engine_of(spec)
    warmup = engine.warmup(spec.config)
    with tempfile.TemporaryDirectory(prefix="rollin-rate-") as directory:
        run = engine.run(spec, RunDirectory(Path(directory)))
        try:
            first, began = 0, 0.0
            for event in run.events():
                run.take(event)
                now = time.perf_counter()
                if run.step <= warmup + 1:  # the first update may compile
                    first, began = run.step, now
                elif now - began > seconds or run.step == spec.config.steps:
                    break
            return (run.step - first) / (time.perf_counter() - began)
        finally:
            run.close()


def _key(workers: int) -> str:
    return f"rollin {__version__}, {processor()}, {workers} side by side"


def _cache() -> Path:
    try:
        directory = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    except RuntimeError as error:  # a user without a home
        raise RollinError(f"There is no cache directory: {error}.") from error
    return directory / "rollin" / CACHE


def _read() -> dict[str, dict[str, float]]:
    """What is kept, as far as it can be read: a damaged cache is an empty one."""
    found: dict[str, dict[str, float]] = {}
    with suppress(RollinError, ValueError, RecursionError):
        kept = json.loads(read_bounded(_cache()))
        for key, rates in kept.items() if isinstance(kept, dict) else ():
            if isinstance(rates, dict):
                found[key] = {task: rate for task, rate in rates.items() if _is_rate(rate)}
    return found


def _is_rate(value: Any) -> bool:
    return isinstance(value, float) and math.isfinite(value) and value > 0
