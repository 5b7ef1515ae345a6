"""Jump-start: Uchendu et al. 2023, arXiv 2204.02372 (JSRL), Algorithm 1.

A guide acts for h steps, then the learner goes on, always under the last context; h shrinks when
the mean return of the two together is within a tolerance of the best so far. The paper is given its
guide. Here it is the learner's policy of the farthest mastered context, so that a share 1 - β of
the episodes has to teach that: half of them the first cell that is not mastered, half those before.
"""

from collections.abc import Mapping
from typing import Any, Literal, get_args

from numpy.random import Generator

from rollin.checks import LONGEST_HORIZON, at_least, check_share, one_of
from rollin.curriculum.contexts import Curriculum
from rollin.curriculum.rules import Window
from rollin.curriculum.teacher import EpisodeEnd, Plan
from rollin.curriculum.teachers.sampling import Given, SamplingTeacher

Schedule = Literal["shrinking", "random"]
PREPARING = -1  # note of a plan that teaches the guide


class JSRL(SamplingTeacher):
    """Plays the last context from where a guide has come in h steps; h shrinks.

    A share β of the episodes, once a context is mastered; the others teach the guide. A farther
    guide begins with long roll-ins again. schedule: shrinking, h_i = H (1 - i / stages) for i = 1 …
    stages, or random, h uniform in 0 … H - 1. horizon: H, in steps; without, the longest episode so
    far. episodes: how many a stage is judged by; tolerance: as a share of the range of returns.

    >>> import numpy as np
    >>> import rollin
    >>> path = rollin.Curriculum.along([[0.0], [8.0]], delta=1 / 96, rule=0.0)
    >>> teacher = rollin.teachers.JSRL(path, beta=0.5, stream=np.random.default_rng(0), horizon=200)
    >>> teacher.length  # of the roll-in
    180
    """

    about = "the last context, after ever shorter roll-ins of an exact length: jump-start"

    def __init__(
        self,
        curriculum: Curriculum,
        beta: float,
        stream: Generator,
        *,
        schedule: Schedule = "shrinking",
        stages: int = 10,
        horizon: int | None = None,
        episodes: int = 10,
        tolerance: float = 0.05,
    ) -> None:
        super().__init__(curriculum, beta, stream)
        one_of("schedule", schedule, get_args(Schedule))
        self.schedule: Schedule = schedule
        self.stages = at_least(1, "stages", stages)
        if horizon is not None:
            at_least(1, "horizon", horizon, most=LONGEST_HORIZON)
        self.horizon = horizon
        self.tolerance = check_share("tolerance", tolerance)
        self.stage = 1
        self.best: float | None = None  # mean return of a stage, with this guide
        self.returns = Window(at_least(1, "episodes", episodes))  # of the stage
        self._longest = 1
        self._guide: int | None = None  # the farthest so far
        self._number = 0  # of stages so far, with all guides

    @property
    def length(self) -> int:
        """Steps of the roll-in in this stage."""
        return round(self._full * (self.stages - self.stage) / self.stages)

    @property
    def _full(self) -> int:
        return self.horizon or self._longest

    def _plan(self, ticket: int) -> tuple[Plan, Given]:
        last, frontier = self.curriculum.K, self.cells.frontier
        guide = None if frontier is None else self.cells.members[frontier][-1]
        if guide is not None and (self._guide is None or guide > self._guide):
            self._guide, self.best = guide, None
            self._begin_stage(1)
        if guide is None or self.stream.random() >= self.beta:
            index = self._prepare()
            return self._planned(ticket, index, None, 0.0), Given(index, PREPARING)
        random = self.schedule == "random"
        length = int(self.stream.integers(self._full)) if random else self.length
        given = Given(last, self._number)
        if length == 0:
            return self._planned(ticket, last, None, 0.0), given
        return self._planned(ticket, last, guide, 1.0, length=length), given

    def _prepare(self) -> int:
        """A context that teaches the guide."""
        cells = range(len(self.cells))
        following = next((c for c in cells if not self.cells.mastered(c)), cells[-1])
        if following == 0 or self.stream.random() < 0.5:
            return self._any_of(following)
        return self._any_of(int(self.stream.integers(following)))

    def _ended(self, given: Given, end: EpisodeEnd, total: float) -> None:
        self._longest = max(self._longest, end.hidden + end.length)
        if given.note != self._number or self.schedule == "random":
            return
        self.returns.add(total)
        if not self.returns.full:
            return
        mean, slack = self.returns.mean, self.tolerance * self.range.width
        if self.best is None or mean >= self.best - slack:
            self.best = mean if self.best is None else max(self.best, mean)
            self._begin_stage(min(self.stage + 1, self.stages))

    def _begin_stage(self, stage: int) -> None:
        self.stage, self._number = stage, self._number + 1
        self.returns.restart()

    def _own_state(self) -> dict[str, Any]:
        return {
            "stage": self.stage,
            "best": self.best,
            "returns": self.returns.get_state(),
            "longest": self._longest,
            "guide": self._guide,
            "number": self._number,
        }

    def _take_own(self, state: Mapping[str, Any]) -> None:
        self.stage, self._number = int(state["stage"]), int(state["number"])
        self.best = None if state["best"] is None else float(state["best"])
        self.returns.set_state(state["returns"])
        self._longest = int(state["longest"])
        self._guide = None if state["guide"] is None else int(state["guide"])
