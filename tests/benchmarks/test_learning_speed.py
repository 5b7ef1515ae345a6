"""Return against CPU time: when a trial ends, and what is made of its record."""

import itertools

from benchmarks.learning_page import reached
from benchmarks.peers.sac import learn
from benchmarks.records import Row

from benchmarks import learning_page, records


def test_the_page_of_learning_follows_from_the_committed_records() -> None:
    assert learning_page.PAGE.read_text() == learning_page.page(records.read(learning_page.RECORDS))


def curve_of(*returns: float) -> list[Row]:
    return [{"step": 10 * i, "cpu_seconds": i, "return": r} for i, r in enumerate(returns, 1)]


def test_a_target_is_reached_at_the_first_of_two() -> None:
    assert reached(curve_of(1, 5, 1, 5, 5, 1), 5) == 4
    assert reached(curve_of(1, 5, 1, 5), 5) is None
    assert reached([], 5) is None


def test_a_learner_that_fails_has_no_median() -> None:
    good, bad = curve_of(1, 5, 5), curve_of(1, 1, 1)
    assert learning_page.cell([good, good, bad], 5, 9)[1:] == ["2, 2, > 9", "**2**"]
    assert learning_page.cell([good, bad, bad], 5, 9)[1:] == ["2, > 9, > 9", "> 9"]
    assert learning_page.cell([good], 5, 9)[0] == "10"  # 20 steps in 2 s


class Pupil:
    """Gets better with every step; a step takes a second."""

    libraries = ()

    def __init__(self) -> None:
        self.done = 0

    def steps(self, count: int) -> None:
        self.done += count

    def act(self, observation):
        return observation


def watched(monkeypatch, seconds: float, target: float) -> list[tuple[int, float, float]]:
    pupil, ticks = Pupil(), itertools.count()
    monkeypatch.setattr(learn.time, "process_time", lambda: float(pupil.done))
    monkeypatch.setattr(learn, "evaluate", lambda pupil, trial: float(pupil.done))
    trial = learn.Trial("none", 0, 8, 5, 1, target, seconds)
    return list(itertools.takewhile(lambda _: next(ticks) < 100, learn.curve(pupil, trial)))


def test_training_ends_at_the_target_and_the_clock_starts_after_the_first_update(monkeypatch):
    assert watched(monkeypatch, 1000, 20) == [(15, 5, 15), (20, 10, 20), (25, 15, 25)]


def test_training_ends_when_its_time_is_up(monkeypatch) -> None:
    assert [row[:2] for row in watched(monkeypatch, 12, 1e9)] == [(15, 5), (20, 10), (25, 15)]
