"""The archive: probabilities of cells by hand, what counts as reached, going back."""

import numpy as np
import pytest
from scipy.stats import chisquare

import rollin
from rollin import Curriculum
from rollin.teachers import Archive
from tests.curriculum.teachers.student import ended, taught, teacher_of


def test_cells_are_drawn_by_one_over_the_root_of_their_visits():
    teacher = teacher_of("archive", seed=1)
    teacher.visits[:4], teacher.reached[:4] = [0, 3, 8, 0], [True, True, True, False]
    weights = np.array([1.0, 1 / 2, 1 / 3])
    assert teacher.probabilities[:3] == pytest.approx(weights / weights.sum())
    assert teacher.probabilities[3:].sum() == 0
    cells = [teacher.cells.of[teacher.context_of(teacher.sample().ticket)] for _ in range(5000)]
    observed = np.bincount(cells)
    assert chisquare(observed, 5000 * teacher.probabilities[:3]).pvalue > 0.01


def test_it_begins_in_the_first_cell_and_goes_on_behind_successes():
    teacher = teacher_of("archive")
    plan = teacher.sample()
    assert teacher.context_of(plan.ticket) < 4
    teacher.update(ended(plan, 0.0))
    assert (sum(teacher.reached), teacher.visits[0]) == (1, 1)
    teacher.update(ended(teacher.sample(), 1.0))
    assert teacher.reached[:3] == [True, True, False]


def test_a_share_beta_goes_back_to_a_cell_and_acts_under_the_last_context():
    teacher = teacher_of("archive", seed=1, beta=0.3)
    teacher.reached[5], teacher.visits[0] = True, 10**6
    back = []
    for _ in range(2000):
        plan = teacher.sample()
        assert plan.trace
        if plan.beta:
            back.append(teacher.previous)
            assert (plan.beta, plan.context.tolist()) == (1.0, [1.0])
            assert plan.guide_context.tolist() == [pytest.approx(teacher.previous / 96)]
    assert len(back) / 2000 == pytest.approx(0.3, abs=0.03)
    assert np.mean([guide == 23 for guide in back]) > 0.99  # the last context of cell 5


def test_exploring_counts_for_the_cell_that_it_began_in():
    teacher = teacher_of("archive", beta=0.999)
    teacher.update(ended(teacher.sample(), 0.0, rolled_in=True))
    assert teacher.visits[0] == 1
    assert sum(teacher.visits) == 1


def test_a_trace_tells_which_cells_were_visited():
    corners = [[0.0, 0.0], [1.0, 0.0], [1.0, 1.0]]
    path = Curriculum.along(corners, delta=1 / 96, rule=0.0)
    teacher = Archive(path, 0.0, np.random.default_rng(0))
    trace = np.array([[0.0, 0.1], [0.5, 0.02], [0.52, -0.1], [1.1, 0.5]])
    teacher.update(ended(teacher.sample(), 0.0, trace=trace))
    # positions 0, 0.25, 0.26 and 0.75 are of the cells 0, 6, 6 and 18
    assert {cell: n for cell, n in enumerate(teacher.visits) if n} == {0: 1, 6: 1, 18: 1}
    assert [cell for cell, reached in enumerate(teacher.reached) if reached] == [0, 6, 18]


@pytest.mark.parametrize("trace", [None, np.zeros((3, 2)), np.zeros((0, 1)), [0.0, 1.0]])
def test_outcomes_of_another_form_are_left(trace):
    teacher = teacher_of("archive")
    teacher.update(ended(teacher.sample(), 0.0, trace=trace))
    assert (sum(teacher.visits), teacher.visits[0]) == (1, 1)


def test_practice_shows_mastery_and_a_student_is_led_far():
    teacher = teacher_of("archive", beta=0.2)
    student = taught(teacher, 1500)
    assert student.skill > 0.8
    assert teacher.progress.k > 40


def test_the_success_of_the_last_context_reaches_no_cell_behind_it():
    teacher = teacher_of("archive", beta=0.999)
    teacher.update(ended(teacher.sample(), 1.0, rolled_in=True))
    assert [cell for cell, reached in enumerate(teacher.reached) if reached] == [0, 23]


def test_cells_that_explorers_found_enter_the_archive():
    """In our engine, where roll-ins are rows of the replay: the archive is asked for, and told."""
    few = {"hidden": (8, 8), "batch": 16, "warmup": 10_000, "env_options": ("horizon=100",)}
    state = rollin.prepare("point-umaze", teacher="archive", beta=0.9, seed=0, **few)
    teacher, told = state.teacher, []
    update = teacher.update

    def heard(end):
        told.append((end.rolled_in, end.trace is not None))
        return update(end)

    teacher.update = heard  # pyright: ignore[reportAttributeAccessIssue]
    for event in rollin.train_rollin(state):
        if event.step == 2000:
            break
    state.close()
    assert (True, True) in told
    assert all(trace for _, trace in told)
    assert isinstance(teacher, Archive)
    assert sum(teacher.reached) > 1  # by random actions, without any success
    assert not teacher.progress.advances
