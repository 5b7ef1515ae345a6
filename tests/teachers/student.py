"""A tiny learner whose success depends on what it has practised, and what teachers are told."""

from typing import Any

import numpy as np

from rollin import Curriculum, EpisodeEnd, Plan
from rollin.teachers import SamplingTeacher, make_teacher


def fine(contexts: int = 97) -> Curriculum:
    """A path of a line, with contexts at j / (contexts - 1)."""
    return Curriculum.along([[0.0], [1.0]], delta=1 / (contexts - 1), rule=0.0)


def teacher_of(name: str, seed: int = 0, beta: float = 0.0, **options: Any) -> Any:
    return make_teacher(name, fine(), beta, np.random.default_rng(seed), **options)


def ended(plan: Plan, total: float = 0.0, **how: Any) -> EpisodeEnd:
    given: dict[str, Any] = {
        "rolled_in": False, "rollin_steps": 0, "failed_rollin_steps": 0,
        "prefix_return": 0.0, "length": 1,
        "success": total > 0, "terminated": True, "truncated": False,
    }  # fmt: skip
    given |= how
    return EpisodeEnd(plan.plan_id, 1, 0, plan.context, plan.purpose, total=total, **given)


class Student:
    """Succeeds up to where its skill reaches, and learns from successes at the edge of it.

    A task lies at its distance from where the episode begins: that of the context on the path, less
    that of the start or of where a guide has come. Beyond its skill it fails and learns nothing.
    """

    def __init__(self, seed: int, skill: float = 0.05) -> None:
        self.stream, self.skill = np.random.default_rng(seed), skill

    def play(self, plan: Plan) -> EpisodeEnd:
        goal, begin = float(plan.context[0]), 0.0
        rolled = plan.beta > 0 and self.stream.random() < plan.beta
        if plan.start is not None:
            begin = float(plan.start[0])
        elif rolled:
            begin = min(float(plan.guide_context[0]), self.skill)
        far = abs(goal - begin)
        success = self.stream.random() < 1 / (1 + np.exp((far - self.skill) / 0.02))
        if success and far > self.skill - 0.1:
            self.skill = min(self.skill + 0.004, 1.1)
        total = 10.0 * success
        return ended(plan, total, rolled_in=rolled, success=bool(success), length=50)


def taught(teacher: SamplingTeacher, episodes: int, seed: int = 0) -> Student:
    """A student after so many episodes with a teacher."""
    student = Student(seed)
    for _ in range(episodes):
        teacher.update(student.play(teacher.sample()))
    return student


def tell(teacher: Any, index: int, total: float, **how: Any) -> str | None:
    """Have a teacher draw a certain context, and tell it how that episode ended."""
    teacher._draw = lambda: index
    plan = teacher.sample()
    del teacher._draw
    return teacher.update(ended(plan, total, **how))
