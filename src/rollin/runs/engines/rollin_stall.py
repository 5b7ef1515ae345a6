"""Texts of why a run of ROLLIN does not advance, and what to do about it."""

from dataclasses import dataclass
from typing import Any

from rollin.curriculum.contexts import Curriculum, SuccessRate
from rollin.curriculum.progress import Window
from rollin.curriculum.reached_goals import ReachedGoalsTeacher
from rollin.curriculum.teacher import CurriculumTeacher
from rollin.runs.curricula import halves
from rollin.runs.engines.rollin_options import WALK, RollinConfig

PATIENCE = 10  # windows of episodes on one context before its threshold is doubted


@dataclass(frozen=True)
class Remedies:
    """What may help a run that sees no success, as options; a run of your own agent has none.

    relabel: --relabel; steps: options that make steps smaller; adaptive: --adaptive; teacher: the
    run's own, beside which there are others.
    """

    relabel: str = ""
    steps: tuple[str, ...] = ()
    adaptive: str = ""
    teacher: str = WALK

    @classmethod
    def of(cls, config: RollinConfig, curriculum: Curriculum, *, relabels: bool) -> "Remedies":
        """Options that a run could use and does not; relabels: whether its environment can."""
        relabel = "--relabel" if relabels and not config.algorithm.relabel else ""
        if config.teacher != WALK or config.algorithm.method == "scratch":
            return cls(relabel, teacher=config.teacher)
        smaller = ("a smaller --delta",) if curriculum.path is not None else ()
        halving = () if halves(config, curriculum) else ("--stride bold",)
        return cls(relabel, smaller + halving, "" if curriculum.rule is None else "--adaptive")

    def without_success(self, k: int) -> str:
        """What to do where nothing succeeds, as a sentence."""
        steps = self.steps if k else ()  # to the first context there is no step
        given = [option for option in (self.relabel, *steps, self.adaptive) if option]
        if not k or not given:
            given.append("an easier first context" if not k else "easier contexts before it")
        return f"Try {', '.join(given[:-1])} or {given[-1]}." if given[1:] else f"Try {given[0]}."


def stall(
    teacher: CurriculumTeacher,
    curriculum: Curriculum,
    succeeded: float,
    remedies: Remedies,
    *,
    successes: bool,
) -> str | None:
    """Why the current context was not mastered for long, and what to do; None while there is hope.

    succeeded: how many episodes under it did; successes: whether the environment defines what a
    success is.
    """
    window, k = teacher.window, teacher.progress.k
    if window.seen < PATIENCE * window.size:
        return None
    from rollin.teachers.sampling import SamplingTeacher  # loads all teachers

    if isinstance(teacher, SamplingTeacher):
        if window.largest > teacher.threshold:
            return None
        relabel = f", {remedies.relabel}" if remedies.relabel else ""
        return (
            f"The teacher {remedies.teacher} has seen no success in {window.seen:,} episodes: try "
            f"more --steps{relabel} or another --teacher."
        )
    where = f"Context {k} of {teacher.progress.K} was not mastered in {window.seen:,} episodes"
    counts_successes = isinstance(curriculum.rule, SuccessRate)
    known = successes or counts_successes or window.largest == 0
    if known and not succeeded and not window.mean > teacher.threshold:
        if window.largest == 0 == window.mean and not counts_successes:
            return f"{where}: none of them earned any reward. {remedies.without_success(k)}"
        seen = "" if counts_successes else f", and the largest return is {window.largest:.4g}"
        return f"{where}: none of them succeeded{seen}. {remedies.without_success(k)}"
    if curriculum.rule is None:
        return _adaptive(teacher, where)
    if window.largest > teacher.threshold:
        return None
    what = "success" if counts_successes else "return"
    adaptive = f", or {remedies.adaptive}, which needs none" if remedies.adaptive else ""
    return (
        f"{where}, none of which came above the threshold {teacher.threshold:g}: the largest "
        f"{what} seen is {window.largest:.4g}. If more is not possible, choose a smaller "
        f"--threshold{adaptive}."
    )


def _adaptive(teacher: Any, where: str) -> str | None:
    """Why a rule without a threshold is not met."""
    window, bar, when = teacher.window, teacher.threshold, teacher.when
    mean = f"the mean return {window.mean:.6g} of the last {window.size}"
    if window.mean > bar and isinstance(teacher, ReachedGoalsTeacher):
        return (
            f"The run did not advance in {window.seen:,} episodes: {mean} exceeds {bar:.6g}, and "
            "no place was visited that takes more steps. Try a larger --beta, or give a --path."
        )
    if window.mean > bar:
        return (
            f"{where}: {mean} exceeds {bar:.6g}, and better returns still come. Give more --steps, "
            "or --rule early-gap, which does not wait for the best."
        )
    if window.largest <= when.threshold(Window(1)):  # which no window exceeds, however it scatters
        return (
            f"{where}, none of which earned more than {window.largest:.4g}: rewards there seem out "
            "of reach, or never vary. If the context is solved, let the environment define "
            "is_success."
        )
    if getattr(when, "since", 0) < PATIENCE * window.size:
        return None
    return (
        f"{where}: {mean} must exceed {bar:.6g}, and no better return has come for {when.since:,} "
        "episodes. If the context is solved, let the environment define is_success, or give "
        "--rule return --threshold with a return that is good enough."
    )
