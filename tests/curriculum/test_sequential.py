"""The curriculum as a teacher: plans, windows, ids, and the switches of recorded runs."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollin import (
    Curriculum,
    EpisodeEnd,
    Plan,
    RollinError,
    SequentialTeacher,
    SuccessRate,
    Teacher,
)
from rollin.curriculum.teacher import check_teacher

RECORDED = Path(__file__).parents[1] / "golden" / "walk" / "episodes.csv"
ANY: Any = lambda value: value  # noqa: E731


def ended(plan: Plan, total: float = 0.0, **how: Any) -> EpisodeEnd:
    given: dict[str, Any] = {
        "rolled_in": False, "rollin_steps": 0, "failed_rollin_steps": 0,
        "prefix_return": 0.0, "length": 1,
        "success": False, "terminated": True, "truncated": False,
    }  # fmt: skip
    given |= how
    return EpisodeEnd(plan.plan_id, 1, 0, plan.context, plan.purpose, total=total, **given)


def line(episodes: int = 2, rule: Any = 1.0) -> Curriculum:
    return Curriculum.listed([[0.0], [1.0], [2.0]], rule, episodes=episodes)


def test_a_sequential_teacher_is_a_teacher_and_other_objects_are_none():
    assert isinstance(SequentialTeacher(line()), Teacher)
    with pytest.raises(
        RollinError, match=r"A teacher must have sample.*got Curriculum.*Sequential"
    ):
        check_teacher(line())
    with pytest.raises(RollinError, match=r"needs a rollin.Curriculum, got list"):
        SequentialTeacher(ANY([[0.0]]))
    with pytest.raises(RollinError, match=r"beta must lie in \[0, 1\)"):
        SequentialTeacher(line(), beta=1.0)


def test_the_first_context_has_no_guide_and_the_next_rolls_in_with_that_before():
    walk = SequentialTeacher(line(episodes=1), beta=0.3)
    first = walk.sample()
    assert (first.plan_id, first.beta, first.guide) == (1, 0.0, 0)
    assert walk.update(ended(first, 2.0)) == "mean return 2 of the last 1 episodes > 1"
    second = walk.sample()
    assert (second.beta, second.guide, second.guide_context.tolist()) == (0.3, 1, [0.0])
    assert second.context.tolist() == [1.0]
    assert second.plan_id == 2
    assert SequentialTeacher(line(), beta=0.0, scratch=True).sample().context.tolist() == [2.0]


def test_late_abandoned_and_look_episodes_stay_out_of_the_window():
    walk = SequentialTeacher(line(episodes=1))
    old, other = walk.sample(0), walk.sample(1)
    assert walk.update(ended(old, 2.0))
    assert walk.update(ended(other, 9.0)) is None  # of ω_0, after the switch
    assert (walk.k, walk.late, walk.window.values) == (1, 1, [])
    now = walk.sample()
    assert walk.update(ended(now, 9.0, abandoned=True, rollin_steps=3, length=2)) is None
    look = Plan(now.plan_id, now.context, purpose="look")
    assert walk.update(ended(look, 9.0)) is None
    assert (walk.k, walk.abandoned) == (1, 1)
    assert walk.steps == 1 + 1 + 5 + 1
    assert walk.update(ended(now, 9.0))
    assert walk.k == 2


def test_a_roll_in_counts_with_its_rewards_unless_only_main_episodes_count():
    rolled = {"rolled_in": True, "rollin_steps": 4, "prefix_return": 1.5}
    for counted, advances in (("all", True), ("main", False)):
        walk = SequentialTeacher(line(episodes=1), counted=ANY(counted))
        assert bool(walk.update(ended(walk.sample(), 0.0, **rolled))) == advances


def test_successes_count_where_the_rule_asks_for_them():
    walk = SequentialTeacher(line(episodes=2, rule=SuccessRate(0.6)))
    plan = walk.sample()
    assert walk.update(ended(plan, 100.0, success=True)) is None
    assert walk.update(ended(plan, success=True)) == "success rate 1 of the last 2 episodes > 0.6"


def test_the_last_context_is_completed_once():
    walk = SequentialTeacher(Curriculum.listed([[0.0], [1.0]], 1.0, episodes=1))
    reasons = [walk.update(ended(walk.sample(), 2.0)) is not None for _ in range(4)]
    assert reasons == [True, True, False, False]
    assert walk.progress.completed is not None
    assert walk.progress.completed.step == 2
    assert walk.k == 1


def test_a_plan_that_was_never_made_is_refused():
    walk = SequentialTeacher(line())
    plan = walk.sample()
    for plan_id in (0, 2):
        with pytest.raises(RollinError, match="has made the plans 1 to 1"):
            walk.update(ended(Plan(plan_id, plan.context)))


@given(st.lists(st.tuples(st.floats(-1, 4), st.integers(0, 3)), max_size=40), st.integers(0, 39))
def test_a_restored_teacher_plans_and_decides_as_the_original(episodes, cut):
    walk, plans = SequentialTeacher(line()), []
    again: SequentialTeacher | None = None
    for number, (total, back) in enumerate(episodes):
        if number == cut:
            again = SequentialTeacher(line())
            again.set_state(json.loads(json.dumps(walk.get_state())))
        plans.append(walk.sample())
        end = ended(plans[-1 - min(back, len(plans) - 1)], total)  # some come late
        why = walk.update(end)
        if again is not None:
            assert again.sample().plan_id == plans[-1].plan_id
            assert again.update(end) == why
            assert again.get_state() == walk.get_state()


def test_the_state_of_another_curriculum_is_refused():
    walk = SequentialTeacher(Curriculum.listed([[0.0], [1.0]], 1.0))
    with pytest.raises(RollinError, match="has 2 contexts, the saved one had 3"):
        walk.set_state(SequentialTeacher(line()).get_state())


def test_fed_with_a_recorded_run_it_switches_at_the_same_episodes():
    # a run of version 0.1.0 on tests.toys.Line with this curriculum, β = 0.3, seed 3
    contexts = [[0.0], [0.2], [0.4], [0.6], [0.8], [1.0], [1.2]]
    walk = SequentialTeacher(Curriculum.listed(contexts, 3.0, episodes=4), beta=0.3)
    rows = list(csv.DictReader(RECORDED.read_text().splitlines()))
    ks = [int(row["k"]) for row in rows]
    for row, k in zip(rows, ks, strict=True):
        assert walk.k == k, f"after {row['step']} steps"
        hidden = int(row["rollin_steps"])
        how = {
            "rolled_in": row["rollin"] == "1",
            "rollin_steps": hidden,
            "success": row["success"] == "1",
        }
        length = int(row["length"]) - hidden
        walk.update(ended(walk.sample(), float(row["return"]), length=length, **how))
        assert walk.steps == int(row["step"])
    ends = [
        int(row["step"]) for row, now, after in zip(rows, ks, ks[1:], strict=False) if now < after
    ]
    assert [advance.step for advance in walk.progress.advances][: len(ends)] == ends
    assert len(ends) == 5
