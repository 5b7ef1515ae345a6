"""Prioritized level replay: Jiang, Grefenstette & Rocktäschel 2021, arXiv 2010.03934.

A level is a context here. The paper's score is the mean size of the generalised advantage, which a
teacher cannot know: it sees no critic. Two scores of returns stand in for it.
"""

from collections.abc import Mapping
from typing import Any, Literal, get_args

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from rollin.checks import check_share, one_of, positive
from rollin.curriculum.contexts import Curriculum
from rollin.curriculum.teacher import EpisodeEnd
from rollin.curriculum.teachers.sampling import Given, SamplingTeacher

Score = Literal["change", "gap"]


class PLR(SamplingTeacher):
    """Replays contexts ∝ rank^(-1/temperature) of their score, mixed with how long ago they were.

    P = (1 - staleness) P_S + staleness P_C: P_S ∝ rank^(-1/temperature), equal scores sharing their
    ranks, and P_C ∝ plans since the context's last one. With probability 1 - seen / all a context
    is drawn that was never seen. score: change, |return - the one before| (at first, of the
    nearest context seen), or gap, the best return under the context less the last.

    >>> import numpy as np
    >>> import rollin
    >>> path = rollin.Curriculum.along([[0.0], [8.0]], delta=1 / 96, rule=0.0)
    >>> teacher = rollin.teachers.PLR(path, beta=0.0, stream=np.random.default_rng(0))
    >>> plan = teacher.sample()  # nothing is seen yet, so that any context is new
    """

    about = "contexts whose returns changed most, or are long ago: prioritized level replay"

    def __init__(
        self,
        curriculum: Curriculum,
        beta: float,
        stream: Generator,
        *,
        score: Score = "change",
        temperature: float = 0.1,
        staleness: float = 0.1,
    ) -> None:
        super().__init__(curriculum, beta, stream)
        one_of("score", score, get_args(Score))
        self.score: Score = score
        self.temperature = positive("temperature", temperature)
        self.staleness = check_share("staleness", staleness)
        self.scores: dict[int, float] = {}  # of the contexts seen
        self._last: dict[int, float] = {}
        self._best: dict[int, float] = {}
        self._planned_at = [0] * len(self.positions)  # number of a context's last plan
        self._plans = 0

    def probabilities(self) -> tuple[list[int], NDArray[np.float64]]:
        """The contexts seen, and with which probability each is replayed."""
        seen = sorted(self.scores)
        by_score = rank_weights([self.scores[j] for j in seen], self.temperature)
        stale = np.array([self._plans - self._planned_at[j] for j in seen], np.float64)
        by_age = stale / stale.sum() if stale.sum() > 0 else np.full(len(seen), 1 / len(seen))
        return seen, (1 - self.staleness) * by_score + self.staleness * by_age

    def _draw(self) -> int:
        count = len(self.positions)
        if self.stream.random() * count < len(self.scores):
            seen, chances = self.probabilities()
            index = seen[self.stream.choice(len(seen), p=chances)]
        else:
            unseen = [j for j in range(count) if j not in self.scores]
            index = int(self.stream.choice(unseen))
        self._plans += 1
        self._planned_at[index] = self._plans
        return index

    def _learned(self, given: Given, end: EpisodeEnd, total: float) -> None:
        index = given.context
        if self.score == "change":
            # an unseen context is expected to pay what the nearest one paid, the lower of two
            near = self._nearest_of(sorted(self._last), index)
            self.scores[index] = 0.0 if near is None else abs(total - self._last[near])
        else:
            self._best[index] = max(self._best.get(index, total), total)
            self.scores[index] = self._best[index] - total
        self._last[index] = total

    def _own_state(self) -> dict[str, Any]:
        return {
            "scores": [list(pair) for pair in self.scores.items()],
            "last": [list(pair) for pair in self._last.items()],
            "best": [list(pair) for pair in self._best.items()],
            "planned_at": list(self._planned_at),
            "plans": self._plans,
        }

    def _take_own(self, state: Mapping[str, Any]) -> None:
        self.scores, self._last, self._best = (
            {int(j): float(value) for j, value in state[name]}
            for name in ("scores", "last", "best")
        )
        self._planned_at = [int(number) for number in state["planned_at"]]
        self._plans = int(state["plans"])


def rank_weights(scores: ArrayLike, temperature: float) -> NDArray[np.float64]:
    """P_S ∝ rank^(-1/temperature), the highest score first; equal ones get their ranks' mean.

    >>> rank_weights([5.0, 7.0, 5.0], temperature=1.0).round(3).tolist()
    [0.227, 0.545, 0.227]
    """
    values = np.asarray(scores, np.float64)
    order = np.argsort(-values, kind="stable")
    weights = np.empty_like(values)
    weights[order] = np.arange(1, len(values) + 1) ** (-1 / temperature)
    _, same = np.unique(values, return_inverse=True)
    shared = np.bincount(same, weights) / np.bincount(same)
    return shared[same] / weights.sum()
