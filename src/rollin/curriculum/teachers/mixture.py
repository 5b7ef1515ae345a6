"""Mixtures of Gaussians by expectation-maximisation, and how many of them data ask for.

Data have shape (N, D), a mixture has M components; full covariances.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

Array = NDArray[np.float64]

FLOOR = 1e-6  # added to variances, so that equal points are no trouble
ROUNDS = 100  # of expectation and maximisation at most
GAIN = 1e-4  # of the log-likelihood per point: with less the fit is over
LLOYD = 20  # rounds of the clustering that a fit begins with


@dataclass(frozen=True)
class Mixture:
    """weights: (M,); means: (M, D); covariances: (M, D, D)."""

    weights: Array
    means: Array
    covariances: Array

    def log_densities(self, data: Array) -> Array:
        """log of weight · density, for each point and component: (N, M)."""
        D = data.shape[1]
        away = data[:, None, :] - self.means[None]
        inverses = np.linalg.inv(self.covariances)
        distances = np.einsum("nmi,mij,nmj->nm", away, inverses, away)
        constants = D * math.log(2 * math.pi) + np.linalg.slogdet(self.covariances)[1]
        return np.log(self.weights) - 0.5 * (constants + distances)

    def log_likelihood(self, data: Array) -> float:
        """Of all points together."""
        return float(_log_sum(self.log_densities(data)).sum())

    def aic(self, data: Array) -> float:
        """Akaike's criterion: 2 · free parameters - 2 · log-likelihood."""
        M, D = self.means.shape
        free = M * (D + D * (D + 1) // 2) + M - 1
        return 2 * free - 2 * self.log_likelihood(data)


def fit(data: Array, components: int, stream: Generator) -> Mixture:
    """The mixture that expectation-maximisation comes to from a clustering of the data."""
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


def fit_best(data: Array, counts: Iterable[int], stream: Generator) -> Mixture:
    """The fit with the least AIC, over these numbers of components."""
    fits = [fit(data, count, stream) for count in counts]
    return min(fits, key=lambda mixture: mixture.aic(data))


def _maximised(data: Array, shares: Array) -> Mixture:
    """Weights, means and covariances for given shares (N, M) of components in points."""
    held = shares.sum(0) + 1e-12  # a component may hold no point at all
    means = np.einsum("nm,nd->md", shares, data) / held[:, None]
    away = data[:, None, :] - means[None]
    covariances = np.einsum("nm,nmi,nmj->mij", shares, away, away) / held[:, None, None]
    return Mixture(held / held.sum(), means, covariances + FLOOR * np.eye(data.shape[1]))


def _cluster(data: Array, count: int, stream: Generator) -> NDArray[np.int64]:
    """The cluster of each point: k-means++ seeds (Arthur & Vassilvitskii 2007), Lloyd's rounds."""
    centres = data[stream.integers(len(data))][None]
    while len(centres) < count:
        least = _distances(data, centres).min(1)
        chances = least / least.sum() if least.sum() > 0 else None
        centres = np.vstack([centres, data[stream.choice(len(data), p=chances)]])
    nearest = _distances(data, centres).argmin(1)
    for _ in range(LLOYD):
        held = [data[nearest == number] for number in range(count)]
        centres = np.array([h.mean(0) if len(h) else c for h, c in zip(held, centres, strict=True)])
        now = _distances(data, centres).argmin(1)
        if (now == nearest).all():
            break
        nearest = now
    return nearest


def _distances(data: Array, centres: Array) -> Array:
    return ((data[:, None, :] - centres[None]) ** 2).sum(-1)


def _log_sum(logs: Array) -> Array:
    """log Σ exp over the last axis."""
    most = logs.max(-1, keepdims=True)
    return (most + np.log(np.exp(logs - most).sum(-1, keepdims=True)))[..., 0]
