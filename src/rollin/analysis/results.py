"""Runs beside the paper, cell by cell: what their seeds gave, and what was published."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from rollin.analysis.collect import Collection
from rollin.analysis.group import Matches, match
from rollin.analysis.statistics import Interval, Summary, iqm_interval, summarise
from rollin.errors import RollinError
from rollin.paper.tables import Table, find_table, tables
from rollin.report.records import RunRecord
from rollin.report.words import label_text, percent, reading_text
from rollin.sweeps.published import Published
from rollin.sweeps.study import Condition, Reading


@dataclass(frozen=True, eq=False)
class CellResult:
    """One figure of one condition: ours by seed, and the published one.

    step: where it was read in our runs, which may be shorter than the paper's.
    """

    cell: Condition
    reading: Reading
    step: int
    seeds: tuple[int, ...]
    values: tuple[float, ...]
    published: Published | None

    @cached_property
    def summary(self) -> Summary:
        """Mean ± standard error over seeds."""
        return summarise(self.values)

    @cached_property
    def iqm(self) -> Interval:
        """Interquartile mean with its bootstrap interval."""
        return iqm_interval([self.values])

    @property
    def difference(self) -> float | None:
        """Our mean less the published one."""
        return None if self.published is None else self.summary.mean - self.published.mean


def is_above(ours: float, other: float, digits: int) -> bool:
    """Whether a mean is larger as it is shown: what reads the same is not above."""
    return round(ours, digits) > round(other, digits)


def has_figure(cell: Condition, reading: Reading) -> bool:
    """Whether there is anything to be read."""
    return cell.walks or reading.figure != "kappa"


@dataclass(frozen=True, eq=False)
class TableResults:
    """A table of the paper as far as there are runs of one scale for it."""

    table: Table
    scale: float
    runs: dict[Condition, list[RunRecord]]

    @cached_property
    def results(self) -> list[CellResult]:
        """Every cell that has runs, reading by reading."""
        found = (self._read(c, r) for r in self.table.readings for c in self.table.cells)
        return [result for result in found if result is not None]

    def _read(self, cell: Condition, reading: Reading) -> CellResult | None:
        if not has_figure(cell, reading):
            return None
        runs = self.runs.get(cell, [])
        step = round(reading.step * self.scale)
        values = {run.seed: run.figure(reading.figure, step) for run in runs}
        known = {seed: value for seed, value in values.items() if value is not None}
        if not known:
            return None
        published = cell.published.get(reading)
        return CellResult(cell, reading, step, tuple(known), tuple(known.values()), published)

    @cached_property
    def _by_place(self) -> dict[tuple[Condition, Reading], CellResult]:
        return {(result.cell, result.reading): result for result in self.results}

    def at(self, cell: Condition, reading: Reading) -> CellResult | None:
        """The result of a cell, if it has runs that reach the reading."""
        return self._by_place.get((cell, reading))

    def baseline(self, result: CellResult) -> CellResult | None:
        """What a result is compared with, if that was run."""
        base = self.table.baseline(result.cell)
        return None if base is None else self.at(base, result.reading)

    def beats_baseline(self, result: CellResult) -> bool:
        """Whether our ROLLIN is above our baseline."""
        base = self.baseline(result)
        return (
            result.cell.rolls_in
            and base is not None
            and is_above(result.summary.mean, base.summary.mean, self.digits(result.reading))
        )

    def published_beats(self, cell: Condition, reading: Reading) -> bool:
        """Whether the published ROLLIN is above the published baseline."""
        base = self.table.baseline(cell)
        if base is None or not cell.rolls_in:
            return False
        ours, other = cell.published.get(reading), base.published.get(reading)
        if ours is None or other is None:
            return False
        return is_above(ours.mean, other.mean, self.digits(reading))

    def pairs(self, reading: Reading) -> list[tuple[CellResult, CellResult]]:
        """Every ROLLIN cell with its baseline, where both were run."""
        found = ((r, self.baseline(r)) for r in self.results if r.reading == reading)
        return [(r, base) for r, base in found if base is not None and r.cell.rolls_in]

    def digits(self, reading: Reading) -> int:
        """As many decimals as the paper prints."""
        printed = [p.printed_mean for c in self.table.cells if (p := c.published.get(reading))]
        return max((len(text.partition(".")[2]) for text in printed), default=3)

    def warnings(self) -> list[str]:
        """Where the runs differ from the paper's protocol."""
        notes = []
        table = self.table
        if self.scale != 1:
            change = "shortened" if self.scale < 1 else "lengthened"
            notes.append(
                f"Training {change} to {percent(self.scale)} of the paper's: published values are "
                "of the full length."
            )
        sizes = {len({run.seed for run in runs}) for runs in self.runs.values()}
        if sizes != {table.seeds}:
            low, high = min(sizes), max(sizes)
            count = str(low) if low == high else f"{low} to {high}"
            notes.append(f"Seeds per cell: {count}; the paper used {table.seeds}.")
        missing = len(table.cells) - len(self.runs)
        if missing:
            notes.append(f"{missing} of the table's {len(table.cells)} cells have no runs here.")
        short = sorted({r.step for r in table.readings if self._too_short(r)})
        if short:
            steps = " and ".join(f"{step:,}" for step in short)
            notes.append(f"Some runs end before the reading at {steps} steps.")
        return notes + self._silent()

    def _silent(self) -> list[str]:
        """Seeds of which a reading is missing though their runs are long enough for it."""
        notes: dict[str, list[str]] = {}
        for cell, runs in self.runs.items():
            for reading in self.table.readings:
                result = self.at(cell, reading)
                step = round(reading.step * self.scale)
                told = result.seeds if result else ()
                silent = [r.seed for r in runs if r.steps >= step and r.seed not in told]
                if silent and has_figure(cell, reading):
                    name = label_text(cell.labels, cell.labels)
                    who = f"seed {', '.join(map(str, silent))} of {name}"
                    notes.setdefault(who, []).append(reading_text(reading, self.scale))
        return [f"No figure from {who}: {', '.join(what)}." for who, what in notes.items()]

    def _too_short(self, reading: Reading) -> bool:
        runs = (run for some in self.runs.values() for run in some)
        return self.scale == 1 and any(run.steps < reading.step for run in runs)


def results_of(collection: Collection, table: str | None = None) -> list[TableResults]:
    """Tables that the runs fill, the largest scale first; `table`: that one and no other."""
    matches = match(collection)
    if table is not None:
        found = _by_scale(find_table(table), matches)
        if not found:
            raise RollinError(
                f"{table} has no runs here: leave out --table to see those that there are."
            )
        return found
    named = dict.fromkeys(name for sweep in collection.sweeps for name in sweep.tables)
    own = _fill(matches, [tables()[name] for name in named if name in tables()])
    left = {cell: runs for cell, runs in matches.items() if all(cell not in t.cells for t in own)}
    others = _fill(left, [t for t in tables().values() if t.kind == "table"])
    return [found for one in (*own, *others) for found in _by_scale(one, matches)]


def _by_scale(table: Table, matches: Matches) -> list[TableResults]:
    scales = sorted({s for cell in table.cells for s in matches.get(cell, {})}, reverse=True)
    return [
        TableResults(table, s, {c: matches[c][s] for c in table.cells if s in matches.get(c, {})})
        for s in scales
    ]


def _fill(matches: Matches, candidates: Sequence[Table]) -> list[Table]:
    """Those that together show all of these cells: each shows most of what no other does."""
    left, chosen = list(candidates), []
    shown: set[tuple[Condition, Reading | None]] = set()

    def new(table: Table) -> set[tuple[Condition, Reading | None]]:
        # every table shows the curves of its cells, too: None
        read = (*table.readings, None)
        return {(cell, r) for cell in table.cells if cell in matches for r in read} - shown

    while left:
        best = max(left, key=lambda t: (len(new(t)), -len(t.cells)))
        if not new(best):
            break
        shown |= new(best)
        chosen.append(best)
        left.remove(best)
    return [table for table in candidates if table in chosen]
