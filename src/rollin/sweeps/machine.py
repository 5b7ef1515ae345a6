"""What this machine offers to runs: cores, memory, and steps per second of a short real run.

Rates are measured on request, with all cores busy, and cached in the user's cache directory for the
hours that a table will take. Reading the cache loads nothing that computes.
"""

import json
import math
import multiprocessing
import os
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from rollin import __version__
from rollin.errors import RollinError, reason
from rollin.runs.engines import engine_of
from rollin.runs.files import write_json
from rollin.runs.spec import RunSpec
from rollin.runs.systems import physical_memory, processor
from rollin.sweeps.condition import Condition
from rollin.untrusted import read_bounded

THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
SHARE = 0.9  # of the free memory that runs may take together
SHORT = 20_000  # steps of the runs that speed is measured with
SECONDS = 2.0  # of training that are measured
CACHE = "rates.json"


def cores() -> int:
    """Cores that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # neither on macOS nor on Windows
        return os.cpu_count() or 1


@contextmanager
def one_thread_each() -> Iterator[None]:
    """Processes that are started inside use one BLAS thread each."""
    before = {name: os.environ.get(name) for name in THREAD_VARIABLES}
    os.environ.update(dict.fromkeys(THREAD_VARIABLES, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def free_memory() -> int:
    """Bytes that runs may take together: what the system has free, or its container allows."""
    found = [_free_of_system(), _free_of_container()]
    return int(SHARE * min(size for size in found if size is not None))


def _free_of_system() -> int:
    for line in _lines(Path("/proc/meminfo")):
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return physical_memory()


def _free_of_container(
    root: Path = Path("/sys/fs/cgroup"), own: Path = Path("/proc/self/cgroup")
) -> int | None:
    """What the control groups that this process is in leave, if one of them has a limit."""
    found = [_left(root / "memory", "memory.limit_in_bytes", "memory.usage_in_bytes")]
    try:
        inside = own.read_text().partition("0::/")[2].partition("\n")[0]
    except OSError:
        inside = ""
    group = root / inside
    for directory in (group, *group.parents):
        found.append(_left(directory, "memory.max", "memory.current"))
        if directory == root:
            break
    return min((size for size in found if size is not None), default=None)


def _left(directory: Path, limit: str, usage: str) -> int | None:
    """What one control group leaves; pages of files that it holds can be had back."""
    try:
        # "max" where there is no limit, which is no number
        left = int((directory / limit).read_text()) - int((directory / usage).read_text())
    except (OSError, ValueError):
        return None
    for line in _lines(directory / "memory.stat"):
        name, _, size = line.partition(" ")
        if name in ("inactive_file", "total_inactive_file") and size.isdigit():
            left += int(size)
            break
    return max(0, left)


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except OSError:
        return []


# ------------------------------------------------------------------ what runs cost


def sample_specs(conditions: Sequence[Condition]) -> dict[str, RunSpec[Any]]:
    """A short run of every task, with roll-in if any condition has that."""
    found: dict[str, Condition] = {}
    for condition in conditions:
        sample = found.setdefault(condition.task, condition)
        if sample.labels.get("method") != "rollin" == condition.labels.get("method"):
            found[condition.task] = condition
    return {task: one.spec(0, SHORT / one.steps) for task, one in found.items()}


def core_seconds(
    conditions: Sequence[Condition], seeds: int, speed: Mapping[str, float], scale: float = 1.0
) -> float:
    """Seconds of one core for all seeds of some conditions; speed: steps per second by task."""
    return seeds * scale * sum(one.steps / speed[one.task] for one in conditions)


def cached_rates(tasks: Iterable[str], workers: int) -> dict[str, float]:
    """Steps per second of those tasks that were measured here, with `workers` runs side by side."""
    known = _read().get(_key(workers), {})
    return {task: known[task] for task in tasks if task in known}


def cache_rates(rates: Mapping[str, float], workers: int) -> None:
    """Cache what was measured here; raise RollinError if the cache cannot be written."""
    path = _cache()
    cached = _read()
    key = _key(workers)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RollinError(f"{path.parent} could not be made: {reason(error)}.") from error
    write_json(path, cached | {key: cached.get(key, {}) | dict(rates)})


def measure_side_by_side(
    specs: Mapping[str, RunSpec[Any]], workers: int
) -> Iterator[tuple[str, float]]:
    """Each task with its steps per second, measured now, with `workers` runs of it side by side."""
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
            first = 0
            began = 0.0
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
    """The cached rates, as far as they can be read: a damaged cache is an empty one."""
    found: dict[str, dict[str, float]] = {}
    with suppress(RollinError, ValueError, RecursionError):
        cached = json.loads(read_bounded(_cache()))
        for key, rates in cached.items() if isinstance(cached, dict) else ():
            if isinstance(rates, dict):
                found[key] = {task: rate for task, rate in rates.items() if _is_rate(rate)}
    return found


def _is_rate(value: Any) -> bool:
    return isinstance(value, float) and math.isfinite(value) and value > 0
