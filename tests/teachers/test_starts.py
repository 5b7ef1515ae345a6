"""Teachers that choose where an episode begins: jump-start, the archive, the reverse curriculum."""

import numpy as np
import pytest
from scipy.stats import chisquare

import rollin
from rollin import Curriculum
from rollin.teachers import Archive
from tests.teachers.student import ended, teacher_of

# ------------------------------------------------------------------ jump-start


def drawn_cells(teacher, plans):
    """The cell of each of some plans."""
    ids = [teacher.sample().plan_id for _ in range(plans)]
    return [teacher.cells.of[teacher.context_of(plan_id)] for plan_id in ids]


def jumping(**options):
    """A teacher with two mastered cells that jump-starts nearly always."""
    teacher = teacher_of("jsrl", beta=0.999, **({"horizon": 100, "stages": 4} | options))
    teacher.cells.slow[:2] = [0.6, 0.6]
    return teacher


def jump(teacher, total):
    """One jump-started episode, and the length that it was planned with."""
    while (plan := teacher.sample()).context[0] != 1.0:
        pass
    teacher.update(ended(plan, total, rolled_in=plan.beta > 0))
    return plan.length


def test_the_horizon_shrinks_by_stages_when_returns_are_near_the_best():
    teacher = jumping(episodes=2)
    found = [jump(teacher, total) for total in (4, 4, 0, 8, 0, 0, 8, 4, 4, 4)]
    # stage 1: mean 4, the first; 2: mean 4; 3: 0 < 4 - 0.05 · 8, then (0 + 8) / 2; 4: no roll-in
    assert found == [75, 75, 50, 50, 25, 25, 25, None, None, None]
    assert (teacher.stage, teacher.length, teacher.best) == (4, 0, 4.0)


def test_the_tolerance_is_a_share_of_the_range_of_returns():
    for tolerance, stage in ((0.6, 3), (0.4, 2)):
        teacher = jumping(episodes=2, tolerance=tolerance)
        for total in (10, 10, 6, 10):  # 8 against 10, range 4
            jump(teacher, total)
        assert teacher.stage == stage


def test_the_guide_is_the_farthest_mastered_context_and_acts_for_exactly_h_steps():
    teacher = jumping()
    plan = teacher.sample()
    assert (plan.context.tolist(), plan.beta, plan.length) == ([1.0], 1.0, 75)
    assert (teacher.previous, plan.guide_context.tolist()) == (7, [pytest.approx(7 / 96)])


def test_a_farther_guide_begins_with_long_roll_ins_and_a_nearer_one_does_not():
    teacher = jumping(episodes=1)
    assert [jump(teacher, 1.0) for _ in range(2)] == [75, 50]
    teacher.cells.slow[1] = 0.0
    assert jump(teacher, 1.0) == 25
    teacher.cells.slow[5] = 0.6
    assert jump(teacher, 1.0) == 75


def test_ends_of_an_earlier_stage_do_not_count_for_this_one():
    teacher = jumping(episodes=1)
    plans = [teacher.sample() for _ in range(3)]
    for plan in plans:
        teacher.update(ended(plan, 1.0, rolled_in=True))
    assert teacher.stage == 2


def test_the_horizon_is_that_of_the_longest_episode_if_none_is_given():
    teacher = jumping(horizon=None, stages=10)
    teacher.update(ended(teacher.sample(), 0.0, rolled_in=True, rollin_steps=80, length=120))
    assert teacher.length == 180


def test_or_it_is_drawn():
    teacher = jumping(schedule="random")
    lengths = []
    for _ in range(3000):
        plan = teacher.sample()
        if plan.context[0] == 1.0:
            lengths.append(plan.length or 0)
    assert set(lengths) <= set(range(100))
    assert np.mean(lengths) == pytest.approx(49.5, abs=2)


def test_other_episodes_prepare_the_guide_half_of_them_in_the_next_cell():
    teacher = teacher_of("jsrl", beta=0.0)
    assert set(drawn_cells(teacher, 50)) == {0}
    teacher.cells.slow[:2] = [0.6, 0.6]
    cells = drawn_cells(teacher, 4000)
    shares = np.bincount(cells, minlength=24) / 4000
    assert shares[:3] == pytest.approx([0.25, 0.25, 0.5], abs=0.03)
    assert shares[3:].sum() == 0


def test_a_share_beta_is_jump_started():
    teacher = teacher_of("jsrl", seed=1, beta=0.3)
    teacher.cells.slow[0] = 0.6
    jumped = [teacher.sample().length is not None for _ in range(3000)]
    # the first horizon is that of an episode of one step: 0.9 of it is rounded to 1
    assert np.mean(jumped) == pytest.approx(0.3, abs=0.03)


# ------------------------------------------------------------------ the archive


def test_cells_are_drawn_by_one_over_the_root_of_their_visits():
    teacher = teacher_of("archive", seed=1)
    teacher.visits[:4], teacher.reached[:4] = [0, 3, 8, 0], [True, True, True, False]
    weights = np.array([1.0, 1 / 2, 1 / 3])
    assert teacher.probabilities[:3] == pytest.approx(weights / weights.sum())
    assert teacher.probabilities[3:].sum() == 0
    observed = np.bincount(drawn_cells(teacher, 5000))
    assert chisquare(observed, 5000 * teacher.probabilities[:3]).pvalue > 0.01


def test_it_begins_in_the_first_cell_and_continues_behind_successes():
    teacher = teacher_of("archive")
    plan = teacher.sample()
    assert teacher.context_of(plan.plan_id) < 4
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


def test_a_trace_shows_which_cells_were_visited():
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


# ------------------------------------------------------------------ the reverse curriculum


def judged(teacher, tried: dict[int, tuple[int, int]]):
    """The starts from which the next round walks, after these episodes and successes."""
    found = []
    teacher._begin_round = found.append
    first, (episodes, successes) = next(iter(tried.items()))
    teacher.starts = [first]
    plan = teacher.sample()
    teacher.starts, teacher.trials = list(tried), 1
    teacher._tried = {start: list(counts) for start, counts in tried.items()}
    teacher._tried[first] = [episodes - 1, successes]  # a failure is still to come
    teacher.update(ended(plan, 0.0))
    return found[0]


def test_good_starts_are_those_of_some_success_but_not_always():
    teacher = teacher_of("reverse")
    assert judged(teacher, {3: (4, 2), 5: (4, 0), 7: (4, 4), 9: (10, 1), 2: (10, 9)}) == [2, 3, 9]
    assert teacher.good == [0, 2, 3, 9]


def test_if_all_is_mastered_walks_begin_at_the_farthest_start():
    teacher = teacher_of("reverse", least=0.1, most=0.7)
    assert judged(teacher, {7: (10, 8), 3: (4, 4)}) == [7]
    assert teacher.good == [0]


def test_if_all_fail_walks_begin_at_earlier_good_ones():
    teacher = teacher_of("reverse")
    teacher.good = [0, 4]
    assert judged(teacher, {7: (4, 0), 9: (4, 0)}) == [0, 4]


def test_a_round_has_new_starts_and_old_ones():
    teacher = teacher_of("reverse", new=4, old=2, walk=1)
    teacher.good = [40]
    teacher._begin_round([20])
    assert len(teacher.starts) == 6
    assert set(teacher.starts[:4]) <= {19, 21}
    assert teacher.starts[4:] == [40, 40]


def test_random_walks_have_the_variance_of_their_steps_and_stay_on_the_path():
    teacher = teacher_of("reverse", seed=1, walk=16)
    ends = np.array([teacher._walk([48]) for _ in range(4000)])
    assert ends.mean() == pytest.approx(48, abs=0.3)
    assert ends.var() == pytest.approx(16, rel=0.08)
    assert (ends % 2 == 0).all()
    assert min(teacher._walk([0]) for _ in range(100)) == 0
    assert max(teacher._walk([96]) for _ in range(100)) == 96


def test_the_last_context_is_played_from_starts_near_the_goal_at_first():
    teacher = teacher_of("reverse")
    for _ in range(50):
        plan = teacher.sample()
        assert plan.context.tolist() == [1.0]
        assert plan.start.tolist()[0] >= 1 - 16 / 96
        assert (plan.beta, plan.guide) == (0.0, 0)


def test_the_farthest_start_is_the_environment_s_own():
    teacher = teacher_of("reverse")
    teacher.starts = [96]
    assert teacher.sample().start is None
    teacher.starts = [95]
    assert teacher.sample().start.tolist() == [pytest.approx(1 / 96)]


def test_ends_of_an_earlier_round_do_not_count_for_this_one():
    teacher = teacher_of("reverse", new=1, old=0, trials=2)
    plans = [teacher.sample() for _ in range(4)]
    for plan in plans:
        teacher.update(ended(plan, 1.0))
    assert teacher._round == 2
    assert teacher._tried == {}


def test_its_context_is_always_the_last():
    teacher = teacher_of("reverse")
    teacher.progress.move(0, 15, "for the test")
    assert teacher.here.tolist() == [1.0]
