"""Every teacher of the table: state, ids of plans, contexts, students, rewards of any scale."""

import doctest
import importlib
import json
import pkgutil
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rollin.teachers as package
from rollin import Curriculum, EpisodeEnd, Plan, Teacher
from rollin.cli.options import field_docs
from rollin.runs.engines.rollin_options import RollinConfig
from rollin.teachers import TEACHERS, SamplingTeacher, make_teacher
from tests.teachers.student import Student, ended, taught, teacher_of

QUICK: dict[str, dict[str, Any]] = {
    "alp-gmm": {"every": 16, "window": 32},
    "spdl": {"every": 8},
    "currot": {"every": 8, "particles": 8, "memory": 32},
    "jsrl": {"episodes": 4},
    "reverse": {"new": 2, "old": 1, "trials": 2},
}
"""Options with which decisions come after few episodes."""


def quick(name: str, seed: int = 0, mastered: int = 2) -> Any:
    """A teacher that rolls in if it can, with some cells mastered already."""
    teacher = teacher_of(name, seed, 0.0 if name == "reverse" else 0.5, **QUICK.get(name, {}))
    teacher.cells.slow[:mastered] = [0.8] * mastered
    return teacher


def same(one: Plan, other: Plan) -> bool:
    fields = vars(one).keys()
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in fields)


@pytest.mark.parametrize("name", TEACHERS)
@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 999), episodes=st.integers(0, 60), ahead=st.integers(1, 3))
def test_a_restored_teacher_plans_and_decides_as_the_original(
    name: str, seed: int, episodes: int, ahead: int
):
    teacher, student, waiting = quick(name, seed), Student(seed), []
    for _ in range(episodes):
        waiting.append(teacher.sample())
        if len(waiting) == ahead:
            teacher.update(student.play(waiting.pop(0)))
    other = quick(name, seed + 1, mastered=0)
    other.set_state(json.loads(json.dumps(teacher.get_state())))
    for _ in range(20):
        plan, again = teacher.sample(), other.sample()
        assert same(plan, again)
        waiting.append(plan)
        end = student.play(waiting.pop(0))
        assert teacher.update(end) == other.update(end)
        assert json.dumps(teacher.get_state()) == json.dumps(other.get_state())


@pytest.mark.parametrize("name", TEACHERS)
def test_keeping_the_state_changes_no_later_plan(name):
    teachers = [quick(name), quick(name)]
    plans = []
    for number, teacher in enumerate(teachers):
        student = Student(0)
        for episode in range(60):
            if number and episode % 7 == 0:
                teacher.set_state(teacher.get_state())
            plans.append(teacher.sample())
            teacher.update(student.play(plans[-1]))
    assert all(same(plan, again) for plan, again in zip(plans[:60], plans[60:], strict=True))


@pytest.mark.parametrize("name", TEACHERS)
def test_ids_of_plans_rise_and_contexts_are_those_of_the_path(name):
    teacher, student = quick(name), Student(0, skill=0.3)
    path = {float(context[0]) for context in teacher.curriculum.contexts}
    plans = []
    for _ in range(150):
        plans.append(teacher.sample())
        assert teacher.curriculum.contexts[teacher.k].tolist() == plans[-1].context.tolist()
        assert (teacher.previous is None) == (plans[-1].guide == 0)
        teacher.update(student.play(plans[-1]))
    assert [plan.plan_id for plan in plans] == list(range(1, 151))
    for plan in plans:
        assert isinstance(plan, Plan)
        assert float(plan.context[0]) in path
        assert (plan.purpose, plan.standing) == ("train", False)
        assert 0 <= plan.beta <= 1
        assert (plan.beta > 0) == (plan.guide > 0) == (plan.guide_context is not None)
        if plan.guide:
            assert float(plan.guide_context[0]) in path
        if plan.start is not None:
            assert float(plan.start[0]) in path
    plans[0].context[:] = 99.0  # a learner's mistake stays in its plan
    assert teacher.curriculum.contexts.max() == 1.0


@pytest.mark.parametrize("name", TEACHERS)
@settings(max_examples=6, deadline=None)
@given(seed=st.integers(0, 99), power=st.integers(-3, 6), shift=st.integers(-1000, 1000))
def test_rewards_of_another_scale_and_shift_leave_all_plans_as_they_are(
    name: str, seed: int, power: int, shift: int
):
    plain, other, student = quick(name, seed), quick(name, seed), Student(seed)
    stream = np.random.default_rng(seed)
    for _ in range(100):
        plan, again = plain.sample(), other.sample()
        assert same(plan, again)
        end = student.play(plan)
        end = replace(end, total=end.total + int(stream.integers(16)) / 8)  # exact in binary
        plain.update(end)
        other.update(replace(end, total=2.0**power * end.total + shift))


@pytest.mark.parametrize("name", TEACHERS)
def test_rewards_that_never_vary_break_nothing(name):
    teacher = quick(name, mastered=0)
    for _ in range(120):
        teacher.update(ended(teacher.sample(), 7.0, success=False))
    assert teacher.progress.k == 0


@pytest.mark.parametrize("name", ["spdl", "currot"])
@pytest.mark.parametrize(("level", "moves"), [(5.0, True), (9.0, False)])
def test_returns_that_never_vary_are_still_above_or_below_a_level(name, level, moves):
    teacher = teacher_of(name, level=level)
    first = np.mean(teacher.particles if name == "currot" else teacher.mean)
    for _ in range(400):
        teacher.update(ended(teacher.sample(), 7.0))
    last = np.mean(teacher.particles if name == "currot" else teacher.mean)
    assert (last > 0.5) == moves
    assert moves or last == first


@pytest.mark.parametrize("name", TEACHERS)
@pytest.mark.parametrize("contexts", [2, 3, 30])
def test_lists_of_few_contexts_will_do(name, contexts):
    path = Curriculum.listed([[float(j), 0.0] for j in range(contexts)], 0.0)
    beta = 0.0 if name == "reverse" else 0.5
    teacher = make_teacher(name, path, beta, np.random.default_rng(0), **QUICK.get(name, {}))
    for number in range(100):
        plan = teacher.sample()
        end = ended(plan, float(plan.context[0]), success=number % 3 > 0)
        teacher.update(end)
    assert teacher.progress.k == contexts - 1 or not teacher.cells.mastered(len(teacher.cells) - 1)


@pytest.mark.parametrize("name", TEACHERS)
def test_ends_that_come_late_are_taken_in_any_order(name):
    teacher, student = quick(name), Student(0, skill=0.3)
    stream, waiting = np.random.default_rng(0), []
    for _ in range(200):
        waiting.append(teacher.sample())
        if len(waiting) > 8:
            end = student.play(waiting.pop(int(stream.integers(len(waiting)))))
            assert isinstance(end, EpisodeEnd)
            teacher.update(end)
    assert (teacher.late, teacher.abandoned) == (0, 0)
    assert teacher.steps == 192 * 50


MODULES = [package.__name__] + [
    f"{package.__name__}.{module.name}" for module in pkgutil.iter_modules(package.__path__)
]


@pytest.mark.parametrize("home", MODULES)
def test_examples_do_what_they_show(home):
    failed, _ = doctest.testmod(importlib.import_module(home))
    assert failed == 0


def test_the_table_holds_every_teacher_there_is():
    """A new one needs its line there; all else reads the table."""
    kinds = [kind for home in MODULES for kind in vars(importlib.import_module(home)).values()
             if isinstance(kind, type) and issubclass(kind, SamplingTeacher)]  # fmt: skip
    assert set(kinds) == {SamplingTeacher, *TEACHERS.values()}
    assert f"{', '.join(TEACHERS)}: other curricula" in field_docs(RollinConfig)["teacher"]
    for name, kind in TEACHERS.items():
        assert getattr(package, kind.__name__) is kind
        assert isinstance(teacher_of(name), Teacher)
        assert 10 < len(kind.about) < 90
        assert "\n" not in kind.about
        found = doctest.DocTestFinder().find(kind, name)
        assert any(test.examples for test in found), "without an example"


LED: list[tuple[str, dict[str, Any], float, Any]] = [
    ("uniform", {}, 0.5, lambda teacher: True),
    ("plr", {}, 0.75, lambda teacher: True),
    ("spdl", {}, 0.9, lambda teacher: teacher.mean > 0.95 and teacher.width < 0.05),
    ("currot", {}, 1.0, lambda teacher: teacher.particles.min() > 0.9),
    ("jsrl", {"beta": 0.2}, 0.8, lambda teacher: teacher._number > 20),  # stages of all guides
    ("archive", {"beta": 0.2}, 0.8, lambda teacher: teacher.progress.k > 40),
    ("reverse", {}, 0.8, lambda teacher: max(teacher.good) > 60 and teacher.progress.k > 60),
]


@pytest.mark.parametrize(("name", "options", "skill", "holds"), LED)
def test_a_student_is_led_far(name, options, skill, holds):
    teacher = teacher_of(name, **options)
    assert taught(teacher, 1500).skill > skill
    assert holds(teacher)


def whole_numbers(state: Any) -> list[int]:
    """All whole numbers in a state."""
    if isinstance(state, dict):
        return [number for value in state.values() for number in whole_numbers(value)]
    if isinstance(state, list):
        return [number for value in state for number in whole_numbers(value)]
    return [state] if isinstance(state, int) else []


@pytest.mark.parametrize("name", TEACHERS)
def test_whole_numbers_of_a_state_can_be_counted_to(name):
    """Checkpoints take no others for sane."""
    teacher, student = quick(name), Student(0)
    for _ in range(30):
        teacher.update(student.play(teacher.sample()))
    assert max(whole_numbers(teacher.get_state())) < 10**6
