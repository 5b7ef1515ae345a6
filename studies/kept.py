"""Records of a study beside those that are committed: runs may be done on several machines."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rollin.runs.files import make_directory, write_atomically
from rollin.runs.records import RUNS, Record, read_records, write_records


def keep(records: Sequence[Record], results: Path) -> None:
    """Write records beside those that are there; one of the same condition and seed is replaced."""

    def who(record: Record) -> tuple[Any, ...]:
        return record.family, record.seed, tuple(record.labels.items())

    make_directory(results)
    there = read_records(results) if (results / RUNS).exists() else []
    new = {who(record) for record in records}
    kept = [record for record in there if who(record) not in new]
    for name, data in write_records([*kept, *records]).items():
        write_atomically(results / name, data)
