"""What a page shows of each table: grids, findings, a row per condition, learning curves."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from rollin.analysis.findings import Arrivals, Improvement, agreement, arrivals, improvements
from rollin.analysis.results import CellResult, TableResults
from rollin.analysis.tables import ReadingTable, grids
from rollin.report.exports import file_name
from rollin.report.panels import Panel, panels
from rollin.report.strips import common_axis, strip
from rollin.report.style import themed, to_svg
from rollin.report.words import (
    method_text,
    percent,
    reading_text,
    signed,
    summary_text,
    trace_text,
)
from rollin.sweeps.study import METHOD, differing

Placed = tuple[str, int]


@dataclass(frozen=True)
class Row:
    """One condition and reading of the long table, as it is printed and as it is sorted.

    Words go with their place in the paper's order: 1/24 stands before 1/18, 500k before 1M.
    """

    result: CellResult
    reading: Placed
    labels: list[Placed]
    method: Placed
    published: str
    ours: str
    difference: str
    iqm: str
    strip: Markup
    beats: bool


@dataclass(frozen=True)
class Key:
    """An entry of a legend."""

    label: str
    colour: str
    dashed: bool


@dataclass(frozen=True)
class Curves:
    """Panels of one quantity, drawn."""

    title: str
    panels: list[tuple[str, Markup]]


@dataclass(frozen=True)
class CurveBlock:
    """Learning curves that one legend belongs to."""

    keys: list[Key]
    quantities: list[Curves]
    published: bool


@dataclass(frozen=True)
class Section:
    """A table of the paper with our runs of one scale."""

    anchor: str
    title: str
    printed: str
    results: TableResults
    grids: list[ReadingTable]
    improvements: list[tuple[str, list[Improvement]]]
    few: bool
    arrivals: list[tuple[str, list[Arrivals]]]
    sentences: list[str]
    label_names: list[str]
    rows: list[Row]
    curves: CurveBlock


def section(results: TableResults) -> Section:
    """Everything of one table."""
    table = results.table
    title = table.title
    if results.scale != 1:
        title += f" ({percent(results.scale)} of the paper's length)"
    read = [(reading, reading_text(reading, results.scale)) for reading in table.readings]
    better = [(text, improvements(results, reading)) for reading, text in read]
    came = [(text, arrivals(results, reading)) for reading, text in read]
    said = [agreement(results, reading) for reading, _ in read]
    names = _label_names(results)
    return Section(
        file_name(results),
        title,
        table.printed,
        results,
        grids(results),
        [(text, some) for text, some in better if some],
        any(found.interval is None for _, some in better for found in some),
        [(text, some) for text, some in came if some],
        [sentence for sentence in said if sentence],
        names,
        _rows(results, names),
        curve_block(panels(results), file_name(results)),
    )


def _label_names(results: TableResults) -> list[str]:
    """Labels in which the settings differ."""
    return [name for name in differing(list(results.runs)) if name not in METHOD]


def _rows(results: TableResults, names: Sequence[str]) -> list[Row]:
    cells = results.table.cells
    orders = {name: _order(cell.labels.get(name, "") for cell in cells) for name in names}
    methods = _order(method_text(cell.labels) for cell in cells)
    rows = []
    for place, reading in enumerate(results.table.readings):
        some = [r for r in results.results if r.reading == reading]
        if not some:
            continue
        axis, digits = common_axis(some), results.digits(reading)
        text = reading_text(reading, results.scale)
        for r in some:
            labels, method = r.cell.labels, method_text(r.cell.labels)
            value, low, high = (f"{v:.{digits}f}" for v in r.iqm)
            rows.append(
                Row(
                    r,
                    (text, place),
                    [(word := labels.get(name, ""), orders[name][word]) for name in names],
                    method=(method, methods[method]),
                    published=str(r.published) if r.published else "–",
                    ours=summary_text(r.summary, digits),
                    difference="–" if r.difference is None else signed(r.difference, digits),
                    iqm=f"{value} [{low}, {high}]" if len(r.values) > 1 else value,
                    strip=strip(r, axis),
                    beats=results.beats_baseline(r),
                )
            )
    return rows


def _order(texts: Iterable[str]) -> dict[str, int]:
    """The place of each among what a table has, in the paper's order."""
    return {text: place for place, text in enumerate(dict.fromkeys(texts))}


def curve_block(found: Mapping[str, Sequence[Panel]], anchor: str) -> CurveBlock:
    """Every panel as a drawing of its own."""
    quantities = []
    for name, some in found.items():
        drawn = []
        for number, panel in enumerate(some):
            svg = to_svg(panel.figure(), f"{anchor}-{name}-{number}-", tight=False)
            drawn.append((f"{trace_text(name)}, {panel.title}", Markup(svg)))
        quantities.append(Curves(trace_text(name), drawn))
    every = [panel for some in found.values() for panel in some]
    keys: dict[str, Key] = {}
    for panel in sorted(every, key=lambda p: -len(p.lines)):  # the fullest has the whole order
        for line in panel.lines:
            dashed = line.look.get("linestyle", "-") != "-"
            keys.setdefault(line.label, Key(line.label, themed(line.look["color"]), dashed))
    known = any(line.published_inside() for panel in every for line in panel.lines)
    return CurveBlock(list(keys.values()), quantities, known)
