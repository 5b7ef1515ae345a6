"""Self-paced learning on a path: Klink, D'Eramo, Peters & Pajarinen 2020, arXiv 2004.11812.

In the form of Klink et al. 2021 (arXiv 2102.13176), whose one number for performance is V_LB. p is
a Gaussian over positions, cut off at the path's ends and taken at the positions of the contexts;
the target is a narrow one at the end. After each batch of episodes,

    while E_p[J] < V_LB:  max E_p[J]                       s.t. KL(p‖p_old) ≤ ε
    else:                 min KL(p‖target)  s.t. E_p[J] ≥ V_LB, KL(p‖p_old) ≤ ε

where E_p[J] weighs the returns of the batch by p / p_old. The weights are divided by their sum,
unlike in the paper, so that a shift of all returns shifts the estimate and nothing else. The first
line also serves after a loss of performance, from which the paper's problem has no way back.
"""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from rollin.checks import at_least, positive
from rollin.curriculum.contexts import Curriculum
from rollin.curriculum.teacher import EpisodeEnd
from rollin.curriculum.teachers.returns import Level
from rollin.curriculum.teachers.sampling import Given, SamplingTeacher

Array = NDArray[np.float64]

SIDE = 25  # points of the search on each axis
ZOOMS = 6  # each time to a quarter of the box


class SPDL(SamplingTeacher):
    """Moves a Gaussian over the path to its end as fast as the mean return stays above a level.

    level: V_LB, a return; without, half-way between the first batch's mean return and the best one,
    and p stays until a batch was better than the first. epsilon: KL divergence of one update;
    every: episodes of a batch; width, target_width: standard deviations of the first p, at the
    path's beginning, and of the target, as shares of the path.

    >>> import numpy as np
    >>> import rollin
    >>> path = rollin.Curriculum.along([[0.0], [8.0]], delta=1 / 96, rule=0.0)
    >>> teacher = rollin.teachers.SPDL(path, 0.0, np.random.default_rng(0), level=40.0)
    >>> teacher.mean, teacher.width
    (0.0, 0.1)
    """

    about = "a Gaussian that moves along the path while returns stay good: self-paced learning"

    def __init__(
        self,
        curriculum: Curriculum,
        beta: float,
        stream: Generator,
        *,
        level: float | None = None,
        epsilon: float = 0.05,
        every: int = 20,
        width: float = 0.1,
        target_width: float = 0.02,
    ) -> None:
        super().__init__(curriculum, beta, stream)
        self.level = Level("level", level)
        self.epsilon = positive("epsilon", epsilon)
        self.every = at_least(2, "every", every)
        self.mean, self.width = float(self.positions[0]), positive("width", width, most=1.0)
        self.target_width = positive("target_width", target_width, most=self.width)
        self._batch: list[tuple[int, float]] = []  # context and return, drawn from p
        self._updates = 0

    @property
    def probabilities(self) -> Array:
        """Of the contexts."""
        return np.exp(log_gaussian(self.positions, self.mean, self.width))

    def _draw(self) -> int:
        return int(self.stream.choice(len(self.positions), p=self.probabilities))

    def _note(self) -> int:
        return self._updates

    def _learned(self, given: Given, end: EpisodeEnd, total: float) -> None:
        if given.note != self._updates:  # drawn from an earlier p: its weight would be another
            return
        self._batch.append((given.context, total))
        if len(self._batch) == self.every:
            self._update()

    def _update(self) -> None:
        indices, returns = (np.array(column) for column in zip(*self._batch, strict=True))
        self.level.add(math.fsum(returns) / self.every)
        self._batch, self._updates = [], self._updates + 1
        if self.level.value is not None:
            found = self_paced(
                self.positions, (self.mean, self.width), (1.0, self.target_width), indices,
                self.range.place(returns), float(self.range.place(self.level.value)), self.epsilon,
            )  # fmt: skip
            self.mean, self.width = found

    def _own_state(self) -> dict[str, Any]:
        return {
            "mean": self.mean,
            "width": self.width,
            "level": self.level.get_state(),
            "batch": [list(pair) for pair in self._batch],
            "updates": self._updates,
        }

    def _take_own(self, state: Mapping[str, Any]) -> None:
        self.mean, self.width = float(state["mean"]), float(state["width"])
        self.level.set_state(state["level"])
        self._batch = [(int(index), float(total)) for index, total in state["batch"]]
        self._updates = int(state["updates"])


def log_gaussian(positions: Array, means: ArrayLike, widths: ArrayLike) -> Array:
    """Logarithms of normalised Gaussian weights of positions (J,): (..., J)."""
    away = positions - np.asarray(means, np.float64)[..., None]
    logs = -0.5 * (away / np.asarray(widths, np.float64)[..., None]) ** 2
    logs -= logs.max(-1, keepdims=True)
    return logs - np.log(np.exp(logs).sum(-1, keepdims=True))


def divergence(log_p: Array, log_q: Array) -> Array:
    """KL(p‖q) over the last axis."""
    return (np.exp(log_p) * (log_p - log_q)).sum(-1)


def self_paced(
    positions: Array,
    old: tuple[float, float],
    target: tuple[float, float],
    indices: NDArray[np.int64],
    returns: Array,
    level: float,
    epsilon: float,
) -> tuple[float, float]:
    """Mean and width of the next p, from a batch of contexts (N,) drawn from the old one.

    Two numbers are sought in a box around the old ones by ever finer grids: the feasible set is
    small and smooth, and no solver's tolerance decides. Means stay on the path, widths between the
    target's and 1. The old p is always feasible.
    """
    log_old, log_target = log_gaussian(positions, *old), log_gaussian(positions, *target)

    def expected(log_p: Array) -> Array:
        ratios = np.exp(log_p[..., indices] - log_old[indices])
        return (ratios * returns).sum(-1) / np.maximum(ratios.sum(-1), np.finfo(float).tiny)

    reached = float(expected(log_old)) >= level
    reach = math.sqrt(2 * epsilon)  # of an uncut Gaussian's mean, in units of its width
    box = np.array([3 * reach * old[1], 2 * reach + epsilon])  # of the mean and of log width
    best, worth = old, float(divergence(log_old, log_target) if reached else -expected(log_old))
    for _ in range(ZOOMS):
        means = np.linspace(best[0] - box[0], best[0] + box[0], SIDE)
        widths = best[1] * np.exp(np.linspace(-box[1], box[1], SIDE))
        means = np.clip(means, positions[0], positions[-1])
        widths = np.clip(widths, target[1], 1.0)
        m, w = (axis.ravel() for axis in np.meshgrid(means, widths, indexing="ij"))
        log_p = log_gaussian(positions, m, w)
        performance = expected(log_p)
        worths = divergence(log_p, log_target) if reached else -performance
        allowed = divergence(log_p, log_old) <= epsilon
        allowed &= (performance >= level) if reached else True
        worths = np.where(allowed, worths, math.inf)
        least = int(worths.argmin())
        if worths[least] < worth:
            best, worth = (float(m[least]), float(w[least])), float(worths[least])
        box /= 4
    return best
