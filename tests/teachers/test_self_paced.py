"""SPDL: one update against brute force and closed forms. CURROT: three particles by hand."""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import chisquare

from rollin.teachers.self_paced import (
    divergence,
    log_gaussian,
    regressed,
    self_paced,
    transported,
)
from tests.teachers.student import ended, taught, teacher_of, tell

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


def test_with_a_given_level_it_stays_where_returns_are_too_small():
    low, high = teacher_of("spdl", level=5.0), teacher_of("spdl", level=50.0)
    taught(low, 400)
    taught(high, 400)
    assert low.mean > 0.3
    assert high.mean < 0.1  # a student earns 10 at most


# ------------------------------------------------------------------ CURROT

EPISODES = np.array([0.0, 0.05, 0.1, 0.2]), np.array([1.0, 1.0, 1.0, 0.0])


def test_the_regression_weighs_episodes_by_a_gaussian_kernel():
    # bandwidth 1: weights exp(-1/2) and exp(-2)
    at = regressed(np.array([1.0]), np.array([0.0, 3.0]), np.array([4.0, 8.0]), 1.0)
    near, far = np.exp(-0.5), np.exp(-2.0)
    assert at == pytest.approx([(4 * near + 8 * far) / (near + far)])
    assert regressed(np.array([500.0]), np.array([0.0, 3.0]), np.array([4.0, 8.0]), 1.0) == 8.0


def test_three_particles_step_to_their_targets():
    """Bandwidth 0.3 · 0.05; between 0.1 and 0.2 the log-odds of success are 444.4 (0.15 - x).

    0.6 or more up to x = 0.15 - ln(1.5) / 444.4 = 0.14909, and candidates lie 0.0025 apart: the
    farthest particle comes to 0.1475. The others take their whole step.
    """
    moved = transported(np.array([0.1, 0.0, 0.05]), np.ones(3), *EPISODES, 0.6, 0.05)
    assert moved == pytest.approx([0.05, 0.1, 0.1475])


def test_a_particle_among_failures_goes_back_to_the_nearest_good_episode_first():
    moved = transported(np.array([0.3]), np.ones(1), *EPISODES, 0.6, 0.05)
    assert moved == pytest.approx([0.1475])
    alone = transported(np.array([0.3]), np.ones(1), EPISODES[0], np.zeros(4), 0.6, 0.05)
    assert alone == pytest.approx([0.3])  # nothing was good yet


def test_sorted_particles_go_to_sorted_targets_and_not_past_them():
    everywhere = np.linspace(0, 1, 101), np.ones(101)
    moved = transported(
        np.array([0.9, 0.5, 0.93]), np.array([1.0, 0.52, 0.91]), *everywhere, 0.5, 0.05
    )
    assert moved == pytest.approx([0.52, 0.91, 0.98])


def test_particles_stay_on_the_path():
    everywhere = np.linspace(0, 1, 101), np.ones(101)
    moved = transported(np.array([0.12, 0.99]), np.array([0.0, 1.0]), *everywhere, 0.5, 0.05, 0.1)
    assert moved == pytest.approx([0.1, 1.0])


def test_particles_begin_on_the_first_tenth_and_are_drawn_alike():
    teacher = teacher_of("currot", particles=3)
    assert teacher.particles.tolist() == [0.0, 0.05, 0.1]
    assert teacher.targets.tolist() == [1.0, 1.0, 1.0]
    wide = teacher_of("currot", particles=3, target_width=1.0)
    assert wide.targets.tolist() == [0.0, 0.5, 1.0]
    counts = np.bincount([teacher._draw() for _ in range(3000)], minlength=97)
    assert {j for j in range(97) if counts[j]} == {0, 5, 10}
    assert counts[[0, 5, 10]] == pytest.approx(np.full(3, 1000), abs=100)


def test_nothing_moves_before_the_particles_were_good_enough_once():
    teacher = teacher_of("currot", particles=3, every=4, level=5.0)
    for total in (0.0, 6.0, 0.0, 0.0):  # mean 1.5
        tell(teacher, 5, total)
    assert teacher.particles.tolist() == [0.0, 0.05, 0.1]
    for _ in range(12):  # 3 of 16 failed: 4.9
        tell(teacher, 5, 6.0)
    assert teacher.particles.tolist() == [0.0, 0.05, 0.1]
    for _ in range(4):
        tell(teacher, 5, 6.0)
    assert teacher.particles == pytest.approx([0.05, 0.1, 0.15])


def test_too_high_a_level_keeps_the_particles_where_they_are():
    teacher = teacher_of("currot", level=50.0)
    taught(teacher, 300)
    assert teacher.particles.max() == pytest.approx(0.1)
