"""Findings of a study: conditions against baselines, agreement with the paper, steps to mastery."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from rollin.analysis.results import Result, StudyResults, is_above
from rollin.analysis.statistics import Interval, exact_test, improvement_interval
from rollin.runs.records import MetricAt, Record
from rollin.sweeps.condition import Condition, differing
from rollin.sweeps.study import METHOD

NEAR = 0.05  # of κ
FINAL = 1 - 1e-9  # κ of the final context
SHOWN = 3  # decimals of tables: 1e-12 is no better than 0
SHARES = (0.25, 0.5, 0.75, 1.0)  # of the curriculum, whose steps are reported
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
class ReachedFinal:
    """Seeds that reached the final context, of a condition and of its baseline, compared."""

    condition: Condition
    reached: int
    n: int
    base_reached: int
    base_n: int
    p: float


class MasteredShare(NamedTuple):
    """How many seeds mastered a share of the contexts, and the median of their steps."""

    seeds: int
    steps: float | None


class StepsToMastery(NamedTuple):
    """Of a condition with n seeds: steps until each of SHARES of its contexts was mastered."""

    condition: Condition
    n: int
    shares: list[MasteredShare]


def improvements(results: StudyResults, reading: MetricAt) -> list[Improvement]:
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
    reading: MetricAt,
    labels: Mapping[str, str] | None,
    pairs: Sequence[Pair],
) -> Improvement:
    more = results.sign(reading)
    ours, base = (
        [[round(more * value, SHOWN) for value in side.values] for side in sides]
        for sides in zip(*pairs, strict=True)
    )
    bases: dict[int, int] = {}  # one baseline may belong to several conditions
    same = [bases.setdefault(id(b), len(bases)) for _, b in pairs]
    found = improvement_interval(ours, base, shared=same)
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


def reached_final(results: StudyResults, reading: MetricAt) -> list[ReachedFinal]:
    """How many seeds reached the final context, pair by pair; of κ, which is bimodal."""
    if reading.quantity != "kappa":
        return []
    found = []
    for result, base in results.pairs(reading):
        reached, base_reached = (sum(v >= FINAL for v in r.values) for r in (result, base))
        if reached or base_reached:
            counts = (reached, len(result.values), base_reached, len(base.values))
            found.append(ReachedFinal(result.condition, *counts, exact_test(*counts)))
    return found


def agreement(results: StudyResults, reading: MetricAt) -> tuple[int, int] | None:
    """In how many conditions κ is within NEAR of the published mean, and of how many.

    None for other quantities, and for runs that are not of full length.
    """
    if reading.quantity != "kappa" or results.scale != 1:
        return None
    found = [r.difference for r in results.results if r.reading == reading]
    known = [d for d in found if d is not None]
    return (sum(abs(d) <= NEAR for d in known), len(known)) if known else None


def setting_of(condition: Condition, across: Sequence[str] = METHOD) -> dict[str, str]:
    """The labels of a condition that are not compared: all but its method by default."""
    return {name: value for name, value in condition.labels.items() if name not in across}


def mastered_at(record: Record, contexts: int) -> int | None:
    """The step at which a run had mastered so many contexts; None if it has not.

    The final one is mastered when the curriculum is complete; the others when the run advances from
    there, to the next or farther.
    """
    assert record.K is not None
    if contexts > record.K:
        return record.completed
    steps = pairwise(record.switches)
    return next((b.step for a, b in steps if b.k > a.k >= contexts - 1), None)


def steps_to_mastery(results: StudyResults) -> list[StepsToMastery]:
    """For every condition whose runs follow a curriculum from its beginning."""
    found = []
    for condition, runs in results.runs.items():
        some = [run for run in runs if run.K and run.switches and run.switches[0].k == 0]
        if some:
            shares = [_mastered_share(some, share) for share in SHARES]
            found.append(StepsToMastery(condition, len(some), shares))
    return found


def _mastered_share(runs: Sequence[Record], share: float) -> MasteredShare:
    found = [mastered_at(run, max(1, round(share * ((run.K or 0) + 1)))) for run in runs]
    steps = [step for step in found if step is not None]
    return MasteredShare(len(steps), statistics.median(steps) if steps else None)
