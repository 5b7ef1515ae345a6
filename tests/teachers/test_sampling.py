"""What all teachers share: ids of plans, mastery, roll-in from below, state; and three of them."""

from typing import Any

import numpy as np
import pytest
from scipy.stats import chisquare

from rollin import Curriculum, Plan, RollinError
from rollin.teachers import TEACHERS, Uniform, make_teacher, options_of
from rollin.teachers.sampling import Cells, Range
from rollin.teachers.self_paced import Level
from tests.teachers.student import ended, fine, taught, teacher_of, tell

ANY: Any = lambda value: value  # noqa: E731
TO_MASTER = 23  # successes: 1 - 0.97^22 = 0.488, 1 - 0.97^23 = 0.504


def test_cells_hold_four_contexts_each_and_the_last_one_more():
    cells = Cells(fine().positions)
    assert len(cells) == 24
    assert [len(members) for members in cells.members] == [4] * 23 + [5]
    assert cells.members[1] == (4, 5, 6, 7)
    assert cells.of[96] == 23


def test_cells_without_contexts_are_left_out():
    cells = Cells((0.0, 0.5, 1.0))
    assert cells.members == ((0,), (1,), (2,))


def test_means_of_a_cell():
    cells = Cells(fine().positions)
    for success in (True, False, True):
        cells.add(5, success)
    assert cells.fast[1] == pytest.approx(0.3 * 0.7 * 0.7 + 0.3)
    assert cells.slow[1] == pytest.approx(0.03 * 0.97 * 0.97 + 0.03)
    assert sum(cells.fast) == cells.fast[1]


def test_the_nearest_mastered_context_below_is_of_another_cell():
    cells = Cells(fine().positions)
    assert (cells.frontier, cells.below(96)) == (None, None)
    cells.slow[2] = cells.slow[5] = 0.5
    assert cells.frontier == 5
    assert [cells.below(j) for j in (8, 12, 23, 24, 96)] == [None, 11, 11, 23, 23]


def test_the_range_of_returns_places_them_from_0_to_1():
    seen = Range()
    seen.add(3.0)
    assert seen.place([3.0, 1.0]).tolist() == [0.0, -2.0]  # there is no range yet
    for total in (-1.0, 1.0):
        seen.add(total)
    assert seen.place([-1.0, 1.0, 3.0]).tolist() == [0.0, 0.5, 1.0]


def test_a_level_is_half_way_from_the_first_to_the_best_or_as_given():
    level = Level("level", None)
    known = []
    for mean in (4.0, 2.0, 10.0, 6.0):
        level.add(mean)
        known.append(level.value)
    assert known == [None, None, 7.0, 7.0]
    assert Level("level", 3.0).value == 3.0
    with pytest.raises(RollinError, match="level must be finite, got nan"):
        Level("level", float("nan"))


def test_the_cell_is_mastered_after_23_successes_and_progress_says_why():
    teacher = teacher_of("uniform")
    reasons = [tell(teacher, 5, 1.0, length=10) for _ in range(TO_MASTER)]
    assert reasons[:-1] == [None] * (TO_MASTER - 1)
    assert reasons[-1] == "slow mean 0.504 of successes around position 0.0729 ≥ 0.5"
    assert (teacher.k, teacher.progress.k) == (5, 7)
    assert {(a.step, a.reason) for a in teacher.progress.advances} == {(230, reasons[-1])}
    assert [a.k for a in teacher.progress.advances] == [7]  # all contexts of the cell at once
    assert tell(teacher, 5, 1.0) is None


def test_progress_never_goes_back_and_the_last_cell_completes_it_once():
    teacher = teacher_of("uniform")
    for _ in range(TO_MASTER):
        tell(teacher, 96, 1.0)
    assert (teacher.progress.k, teacher.progress.finished) == (96, True)
    assert teacher.progress.completed is not None
    done = teacher.progress.completed
    for _ in range(30):
        tell(teacher, 96, 0.0)
    assert not teacher.cells.mastered(23)
    for _ in range(60):
        assert tell(teacher, 96, 1.0) is None
    assert (teacher.progress.k, teacher.progress.completed) == (96, done)


def test_a_curriculum_of_two_contexts_is_completed_only_by_its_last():
    teacher = Uniform(Curriculum.listed([[0.0], [1.0]], 0.0), 0.0, np.random.default_rng(0))
    for _ in range(TO_MASTER):
        tell(teacher, 0, 1.0)
    assert (teacher.progress.k, teacher.progress.completed) == (0, None)
    for _ in range(TO_MASTER):
        tell(teacher, 1, 1.0)
    assert teacher.progress.k == 1
    assert teacher.progress.completed is not None


def test_a_mastered_context_below_rolls_in():
    teacher = teacher_of("uniform", beta=0.3)
    for _ in range(TO_MASTER):
        tell(teacher, 5, 1.0)
    for index, guide in ((6, None), (8, 7), (96, 7)):
        teacher._draw = lambda index=index: index
        plan = teacher.sample()
        assert plan.context.tolist() == [pytest.approx(index / 96)]
        assert (teacher.k, teacher.previous) == (index, guide)
        assert not plan.standing
        if guide is None:
            assert (plan.beta, plan.guide, plan.guide_context) == (0.0, 0, None)
        else:
            assert (plan.beta, plan.guide) == (0.3, 2)
            assert plan.guide_context.tolist() == [pytest.approx(7 / 96)]


def test_the_guide_has_a_new_version_whenever_more_is_mastered():
    teacher = teacher_of("uniform", beta=0.3)
    versions = []
    for index in (5, 6, 20, 12):  # 6 and 12 are not farther than what is mastered
        for _ in range(TO_MASTER):
            tell(teacher, index, 1.0)
        teacher._draw = lambda: 96
        versions.append(teacher.sample().guide)
        del teacher._draw
    assert versions == [2, 2, 3, 3]
    assert teacher.progress.k == 23


def test_without_beta_nothing_rolls_in():
    teacher = teacher_of("uniform", beta=0.0)
    teacher.cells.slow[0] = 0.9
    assert all(teacher.sample().guide == 0 for _ in range(50))


def test_episodes_that_rolled_in_show_no_mastery():
    teacher = teacher_of("uniform")
    for _ in range(60):
        assert tell(teacher, 5, 1.0, rolled_in=True) is None
    assert teacher.cells.slow[1] == 0
    assert teacher.window.mean == 1.0


@pytest.mark.parametrize("name", TEACHERS)
def test_abandoned_observed_and_repeated_ends_count_only_their_steps(name):
    teacher = teacher_of(name)
    plans = [teacher.sample() for _ in range(3)]
    before = teacher.get_state()
    look = Plan(plans[0].plan_id, plans[0].context, purpose="look")
    assert teacher.update(ended(look, 5.0, length=7)) is None
    assert (
        teacher.update(ended(plans[1], 5.0, abandoned=True, rollin_steps=2, failed_rollin_steps=1))
        is None
    )
    after = teacher.get_state()
    assert (teacher.steps, teacher.abandoned, teacher.late) == (7 + 4, 1, 0)
    gone = {"steps", "abandoned", "open"}
    assert {n: v for n, v in after.items() if n not in gone} == {
        n: v for n, v in before.items() if n not in gone
    }
    assert [plan_id for plan_id, *_ in after["open"]] == [1, 3]
    teacher.update(ended(plans[0], 5.0))
    kept = teacher.get_state()
    assert kept["cells"] != before["cells"]
    assert teacher.update(ended(plans[0], -3.0, success=True)) is None  # reported twice
    assert teacher.late == 1
    changed = {n for n, value in teacher.get_state().items() if value != kept[n]}
    assert changed == {"late", "steps"}


@pytest.mark.parametrize("name", TEACHERS)
def test_a_plan_that_was_never_made_is_refused(name):
    teacher = teacher_of(name)
    plan = teacher.sample()
    assert teacher.context_of(plan.plan_id) in range(97)
    for plan_id in (0, 2):
        with pytest.raises(RollinError, match="has made the plans 1 to 1"):
            teacher.update(ended(Plan(plan_id, plan.context)))
        with pytest.raises(RollinError, match=f"Plan {plan_id} is of no episode"):
            teacher.context_of(plan_id)


def test_resuming_keeps_what_was_learned_and_begins_with_plan_1():
    teacher = teacher_of("uniform")
    for _ in range(TO_MASTER):
        tell(teacher, 5, 1.0)
    teacher.sample()
    teacher.resume_at(1000)
    assert (teacher.steps, teacher.progress.k, teacher.sample().plan_id) == (1000, 7, 1)


def test_the_state_of_another_teacher_or_curriculum_is_refused():
    teacher = teacher_of("uniform")
    with pytest.raises(RollinError, match="is the teacher Uniform, and the saved one was Fixed"):
        teacher.set_state(teacher_of("fixed").get_state())
    other = Uniform(fine(13), 0.0, np.random.default_rng(0))
    with pytest.raises(RollinError, match="has 97 contexts, the saved one had 13"):
        teacher.set_state(other.get_state())


def test_errors_of_unknown_names_and_options_list_the_known_ones():
    with pytest.raises(RollinError, match=r"no teacher 'alpgmm': choose one of uniform, fixed, .*"):
        teacher_of("alpgmm")
    with pytest.raises(RollinError, match=r"Did you mean alp-gmm\?"):
        teacher_of("alpgmm")
    known = r"frontier has no option rate: its options are floor\."
    with pytest.raises(RollinError, match=known):
        teacher_of("frontier", rate=3)
    with pytest.raises(RollinError, match=r"uniform has no option rate: it has none\."):
        teacher_of("uniform", rate=3)
    assert options_of("plr") == {"score": "change", "temperature": 0.1, "staleness": 0.1}


BAD = [
    ("alp-gmm", {"every": 5}, "every must be at least 10, got 5"),
    ("alp-gmm", {"window": 2.5}, "window must be a whole number, got 2.5"),
    ("alp-gmm", {"uniform": 1.5}, r"uniform must lie in \[0, 1\], got 1.5"),
    ("plr", {"score": "gae"}, "score must be one of change, gap, got 'gae'"),
    ("plr", {"temperature": 0.0}, "temperature must be a finite number greater than 0, got 0"),
    ("plr", {"staleness": -0.1}, r"staleness must lie in \[0, 1\], got -0.1"),
    ("spdl", {"epsilon": 0.0}, "epsilon must be a finite number greater than 0"),
    ("spdl", {"level": float("inf")}, "level must be finite, got inf"),
    ("spdl", {"width": 2.0}, "width must be at most 1, got 2"),
    ("spdl", {"target_width": 0.5}, "target_width must be at most 0.1, got 0.5"),
    ("spdl", {"every": 1}, "every must be at least 2, got 1"),
    ("currot", {"epsilon": 2.0}, "epsilon must be at most 1, got 2"),
    ("currot", {"particles": 0}, "particles must be at least 1, got 0"),
    ("currot", {"memory": 0}, "memory must be at least 1, got 0"),
    ("currot", {"target_width": 2.0}, r"target_width must lie in \[0, 1\], got 2"),
    ("frontier", {"floor": 0.0}, "floor must be a finite number greater than 0, got 0"),
    ("jsrl", {"schedule": "slow"}, "schedule must be one of shrinking, random, got 'slow'"),
    ("jsrl", {"stages": 0}, "stages must be at least 1, got 0"),
    ("jsrl", {"horizon": 0}, "horizon must be at least 1, got 0"),
    ("jsrl", {"tolerance": 2.0}, r"tolerance must lie in \[0, 1\], got 2"),
    ("reverse", {"new": 0}, "new must be at least 1, got 0"),
    ("reverse", {"least": 0.9, "most": 0.2}, "least must be smaller than most, got 0.9 and 0.2"),
]


@pytest.mark.parametrize(("name", "options", "said"), BAD)
def test_options_out_of_range_are_refused_in_a_sentence(name, options, said):
    with pytest.raises(RollinError, match=said) as error:
        teacher_of(name, **options)
    assert str(error.value).endswith(".")


def test_what_is_no_curriculum_no_share_or_no_stream_is_refused():
    stream = np.random.default_rng(0)
    with pytest.raises(RollinError, match=r"needs a rollin.Curriculum, got list: Curriculum.along"):
        make_teacher("uniform", ANY([[0.0]]), 0.0, stream)
    with pytest.raises(RollinError, match=r"beta must lie in \[0, 1\)"):
        make_teacher("uniform", fine(), 1.0, stream)
    for wrong in (0, np.random.Generator(np.random.MT19937(0))):
        with pytest.raises(RollinError, match=r"random stream of its own, .*default_rng\(seed\)"):
            make_teacher("uniform", fine(), 0.0, ANY(wrong))
    with pytest.raises(RollinError, match=r"does not roll in, got beta 0\.1: set it to 0\."):
        make_teacher("reverse", fine(), 0.1, stream)


# ------------------------------------------------------------------ Uniform, Fixed and Frontier


def drawn(teacher, plans: int) -> np.ndarray:
    """How often each context was planned."""
    found = [teacher.context_of(teacher.sample().plan_id) for _ in range(plans)]
    return np.bincount(found, minlength=97)


def test_uniform_draws_all_contexts_alike():
    assert chisquare(drawn(teacher_of("uniform", seed=1), 9700)).pvalue > 0.01


def test_fixed_plays_only_the_last_context_and_learns_nothing_there():
    teacher = teacher_of("fixed", beta=0.5)
    assert drawn(teacher, 20)[96] == 20
    student = taught(teacher, 300)
    assert student.skill == 0.05
    assert teacher.progress.k == 0


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
