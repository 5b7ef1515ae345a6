"""Self-paced learning on a path: one update against brute force and closed forms."""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import chisquare

from rollin.curriculum.teachers.spdl import divergence, log_gaussian, self_paced
from tests.curriculum.teachers.student import ended, taught, teacher_of, tell

POSITIONS = np.arange(97) / 96
TARGET = (1.0, 0.02)


def gaussian(mean: float, width: float, positions: np.ndarray = POSITIONS) -> np.ndarray:
    weights = np.exp(-((positions - mean) ** 2) / (2 * width**2))
    return weights / weights.sum()


def kl(p: np.ndarray, mean: float, width: float, positions: np.ndarray = POSITIONS) -> float:
    """KL divergence to a Gaussian, whose logarithms may be far below the least float."""
    logs = -((positions - mean) ** 2) / (2 * width**2)
    logs = logs - logs.max()
    logs = logs - math.log(np.exp(logs).sum())
    held = p > 0
    return float((p[held] * (np.log(p[held]) - logs[held])).sum())


def expected(p: np.ndarray, old: np.ndarray, indices: np.ndarray, returns: np.ndarray) -> float:
    ratios = p[indices] / old[indices]
    return float((ratios * returns).sum() / ratios.sum())


def batch(old: tuple[float, float], seed: int, edge: float = 0.3):
    """Contexts drawn from a Gaussian, and returns that fall behind an edge."""
    stream = np.random.default_rng(seed)
    indices = stream.choice(97, 20, p=gaussian(*old))
    return indices, (POSITIONS[indices] < edge).astype(float)


def brute_force(old, indices, returns, level, epsilon):
    """The best mean and width on a fine grid of everything that might be allowed."""
    before = gaussian(*old)
    reached = expected(before, before, indices, returns) >= level
    best, least = old, math.inf
    means = np.linspace(max(old[0] - old[1], 0), min(old[0] + old[1], 1), 81)
    widths = old[1] * np.exp(np.linspace(-0.7, 0.7, 71))
    for mean, width in itertools.product(means, widths):
        if not 0.02 <= width <= 1:
            continue
        p = gaussian(mean, width)
        if kl(p, *old) > epsilon:
            continue
        performance = expected(p, before, indices, returns)
        if reached and performance < level:
            continue
        worth = kl(p, *TARGET) if reached else -performance
        if worth < least:
            best, least = (float(mean), float(width)), worth
    return best, least


@pytest.mark.parametrize(
    ("old", "seed", "level"),
    [((0.0, 0.1), 0, 0.5), ((0.25, 0.1), 1, 0.6), ((0.25, 0.1), 2, 0.9), ((0.4, 0.05), 3, 0.5)],
)
def test_one_update_is_as_good_as_brute_force(old, seed, level):
    indices, returns = batch(old, seed)
    found = self_paced(POSITIONS, old, TARGET, indices, returns, level, 0.05)
    known, least = brute_force(old, indices, returns, level, 0.05)
    before, p = gaussian(*old), gaussian(*found)
    assert kl(p, *old) <= 0.05 + 1e-9
    performance = expected(p, before, indices, returns)
    reached = expected(before, before, indices, returns) >= level
    worth = kl(p, *TARGET) if reached else -performance
    assert worth <= least + 1e-3 * abs(least)
    if reached:
        assert performance >= level
        assert found[0] == pytest.approx(known[0], abs=0.01)
        assert found[0] > old[0]


def test_far_from_the_ends_an_update_is_that_of_an_uncut_gaussian():
    """With nothing but the KL ball, the optimum lies on its edge: a closed form over one angle."""
    positions, old, target = np.linspace(0, 1, 2001), (0.4, 0.05), (1.0, 0.02)
    indices = np.arange(2001)
    found = self_paced(positions, old, target, indices, np.ones(2001), 0.5, 0.05)

    def closed(m1: float, s1: float, m2: float, s2: float) -> float:
        return math.log(s2 / s1) + (s1**2 + (m1 - m2) ** 2) / (2 * s2**2) - 0.5

    assert closed(*found, *old) == pytest.approx(0.05, rel=0.02)
    best = math.inf
    for width in np.linspace(0.03, 0.07, 4001):
        room = 0.05 + 0.5 - math.log(old[1] / width) - width**2 / (2 * old[1] ** 2)
        if room >= 0:
            mean = old[0] + old[1] * math.sqrt(2 * room)
            best = min(best, closed(mean, width, *target))
    assert closed(*found, *target) == pytest.approx(best, rel=1e-3)


def test_below_the_level_it_goes_back_to_where_returns_are():
    old = (0.4, 0.1)
    indices, returns = batch(old, 5, edge=0.35)
    found = self_paced(POSITIONS, old, TARGET, indices, returns, 0.95, 0.05)
    assert found[0] < old[0]


def test_divergences_are_exact_sums():
    p, q = log_gaussian(POSITIONS, 0.3, 0.1), log_gaussian(POSITIONS, 0.5, 0.2)
    assert np.exp(p) == pytest.approx(gaussian(0.3, 0.1))
    assert divergence(p, q) == pytest.approx(kl(gaussian(0.3, 0.1), 0.5, 0.2))
    assert divergence(p, p) == 0


def test_contexts_are_drawn_from_the_gaussian():
    teacher = teacher_of("spdl", seed=1)
    counts = np.bincount([teacher._draw() for _ in range(5000)], minlength=97)
    known = 5000 * gaussian(0.0, 0.1)
    often = known > 5
    observed = [*counts[often], counts[~often].sum()]
    assert chisquare(observed, [*known[often], known[~often].sum()]).pvalue > 0.01


def test_it_waits_for_a_better_batch_and_counts_what_it_drew_itself():
    teacher = teacher_of("spdl", every=4)
    early = [teacher.sample() for _ in range(3)]
    for total in (0.0, 1.0, 0.0, 1.0):
        tell(teacher, 2, total)
    assert (teacher.mean, teacher.level.value) == (0.0, None)
    for plan in early:  # drawn before the first update
        teacher.update(ended(plan, 9.0))
    assert teacher._batch == []
    for total in (1.0, 1.0, 1.0, 0.0):
        tell(teacher, 2, total)
    assert teacher.level.value == pytest.approx((0.5 + 0.75) / 2)
    assert teacher.mean > 0.0


def test_with_a_level_by_hand_it_stays_where_returns_are_too_small():
    low, high = teacher_of("spdl", level=5.0), teacher_of("spdl", level=50.0)
    taught(low, 400)
    taught(high, 400)
    assert low.mean > 0.3
    assert high.mean < 0.1  # a student earns 10 at most


def test_it_leads_a_student_to_the_end():
    teacher = teacher_of("spdl")
    student = taught(teacher, 1500)
    assert teacher.mean > 0.95
    assert teacher.width < 0.05
    assert student.skill > 0.9
