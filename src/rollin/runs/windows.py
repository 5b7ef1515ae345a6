"""The quantities of the paper's tables, at any step that a run has reached.

κ at the step, and κ, the return and an environment's measures (such as the x-velocity) averaged
over the steps before it.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rollin.curriculum.progress import Progress

EVERY = 500_000  # steps between two milestones of a result: the paper reads at 0.5M, 1M and 3M

Episodes = Mapping[str, Sequence[float]]
"""Columns of an episodes.csv."""


def quantities_at(
    step: int, progress: Progress, episodes: Episodes, measures: Iterable[str], last: int
) -> dict[str, Any]:
    """κ at `step`, and means over the `last` steps before it; None where no episode ended."""
    return {
        "kappa": progress.kappa_at(step),
        "kappa_mean_last": progress.mean_kappa(max(step - last, 0), step),
        **{
            f"{name}_mean_last": mean
            for name, mean in means_at(step, episodes, measures, last).items()
        },
    }


def means_at(
    step: int, episodes: Episodes, measures: Iterable[str], last: int
) -> dict[str, float | None]:
    """Means of return and measures over the `last` steps before a step; None without an episode.

    A return is an episode's, so its mean is over the episodes that ended in these steps; a measure
    is a step's, so there an episode weighs as much as it is long.
    """
    end = np.array(episodes["step"])
    inside = (end > step - last) & (end <= step)
    length = np.array(episodes["length"])[inside]
    means = {"return": _mean(np.array(episodes["return"])[inside])}
    return means | {name: _mean(np.array(episodes[name])[inside], length) for name in measures}


def milestones(
    step: int, progress: Progress, episodes: Episodes, measures: Iterable[str], last: int
) -> dict[str, dict[str, Any]]:
    """Quantities at every half a million steps so far, by step."""
    names = tuple(measures)
    return {
        str(at): quantities_at(at, progress, episodes, names, last)
        for at in range(EVERY, step + 1, EVERY)
    }


def _mean(values: NDArray[Any], weights: NDArray[Any] | None = None) -> float | None:
    return float(np.average(values, weights=weights)) if len(values) else None
