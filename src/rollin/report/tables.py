"""Tables of a report: runs by configuration, and the paper's four-room tables beside ours."""

import csv
import io
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rollin.paper import four_rooms
from rollin.paper.cells import Cell, Reading
from rollin.paper.published import Published
from rollin.report.collect import RunRecord
from rollin.report.statistics import Summary, outcomes, summarise
from rollin.runs.files import write_atomically
from rollin.runs.spec import TabularConfig

HIDDEN = ("seed", "log_every")  # options that do not tell one group of runs from another


@dataclass(frozen=True)
class Group:
    """Runs that differ only in their seed."""

    label: str
    records: list[RunRecord]
    progress: Summary
    final_return: Summary
    infinite: Summary
    outcomes: str

    @property
    def beta(self) -> float:
        """Mixing ratio of the group."""
        return self.records[0].config.beta


def group_runs(records: list[RunRecord]) -> list[Group]:
    """Groups in order of appearance, labelled by the options in which they differ."""
    groups: dict[str, list[RunRecord]] = {}
    for record in records:
        groups.setdefault(str(_options(record)), []).append(record)
    members = list(groups.values())
    options = [_options(runs[0]) for runs in members]
    varying = [name for name in options[0] if len({str(o[name]) for o in options}) > 1]
    shown = varying or ["reward", "alpha", "beta"]
    return [
        make_group(", ".join(f"{name} {o[name]}" for name in shown), runs)
        for o, runs in zip(options, members, strict=True)
    ]


def _options(record: RunRecord) -> dict[str, Any]:
    values = {"task": record.spec.task, **asdict(record.config)}
    return {name: value for name, value in values.items() if name not in HIDDEN}


def make_group(label: str, records: list[RunRecord]) -> Group:
    """Statistics of one group."""
    return Group(
        label,
        records,
        summarise([r.figures["kappa"] for r in records]),
        summarise([r.figures["final_return"] for r in records]),
        summarise([r.figures["final_return_infinite"] for r in records]),
        outcomes(r.k for r in records),
    )


@dataclass(frozen=True)
class PaperCell:
    """One cell of the paper's tables with our runs of it."""

    cell: Cell
    progress: Published
    final_return: Published
    ours: Group

    @property
    def is_baseline(self) -> bool:
        """Whether this is the column without roll-in."""
        return self.cell.is_baseline


def is_above(ours: float, other: float) -> bool:
    """Whether a mean is larger by more than the three digits that the tables show."""
    return ours > other + 5e-4


@dataclass(frozen=True)
class PaperTable:
    """The four-room tables as far as there are runs for them, row by row."""

    rows: dict[tuple[str, float], list[PaperCell]]
    steps: int
    seeds: tuple[int, int]

    def betas(self) -> list[float]:
        """The columns that have runs."""
        return sorted({c.ours.beta for row in self.rows.values() for c in row})

    def warnings(self) -> list[str]:
        """Where the runs differ from the paper's protocol."""
        notes = []
        if self.steps != four_rooms.STEPS:
            notes.append(
                f"These runs took {self.steps:,} gradient steps; the paper's tables are read at "
                f"{four_rooms.STEPS:,}."
            )
        low, high = self.seeds
        if low != four_rooms.SEEDS or high != four_rooms.SEEDS:
            count = str(low) if low == high else f"{low} to {high}"
            notes.append(f"Seeds per cell: {count}; the paper used {four_rooms.SEEDS}.")
        missing = len(four_rooms.cells()) - sum(len(row) for row in self.rows.values())
        if missing:
            notes.append(
                f"{missing} of the paper's {len(four_rooms.cells())} cells have no runs here."
            )
        return notes

    def baseline(self, cell: PaperCell) -> PaperCell | None:
        """The cell without roll-in of the same row."""
        row = next(row for row in self.rows.values() if cell in row)
        return next((c for c in row if c.is_baseline), None)

    def beats_baseline(self, cell: PaperCell, quantity: str) -> bool:
        """Whether our mean `progress` or `final_return` here is above our baseline's."""
        base = self.baseline(cell)
        return base is not None and is_above(
            getattr(cell.ours, quantity).mean, getattr(base.ours, quantity).mean
        )


def paper_table(records: list[RunRecord]) -> PaperTable | None:
    """The paper's tables, if the runs are cells of it (one number of steps, default options)."""
    steps = {r.config.steps for r in records}
    if len(steps) != 1 or not all(_is_default(r) for r in records):
        return None
    known = {cell.name: cell for cell in four_rooms.cells()}
    rows: dict[tuple[str, float], list[PaperCell]] = {}
    sizes = []
    by_cell: dict[str, list[RunRecord]] = {}
    for record in records:
        name = next((c.name for c in known.values() if c.scale_of(record.spec)), None)
        if name is None:
            return None
        by_cell.setdefault(name, []).append(record)
    for name, cell in known.items():
        if name in by_cell:
            runs = sorted(by_cell[name], key=lambda r: r.config.seed)
            progress, final_return = (
                cell.published[Reading(figure, four_rooms.STEPS)]
                for figure in ("kappa", "final_return")
            )
            group = make_group(name, runs)
            rows.setdefault((runs[0].config.reward, runs[0].config.alpha), []).append(
                PaperCell(cell, progress, final_return, group)
            )
            sizes.append(len(runs))
    return PaperTable(rows, steps.pop(), (min(sizes), max(sizes)))


def _is_default(record: RunRecord) -> bool:
    config = record.config
    plain = TabularConfig(
        reward=config.reward,
        alpha=config.alpha,
        beta=config.beta,
        seed=config.seed,
        steps=config.steps,
        log_every=config.log_every,
    )
    return record.spec.task == "four-rooms" and config == plain


def write_table_csv(path: Path, table: PaperTable) -> None:
    """Published and our figures of every cell."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(
        ["reward", "alpha", "beta", "seeds", "published_kappa", "published_kappa_error", "kappa",
         "kappa_error", "k_per_seed", "published_return", "published_return_error", "return",
         "return_error", "return_infinite"]
    )  # fmt: skip
    for row in table.rows.values():
        for c in row:
            ours = c.ours
            writer.writerow(
                [ours.records[0].config.reward, ours.records[0].config.alpha, ours.beta,
                 ours.progress.n,
                 c.progress.printed_mean, c.progress.printed_error,
                 f"{ours.progress.mean:.4f}", f"{ours.progress.error:.4f}",
                 " ".join(str(r.k) for r in ours.records),
                 c.final_return.printed_mean, c.final_return.printed_error,
                 f"{ours.final_return.mean:.4f}", f"{ours.final_return.error:.4f}",
                 f"{ours.infinite.mean:.4f}"]
            )  # fmt: skip
    write_atomically(path, out.getvalue().encode())
