"""ALP-GMM: Portelas, Colas, Hofmann & Oudeyer 2019, arXiv 1910.07224, Algorithm 1."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.random import Generator

from rollin.checks import at_least, check_share
from rollin.curriculum.contexts import Curriculum
from rollin.curriculum.teacher import EpisodeEnd
from rollin.curriculum.teachers.mixture import Mixture, fit_best
from rollin.curriculum.teachers.sampling import Given, SamplingTeacher

FEWEST, MOST = 2, 10  # components


class ALPGMM(SamplingTeacher):
    """Draws contexts around which returns change, be it for the better or the worse.

    The absolute learning progress of an episode is ALP = |g - g'|, g' the return of the latest
    episode under the nearest context. After every so many episodes, mixtures of 2 – 10 Gaussians
    are fitted to (position, ALP) of the last ones and the one with the least AIC is kept. A context
    is drawn from a component chosen ∝ its mean ALP, or uniformly. ALP is divided by the range of
    returns. every, window: episodes between two fits, and of a fit; uniform: share of contexts
    drawn uniformly, all of them before the first fit.

    >>> import numpy as np
    >>> import rollin
    >>> path = rollin.Curriculum.along([[0.0], [8.0]], delta=1 / 96, rule=0.0)
    >>> teacher = rollin.teachers.ALPGMM(path, 0.0, np.random.default_rng(0), every=100)
    >>> teacher.mixture is None
    True
    """

    about = "contexts around which returns change: ALP-GMM"

    def __init__(
        self,
        curriculum: Curriculum,
        beta: float,
        stream: Generator,
        *,
        every: int = 250,
        window: int = 250,
        uniform: float = 0.2,
    ) -> None:
        super().__init__(curriculum, beta, stream)
        self.every = at_least(MOST, "every", every)
        self.size = at_least(MOST, "window", window)
        self.uniform = check_share("uniform", uniform)
        self.mixture: Mixture | None = None
        self.history: list[tuple[float, float]] = []  # (position, ALP) of the last episodes
        self._last: dict[int, float] = {}  # the latest return by context, the newest at the end
        self._count = 0

    def _learned(self, given: Given, end: EpisodeEnd, total: float) -> None:
        # of two contexts as near the one that was played later
        earlier = self._nearest_of(reversed(self._last), given.context)
        progress = 0.0 if earlier is None else abs(total - self._last[earlier])
        self._last.pop(given.context, None)
        self._last[given.context] = total
        at = float(self.positions[given.context])
        self.history = [*self.history, (at, progress)][-self.size :]
        self._count += 1
        if self._count % self.every == 0:
            data = np.array(self.history) / [1.0, self.range.width or 1.0]
            self.mixture = fit_best(data, range(FEWEST, MOST + 1), self.stream)

    def _draw(self) -> int:
        if self.mixture is None or self.stream.random() < self.uniform:
            return int(self.stream.integers(len(self.positions)))
        worth = np.maximum(self.mixture.means[:, 1], 0.0)
        chances = worth / worth.sum() if worth.sum() > 0 else None
        chosen = self.stream.choice(len(worth), p=chances)
        spread = np.sqrt(self.mixture.covariances[chosen, 0, 0])
        return self._nearest(self.stream.normal(self.mixture.means[chosen, 0], spread))

    def _own_state(self) -> dict[str, Any]:
        m = self.mixture
        fitted = None if m is None else [a.tolist() for a in (m.weights, m.means, m.covariances)]
        return {
            "mixture": fitted,
            "history": [list(pair) for pair in self.history],
            "last": [list(pair) for pair in self._last.items()],
            "count": self._count,
        }

    def _take_own(self, state: Mapping[str, Any]) -> None:
        fitted = state["mixture"]
        self.mixture = None if fitted is None else Mixture(*map(np.array, fitted))
        self.history = [(float(at), float(alp)) for at, alp in state["history"]]
        self._last = {int(j): float(total) for j, total in state["last"]}
        self._count = int(state["count"])
