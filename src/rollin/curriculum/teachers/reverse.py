"""Reverse curriculum on the path: Florensa, Held, Wulfmeier, Zhang & Abbeel 2017, arXiv 1707.05300.

The task is the last context always, and what changes is where episodes begin: first at the goal,
then ever farther from it. Starts from which the learner succeeds sometimes, but not always, are
good; short random walks from them give the next ones, and a third are good ones of before.

The paper walks with random actions from states that the simulator is set to. Here a start is a
context of the path, which the env's `reset` takes as `options["start"]`, and a random walk goes
along the path: so the path must lead through states, as a path of goal positions does. Its first
context stands for the env's own start.
"""

from collections.abc import Mapping
from typing import Any

from numpy.random import Generator

from rollin.checks import at_least, check_share
from rollin.curriculum.contexts import Curriculum
from rollin.curriculum.teacher import EpisodeEnd, Plan
from rollin.curriculum.teachers.sampling import Given, SamplingTeacher
from rollin.errors import RollinError


class Reverse(SamplingTeacher):
    """Begins episodes at the goal, then ever farther from it, under the last context.

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
        self.new, self.old = at_least(1, "new", new), at_least(0, "old", old)
        self.trials, self.walk = at_least(1, "trials", trials), at_least(1, "walk", walk)
        self.least, self.most = check_share("least", least), check_share("most", most)
        if least >= most:
            raise RollinError(f"least must be smaller than most, got {least} and {most}.")
        self.good: list[int] = [0]  # contexts before the last, of all rounds
        self.starts: list[int] = []  # of this round
        self._tried: dict[int, list[int]] = {}  # episodes and successes of this round's starts
        self._round = 0
        self._begin_round([0])

    @property
    def here(self) -> Any:
        """The last context, the only one that is practised."""
        return self.curriculum.contexts[-1]

    def _begin_round(self, roots: list[int]) -> None:
        """New starts by random walks from some, and old ones."""
        walked = [self._walked(roots) for _ in range(self.new)]
        again = [self.good[self.stream.integers(len(self.good))] for _ in range(self.old)]
        self.starts = walked + again
        self._tried, self._round = {}, self._round + 1

    def _walked(self, roots: list[int]) -> int:
        at = roots[self.stream.integers(len(roots))]
        for step in self.stream.integers(2, size=self.walk):
            at = min(max(at + (1 if step else -1), 0), self.curriculum.K)
        return at

    def _plan(self, ticket: int) -> tuple[Plan, Given]:
        back, last = self.starts[self.stream.integers(len(self.starts))], self.curriculum.K
        # the farthest is the env's own
        start = self.curriculum.contexts[last - back].copy() if back < last else None
        return self._planned(ticket, last, None, 0.0, start=start), Given(back, self._round)

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

    def _own_state(self) -> dict[str, Any]:
        return {
            "good": list(self.good),
            "starts": list(self.starts),
            "tried": [[start, *counts] for start, counts in self._tried.items()],
            "round": self._round,
        }

    def _take_own(self, state: Mapping[str, Any]) -> None:
        self.good = [int(start) for start in state["good"]]
        self.starts = [int(start) for start in state["starts"]]
        self._tried = {int(s): [int(n), int(won)] for s, n, won in state["tried"]}
        self._round = int(state["round"])
