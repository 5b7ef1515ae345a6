"""Prioritized level replay: probabilities and scores by hand."""

import numpy as np
import pytest
from scipy.stats import chisquare

from rollin.teachers.plr import rank_weights
from tests.teachers.student import teacher_of, tell


def test_ranks_count_by_their_power():
    assert rank_weights([5.0, 7.0, 1.0], 0.5) == pytest.approx(
        np.array([1 / 4, 1.0, 1 / 9]) / (1 + 1 / 4 + 1 / 9)
    )


def test_equal_scores_share_their_ranks():
    # ranks 2 and 3 are shared: (1/2 + 1/3) / 2 each
    assert rank_weights([0.0, 9.0, 0.0], 1.0) == pytest.approx(
        np.array([5 / 12, 1.0, 5 / 12]) / (1 + 1 / 2 + 1 / 3)
    )
    assert rank_weights(np.zeros(4), 0.1) == pytest.approx(np.full(4, 0.25))


def test_probabilities_of_four_contexts():
    teacher = teacher_of("plr", temperature=0.5, staleness=0.1)
    teacher.scores = {10: 5.0, 20: 7.0, 30: 1.0}
    teacher._plans = 10
    teacher._planned_at[10], teacher._planned_at[20], teacher._planned_at[30] = 4, 10, 7
    seen, chances = teacher.probabilities()
    ranked = np.array([1 / 4, 1.0, 1 / 9]) / (49 / 36)
    stale = np.array([6, 0, 3]) / 9
    assert seen == [10, 20, 30]
    assert chances == pytest.approx(0.9 * ranked + 0.1 * stale)


def test_scores_are_changes_at_first_since_the_nearest_context():
    teacher = teacher_of("plr")
    for index, total in ((40, 3.0), (40, 7.0), (44, 2.0), (42, 4.0), (40, 7.0)):
        tell(teacher, index, total)
    # 40: none, then 4, at last 0; 44 by 40; 42 by 40, the lower of two as near
    assert teacher.scores == {40: 0.0, 44: 5.0, 42: 3.0}


def test_or_how_far_the_last_return_is_below_the_best():
    teacher = teacher_of("plr", score="gap")
    for index, total in ((40, 3.0), (40, 7.0), (40, 5.0), (44, -2.0)):
        tell(teacher, index, total)
    assert teacher.scores == {40: 2.0, 44: 0.0}


def test_new_contexts_come_with_the_share_of_those_unseen():
    teacher = teacher_of("plr", seed=3)
    teacher.scores = dict.fromkeys(range(24), 1.0)
    new = [teacher._draw() >= 24 for _ in range(4000)]
    assert np.mean(new) == pytest.approx(1 - 24 / 97, abs=0.02)


def test_seen_contexts_are_drawn_by_their_probabilities():
    teacher = teacher_of("plr", seed=4, temperature=1.0, staleness=0.0)
    teacher.scores = {index: float(index % 5) for index in range(97)}
    _, chances = teacher.probabilities()
    counts = np.bincount([teacher._draw() for _ in range(5000)], minlength=97)
    assert chisquare(counts, 5000 * chances).pvalue > 0.01


def test_stale_contexts_come_back():
    teacher = teacher_of("plr", staleness=1.0)
    teacher.scores = dict.fromkeys(range(97), 0.0)
    found = {teacher._draw() for _ in range(1000)}
    assert len(found) == 97
