"""The layout of a study: for each reading a table of rows and columns of conditions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rollin.analysis.results import Result, StudyResults, is_above, sign
from rollin.runs.records import Reading
from rollin.sweeps.published import Published
from rollin.sweeps.study import Condition

Labels = Mapping[str, str]


@dataclass(frozen=True, eq=False)
class Place:
    """One place of a table: a condition, ours and the published value, which may both be missing.

    beats, published_beats: above the baseline; best, published_best: of the row, where
    another is worse; solved: beside κ,
    seeds that mastered the last context, and all of them.
    """

    condition: Condition
    result: Result | None
    published: Published | None
    digits: int
    beats: bool
    published_beats: bool
    best: bool
    published_best: bool
    solved: tuple[int, int] | None = None


@dataclass(frozen=True)
class ReadingTable:
    """One reading of a study; None where it has no such condition.

    columns, rows: by the labels that they share; scaled: whether our runs are of another length.
    """

    reading: Reading
    step: int | None
    scaled: bool
    columns: list[Labels]
    rows: list[tuple[Labels, list[Place | None]]]


def reading_tables(results: StudyResults) -> list[ReadingTable]:
    """One table for each reading, of the rows and columns that have runs."""
    found = (_table(results, reading) for reading in results.study.readings)
    return [table for table in found if table is not None]


def _table(results: StudyResults, reading: Reading) -> ReadingTable | None:
    study = results.study
    run = [r.condition for r in results.results if r.reading == reading]
    if not run:
        return None
    down, across = study.down, study.across
    rows = _distinct(run, down)
    wanted = [_key(c, across) for c in run]
    columns = _distinct([c for c in study.conditions if _key(c, across) in wanted], across)
    places = {(_key(c, down), _key(c, across)): c for c in study.conditions}
    body: list[tuple[Labels, list[Place | None]]] = []
    for row in rows:
        here = [places.get((tuple(row.items()), tuple(column.items()))) for column in columns]
        body.append((row, _row(results, reading, here)))
    return ReadingTable(reading, results.step_of(reading), results.scale != 1, list(columns), body)


def _key(condition: Condition, names: Sequence[str]) -> tuple[tuple[str, str], ...]:
    return tuple((name, condition.labels[name]) for name in names if name in condition.labels)


def _distinct(conditions: Sequence[Condition], names: Sequence[str]) -> list[Labels]:
    return [dict(key) for key in dict.fromkeys(_key(c, names) for c in conditions)]


def _row(
    results: StudyResults, reading: Reading, conditions: Sequence[Condition | None]
) -> list[Place | None]:
    found = [c and results.at(c, reading) for c in conditions]
    known = [c and c.published.get(reading) for c in conditions]
    more = sign(reading)
    top = max((more * r.summary.mean for r in found if r), default=0.0)
    published_top = max((p.mean for p in known if p), default=0.0)
    digits = results.digits(reading)
    places: list[Place | None] = []
    for condition, result, published in zip(conditions, found, known, strict=True):
        if condition is None or (result is None and published is None):
            places.append(None)
            continue
        places.append(
            Place(
                condition,
                result or None,
                published or None,
                digits,
                beats=bool(result) and results.beats_baseline(result),
                published_beats=results.published_beats(condition, reading),
                best=bool(result)
                and not is_above(top, more * result.summary.mean, digits)
                and any(is_above(top, more * r.summary.mean, digits) for r in found if r),
                published_best=bool(published)
                and not is_above(published_top, published.mean, digits),
                solved=results.solved(condition, reading),
            )
        )
    return places
