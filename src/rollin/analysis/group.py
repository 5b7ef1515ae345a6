"""Which cells of the paper runs belong to; one run for each seed, and of one task only."""

from collections.abc import Sequence
from dataclasses import replace

from rollin.analysis.collect import Collection
from rollin.paper.tables import tables
from rollin.report.records import RunRecord
from rollin.report.words import label_text
from rollin.runs.spec import RunSpec
from rollin.sweeps.study import Condition

Matches = dict[Condition, dict[float, list[RunRecord]]]
"""Runs of each cell by scale."""


def match(collection: Collection) -> Matches:
    """The cells that runs belong to, with their scale; seeds in order.

    A shorter run of a seed that has a longer one is taken out of the collection, and named there.
    """
    kept: Matches = {}
    shorter: dict[int, tuple[RunRecord, RunRecord]] = {}
    for cell, by_scale in _candidates(collection.records).items():
        for scale, runs in by_scale.items():
            alike = _of_one_task(collection, cell, runs)
            longest = _one_per_seed(alike)
            kept.setdefault(cell, {})[scale] = list(longest.values())
            shorter |= {id(r): (r, longest[r.seed]) for r in alike if r is not longest[r.seed]}
    for run, longer in shorter.values():
        collection.drop(run, f"seed {run.seed} counts once, as {longer.path or 'in a runs.csv'}")
    return kept


def _candidates(records: Sequence[RunRecord]) -> Matches:
    cells = dict.fromkeys(cell for table in tables().values() for cell in table.cells)
    conditions: dict[str, list[RunRecord]] = {}
    for record in records:
        alike = RunSpec(record.spec.task, replace(record.spec.config, seed=0))
        conditions.setdefault(alike.hash, []).append(record)
    found: Matches = {}
    for runs in conditions.values():
        for cell in cells:
            scale = cell.scale_of(runs[0].spec) if cell.task == runs[0].spec.task else None
            if scale is not None:
                found.setdefault(cell, {}).setdefault(scale, []).extend(runs)
    return found


def _of_one_task(
    collection: Collection, cell: Condition, runs: Sequence[RunRecord]
) -> Sequence[RunRecord]:
    """The runs of the task that most of them have; others are no seeds of the same condition.

    A run from a CSV, whose task is not known, goes with them.
    """
    counts: dict[str, int] = {}
    for run in runs:
        if run.fingerprint:
            counts[run.fingerprint] = counts.get(run.fingerprint, 0) + 1
    if len(counts) < 2:
        return runs
    main = max(counts, key=lambda fingerprint: counts[fingerprint])
    name = label_text(cell.labels, cell.labels)
    apart = sum(counts.values()) - counts[main]
    note = (
        f"{apart} of the runs of {cell.task}, {name} had another task of the same name, and are "
        "not in the tables."
    )
    if note not in collection.notes:
        collection.notes.append(note)
    return [run for run in runs if run.fingerprint in (main, "")]


def _one_per_seed(runs: Sequence[RunRecord]) -> dict[int, RunRecord]:
    """The longest run of every seed."""
    longest: dict[int, RunRecord] = {}
    for run in sorted(runs, key=lambda r: (r.seed, -r.steps)):
        longest.setdefault(run.seed, run)
    return longest
