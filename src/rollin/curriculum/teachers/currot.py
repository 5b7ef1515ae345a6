"""CURROT on a path: Klink, Yang, D'Eramo, Pajarinen & Peters 2022, PMLR 162.

The curriculum is a set of particles, which interpolates between where it begins and a target in
the Wasserstein sense, over contexts whose return is at least δ. On a line the optimal transport
pairs the sorted particles with the sorted targets. Each then goes as near to its target as it may:
by at most ε, to where a kernel regression of returns is at least δ. As in the authors' code, none
moves before the mean of that regression over the particles has reached δ once, and a particle where
returns are worse goes back to good episodes first.
"""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from rollin.checks import at_least, check_share, positive
from rollin.curriculum.contexts import Curriculum
from rollin.curriculum.teacher import EpisodeEnd
from rollin.curriculum.teachers.returns import Level
from rollin.curriculum.teachers.sampling import Given, SamplingTeacher

Array = NDArray[np.float64]

KERNEL = 0.3  # bandwidth of the regression, in steps ε (the paper's l = 0.3 ε)
FINENESS = 20  # candidates on each side of a particle


class CURROT(SamplingTeacher):
    """Moves particles to the path's end by optimal transport, where returns are good enough.

    level: δ, a return; without, half-way between the first batch's mean return and the best one,
    and particles stay until a batch was better than the first. epsilon: longest step of a particle;
    particles: how many; every: episodes between two moves; memory: episodes of the regression;
    width: share of the path that particles lie on at first; target_width: that of the targets, 0
    for the last context alone, 1 for all.

    >>> import numpy as np
    >>> import rollin
    >>> path = rollin.Curriculum.along([[0.0], [8.0]], delta=1 / 96, rule=0.0)
    >>> stream = np.random.default_rng(0)
    >>> teacher = rollin.teachers.CURROT(path, 0.0, stream, level=40.0, particles=3)
    >>> teacher.particles.tolist()
    [0.0, 0.05, 0.1]
    """

    about = "particles that move along the path while returns stay good: CURROT"

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
        self.every, self.memory = at_least(1, "every", every), at_least(1, "memory", memory)
        first = float(self.positions[0])
        span = 1 - first
        self.particles = first + np.linspace(0, check_share("width", width), count) * span
        self.targets = 1 - np.linspace(check_share("target_width", target_width), 0, count) * span
        self._seen: list[tuple[float, float]] = []  # position and return of the last episodes
        self._batch: list[float] = []
        self._begun = False  # whether particles were good enough once

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
        seen = positions, self.range.place(returns)
        estimates = regressed(self.particles, *seen, KERNEL * self.epsilon)
        self._begun = self._begun or float(estimates.mean()) >= level
        if self._begun:
            self.particles = transported(
                self.particles, self.targets, *seen, level, self.epsilon, float(self.positions[0])
            )

    def _own_state(self) -> dict[str, Any]:
        return {
            "particles": self.particles.tolist(),
            "seen": [list(pair) for pair in self._seen],
            "batch": list(self._batch),
            "level": self.level.get_state(),
            "begun": self._begun,
        }

    def _take_own(self, state: Mapping[str, Any]) -> None:
        self.particles = np.array(state["particles"], np.float64)
        self._seen = [(float(at), float(total)) for at, total in state["seen"]]
        self._batch = [float(total) for total in state["batch"]]
        self.level.set_state(state["level"])
        self._begun = bool(state["begun"])


def regressed(at: Array, positions: Array, returns: Array, bandwidth: float) -> Array:
    """Nadaraya and Watson's kernel regression of returns at positions; far away the nearest one.

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
    """Particles after one step to their targets, sorted.

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
