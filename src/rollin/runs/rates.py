"""How fast this machine trains: steps a second of a short real run, on all cores at once.

Measured once and kept in the user's cache directory, for the hours that a table will take.
"""

import multiprocessing
import os
import platform
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from rollin import __version__
from rollin.errors import RollinError
from rollin.runs.driver import make_run
from rollin.runs.files import make_directory, read_json, write_json
from rollin.runs.local import one_thread_each
from rollin.runs.spec import RollinConfig, RunSpec
from rollin.runs.store import RunDirectory

SECONDS = 2.0  # of training that are measured
CACHE = "rates.json"


def rates(
    specs: Mapping[str, RunSpec[Any]],
    workers: int,
    *,
    anew: bool = False,
    on_task: Callable[[str], None] = lambda task: None,
) -> dict[str, float]:
    """Steps a second of one run of each task, with `workers` of them side by side."""
    path = _cache_directory() / CACHE
    key = f"rollin {__version__}, {processor()}, {workers} side by side"
    kept: dict[str, Any] = {}
    with suppress(RollinError):  # no cache, or a damaged one
        kept = read_json(path)
    known = kept.get(key)
    known = known if isinstance(known, dict) and not anew else {}
    found = {t: r for t, r in known.items() if t in specs and isinstance(r, float) and r > 0}
    missing = {task: spec for task, spec in specs.items() if task not in found}
    if missing:
        found |= measure_side_by_side(missing, workers, on_task)
        with suppress(RollinError, OSError):  # a home that cannot be written: measured each time
            make_directory(path.parent)
            write_json(path, {**kept, key: {**known, **found}})
    return found


def measure_side_by_side(
    specs: Mapping[str, RunSpec[Any]],
    workers: int,
    on_task: Callable[[str], None] = lambda task: None,
) -> dict[str, float]:
    """Steps a second of one run of each task, measured now."""
    found = {}
    with one_thread_each(), multiprocessing.get_context("spawn").Pool(workers) as pool:
        for task, spec in specs.items():
            on_task(task)
            found[task] = sum(pool.map(measure, [spec] * workers, chunksize=1)) / workers
    return found


def measure(spec: RunSpec[Any], seconds: float = SECONDS) -> float:
    """Steps a second of a run, from its first update on."""
    warmup = spec.config.algorithm.warmup if isinstance(spec.config, RollinConfig) else 0
    with tempfile.TemporaryDirectory(prefix="rollin-rate-") as directory:
        run = make_run(spec, RunDirectory(Path(directory)))
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


def _cache_directory() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rollin"


def processor() -> str:
    """The CPU's name, with family and model where the name says little."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    known: dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition(":")
        known.setdefault(name.strip(), value.strip())
    family, model = known.get("cpu family", "?"), known.get("model", "?")
    return f"{known.get('model name', platform.machine())} (family {family}, model {model})"
