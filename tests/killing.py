"""Killing runs at any moment, and what must then be the same."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from rollin.runs.files import read_json

ROOT = Path(__file__).parents[1]


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


def kill_after_a_checkpoint(program: str, out: Path, delays: Iterable[float]) -> int:
    """Start a Python program on `out` again and again, and kill -9 it some time after it has saved.

    Returns how many were killed before they ended by themselves.
    """
    kills = 0
    manifest = out / "checkpoint" / "manifest.json"
    for delay in delays:
        before = manifest.stat().st_mtime_ns if manifest.exists() else 0
        process = subprocess.Popen([sys.executable, "-c", program, out], cwd=ROOT)
        deadline = time.monotonic() + 60
        while process.poll() is None and time.monotonic() < deadline:
            with suppress(FileNotFoundError):
                if manifest.stat().st_mtime_ns != before:  # it has saved in this life
                    break
            time.sleep(0.002)
        time.sleep(delay)
        if process.poll() is None:
            os.kill(process.pid, signal.SIGKILL)
            kills += 1
        process.wait()
    return kills
