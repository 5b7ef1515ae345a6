"""Statistics over seeds."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple


class Summary(NamedTuple):
    """Mean, standard error of the mean (0 for one seed) and number of seeds."""

    mean: float
    error: float
    n: int


def summarise(values: Sequence[float]) -> Summary:
    """Mean ± s/√n with the sample standard deviation s, as the paper's tables say they report."""
    n = len(values)
    mean = math.fsum(values) / n
    if n == 1:
        return Summary(mean, 0.0, 1)
    variance = math.fsum((v - mean) ** 2 for v in values) / (n - 1)
    return Summary(mean, math.sqrt(variance / n), n)


def outcomes(ks: Iterable[int]) -> str:
    """Per-seed outcomes in short: how often each last context was reached, best first."""
    counts = sorted(Counter(ks).items(), reverse=True)
    return ", ".join(f"{k}×{count}" if count > 1 else str(k) for k, count in counts)
