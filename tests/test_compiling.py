"""Compiled functions with a cache that cannot be read or written, and the time of compiling:
counted once, heard of, and left out of what a run says of its speed."""

import importlib.util
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from numba.core import config

from rollin import compiling
from rollin.compiling import cached_njit
from rollin.runs.driver import Pace

PROGRAM = """
import sys
from rollin.compiling import cached_njit

@cached_njit()
def double(x):
    return 2 * x

assert double(21) == 42
found = [sum(of.values()) for of in (double.stats.cache_hits, double.stats.cache_misses)]
print(*found)
"""


def run(directory: Path, **variables: str) -> str:
    """What the program prints as a process of its own; its cache is where it stands."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("NUMBA_")}
    done = subprocess.run(
        [sys.executable, "-c", "import program"],
        cwd=directory,
        env={**environment, "HOME": str(directory / "home"), "XDG_CACHE_HOME": "/proc/nowhere"}
        | variables,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture
def load(tmp_path, monkeypatch):
    """Runs the program as a module of this process, each time as if for the first time."""
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", "/proc/nowhere")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))

    def found(program: str = PROGRAM) -> Any:
        if script.read_text() != program:
            script.write_text(program)
        spec = importlib.util.spec_from_file_location("program", script)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, "program", module)
        spec.loader.exec_module(module)
        return module.found

    return found


def test_machine_code_is_kept(tmp_path, load):
    assert load() == [0, 1]
    assert run(tmp_path) == "1 0"


def test_two_kinds_of_cpu_share_a_directory_without_sharing_machine_code(tmp_path, load):
    """As a home directory does that two kinds of machine see."""
    other = {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}
    assert load() == [0, 1]
    assert run(tmp_path, **other) == "0 1"
    assert load() == [1, 0]
    assert run(tmp_path, **other) == "1 0"


@pytest.mark.parametrize("suffix", ["nbi", "nbc"])
@pytest.mark.parametrize("damage", [b"", b"not what was here", None])
def test_a_damaged_cache_is_compiled_again(tmp_path, load, suffix, damage):
    assert load() == [0, 1]
    (file,) = (tmp_path / "__pycache__").glob(f"*.{suffix}")
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) // 2] if damage is None else damage)
    assert load()[0] == 0
    assert load() == [1, 0]  # and mended


def test_a_cache_that_cannot_be_written_is_done_without(tmp_path, load):
    (tmp_path / "__pycache__").write_text("a file where the directory should be")
    (tmp_path / "home").write_text("and here")
    assert load()[0] == 0
    assert load()[0] == 0


def test_a_full_disk_costs_the_cache_only(load, monkeypatch):
    def save(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("numba.core.caching.IndexDataCacheFile.save", save)
    assert load() == [0, 1]
    assert load() == [0, 1]


HELPER = """
from rollin.compiling import cached_njit
import helper

@cached_njit(helpers=(helper,))
def number():
    return helper.inner() + 1

found = number()
"""


def test_an_edited_helper_is_compiled_again(tmp_path, load, monkeypatch):
    helper = tmp_path / "helper.py"
    text = "from numba import njit\n\n@njit\ndef inner():\n    return {}\n"
    for value in (1, 55):  # another length: Python tells edits within a second by it
        helper.write_text(text.format(value))
        monkeypatch.delitem(sys.modules, "helper", raising=False)
        importlib.invalidate_caches()
        assert load(HELPER) == value + 1
    monkeypatch.delitem(sys.modules, "helper")


class Clock:
    """Stands in for `time.perf_counter`."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(time, "perf_counter", made)
    return made


def test_a_function_inside_another_counts_once(clock) -> None:
    before, heard = compiling.seconds(), []
    with compiling.listening(lambda: heard.append(clock.now)):
        compiling.begin()
        clock.now += 2
        compiling.begin()
        clock.now += 3
        assert compiling.seconds() - before == pytest.approx(5)  # also while it goes on
        compiling.end()
        compiling.end()
    clock.now += 7
    assert compiling.seconds() - before == pytest.approx(5)
    assert heard == [100.0]
    compiling.begin()
    compiling.end()
    assert heard == [100.0]  # nobody listens any more


def test_numba_reports_what_it_compiles_and_no_calls(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path))

    @cached_njit()
    def double(x):
        return 2 * x

    heard: list[int] = []
    with compiling.listening(lambda: heard.append(1)):
        before = compiling.seconds()
        assert double(21) == 42
        assert heard == [1]
        spent = compiling.seconds() - before
        assert spent > 0
        assert double(22) == 44
        assert compiling.seconds() - before == spent
    assert heard == [1]


def test_a_run_leaves_it_out_of_its_seconds_and_its_rate(clock) -> None:
    pace = Pace(lambda status: None, lambda: False)
    clock.now += 1
    assert pace.tick(1) == pytest.approx(1)
    compiling.begin()
    clock.now += 30
    compiling.end()
    clock.now += 2
    assert pace.tick(5) == pytest.approx(3)
    assert pace.rate == pytest.approx(2)  # four steps in two seconds
