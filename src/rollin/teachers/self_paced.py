"""Self-paced learning on a path, by Klink and others: `SPDL` and `CURROT`.

Both move a distribution of contexts to the path's end while returns stay good.

SPDL: Klink, D'Eramo, Peters & Pajarinen 2020, arXiv 2004.11812, in the form of Klink et al. 2021
(arXiv 2102.13176), whose one number for performance is V_LB.
CURROT: Klink, Yang, D'Eramo, Pajarinen & Peters 2022, PMLR 162.
"""

import math

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from rollin.checks import at_least, check_share, positive, within
from rollin.curriculum.contexts import Curriculum
from rollin.curriculum.progress import State, Stateful
from rollin.curriculum.teacher import EpisodeEnd
from rollin.teachers.sampling import Given, SamplingTeacher

Array = NDArray[np.float64]

HUGE = 1e300  # of returns: more cannot be subtracted
SIDE = 25  # points of SPDL's search on each axis
ZOOMS = 6  # each time to a quarter of the box
KERNEL = 0.3  # bandwidth of CURROT's regression, in steps ε (the paper's l = 0.3 ε)
FINENESS = 20  # candidates on each side of a particle


class Level(Stateful):
    """The return that counts as good enough: V_LB of SPDL, δ of CURROT.

    given: hand-set. Default: half-way between the first batch's mean and the best one, and none
    until a batch is better than the first.
    """

    first: State[float | None] = None
    best: State[float | None] = None

    def __init__(self, name: str, given: float | None) -> None:
        self.given = None if given is None else within(name, given, HUGE)

    def add(self, mean: float) -> None:
        """Add the mean return of a batch of episodes."""
        self.first = mean if self.first is None else self.first
        self.best = mean if self.best is None else max(self.best, mean)

    @property
    def value(self) -> float | None:
        """The level, or None while it is not known."""
        if self.given is not None:
            return self.given
        if self.first is None or self.best is None or self.best <= self.first:
            return None
        return (self.first + self.best) / 2


class SPDL(SamplingTeacher):
    """Moves a Gaussian over the path to its end as fast as the mean return stays above a level.

    p is a Gaussian over positions, cut off at the path's ends and taken at the positions of the
    contexts; the target is a narrow one at the end. After each batch of episodes,

        while E_p[J] < V_LB:  max E_p[J]                       s.t. KL(p‖p_old) ≤ ε
        else:                 min KL(p‖target)  s.t. E_p[J] ≥ V_LB, KL(p‖p_old) ≤ ε

    where E_p[J] weighs the returns of the batch by p / p_old. The weights are divided by their sum,
    unlike in the paper, so that a shift of all returns shifts the estimate and nothing else. The
    first line also serves after a loss of performance, from which the paper's problem has no way
    back.

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
    level: State[Level]
    mean: State[float]
    width: State[float]
    _batch: State[list[tuple[int, float]]]  # context and return, drawn from p
    _updates: State[int] = 0

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
        self.mean = float(self.positions[0])
        self.width = positive("width", width, most=1.0)
        self.target_width = positive("target_width", target_width, most=self.width)
        self._batch = []

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
        self._batch = []
        self._updates += 1
        if self.level.value is not None:
            self.mean, self.width = self_paced(
                self.positions, (self.mean, self.width), (1.0, self.target_width), indices,
                self.range.place(returns), float(self.range.place(self.level.value)), self.epsilon,
            )  # fmt: skip


def log_gaussian(positions: Array, means: ArrayLike, widths: ArrayLike) -> Array:
    """Return logarithms of normalised Gaussian weights of positions (J,): (..., J)."""
    away = positions - np.asarray(means, np.float64)[..., None]
    logs = -0.5 * (away / np.asarray(widths, np.float64)[..., None]) ** 2
    logs -= logs.max(-1, keepdims=True)
    return logs - np.log(np.exp(logs).sum(-1, keepdims=True))


def divergence(log_p: Array, log_q: Array) -> Array:
    """Return KL(p‖q) over the last axis."""
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
    """Return mean and width of the next p, from a batch of contexts (N,) drawn from the old one.

    Two numbers are sought in a box around the old ones by ever finer grids: the feasible set is
    small and smooth, and no solver's tolerance decides. Means stay on the path, widths between the
    target's and 1. The old p is always feasible.
    """
    log_old = log_gaussian(positions, *old)
    log_target = log_gaussian(positions, *target)

    def expected(log_p: Array) -> Array:
        ratios = np.exp(log_p[..., indices] - log_old[indices])
        return (ratios * returns).sum(-1) / np.maximum(ratios.sum(-1), np.finfo(float).tiny)

    reached = float(expected(log_old)) >= level
    reach = math.sqrt(2 * epsilon)  # of an uncut Gaussian's mean, in units of its width
    box = np.array([3 * reach * old[1], 2 * reach + epsilon])  # of the mean and of log width
    best = old
    worth = float(divergence(log_old, log_target) if reached else -expected(log_old))
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
            best = float(m[least]), float(w[least])
            worth = float(worths[least])
        box /= 4
    return best


class CURROT(SamplingTeacher):
    """Moves particles to the path's end by optimal transport, where returns are good enough.

    The curriculum interpolates between its start and a target in the Wasserstein sense, over
    contexts whose return is at least δ. On a line the optimal transport pairs the sorted particles
    with the sorted targets. Each then moves as near to its target as it may: by at most ε, to where
    a kernel regression of returns is at least δ. As in the authors' code, none moves before the
    mean of that regression over the particles has reached δ once, and a particle where returns are
    worse first moves back to good episodes.

    level: δ, a return; without, half-way between the first batch's mean return and the best one,
    and particles stay until a batch was better than the first. epsilon: longest step of a particle;
    particles: how many; every: episodes between two moves; memory: episodes of the regression;
    width: share of the path that particles lie on at first; target_width: that of the targets, 0
    for the last context only, 1 for all.

    >>> import numpy as np
    >>> import rollin
    >>> path = rollin.Curriculum.along([[0.0], [8.0]], delta=1 / 96, rule=0.0)
    >>> stream = np.random.default_rng(0)
    >>> teacher = rollin.teachers.CURROT(path, 0.0, stream, level=40.0, particles=3)
    >>> teacher.particles.tolist()
    [0.0, 0.05, 0.1]
    """

    about = "particles that move along the path while returns stay good: CURROT"
    level: State[Level]
    particles: State[Array]
    _seen: State[list[tuple[float, float]]]  # position and return of the last episodes
    _batch: State[list[float]]
    _begun: State[bool] = False  # whether particles were good enough once

    def __init__(
        self,
        curriculum: Curriculum,
        beta: float,
        stream: Generator,
        *,
        level: float | None = None,
        epsilon: float = 0.05,
        particles: int = 20,
        every: int = 20,
        memory: int = 200,
        width: float = 0.1,
        target_width: float = 0.0,
    ) -> None:
        super().__init__(curriculum, beta, stream)
        self.level = Level("level", level)
        self.epsilon = positive("epsilon", epsilon, most=1.0)
        count = at_least(1, "particles", particles, most=10_000)
        self.every = at_least(1, "every", every)
        self.memory = at_least(1, "memory", memory)
        first = float(self.positions[0])
        span = 1 - first
        self.particles = first + np.linspace(0, check_share("width", width), count) * span
        self.targets = 1 - np.linspace(check_share("target_width", target_width), 0, count) * span
        self._seen = []
        self._batch = []

    def _draw(self) -> int:
        return self._nearest(self.stream.choice(self.particles))

    def _learned(self, given: Given, end: EpisodeEnd, total: float) -> None:
        pair = float(self.positions[given.context]), total
        self._seen = [*self._seen, pair][-self.memory :]
        self._batch.append(total)
        if len(self._batch) < self.every:
            return
        self.level.add(math.fsum(self._batch) / len(self._batch))
        self._batch = []
        if self.level.value is not None:
            self._move(float(self.range.place(self.level.value)))

    def _move(self, level: float) -> None:
        positions, returns = np.array(self._seen).T
        data = positions, self.range.place(returns)
        estimates = regressed(self.particles, *data, KERNEL * self.epsilon)
        self._begun = self._begun or float(estimates.mean()) >= level
        if self._begun:
            self.particles = transported(
                self.particles,
                self.targets,
                *data,
                level,
                self.epsilon,
                float(self.positions[0]),
            )


def regressed(at: Array, positions: Array, returns: Array, bandwidth: float) -> Array:
    """Return Nadaraya and Watson's kernel regression of returns; far away the nearest return.

    >>> regressed(np.array([0.5]), np.array([0.0, 1.0]), np.array([2.0, 4.0]), 0.1).tolist()
    [3.0]
    """
    logs = -0.5 * ((at[:, None] - positions) / bandwidth) ** 2
    weights = np.exp(logs - logs.max(1, keepdims=True))
    return (weights * returns).sum(1) / weights.sum(1)


def transported(
    particles: Array,
    targets: Array,
    positions: Array,
    returns: Array,
    level: float,
    epsilon: float,
    first: float = 0.0,
) -> Array:
    """Return the particles after one step to their targets, sorted.

    One where the regression is below the level goes to the nearest good episode, if there is one,
    before it steps; one that finds nothing good within its step takes none.
    """
    good = positions[returns >= level]
    steps = epsilon * np.arange(-FINENESS, FINENESS + 1) / FINENESS
    moved = np.empty_like(particles)
    for number, (at, goal) in enumerate(zip(np.sort(particles), np.sort(targets), strict=True)):
        here = regressed(np.array([at]), positions, returns, KERNEL * epsilon)
        if here[0] < level and len(good):
            at = good[np.abs(good - at).argmin()]
        reachable = np.append(np.clip(at + steps, first, 1.0), at)
        if abs(goal - at) <= epsilon:
            reachable = np.append(reachable, goal)
        allowed = regressed(reachable, positions, returns, KERNEL * epsilon) >= level
        left = np.where(allowed, np.abs(reachable - goal), math.inf)
        moved[number] = reachable[left.argmin()] if allowed.any() else at
    return np.sort(moved)
