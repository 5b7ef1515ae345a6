"""Uniform, Fixed and Frontier: what they draw, by hand and by frequencies."""

import numpy as np
import pytest
from scipy.stats import chisquare

from tests.curriculum.teachers.student import taught, teacher_of, tell


def drawn(teacher, plans: int) -> np.ndarray:
    """How often each context was planned."""
    found = [teacher.context_of(teacher.sample().ticket) for _ in range(plans)]
    return np.bincount(found, minlength=97)


def test_uniform_draws_all_contexts_alike():
    assert chisquare(drawn(teacher_of("uniform", seed=1), 9700)).pvalue > 0.01


def test_fixed_plays_the_last_context_alone_and_learns_nothing_that_is_far():
    teacher = teacher_of("fixed", beta=0.5)
    assert drawn(teacher, 20)[96] == 20
    student = taught(teacher, 300)
    assert student.skill == 0.05
    assert teacher.progress.k == 0


def test_uniform_teaches_what_lies_at_the_edge_of_the_skill():
    assert taught(teacher_of("uniform"), 1500).skill > 0.5


def test_frontier_draws_cells_by_the_difference_of_means():
    teacher = teacher_of("frontier", seed=2)
    tell(teacher, 5, 1.0)  # of cell 1: fast 0.3, slow 0.03
    expected = np.full(24, 0.05)
    expected[1] = 0.27 + 0.05
    assert teacher.probabilities == pytest.approx(expected / (23 * 0.05 + 0.32))
    by_cell = np.bincount(teacher.cells.of, drawn(teacher, 5000))
    assert chisquare(by_cell, 5000 * teacher.probabilities).pvalue > 0.01


def test_frontier_draws_a_forgotten_cell_as_often_as_a_rising_one():
    teacher = teacher_of("frontier")
    teacher.cells.fast[3:5], teacher.cells.slow[3:5] = [0.2, 0.8], [0.8, 0.2]
    assert teacher.probabilities[3] == teacher.probabilities[4] == pytest.approx(0.65 / 2.4)


def test_frontier_rolls_in_beyond_the_farthest_mastered_cell_only():
    teacher = teacher_of("frontier", beta=0.4)
    teacher.cells.slow[1] = teacher.cells.slow[4] = 0.6
    guides = {}
    for _ in range(400):
        teacher.sample()
        guides[teacher.cells.of[teacher.k]] = teacher.previous
    assert guides == {cell: 19 if cell > 4 else None for cell in range(24)}


def test_frontier_leads_a_student_farther_than_uniform_draws_do():
    reached = {
        name: np.mean([taught(teacher_of(name, seed), 1000, seed).skill for seed in range(3)])
        for name in ("uniform", "frontier")
    }
    assert reached["frontier"] > reached["uniform"] + 0.1
