"""Time of compiling: counted once, heard of, and left out of what a run says of its speed."""

import time

import pytest
from numba.core import config

from rollin import compile_time
from rollin.compiling import kept
from rollin.runs.driver import Pace


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
    before, heard = compile_time.seconds(), []
    with compile_time.heard_by(lambda: heard.append(clock.now)):
        compile_time.begin()
        clock.now += 2
        compile_time.begin()
        clock.now += 3
        assert compile_time.seconds() - before == pytest.approx(5)  # also while it goes on
        compile_time.end()
        compile_time.end()
    clock.now += 7
    assert compile_time.seconds() - before == pytest.approx(5)
    assert heard == [100.0]
    compile_time.begin()
    compile_time.end()
    assert heard == [100.0]  # nobody listens any more


def test_numba_tells_of_what_it_compiles_and_not_of_calls(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path))

    @kept()
    def double(x):
        return 2 * x

    heard: list[int] = []
    with compile_time.heard_by(lambda: heard.append(1)):
        before = compile_time.seconds()
        assert double(21) == 42
        assert heard == [1]
        spent = compile_time.seconds() - before
        assert spent > 0
        assert double(22) == 44
        assert compile_time.seconds() - before == spent
    assert heard == [1]


def test_a_run_leaves_it_out_of_its_seconds_and_its_rate(clock) -> None:
    pace = Pace(lambda status: None, lambda: False)
    clock.now += 1
    assert pace.tick(1) == pytest.approx(1)
    compile_time.begin()
    clock.now += 30
    compile_time.end()
    clock.now += 2
    assert pace.tick(5) == pytest.approx(3)
    assert pace.rate == pytest.approx(2)  # four steps in two seconds
