"""Teachers that practise the final context and choose where an episode begins.

`JSRL` and `Archive` roll in with a guide before the learner acts, `Reverse` sets the start.
"""

from typing import Any, Literal

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from rollin.checks import LONGEST_HORIZON, at_least, check_literal, check_share
from rollin.curriculum.contexts import Curriculum
from rollin.curriculum.progress import State, Window
from rollin.curriculum.teacher import EpisodeEnd, Plan
from rollin.errors import RollinError
from rollin.teachers.sampling import Given, SamplingTeacher

Schedule = Literal["shrinking", "random"]
PREPARING = -1  # note of a plan that teaches the guide


class JSRL(SamplingTeacher):
    """Plays the final context from where a guide has come in h steps; h shrinks.

    Jump-start: Uchendu et al. 2023, arXiv 2204.02372, Algorithm 1. h shrinks when the mean return
    of guide and learner together is within a tolerance of the best so far. The paper is given its
    guide. Here it is the learner's policy of the farthest mastered context, so that a fraction
    1 - β of the episodes has to teach it: half of them the first cell that is not mastered, half
    those before. A farther guide begins with long roll-ins again.

    schedule: shrinking, h_i = H (1 - i / stages) for i = 1 …
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
    stage: State[int] = 1
    best: State[float | None] = None  # mean return of a stage, with this guide
    returns: State[Window]  # of the stage
    _longest: State[int] = 1  # steps of an episode
    _guide: State[int | None] = None  # the farthest so far
    _number: State[int] = 0  # of stages so far, with all guides

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
        check_literal("schedule", schedule, Schedule)
        self.schedule: Schedule = schedule
        self.stages = at_least(1, "stages", stages)
        if horizon is not None:
            at_least(1, "horizon", horizon, most=LONGEST_HORIZON)
        self.horizon = horizon
        self.tolerance = check_share("tolerance", tolerance)
        self.returns = Window(at_least(1, "episodes", episodes))

    @property
    def length(self) -> int:
        """Steps of the roll-in in this stage."""
        return round(self._full * (self.stages - self.stage) / self.stages)

    @property
    def _full(self) -> int:
        return self.horizon or self._longest

    def _plan(self, plan_id: int) -> tuple[Plan, Given]:
        last = self.curriculum.K
        frontier = self.cells.frontier
        guide = None if frontier is None else self.cells.members[frontier][-1]
        if guide is not None and (self._guide is None or guide > self._guide):
            self._guide = guide
            self.best = None
            self._begin_stage(1)
        if guide is None or self.stream.random() >= self.beta:
            index = self._prepare()
            return self._planned(plan_id, index, None, 0.0), Given(index, PREPARING)
        random = self.schedule == "random"
        length = int(self.stream.integers(self._full)) if random else self.length
        given = Given(last, self._number)
        if length == 0:
            return self._planned(plan_id, last, None, 0.0), given
        return self._planned(plan_id, last, guide, 1.0, length=length), given

    def _prepare(self) -> int:
        """Return a context that teaches the guide."""
        cells = range(len(self.cells))
        following = next((c for c in cells if not self.cells.mastered(c)), cells[-1])
        if following == 0 or self.stream.random() < 0.5:
            return self._any_of(following)
        return self._any_of(int(self.stream.integers(following)))

    def _ended(self, given: Given, end: EpisodeEnd, total: float) -> None:
        self._longest = max(self._longest, end.rollin_steps + end.length)
        if given.note != self._number or self.schedule == "random":
            return
        self.returns.add(total)
        if not self.returns.full:
            return
        mean = self.returns.mean
        slack = self.tolerance * self.range.width
        if self.best is None or mean >= self.best - slack:
            self.best = mean if self.best is None else max(self.best, mean)
            self._begin_stage(min(self.stage + 1, self.stages))

    def _begin_stage(self, stage: int) -> None:
        self.stage = stage
        self._number += 1
        self.returns.restart()


class Archive(SamplingTeacher):
    """Draws a reached cell ∝ 1 / √(visits + 1); goes back there and explores, or practises it.

    After Go-Explore (Ecoffet et al. 2021, arXiv 2004.12919), whose policy-based form goes back to a
    cell that it has reached, with a policy conditioned on the cell, and explores from there. A cell
    is a piece of the path here. The policy π(·|ω) of a cell's context goes back as a roll-in, then
    the explorer acts under the final context. The learner has to learn to go back: a fraction 1 - β
    of the episodes is played under a context of the drawn cell itself.

    A cell is visited by episodes drawn for it, or, if the plan's `trace` is answered with outcomes
    that have a context's form, by every episode with an outcome next to it. Reached are the first
    cell, those visited by a trace, and the one behind each cell in which the learner succeeded.

    >>> import numpy as np
    >>> import rollin
    >>> path = rollin.Curriculum.along([[0.0], [8.0]], delta=1 / 96, rule=0.0)
    >>> teacher = rollin.teachers.Archive(path, beta=0.5, stream=np.random.default_rng(2))
    >>> plan = teacher.sample()
    >>> plan.context.item(), plan.beta, plan.guide_context.item()
    (8.0, 1.0, 0.25)
    """

    about = "rarely visited cells of the path, to go back to and explore from: after Go-Explore"
    wants = frozenset({"trace", "rollin-trace"})
    visits: State[list[int]]
    reached: State[list[bool]]

    def __init__(self, curriculum: Curriculum, beta: float, stream: Generator) -> None:
        super().__init__(curriculum, beta, stream)
        self.visits = [0] * len(self.cells)
        self.reached = [cell == 0 for cell in range(len(self.cells))]

    @property
    def probabilities(self) -> NDArray[np.float64]:
        """Of the cells."""
        weights = np.array(self.reached) / np.sqrt(np.array(self.visits) + 1.0)
        return weights / weights.sum()

    def _plan(self, plan_id: int) -> tuple[Plan, Given]:
        cell = int(self.stream.choice(len(self.cells), p=self.probabilities))
        if self.stream.random() < self.beta:
            guide = self.cells.members[cell][-1]
            plan = self._planned(plan_id, self.curriculum.K, guide, 1.0, trace=True)
            return plan, Given(self.curriculum.K, cell)
        index = self._any_of(cell)
        return self._planned(plan_id, index, None, 0.0, trace=True), Given(index, cell)

    def _ended(self, given: Given, end: EpisodeEnd, total: float) -> None:
        for cell in self._visited(end.trace) or {given.note}:
            self.visits[cell] += 1
            self.reached[cell] = True
        if end.success:
            following = min(self.cells.of[given.context] + 1, len(self.cells) - 1)
            self.reached[following] = True

    def _visited(self, trace: Any) -> set[int]:
        """Return the cells nearest to outcomes; none if these have no context's form."""
        contexts = self.curriculum.contexts
        outcomes = np.empty((0, 0)) if trace is None else np.asarray(trace, np.float64)
        if outcomes.ndim != 2 or outcomes.shape[1] != contexts.shape[1]:
            return set()
        away = ((outcomes[:, None] - contexts[None]) ** 2).sum(-1)
        return {self.cells.of[index] for index in away.argmin(1)}


class Reverse(SamplingTeacher):
    """Begins episodes at the goal, then ever farther from it, under the final context.

    Reverse curriculum: Florensa, Held, Wulfmeier, Zhang & Abbeel 2017, arXiv 1707.05300. Starts
    from which the learner succeeds sometimes, but not always, are good; short random walks from
    them give the next ones, and a third are earlier good ones.

    The paper walks with random actions from states that the simulator is set to. Here a start is a
    context of the path, which the env's `reset` takes as `options["start"]`, and a random walk goes
    along the path: so the path must lead through states, as a path of goal positions does. Its
    first context stands for the env's own start.

    Its progress counts backwards: how many contexts before the last the learner can begin and
    succeed; at K it begins where the env does. beta: 0, because the start is set already. new,
    old: starts of a round, from walks and from earlier good ones; trials: episodes a start of the
    round has on average; walk: steps of a random walk, each to a context beside; least, most: rates
    of success of a good start.

    >>> import numpy as np
    >>> import rollin
    >>> path = rollin.Curriculum.along([[0.0], [8.0]], delta=1 / 96, rule=0.0)
    >>> teacher = rollin.teachers.Reverse(path, beta=0.0, stream=np.random.default_rng(0))
    >>> plan = teacher.sample()
    >>> plan.context.item(), plan.start.item() > 6
    (8.0, True)
    """

    wants = frozenset({"start"})
    about = "the last context, begun ever farther from its goal; needs settable starts"
    good: State[list[int]]  # contexts before the last, of all rounds
    starts: State[list[int]]  # of this round
    _tried: State[dict[int, list[int]]]  # episodes and successes of this round's starts
    _round: State[int] = 0

    def __init__(
        self,
        curriculum: Curriculum,
        beta: float,
        stream: Generator,
        *,
        new: int = 6,
        old: int = 3,
        trials: int = 5,
        walk: int = 16,
        least: float = 0.1,
        most: float = 0.9,
    ) -> None:
        super().__init__(curriculum, beta, stream)
        if beta > 0:
            raise RollinError(
                f"The teacher reverse sets the start of episodes itself and does not roll in, got "
                f"beta {beta:g}: set it to 0."
            )
        self.new = at_least(1, "new", new)
        self.old = at_least(0, "old", old)
        self.trials = at_least(1, "trials", trials)
        self.walk = at_least(1, "walk", walk)
        self.least = check_share("least", least)
        self.most = check_share("most", most)
        if least >= most:
            raise RollinError(f"least must be smaller than most, got {least} and {most}.")
        self.good = [0]
        self._begin_round([0])

    @property
    def here(self) -> Any:
        """The last context, the only one that is practised."""
        return self.curriculum.contexts[-1]

    def _begin_round(self, roots: list[int]) -> None:
        """New starts by random walks from some, and old ones."""
        fresh = [self._walk(roots) for _ in range(self.new)]
        again = [self.good[self.stream.integers(len(self.good))] for _ in range(self.old)]
        self.starts = fresh + again
        self._tried = {}
        self._round += 1

    def _walk(self, roots: list[int]) -> int:
        """Return the end of a random walk from one of the roots."""
        at = roots[self.stream.integers(len(roots))]
        for step in self.stream.integers(2, size=self.walk):
            at = min(max(at + (1 if step else -1), 0), self.curriculum.K)
        return at

    def _plan(self, plan_id: int) -> tuple[Plan, Given]:
        back = self.starts[self.stream.integers(len(self.starts))]
        last = self.curriculum.K
        # the farthest is the env's own
        start = self.curriculum.contexts[last - back].copy() if back < last else None
        return self._planned(plan_id, last, None, 0.0, start=start), Given(back, self._round)

    def _learned(self, given: Given, end: EpisodeEnd, total: float) -> None:
        if given.note != self._round:
            return
        tried = self._tried.setdefault(given.context, [0, 0])
        tried[0] += 1
        tried[1] += end.success
        if sum(episodes for episodes, _ in self._tried.values()) < self.trials * len(self.starts):
            return
        rates = {start: successes / n for start, (n, successes) in sorted(self._tried.items())}
        good = [start for start, rate in rates.items() if self.least <= rate <= self.most]
        self.good = sorted({*self.good, *good})
        easy = [start for start, rate in rates.items() if rate > self.most]
        self._begin_round(good or easy[-1:] or self.good)
