"""What studies share: committed records, which several machines may add to, and texts of tables."""

import csv
import io
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rollin.runs.files import make_directory, write_atomically
from rollin.runs.records import RUNS, Record, condition_text, read_records, write_records

RESULTS = Path(__file__).parents[1] / "results"
WHO = ("condition", "seed")
NONE = "No records of this study have been committed yet."

Key = tuple[str, str]
"""Condition and seed of a run."""


def key_of(record: Record) -> Key:
    """Condition and seed of a record."""
    return condition_text(record.labels), str(record.seed)


def committed(results: Path) -> list[Record]:
    """The committed records; none if there are none yet."""
    return read_records(results) if (results / RUNS).exists() else []


def newer(records: Iterable[Record], results: Path) -> Iterator[Record]:
    """Records without those of which a longer run of the same seed is there already."""
    steps = {key_of(record): record.step for record in committed(results)}
    for record in records:
        if steps.get(key_of(record), 0) > record.step:
            print(f"Passed over {record.path}: the records have a longer run of its seed")
        else:
            steps[key_of(record)] = record.step
            yield record


def finished(records: Iterable[Record], *labels: str) -> dict[tuple[str, ...], list[Record]]:
    """Finished runs by the values of some labels, seed by seed."""
    found: dict[tuple[str, ...], list[Record]] = defaultdict(list)
    for record in sorted(records, key=lambda record: record.seed):
        if record.finished:
            found[tuple(record.labels[label] for label in labels)].append(record)
    return found


def mastered(records: Sequence[Record]) -> str:
    """How many seeds mastered the last context."""
    return f"{sum(record.completed is not None for record in records)} of {len(records)}"


def minus(text: str) -> str:
    """The text with a minus sign in the place of its first hyphen."""
    return text.replace("-", "−", 1)


def keep(records: Sequence[Record], results: Path) -> None:
    """Write records beside those that are there; one of the same condition and seed is replaced."""

    def who(record: Record) -> tuple[Any, ...]:
        return record.family, record.seed, tuple(record.labels.items())

    make_directory(results)
    new = {who(record) for record in records}
    kept = [record for record in committed(results) if who(record) not in new]
    for name, data in write_records([*kept, *records]).items():
        write_atomically(results / name, data)


def rows_by_run(path: Path) -> dict[Key, list[dict[str, str]]]:
    """Rows of a CSV by condition and seed; empty if there is no such file yet."""
    found: dict[Key, list[dict[str, str]]] = {}
    if path.exists():
        with path.open(newline="") as file:
            for row in csv.DictReader(file):
                found.setdefault((row["condition"], row["seed"]), []).append(row)
    return found


def merge_rows(
    path: Path, columns: Sequence[str], new: Mapping[Key, Sequence[Sequence[Any]]]
) -> None:
    """Replace the rows of some runs in a CSV, and leave those of all others as they are."""
    rows: dict[Key, Sequence[Sequence[Any]]] = {
        key: [[row[column] for column in columns] for row in old]
        for key, old in rows_by_run(path).items()
    }
    rows |= new
    ordered = sorted(rows, key=lambda key: (key[0], int(key[1])))
    lines = [[*key, *row] for key in ordered for row in rows[key]]
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([[*WHO, *columns], *lines])
    make_directory(path.parent)
    write_atomically(path, text.getvalue().encode())
