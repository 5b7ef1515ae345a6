"""Steps until contexts are mastered, over seeds: what κ at the end does not tell."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from rollin.analysis.results import StudyResults
from rollin.runs.records import Record
from rollin.sweeps.study import Condition

SHARES = (0.25, 0.5, 0.75, 1.0)  # of the curriculum, at which steps are told


@dataclass(frozen=True)
class Arrival:
    """Seeds that came somewhere, and the median of the steps that these took; None if none did."""

    seeds: int
    steps: float | None


@dataclass(frozen=True)
class Mastery:
    """A condition: steps until shares of its contexts were mastered, the last among them."""

    condition: Condition
    n: int
    arrivals: tuple[Arrival, ...]


def mastered_at(record: Record, contexts: int) -> int | None:
    """The step at which a run had mastered so many contexts; None if it has not.

    The last one is mastered when the walk is complete; the others when it goes on from there, to
    the next or farther.
    """
    assert record.K is not None
    if contexts > record.K:
        return record.completed
    steps = pairwise(record.switches)
    return next((b.step for a, b in steps if b.k > a.k >= contexts - 1), None)


def mastery(results: StudyResults) -> list[Mastery]:
    """For every condition whose runs walk a curriculum from its beginning."""
    found = []
    for condition, runs in results.runs.items():
        walked = [run for run in runs if run.K and run.switches and run.switches[0].k == 0]
        if walked:
            arrivals = tuple(_arrival(walked, share) for share in SHARES)
            found.append(Mastery(condition, len(walked), arrivals))
    return found


def _arrival(runs: Sequence[Record], share: float) -> Arrival:
    told = [mastered_at(run, max(1, round(share * ((run.K or 0) + 1)))) for run in runs]
    steps = [step for step in told if step is not None]
    return Arrival(len(steps), statistics.median(steps) if steps else None)
