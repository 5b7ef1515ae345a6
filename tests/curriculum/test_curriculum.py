"""Curricula: paths, κ, windows and rules."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rollin import (
    Curriculum,
    EpisodeEnd,
    ReturnThreshold,
    RollinError,
    SequentialTeacher,
    SuccessRate,
)
from rollin.curriculum.contexts import polyline
from rollin.curriculum.progress import Progress, Window

U = [[0, 0], [8, 0], [8, 8], [0, 8]]
ANY: Any = lambda value: value  # noqa: E731  (what a type checker would refuse)


def test_the_u_maze_in_steps_of_a_twelfth():
    curriculum = Curriculum.along(U, 1 / 12, 80.0)
    assert curriculum.K == 12
    np.testing.assert_allclose(curriculum.contexts[:6], [[2 * i, 0] for i in range(5)] + [[8, 2]])
    np.testing.assert_allclose(curriculum.contexts[-1], [0, 8])
    np.testing.assert_allclose(curriculum.kappas, np.arange(13) / 12)


@given(st.integers(2, 6), st.integers(1, 3), st.integers(0, 1000), st.floats(0.01, 1))
def test_a_polyline_has_constant_speed_through_its_corners(corners, size, seed, kappa):
    points = np.random.default_rng(seed).normal(size=(corners, size))
    walk = polyline(points)
    lengths = np.linalg.norm(np.diff(points, axis=0), axis=1)
    places = np.array([0, *np.cumsum(lengths)]) / lengths.sum()
    for corner, at in zip(points, places, strict=True):
        np.testing.assert_allclose(np.asarray(walk(at)), corner, atol=1e-9)
    positions = np.union1d(np.linspace(0, kappa, 201), places[places < kappa])  # none cuts a corner
    path = np.array([walk(at) for at in positions])
    walked = np.linalg.norm(np.diff(path, axis=0), axis=1)
    np.testing.assert_allclose(walked, np.diff(positions) * lengths.sum(), atol=1e-9)


@given(st.floats(0.02, 1), st.floats(0, 0.95))
def test_steps_are_delta_apart_and_end_at_one(delta, start):
    made = Curriculum.along(lambda position: [position], delta, 1.0, start=start)
    gaps = np.diff(made.positions)
    assert made.positions[0] == pytest.approx(start, abs=1e-12)
    assert made.positions[-1] == 1
    assert made.kappas == tuple(k / made.K for k in range(made.K + 1))
    np.testing.assert_allclose(gaps[:-1], delta)
    assert 0 < gaps[-1] <= delta * (1 + 1e-6)


def test_contexts_on_a_path_are_round_and_never_beyond_its_corners():
    contexts = Curriculum.along(U, 1 / 12, 80.0).contexts
    np.testing.assert_array_equal(contexts, np.round(contexts))
    ends = Curriculum.along([[0.5], [np.pi]], 0.25, 1.0).contexts
    assert ends[-1] == np.pi


def test_a_curriculum_can_be_changed():
    curriculum = Curriculum.along(U, 1 / 12, 80.0)
    finer = curriculum.changed(delta=1 / 24, start=1 / 24)
    assert finer.K == 23
    assert finer.positions[0] == pytest.approx(1 / 24)
    other = curriculum.changed(rule=SuccessRate(0.8), episodes=5)
    assert other.threshold(3) == 0.8
    assert other.episodes == 5
    assert other.contexts is curriculum.contexts


def test_a_changed_start_keeps_the_step():
    short = Curriculum.along(U, 0.25, 1.0, start=0.9)
    assert short.positions == (0.9, 1.0)
    assert short.kappas == (0.0, 1.0)
    assert short.changed(start=0.0).kappas == (0.0, 0.25, 0.5, 0.75, 1.0)


def test_a_start_of_one_step_follows_the_step():
    """1/Δ contexts at Δ, 2Δ, …, 1, as the paper's maze has them, whatever Δ is."""
    maze = Curriculum.along(U, 1 / 24, 200.0, start="delta")
    for parts in (24, 18, 12):
        walked = maze.changed(delta=1 / parts)
        assert walked.positions == pytest.approx(np.arange(1, parts + 1) / parts)
        assert walked.kappas == pytest.approx(np.arange(parts) / (parts - 1))
    assert maze.changed(start=0.0).positions[0] == 0
    assert maze.changed(start=0.0).changed(delta=0.5).positions == (0.0, 0.5, 1.0)


@given(st.integers(2, 30), st.integers(0, 29))
def test_readings_of_kappa_and_of_the_thresholds_argument(parts, k):
    """By hand: position (k + 1)/N, index k/(N - 1)."""
    k %= parts
    made = Curriculum.along([[0], [1]], 1 / parts, lambda x: x, start="delta")
    assert made.threshold(k) == made.kappas[k] == k / (parts - 1)
    printed = made.changed(kappa="position", threshold_at="position")
    assert printed.kappas[k] == printed.threshold(k) == pytest.approx((k + 1) / parts)


def test_thresholds_may_rise_with_kappa():
    curriculum = Curriculum.along([[0], [1]], 0.25, ReturnThreshold(lambda k: 500 + 4500 * k))
    assert [curriculum.threshold(k) for k in range(5)] == [500, 1625, 2750, 3875, 5000]
    short = Curriculum.along([[0], [1]], 0.5, lambda k: 1 + k)
    assert short.threshold(1) == 1.5
    assert Curriculum.along([[0], [1]], 0.5, ANY(np.int64(3))).threshold(1) == 3


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Curriculum.listed([[1.0]], 1.0), "at least two contexts, got 1"),
        (lambda: Curriculum.listed([[1.0], [1.0, 2.0]], 1.0), "real vectors of one length"),
        (lambda: Curriculum.listed([[1.0], [math.nan]], 1.0), "must be finite numbers"),
        (lambda: Curriculum.along(U, 0.0, 1.0), r"Δ must lie in \(0, 1\], got 0.0"),
        (lambda: Curriculum.along(U, 0.1, 1.0, start=1.0), r"start at a position in \[0, 1\)"),
        (lambda: Curriculum.along(U, 0.1, 1.0, start=ANY("last")), r"start at .* got last"),
        (lambda: Curriculum.along(U, 0.1, 1.0, kappa=ANY("k")), "one of index, position, got 'k'"),
        (lambda: Curriculum.along(U, 0.1, 1.0, threshold_at=ANY(1)), "of kappa, position, got 1"),
        (lambda: Curriculum.along(U, 1.0, 1.0, start="delta"), "leaves one context"),
        (lambda: Curriculum.along([[0, 0]], 0.1, 1.0), "at least two corners"),
        (lambda: Curriculum.along([[1], [1]], 0.1, 1.0), "not all the same point"),
        (lambda: Curriculum.along([[0], [1], [0]], 0.1, 1.0), "must differ from its start"),
        (lambda: ReturnThreshold(math.nan), "R must be a finite number"),
        (lambda: Curriculum.along(U, 0.5, ReturnThreshold(lambda k: 1 / k if k else math.inf)),
         "finite number on every context, got inf at 0"),
        (lambda: Curriculum.listed([[0], [1]], 1.0).changed(delta=0.1), "without a path"),
        (lambda: Curriculum.listed([[0], [1]], ANY("success")), "a threshold R, .* got str"),
        (lambda: Curriculum.listed([[0], [1]], 1.0, episodes=ANY(2.5)), "a whole number, got 2.5"),
        (lambda: Curriculum(np.zeros((3, 1)), (0.0, 1.0), SuccessRate()), "3 contexts and 2"),
        (lambda: Curriculum.along(U, 1e-9, 1.0), "gives 999,999,999 contexts"),
        (lambda: Curriculum.along(U, 1e-320, 1.0), "A step Δ of 9.99989e-321 gives"),
        (lambda: Curriculum.along(U, ANY("0.1"), 1.0), "Δ must lie in"),
        (lambda: Curriculum.along(U, 0.5, ANY(lambda k: None)), "must be a number, got None"),
        (lambda: Curriculum(np.zeros((2, 1)), (0.0, 1.0), ANY(1.0)), "got 1.0: Curriculum.listed"),
        (lambda: ReturnThreshold(ANY("5")), "a finite number, got '5'"),
        (lambda: SuccessRate(ANY("a")), "must lie in .*got 'a'"),
        (lambda: SuccessRate(1.0), "can never be greater than 1"),
    ],
)  # fmt: skip
def test_bad_curricula_are_refused(make, message):
    with pytest.raises(RollinError, match=message):
        make()


def test_a_path_may_cross_itself():
    """A context is then there twice, at two positions, and a walk passes both."""
    eight = Curriculum.along([[0, 0], [4, 0], [4, 4], [2, 4], [2, -4]], delta=1 / 18, rule=1.0)
    assert eight.contexts[2].tolist() == eight.contexts[14].tolist() == [2.0, 0.0]
    walk = SequentialTeacher(eight, 0.0)
    visited = []
    while not walk.progress.finished:
        plan = walk.sample()
        visited.append(plan.context.tolist())
        walk.update(
            EpisodeEnd(plan.plan_id, 1, 0, plan.context, "train", False, 0, 0, 0.0, 2.0, 5, True,
                       False, True)
        )  # fmt: skip
    assert visited == [context for context in eight.contexts[:-1].tolist() for _ in range(10)]


def test_a_window_must_be_full_and_strictly_above():
    curriculum, window = Curriculum.listed([[0], [1]], 2.0, episodes=3), Window(3)
    for value in (9, 9):
        window.add(value)
        assert curriculum.mastered(0, window) is None  # two episodes are not three
    window.restart()
    for value in (1, 2, 3):
        window.add(value)
    assert curriculum.mastered(0, window) is None  # 2 is not above 2
    window.add(1.1)  # the 1 leaves
    assert curriculum.mastered(0, window) == "mean return 2.03333 of the last 3 episodes > 2"
    assert (window.seen, window.largest) == (4, 3)


def test_a_success_rate_counts_successes():
    curriculum = Curriculum.listed([[0], [1]], SuccessRate(0.5), episodes=4)
    window = Window(4)
    for total, success in ((9.0, False), (0.0, True), (0.0, True), (0.0, True)):
        window.add(SuccessRate(0.5).measure(total, success))
    assert curriculum.mastered(0, window) == "success rate 0.75 of the last 4 episodes > 0.5"


@given(st.lists(st.integers(1, 60), min_size=0, max_size=5, unique=True), st.integers(0, 59))
@example([60], 0)
def test_mean_kappa_is_the_mean_over_steps(switches, begin):
    progress = Progress(5, kappas=(0.1, 0.2, 0.4, 0.5, 0.9, 1.0))
    for step in sorted(switches):
        progress.advance(step, "")
    at = [progress.kappas[sum(s < step for s in switches)] for step in range(begin + 1, 61)]
    assert progress.mean_kappa(begin, 60) == pytest.approx(np.mean(at))


def test_the_final_context_is_completed_once():
    progress = Progress(2)
    progress.complete(9, "all")
    progress.complete(11, "later is not first")
    assert progress.completed is not None
    assert progress.completed.step == 9
