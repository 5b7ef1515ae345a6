"""ALP-GMM: Portelas, Colas, Hofmann & Oudeyer 2019, arXiv 1910.07224, Algorithm 1.

Its mixtures of Gaussians with full covariances are fitted by expectation-maximisation. Data have
shape (N, D), a mixture has M components.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from rollin.checks import at_least, check_share
from rollin.curriculum.contexts import Curriculum
from rollin.curriculum.progress import State
from rollin.curriculum.teacher import EpisodeEnd
from rollin.teachers.sampling import Given, SamplingTeacher

Array = NDArray[np.float64]

FEWEST, MOST = 2, 10  # components
FLOOR = 1e-6  # added to variances, so that equal points are no trouble
ROUNDS = 100  # of expectation and maximisation at most
GAIN = 1e-4  # of the log-likelihood per point: with less the fit is over
LLOYD = 20  # rounds of the clustering that a fit begins with


@dataclass(frozen=True)
class GaussianMixture:
    """weights: (M,); means: (M, D); covariances: (M, D, D)."""

    weights: Array
    means: Array
    covariances: Array

    def log_densities(self, data: Array) -> Array:
        """Return the log of weight · density, for each point and component: (N, M)."""
        D = data.shape[1]
        away = data[:, None, :] - self.means[None]
        inverses = np.linalg.inv(self.covariances)
        distances = np.einsum("nmi,mij,nmj->nm", away, inverses, away)
        constants = D * math.log(2 * math.pi) + np.linalg.slogdet(self.covariances)[1]
        return np.log(self.weights) - 0.5 * (constants + distances)

    def log_likelihood(self, data: Array) -> float:
        """Return the log-likelihood of all points together."""
        return float(_log_sum(self.log_densities(data)).sum())

    def aic(self, data: Array) -> float:
        """Return Akaike's criterion: 2 · free parameters - 2 · log-likelihood."""
        M, D = self.means.shape
        free = M * (D + D * (D + 1) // 2) + M - 1
        return 2 * free - 2 * self.log_likelihood(data)


class ALPGMM(SamplingTeacher):
    """Draws contexts around which returns change, for better or worse.

    The absolute learning progress of an episode is ALP = |g - g'|, g' the return of the latest
    episode under the nearest context. After every so many episodes, mixtures of 2 – 10 Gaussians
    are fitted to (position, ALP) of the last ones and the one with the least AIC is used. A context
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
    mixture: State[GaussianMixture | None] = None
    history: State[list[tuple[float, float]]]  # (position, ALP) of the last episodes
    _last: State[dict[int, float]]  # the latest return by context, the newest at the end
    _count: State[int] = 0

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
        self.history = []
        self._last = {}

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


def fit(data: Array, components: int, stream: Generator) -> GaussianMixture:
    """Return the mixture that expectation-maximisation finds from a clustering of the data."""
    nearest = _cluster(data, components, stream)
    shares = (nearest[:, None] == np.arange(components)).astype(np.float64)
    before = -math.inf
    mixture = _maximised(data, shares)
    for _ in range(ROUNDS):
        logs = mixture.log_densities(data)
        totals = _log_sum(logs)
        likelihood = float(totals.mean())
        if likelihood - before < GAIN:
            break
        before = likelihood
        mixture = _maximised(data, np.exp(logs - totals[:, None]))
    return mixture


def fit_best(data: Array, counts: Iterable[int], stream: Generator) -> GaussianMixture:
    """Return the fit with the least AIC, over these numbers of components."""
    fits = [fit(data, count, stream) for count in counts]
    return min(fits, key=lambda mixture: mixture.aic(data))


def _maximised(data: Array, shares: Array) -> GaussianMixture:
    """Return the mixture for given shares (N, M) of components in points."""
    mass = shares.sum(0) + 1e-12  # a component may hold no point at all
    means = np.einsum("nm,nd->md", shares, data) / mass[:, None]
    away = data[:, None, :] - means[None]
    covariances = np.einsum("nm,nmi,nmj->mij", shares, away, away) / mass[:, None, None]
    return GaussianMixture(mass / mass.sum(), means, covariances + FLOOR * np.eye(data.shape[1]))


def _cluster(data: Array, count: int, stream: Generator) -> NDArray[np.int64]:
    """Return each point's cluster: k-means++ (Arthur & Vassilvitskii 2007), then Lloyd's rounds."""
    centres = data[stream.integers(len(data))][None]
    while len(centres) < count:
        least = _distances(data, centres).min(1)
        chances = least / least.sum() if least.sum() > 0 else None
        centres = np.vstack([centres, data[stream.choice(len(data), p=chances)]])
    nearest = _distances(data, centres).argmin(1)
    for _ in range(LLOYD):
        parts = [data[nearest == number] for number in range(count)]
        centres = np.array(
            [p.mean(0) if len(p) else c for p, c in zip(parts, centres, strict=True)]
        )
        now = _distances(data, centres).argmin(1)
        if (now == nearest).all():
            break
        nearest = now
    return nearest


def _distances(data: Array, centres: Array) -> Array:
    return ((data[:, None, :] - centres[None]) ** 2).sum(-1)


def _log_sum(logs: Array) -> Array:
    """Return log Σ exp over the last axis."""
    most = logs.max(-1, keepdims=True)
    return (most + np.log(np.exp(logs - most).sum(-1, keepdims=True)))[..., 0]
