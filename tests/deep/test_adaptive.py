"""Our own additions to the practical algorithm: better episodes, adaptive curricula."""

import numpy as np
import pytest
from scipy import stats

import rollin
from rollin.deep.state import Better
from rollin.runs.engines.rollin_options import ADAPTIVE

SMALL = {"hidden": (8, 8), "batch": 16, "warmup": 400}


def filled(episodes, capacity=1000):
    """A replay with episodes of these lengths and returns, and its better ones."""
    D = rollin.Replay(rollin.RowLayout(observation=1, action=1), capacity)
    better = Better(D)
    for length, total in episodes:
        for t in range(length):
            D.append([0.0], [0.0], 0.0, [0.0], terminated=False, truncated=t == length - 1)
        better.take(length, total)
    return D, better


def test_better_rows_are_of_episodes_above_the_mean_each_episode_alike():
    D, better = filled([(3, 1.0), (4, 9.0), (2, 0.0), (6, 10.0)])  # mean 5
    drawn = better.draw(6000, np.random.default_rng(0))
    counts = np.bincount(drawn, minlength=D.total)
    assert set(np.flatnonzero(counts)) == {3, 4, 5, 6, 9, 10, 11, 12, 13, 14}
    expected = [6000 / 2 / 4] * 4 + [6000 / 2 / 6] * 6
    assert stats.chisquare(counts[counts > 0], expected).pvalue > 0.001


def test_episodes_of_equal_returns_have_no_better_ones():
    assert len(filled([(3, 1.0), (3, 1.0)])[1]) == 0


def test_rows_that_are_no_longer_held_are_not_drawn():
    _, better = filled([(3, 9.0), (3, 0.0), (3, 0.0), (3, 8.0)], capacity=6)
    assert set(better.draw(100, np.random.default_rng(0))) == {9, 10, 11}


def test_rows_that_go_while_an_episode_is_under_way_are_not_drawn():
    D, better = filled([(3, 9.0), (3, 0.0), (3, 8.0)], capacity=9)
    assert set(better.draw(100, np.random.default_rng(0))) == {0, 1, 2, 6, 7, 8}
    D.append([0.0], [0.0], 0.0, [0.0], terminated=False, truncated=False)  # in the place of row 0
    assert len(better) == 1
    assert set(better.draw(100, np.random.default_rng(0))) == {6, 7, 8}


def test_better_episodes_of_another_replay_are_refused():
    _, better = filled([(3, 9.0), (3, 0.0)])
    state = better.get_state()
    with pytest.raises(rollin.RollinError, match="belong to another replay"):
        filled([(2, 1.0)])[1].set_state(state)
    with pytest.raises(rollin.RollinError, match="damaged"):
        better.set_state({**state, "totals": np.array([np.nan, 0.0])})


def enter(state, k, reason):
    """Go to another context by hand."""
    assert isinstance(state.teacher, rollin.SequentialTeacher)
    state.teacher._enter(k, reason)


def test_a_plan_may_fix_the_length_of_a_roll_in():
    state = rollin.prepare("point-umaze", beta=0.9, seed=0, **SMALL)
    enter(state, 1, "for the test")
    plans = state.teacher.sample
    from dataclasses import replace

    state.teacher.sample = lambda env=0: replace(plans(env), length=7)  # pyright: ignore[reportAttributeAccessIssue]
    lengths = set()
    for event in rollin.train_rollin(state):
        if event.episode is not None and event.episode.rollin:
            lengths.add(event.episode.rollin_steps)
        if event.step == 2000:
            break
    state.close()
    assert lengths == {7}


def test_a_run_that_is_interrupted_goes_on_to_the_bit(tmp_path):
    """In the middle of a curriculum whose contexts the teacher chose."""
    more = {"adaptive": True, "beta": 0.5, "window": 3, "steps": 12_000, "log_every": 3000}
    options = {**SMALL, **more}
    easy = {"env_options": ("max_speed=0.5", "horizon=40"), "goals": 4, **options}

    def stop_after(calls):
        left = [calls]

        def should_stop():
            left[0] -= 1
            return left[0] < 0

        return should_stop

    whole = rollin.train("point-umaze", out=tmp_path / "whole", **easy)
    parts = tmp_path / "parts"
    for calls in (40, 90, 150):
        rollin.train("point-umaze", out=parts, should_stop=stop_after(calls), **easy)
    again = rollin.train("point-umaze", out=parts, **easy)
    assert again.advances == whole.advances
    assert len({advance.k for advance in whole.advances}) > 1
    for name in ("metrics.csv", "episodes.csv", "policy.safetensors"):
        assert (parts / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_the_short_form_stands_for_all_options_of_ours():
    state = rollin.prepare("point-umaze", adaptive=True, better=0.5, **SMALL)
    walk = state.teacher
    assert isinstance(walk, rollin.SequentialTeacher)
    assert isinstance(walk.when, rollin.EarlyGap)
    assert isinstance(walk.where, rollin.Bold)
    assert walk.look_every == 10
    assert (state.options.counted, state.options.better) == ("main", 0.5)
    assert set(ADAPTIVE) == {"rule", "stride", "counted", "better"}
    state.close()


def test_a_way_back_keeps_the_frozen_guide():
    """Nothing was mastered before it: π_main has just failed elsewhere."""
    state = rollin.prepare("point-umaze", adaptive=True, guide="frozen", beta=0.1, **SMALL)
    walk, frozen = state.teacher, []
    assert isinstance(walk, rollin.SequentialTeacher)
    state.freeze_guide = lambda: frozen.append(walk.k)  # pyright: ignore[reportAttributeAccessIssue]
    moves = iter([8, 4, 6])

    def update(end):
        if (k := next(moves, None)) is not None:
            walk._enter(k, "for the test")

    walk.update = update  # pyright: ignore[reportAttributeAccessIssue]
    for event in rollin.train_rollin(state):
        if event.step == 800:  # four episodes
            break
    state.close()
    assert [advance.k for advance in state.progress.advances] == [8, 4, 6]
    assert frozen == [8, 6]
