"""What a page shows of each study: grids, findings, a row per condition, learning curves."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from rollin.analysis.curves import Panel, panels
from rollin.analysis.findings import Arrivals, Improvement, agreement, arrivals, improvements
from rollin.analysis.mastery import mastery
from rollin.analysis.results import Result, StudyResults
from rollin.analysis.tables import ReadingTable, reading_tables
from rollin.report.charts import line_id, line_names, looks_by_name, panel_figure, panel_title
from rollin.report.exports import file_name
from rollin.report.strips import common_axis, strip
from rollin.report.style import themed, to_svg
from rollin.report.verdict import verdict
from rollin.report.words import (
    NONE,
    agreement_text,
    label_text,
    length_text,
    method_heading,
    percent,
    quantity_text,
    reading_text,
    signed,
    summary_text,
)
from rollin.runs.engines import engine
from rollin.sweeps.study import differing

Placed = tuple[str, int]
BESIDE = 2  # panels that share the width of a screen


@dataclass(frozen=True)
class Row:
    """One condition and reading of the long table, as it is printed and as it is sorted.

    Words go with their place in the paper's order: 1/24 stands before 1/18, 500k before 1M.
    """

    result: Result
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
    line: str
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
    """A study with our runs of one scale."""

    anchor: str
    title: str
    printed: str
    results: StudyResults
    tables: list[ReadingTable]
    improvements: list[tuple[str, list[Improvement]]]
    few: bool
    arrivals: list[tuple[str, list[Arrivals]]]
    sentences: list[str]
    verdict: str
    mastery: list[tuple[str, list[str]]]
    quantities: list[tuple[str, str]]
    label_names: list[str]
    method: str
    rows: list[Row]
    curves: CurveBlock


def section(results: StudyResults) -> Section:
    """Everything of one study."""
    study = results.study
    title = study.heading
    if results.scale != 1:
        whole = "the paper's" if results.of_the_paper else "the full"
        title += f" ({percent(results.scale)} of {whole} length)"
    read = [(r, reading_text(r, results.step_of(r))) for r in study.readings]
    better = [(text, improvements(results, reading)) for reading, text in read]
    came = [(text, arrivals(results, reading)) for reading, text in read]
    near = (agreement(results, reading) for reading, _ in read)
    names = _label_names(results)
    return Section(
        file_name(results),
        title,
        study.printed or length_text(results),
        results,
        reading_tables(results),
        [(text, some) for text, some in better if some],
        any(found.interval is None for _, some in better for found in some),
        [(text, some) for text, some in came if some],
        [agreement_text(found) for found in near if found is not None],
        verdict(results),
        _mastery(results),
        _meanings(results),
        names,
        method_heading(results),
        _rows(results, names),
        curve_block(panels(results), file_name(results)),
    )


def _mastery(results: StudyResults) -> list[tuple[str, list[str]]]:
    """A row for each condition: the median of the steps, and how many seeds it is of."""
    rows = []
    for found in mastery(results):
        cells = [
            NONE if a.steps is None else f"{a.steps:,.0f} ({a.seeds} of {found.n})"
            for a in found.arrivals
        ]
        rows.append((label_text(found.condition.labels) or "all runs", cells))
    return rows if any(cell != NONE for _, cells in rows for cell in cells) else []


def _meanings(results: StudyResults) -> list[tuple[str, str]]:
    """What the quantities are, where a name alone does not tell: by the engine of the runs."""
    runs = next(iter(results.runs.values()))
    told = engine(runs[0].engine).meanings
    names = dict.fromkeys(reading.quantity for reading in results.study.readings)
    return [(quantity_text(name), told[name]) for name in names if name in told]


def _label_names(results: StudyResults) -> list[str]:
    """Labels in which the settings differ."""
    return [n for n in differing(list(results.runs)) if n not in results.study.across]


def _rows(results: StudyResults, names: Sequence[str]) -> list[Row]:
    conditions, across = results.study.conditions, results.study.across
    orders = {name: _order(c.labels.get(name, "") for c in conditions) for name in names}
    methods = _order(label_text(c.labels, across) for c in conditions)
    rows = []
    for place, reading in enumerate(results.study.readings):
        some = [r for r in results.results if r.reading == reading]
        if not some:
            continue
        axis, digits = common_axis(some), results.digits(reading)
        text = reading_text(reading, results.step_of(reading))
        for r in some:
            labels = r.condition.labels
            method = label_text(labels, across)
            value, low, high = (f"{v:.{digits}f}" for v in r.iqm)
            rows.append(
                Row(
                    r,
                    (text, place),
                    [(word := labels.get(name, ""), orders[name][word]) for name in names],
                    method=(method or "all runs", methods[method]),
                    published=str(r.published) if r.published else NONE,
                    ours=summary_text(r.summary, digits),
                    difference=NONE if r.difference is None else signed(r.difference, digits),
                    iqm=f"{value} [{low}, {high}]" if len(r.values) > 1 else NONE,
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
    every = [panel for some in found.values() for panel in some]
    looks = looks_by_name(every)
    quantities = []
    most = max(map(len, found.values()), default=0)
    wide = max(most, len(found) if most == 1 else 0) <= BESIDE
    for number, (quantity, some) in enumerate(found.items()):
        drawn = []
        for place, panel in enumerate(some):
            figure = panel_figure(panel, looks, wide=wide)
            svg = to_svg(figure, f"{anchor}-{number}-{place}-", tight=False)
            drawn.append((f"{quantity_text(quantity)}, {panel_title(panel)}", Markup(svg)))
        quantities.append(Curves(quantity_text(quantity), drawn))
    drawn_names = {name for panel in every for name in line_names(panel)}
    keys = [
        Key(name, line_id(name), themed(look["color"]), look["linestyle"] != "-")
        for name, look in looks.items()
        if name in drawn_names
    ]
    known = any(line.published_inside() for panel in every for line in panel.lines)
    return CurveBlock(keys, quantities, known)
