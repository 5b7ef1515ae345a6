"""Prioritized level replay: Jiang, Grefenstette & Rocktäschel 2021, arXiv 2010.03934.

A level is a context here. The paper's score is the mean size of the generalised advantage, which a
teacher cannot know: it has no critic. Two scores of returns stand in for it.
"""

from typing import Literal

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from rollin.checks import check_literal, check_share, positive
from rollin.curriculum.contexts import Curriculum
from rollin.curriculum.progress import State
from rollin.curriculum.teacher import EpisodeEnd
from rollin.teachers.sampling import Given, SamplingTeacher

Score = Literal["change", "gap"]


class PLR(SamplingTeacher):
    """Replays contexts ∝ rank^(-1/temperature) of their score, mixed with how long ago they were.

    P = (1 - staleness) P_S + staleness P_C: P_S ∝ rank^(-1/temperature), equal scores sharing their
    ranks, and P_C ∝ plans since the context's last one. With probability 1 - played / all a context
    is drawn that was never played. score: change, |return - the one before| (at first, of the
    nearest played context), or gap, the best return under the context less the last.

    >>> import numpy as np
    >>> import rollin
    >>> path = rollin.Curriculum.along([[0.0], [8.0]], delta=1 / 96, rule=0.0)
    >>> teacher = rollin.teachers.PLR(path, beta=0.0, stream=np.random.default_rng(0))
    >>> plan = teacher.sample()  # no context was played yet
    """

    about = "contexts whose returns changed most, or are long ago: prioritized level replay"
    scores: State[dict[int, float]]  # of the contexts played
    _last: State[dict[int, float]]
    _best: State[dict[int, float]]
    _planned_at: State[list[int]]  # number of a context's last plan
    _plans: State[int] = 0

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
        check_literal("score", score, Score)
        self.score: Score = score
        self.temperature = positive("temperature", temperature)
        self.staleness = check_share("staleness", staleness)
        self.scores = {}
        self._last = {}
        self._best = {}
        self._planned_at = [0] * len(self.positions)

    def probabilities(self) -> tuple[list[int], NDArray[np.float64]]:
        """Return the contexts played so far, and the probability to replay each."""
        played = sorted(self.scores)
        by_score = rank_weights([self.scores[j] for j in played], self.temperature)
        stale = np.array([self._plans - self._planned_at[j] for j in played], np.float64)
        by_age = stale / stale.sum() if stale.sum() > 0 else np.full(len(played), 1 / len(played))
        return played, (1 - self.staleness) * by_score + self.staleness * by_age

    def _draw(self) -> int:
        count = len(self.positions)
        if self.stream.random() * count < len(self.scores):
            played, chances = self.probabilities()
            index = played[self.stream.choice(len(played), p=chances)]
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


def rank_weights(scores: ArrayLike, temperature: float) -> NDArray[np.float64]:
    """Return P_S ∝ rank^(-1/temperature), the highest score first; equal ones share their ranks.

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
