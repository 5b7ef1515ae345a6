"""What a study's runs say as a whole: is it better than the baseline, and as the paper has it?"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rollin.analysis.results import Result, StudyResults, is_above, sign
from rollin.analysis.statistics import Interval, exact_test, improvement_interval
from rollin.runs.records import Reading
from rollin.sweeps.condition import Condition, differing
from rollin.sweeps.plan import METHOD

NEAR = 0.05  # of κ
LAST = 1 - 1e-9  # κ of the last context
ENOUGH = 5  # seeds of a condition from which an interval says something

Pair = tuple[Result, Result]


@dataclass(frozen=True)
class Improvement:
    """Conditions against their baselines: all pairs, or those that share some labels.

    labels: those, None of all pairs; chance: probability of improvement; interval: None where a
    condition has too few seeds for one. ahead, behind: pairs in which the mean is better, or worse;
    published_ahead: as the paper has it.
    """

    labels: Mapping[str, str] | None
    pairs: int
    chance: float
    interval: Interval | None
    ahead: int
    behind: int
    published_ahead: int


@dataclass(frozen=True)
class Arrivals:
    """Seeds that reached the last context, of a condition and of its baseline, compared."""

    condition: Condition
    reached: int
    n: int
    base_reached: int
    base_n: int
    p: float


@dataclass(frozen=True)
class Agreement:
    """In how many conditions κ is near the published mean."""

    near: int
    known: int
    within: float = NEAR


def improvements(results: StudyResults, reading: Reading) -> list[Improvement]:
    """Over all pairs, and for each method if there are several."""
    pairs = results.pairs(reading)
    if not pairs:
        return []
    by_method: dict[tuple[tuple[str, str], ...], list[Pair]] = {}
    names = [n for n in differing([r.condition for pair in pairs for r in pair]) if n in METHOD]
    names = names or list(results.study.across)
    for pair in pairs:
        labels = pair[0].condition.labels
        key = tuple((name, labels[name]) for name in names if name in labels)
        by_method.setdefault(key, []).append(pair)
    found = [_improvement(results, reading, dict(key), some) for key, some in by_method.items()]
    if len(by_method) > 1:
        return [_improvement(results, reading, None, pairs), *found]
    return found


def _improvement(
    results: StudyResults,
    reading: Reading,
    labels: Mapping[str, str] | None,
    pairs: Sequence[Pair],
) -> Improvement:
    more = sign(reading)
    ours, base = (
        [_shown([more * value for value in side.values]) for side in sides]
        for sides in zip(*pairs, strict=True)
    )
    found = improvement_interval(ours, base, shared=_same([b for _, b in pairs]))
    few = any(len(values) < ENOUGH for values in (*ours, *base))
    means = [(more * r.summary.mean, more * b.summary.mean) for r, b in pairs]
    digits = results.digits(reading)
    return Improvement(
        labels,
        len(pairs),
        found.value,
        None if few else found,
        ahead=sum(is_above(mean, other, digits) for mean, other in means),
        behind=sum(is_above(other, mean, digits) for mean, other in means),
        published_ahead=sum(results.published_beats(r.condition, reading) for r, _ in pairs),
    )


def _same(results: Sequence[Result]) -> list[int]:
    """A number for each, the same for the same: one baseline stands against several conditions."""
    numbers: dict[int, int] = {}
    return [numbers.setdefault(id(result), len(numbers)) for result in results]


def _shown(values: Sequence[float]) -> list[float]:
    """Values as far as tables show them, so that 1e-12 is no better than 0."""
    return [round(value, 3) for value in values]


def arrivals(results: StudyResults, reading: Reading) -> list[Arrivals]:
    """For κ, which is bimodal: how many seeds reached the last context, pair by pair."""
    if reading.quantity != "kappa":
        return []
    found = []
    for rolled, base in results.pairs(reading):
        reached, base_reached = (sum(v >= LAST for v in r.values) for r in (rolled, base))
        n, base_n = len(rolled.values), len(base.values)
        if reached or base_reached:
            p = exact_test(reached, n, base_reached, base_n)
            found.append(Arrivals(rolled.condition, reached, n, base_reached, base_n, p))
    return found


def agreement(results: StudyResults, reading: Reading) -> Agreement | None:
    """How near κ is to the published means; of full-length runs only."""
    if reading.quantity != "kappa" or results.scale != 1:
        return None
    found = [r.difference for r in results.results if r.reading == reading]
    known = [d for d in found if d is not None]
    return Agreement(sum(abs(d) <= NEAR for d in known), len(known)) if known else None


def setting_of(condition: Condition, across: Sequence[str] = METHOD) -> dict[str, str]:
    """The labels of a condition that do not say its method, or what else is compared."""
    return {name: value for name, value in condition.labels.items() if name not in across}
