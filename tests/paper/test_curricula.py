"""The study of curricula: every teacher once a task, on equal terms, seed by seed."""

from collections import Counter
from pathlib import Path

import pytest

from rollin.envs.registry import make_contextual
from rollin.paper.curricula import FIRST_SEED, MAZES, SMALL_TASKS, STARTS, studies
from rollin.runs.curricula import curriculum_of
from rollin.runs.spec import flat
from rollin.teachers import TEACHERS

OWN = {
    "hand": {"rule", "delta", "beta"},
    "adaptive": {"rule", "stride", "counted", "better", "beta"},
    "ours": {"rule", "stride", "counted", "better", "beta"},
    "ours-plain": {"rule", "stride", "counted", "beta"},
    **{name: {"teacher", "beta"} for name in TEACHERS},
}
"""Options in which an arm may differ from a run without any."""
EVERY = [condition for study in studies().values() for condition in study.conditions]


def test_every_teacher_is_there_once_where_it_can_be() -> None:
    arms = Counter((c.task, c.labels["teacher"], c.labels["beta"]) for c in EVERY)
    assert set(arms.values()) == {1}
    for task in SMALL_TASKS:
        here = {teacher for at, teacher, _ in arms if at == task}
        missing = set() if task in STARTS else {"reverse"}
        assert here == {*TEACHERS, "adaptive", "hand", "ours", "ours-plain"} - missing
        for arm in ("hand", "ours"):
            assert {beta for at, a, beta in arms if (at, a) == (task, arm)} == {"0", "0.1"}
    rolled = {c.task for c in studies()["curricula-rollin"].conditions}
    assert rolled == set(MAZES)


def test_tasks_with_settable_starts_are_those_that_say_so() -> None:
    for task in SMALL_TASKS:
        env = make_contextual(task)
        assert env.takes_start == (task in STARTS)
        env.close()


@pytest.mark.parametrize("condition", EVERY, ids=lambda c: c.name)
def test_arms_differ_in_nothing_but_who_chooses_contexts(condition) -> None:
    plain = flat(condition.engine.preset(condition.task))
    shared = {"steps": 150_000, "goals": 24, "log_every": 25_000}
    differing = {n for n, v in flat(condition.config).items() if v != {**plain, **shared}[n]}
    assert differing <= OWN[condition.labels["teacher"]]
    assert condition.config.algorithm.beta == float(condition.labels["beta"])


def test_all_arms_of_a_task_walk_the_same_path_with_its_own_threshold_by_hand() -> None:
    for task in SMALL_TASKS:
        env = make_contextual(task)
        own = env.curriculum
        assert own is not None
        assert own.path is not None
        for condition in (c for c in EVERY if c.task == task):
            curriculum = curriculum_of(env, condition.config)
            assert curriculum.path is own.path
            by_hand = condition.labels["teacher"] == "hand"
            assert (own.K if by_hand else 96) == curriculum.K
            if by_hand:
                assert curriculum.threshold(3) == own.threshold(3)
        env.close()


def test_a_stop_leaves_equal_seeds_over_all_arms() -> None:
    study = studies()["curricula"]
    jobs = study.jobs(Path("somewhere"), 2)
    half = len(study.conditions)
    assert {job.spec.config.seed for job in jobs[:half]} == {FIRST_SEED}
    assert {job.spec.config.seed for job in jobs[half:]} == {FIRST_SEED + 1}
