"""What a table's runs say as a whole: does ROLLIN do better, and does that agree with the paper?"""

from collections.abc import Sequence
from dataclasses import dataclass

from rollin.analysis.results import CellResult, TableResults, is_above
from rollin.analysis.statistics import Interval, exact_test, improvement_interval
from rollin.report.words import label_text, method_text
from rollin.sweeps.study import Reading

NEAR = 0.05  # of κ
LAST = 1 - 1e-9  # κ of the last context
ENOUGH = 5  # seeds of a cell from which an interval says something

Pair = tuple[CellResult, CellResult]


@dataclass(frozen=True)
class Improvement:
    """ROLLIN against the baseline over pairs of cells, all β or one.

    chance: probability of improvement; interval: None where a cell has too few seeds for one.
    above, below: pairs whose means differ that way; published_above: as the paper has it.
    """

    what: str
    pairs: int
    chance: float
    interval: Interval | None
    above: int
    below: int
    published_above: int


@dataclass(frozen=True)
class Arrivals:
    """Seeds that reached the last context, of a ROLLIN cell and of its baseline, compared."""

    setting: str
    method: str
    reached: int
    n: int
    base_reached: int
    base_n: int
    p: float


def improvements(results: TableResults, reading: Reading) -> list[Improvement]:
    """Over all pairs, and for each β if there are several."""
    pairs = results.pairs(reading)
    if not pairs:
        return []
    by_beta: dict[str, list[Pair]] = {}
    for pair in pairs:
        by_beta.setdefault(method_text(pair[0].cell.labels), []).append(pair)
    if len(by_beta) > 1:
        by_beta = {"ROLLIN, all β": pairs, **by_beta}
    return [_improvement(results, reading, name, some) for name, some in by_beta.items()]


def _improvement(
    results: TableResults, reading: Reading, what: str, pairs: Sequence[Pair]
) -> Improvement:
    ours, base = ([_shown(side.values) for side in sides] for sides in zip(*pairs, strict=True))
    found = improvement_interval(ours, base, shared=_same([b for _, b in pairs]))
    few = any(len(values) < ENOUGH for values in (*ours, *base))
    means = [(r.summary.mean, b.summary.mean) for r, b in pairs]
    digits = results.digits(reading)
    return Improvement(
        what,
        len(pairs),
        found.value,
        None if few else found,
        above=sum(is_above(mean, other, digits) for mean, other in means),
        below=sum(is_above(other, mean, digits) for mean, other in means),
        published_above=sum(results.published_beats(r.cell, reading) for r, _ in pairs),
    )


def _same(cells: Sequence[CellResult]) -> list[int]:
    """A number for each, the same for the same: one baseline stands against several β."""
    numbers: dict[int, int] = {}
    return [numbers.setdefault(id(cell), len(numbers)) for cell in cells]


def _shown(values: Sequence[float]) -> list[float]:
    """Values as far as tables show them, so that 1e-12 is no better than 0."""
    return [round(value, 3) for value in values]


def arrivals(results: TableResults, reading: Reading) -> list[Arrivals]:
    """For κ, which is bimodal: how many seeds reached the last context, pair by pair."""
    if reading.figure != "kappa":
        return []
    found = []
    for rolled, base in results.pairs(reading):
        reached, base_reached = (sum(v >= LAST for v in r.values) for r in (rolled, base))
        n, base_n = len(rolled.values), len(base.values)
        if reached or base_reached:
            labels = rolled.cell.labels
            setting = label_text(labels, rolled.cell.setting)
            p = exact_test(reached, n, base_reached, base_n)
            found.append(
                Arrivals(setting, method_text(labels), reached, n, base_reached, base_n, p)
            )
    return found


def agreement(results: TableResults, reading: Reading) -> str | None:
    """How near κ is to the published means, in a sentence; of full-length runs only."""
    if reading.figure != "kappa" or results.scale != 1:
        return None
    found = [r.difference for r in results.results if r.reading == reading]
    known = [d for d in found if d is not None]
    near = sum(abs(d) <= NEAR for d in known)
    if not known:
        return None
    return f"κ is within {NEAR:g} of the published mean in {near} of {len(known)} cells."
