"""Killing runs at any moment, and what must then be the same."""

import signal
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from rollin.runs import driver
from rollin.runs.engines import run
from rollin.runs.files import read_json
from rollin.runs.spec import RunSpec
from tests.forks import begin

needs_signals = pytest.mark.skipif(
    sys.platform == "win32", reason="Windows has no signals that interrupt or kill a process"
)


def same_run(one: Path, other: Path) -> None:
    """All that two runs leave is the same to the bit, but for the time they took."""
    files = ("metrics.csv", "episodes.csv", "policy.safetensors", "replay.f32")
    for name in files:
        if (one / name).exists() or (other / name).exists():
            assert (one / name).read_bytes() == (other / name).read_bytes(), name
    results = [read_json(path / "result.json") for path in (one, other)]
    for result in results:
        del result["seconds"]
    assert results[0] == results[1]


def stop_at(spec: RunSpec[Any], out: Path, step: int) -> None:
    """Run until a step, and stop at the end of the episode; needs a driver that asks every step."""
    status = out / "status.json"
    assert not run(spec, out, should_stop=lambda: read_json(status)["step"] >= step)
    assert read_json(status)["state"] == "interrupted"


def kill_after_a_checkpoint(spec: RunSpec[Any], out: Path, delays: Iterable[float]) -> int:
    """Run a spec on `out` again and again, and kill -9 it some time after it has saved.

    Returns how many were killed before they ended.
    """
    kills = 0
    manifest = out / "checkpoint" / "manifest.json"
    for delay in delays:
        before = manifest.stat().st_mtime_ns if manifest.exists() else 0
        process = begin(_run_and_save, spec, out)
        deadline = time.monotonic() + 60
        while process.is_alive() and time.monotonic() < deadline:
            with suppress(FileNotFoundError):
                if manifest.stat().st_mtime_ns != before:  # it has saved in this life
                    break
            time.sleep(0.002)
        time.sleep(delay)
        if process.is_alive():
            process.kill()
        process.join()
        kills += process.exitcode == -signal.SIGKILL
    return kills


def _run_and_save(spec: RunSpec[Any], out: Path) -> None:
    driver.CHECKPOINT_SECONDS = 0.0
    run(spec, out)
