"""What a page shows of each study: its finding in a sentence, grids, rows, learning curves."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from rollin.analysis.findings import (
    ENOUGH,
    NEAR,
    Improvement,
    agreement,
    improvements,
    reached_final,
    steps_to_mastery,
)
from rollin.analysis.results import Panel, Result, StudyResults, is_above, panels, reading_tables
from rollin.analysis.statistics import improvement_interval
from rollin.report.charts import line_id, line_names, looks_by_name, panel_figure, panel_title
from rollin.report.exports import file_name
from rollin.report.labels import (
    NONE,
    label_text,
    length_text,
    percent,
    quantity_text,
    reading_text,
    signed,
    summary_text,
    too_few_text,
)
from rollin.report.style import themed, to_svg
from rollin.runs.engines import engine
from rollin.runs.records import MetricAt
from rollin.sweeps.condition import differing
from rollin.sweeps.study import METHOD

FEW = 3  # conditions that a sentence names one by one


def verdict(results: StudyResults) -> str:
    """ROLLIN against the baseline if both were run, else the best condition.

    Of a comparison, whether its first condition helps.
    """
    if results.study.kind == "comparison":
        from rollin.analysis.comparison import comparison
        from rollin.report.comparison import comparison_text

        if (compared := comparison(results)) is not None:
            return comparison_text(compared, results)
    reading = _first(results)
    if reading is None:
        if not any(run.finished for runs in results.runs.values() for run in runs):
            return "No run is finished yet."
        return "These runs recorded nothing that the study reads."
    pairs = results.pairs(reading)
    if len(pairs) == 1:
        return _one_pair(results, reading, *pairs[0])
    if pairs:
        return _many_pairs(results, reading)
    return _alone(results, reading)


def _first(results: StudyResults) -> MetricAt | None:
    """The latest reading of κ; without a curriculum the first reading that runs have."""
    read = {r.reading for r in results.results}
    known = [reading for reading in results.study.readings if reading in read]
    kappas = [reading for reading in known if reading.quantity == "kappa"]
    latest = max(kappas, key=lambda r: math.inf if r.step is None else r.step, default=None)
    return latest or next(iter(known), None)


def _one_pair(results: StudyResults, reading: MetricAt, ours: Result, base: Result) -> str:
    apart = differing([ours.condition, base.condition])
    name = label_text(ours.condition.labels, apart) or "all runs"
    own = label_text(base.condition.labels, apart)
    other = "the baseline" if own in ("", "baseline") else f"the baseline ({own})"
    digits = results.digits(reading)
    (found,) = improvements(results, reading)
    return (
        f"{name} {_compared(found, results.sign(reading))} {other}: "
        f"{_quantity(results, reading)} {summary_text(ours.summary, digits)} against "
        f"{summary_text(base.summary, digits)}. {_chance(found, [ours, base])}"
        f"{_mastered(results, reading, {name: [ours], other: [base]})}"
    )


def _many_pairs(results: StudyResults, reading: MetricAt) -> str:
    found = improvements(results, reading)[0]
    pairs = results.pairs(reading)
    bases = list({id(base): base for _, base in pairs}.values())
    groups = {"compared conditions": [ours for ours, _ in pairs], "baseline": bases}
    level = found.pairs - found.ahead - found.behind
    ties = f", {level} tied" if level else ""
    return (
        f"In {_quantity(results, reading)}, {found.ahead} of {found.pairs} conditions have a "
        f"better mean than their baseline and {found.behind} a worse one{ties}. "
        f"{_chance(found, [r for pair in pairs for r in pair])}"
        f"{_mastered(results, reading, groups)}"
    )


def _alone(results: StudyResults, reading: MetricAt) -> str:
    """Conditions without a baseline: the best one, a tie, or what the seeds leave open."""
    more = results.sign(reading)
    digits = results.digits(reading)
    some = sorted(
        (r for r in results.results if r.reading == reading),
        key=lambda result: -more * result.summary.mean,
    )
    best = more * some[0].summary.mean
    top = [r for r in some if not is_above(best, more * r.summary.mean, digits)]
    quantity = _quantity(results, reading)
    number = summary_text(some[0].summary, digits)
    if len(some) == 1:
        mastered = _mastered(results, reading, {_name(results, some[0]): some})
        alone = " There is no baseline (β = 0) beside it to compare with."
        return f"{quantity} = {number} ({_seeds(some)}).{mastered}{alone}"
    names = {_name(results, r): [r] for r in top}
    if len(top) == 1:
        second = some[1]
        text = (
            f"{_name(results, top[0])} has the {'largest' if more > 0 else 'smallest'} mean "
            f"{quantity}: {number}; {_name(results, second)} follows with "
            f"{summary_text(second.summary, digits)} ({_seeds(some)}). "
            f"{_open_question(top[0], second, more)}"
        )
        names[_name(results, second)] = [second]
    else:
        who = f"All {len(some)} conditions" if len(top) == len(some) > FEW else _joined(names)
        value = f"{some[0].summary.mean:.{digits}f}"
        ahead = "" if len(top) == len(some) else ", the best of all conditions"
        text = f"{who} tie: {quantity} = {value}{ahead} ({_seeds(some)}).{_too_few(top)}"
    return f"{text.rstrip()}{_mastered(results, reading, names if len(names) <= FEW else {})}"


def _joined(names: Iterable[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def _seeds(some: Sequence[Result]) -> str:
    """How many seeds each of some conditions has."""
    low = min(r.summary.n for r in some)
    high = max(r.summary.n for r in some)
    if high == 1:
        return "1 seed" if len(some) == 1 else "1 seed each"
    count = str(low) if low == high else f"{low} to {high}"
    return f"{count} seeds" if len(some) == 1 else f"{count} seeds each"


def _open_question(first: Result, second: Result, more: int) -> str:
    """What the seeds of two conditions leave open; empty if the interval excludes a tie."""
    if few := _too_few([first, second]):
        return few
    ours, other = ([round(more * v, 3) for v in side.values] for side in (first, second))
    if improvement_interval([ours], [other]).low > 0.5:
        return ""
    return " The difference is within the noise of the seeds."


def _too_few(some: Sequence[Result]) -> str:
    """A sentence if some conditions have too few seeds for any comparison."""
    fewest = min(result.summary.n for result in some)
    return "" if fewest >= ENOUGH else f" {too_few_text(fewest)}"


def _quantity(results: StudyResults, reading: MetricAt) -> str:
    """Return the name of a quantity, and where it is read if that is not the end."""
    step = results.step_of(reading)
    return (
        quantity_text(reading.quantity, results.engine)
        if step is None
        else reading_text(results, reading, step)
    )


def _compared(found: Improvement, more: int) -> str:
    if found.interval is not None and found.interval.low > 0.5:
        return "does better than"
    if found.interval is not None and found.interval.high < 0.5:
        return "does worse than"
    if found.ahead or found.behind:
        larger = bool(found.ahead) == (more > 0)
        return f"has a {'larger' if larger else 'smaller'} mean than"
    return "ties with"


def _chance(found: Improvement, some: Sequence[Result]) -> str:
    """The chance that a seed does better, with its interval, and what that leaves open."""
    if found.interval is None:
        return _too_few(some).strip()
    text = f"A seed does better than one of the baseline with probability {found.chance:.2f}"
    _, low, high = found.interval
    chance = "" if low > 0.5 or high < 0.5 else ", which chance alone may give"
    return f"{text} (95 % interval {low:.2f} – {high:.2f}){chance}."


def _mastered(results: StudyResults, reading: MetricAt, groups: dict[str, list[Result]]) -> str:
    """How many runs mastered the final context, by group; empty without a curriculum."""
    found = []
    for name, some in groups.items():
        counts = [results.solved(result.condition, reading) for result in some]
        known = [count for count in counts if count is not None]
        if known:
            found.append((name, *map(sum, zip(*known, strict=True))))
    if not found:
        return ""
    if not any(done for _, done, _ in found):
        return " No run mastered the final context."
    if len(found) == 1:
        _, done, n = found[0]
        return f" {done} of {n} {'run' if n == 1 else 'runs'} mastered the final context."
    parts = ", ".join(f"{done} of {n} with {name}" for name, done, n in found)
    return f" Runs that mastered the final context: {parts}."


def _name(results: StudyResults, result: Result) -> str:
    labels = result.condition.labels
    return label_text(labels, results.study.across) or label_text(labels) or "all runs"


# ------------------------------------------------------------------ grids, rows and curves


Placed = tuple[str, int]
BESIDE = 2  # panels that share the width of a screen
WIDTH = 116  # of the drawing of a condition's seeds
HEIGHT = 20
MARGIN = 5


@dataclass(frozen=True)
class Row:
    """One condition and reading of the long table, as it is printed and as it is sorted.

    Words have their place in the paper's order: 1/24 stands before 1/18, 500k before 1M.
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


def section(results: StudyResults) -> dict[str, Any]:
    """Everything that the template shows of one study, by the names that it uses."""
    study = results.study
    title = study.heading
    if results.scale != 1:
        whole = "the paper's" if results.of_the_paper else "the full"
        title += f" ({percent(results.scale)} of {whole} length)"
    readings = {reading_text(results, r, results.step_of(r)): r for r in study.readings}
    better = {text: improvements(results, reading) for text, reading in readings.items()}
    reached = {text: reached_final(results, reading) for text, reading in readings.items()}
    near = [agreement(results, reading) for reading in readings.values()]
    names = [n for n in differing(list(results.runs)) if n not in study.across]
    return {
        "anchor": file_name(results),
        "title": title,
        "printed": study.printed or length_text(results),
        "results": results,
        "tables": reading_tables(results),
        "improvements": {text: some for text, some in better.items() if some},
        "few": any(found.interval is None for some in better.values() for found in some),
        "reached": {text: some for text, some in reached.items() if some},
        "sentences": [
            f"κ is within {NEAR:g} of the published mean in {found[0]} of {found[1]} conditions."
            for found in near
            if found is not None
        ],
        "verdict": verdict(results),
        "mastery": _mastery(results),
        "quantities": _meanings(results),
        "label_names": names,
        "method": "method" if set(study.across) <= set(METHOD) else "condition",
        "rows": _rows(results, names),
        "curves": curve_block(panels(results), file_name(results)),
    }


def _mastery(results: StudyResults) -> list[tuple[str, list[str]]]:
    """A row for each condition: the median of the steps, and how many seeds it is of."""
    rows = []
    for found in steps_to_mastery(results):
        cells = [
            NONE if share.steps is None else f"{share.steps:,.0f} ({share.seeds} of {found.n})"
            for share in found.shares
        ]
        rows.append((label_text(found.condition.labels) or "all runs", cells))
    return rows if any(cell != NONE for _, cells in rows for cell in cells) else []


def _meanings(results: StudyResults) -> list[tuple[str, str]]:
    """What the quantities are, where a name is not enough: by the engine of the runs."""
    meanings = engine(results.engine).meanings
    names = dict.fromkeys(reading.quantity for reading in results.study.readings)
    return [
        (quantity_text(name, results.engine), meanings[name]) for name in names if name in meanings
    ]


def _rows(results: StudyResults, names: Sequence[str]) -> list[Row]:
    """Every condition and reading; names: labels in which the settings differ."""
    conditions = results.study.conditions
    across = results.study.across
    orders = {name: _order(c.labels.get(name, "") for c in conditions) for name in names}
    methods = _order(label_text(c.labels, across) for c in conditions)
    rows = []
    for place, reading in enumerate(results.study.readings):
        some = [r for r in results.results if r.reading == reading]
        if not some:
            continue
        axis = common_axis(some)
        digits = results.digits(reading)
        text = reading_text(results, reading, results.step_of(reading))
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
    """The place of each text among all, in order of appearance."""
    return {text: place for place, text in enumerate(dict.fromkeys(texts))}


def curve_block(found: Mapping[str, Sequence[Panel]], anchor: str) -> dict[str, Any]:
    """Learning curves under one legend: every panel as a drawing of its own."""
    every = [panel for some in found.values() for panel in some]
    looks = looks_by_name(every)
    most = max(map(len, found.values()), default=0)
    wide = max(most, len(found) if most == 1 else 0) <= BESIDE
    quantities = []
    for number, (quantity, some) in enumerate(found.items()):
        label = quantity_text(quantity, some[0].engine)
        drawn = []
        for place, panel in enumerate(some):
            figure = panel_figure(panel, looks, wide=wide)
            svg = to_svg(figure, f"{anchor}-{number}-{place}-", tight=False)
            drawn.append((f"{label}, {panel_title(panel)}", Markup(svg)))
        quantities.append({"title": label, "panels": drawn})
    drawn_names = {name for panel in every for name in line_names(panel)}
    legend = [
        {
            "label": name,
            "line": line_id(name),
            "colour": themed(look["color"]),
            "dashed": look["linestyle"] != "-",
        }
        for name, look in looks.items()
        if name in drawn_names
    ]
    known = any(line.published_inside() for panel in every for line in panel.lines)
    return {"legend": legend, "quantities": quantities, "published": known}


def common_axis(results: Sequence[Result]) -> tuple[float, float]:
    """The ends of the axis of some conditions' seeds and published means: 0 and 1 for κ."""
    values = [value for r in results for value in r.values]
    values += [r.published.mean for r in results if r.published]
    low = min(0.0, *values)
    high = 1.0 if results[0].reading.quantity == "kappa" else max(values)
    return low, high if high > low else low + 1.0


def strip(result: Result, axis: tuple[float, float]) -> Markup:
    """Seeds as dots on an axis, with the published mean, and the same as text."""
    low, high = axis

    def x(value: float) -> str:
        return f"{MARGIN + (WIDTH - 2 * MARGIN) * (value - low) / (high - low):.1f}"

    middle = HEIGHT / 2
    dots = Markup("").join(
        Markup('<circle cx="{}" cy="{}" r="3"/>').format(x(value), middle)
        for value in result.values
    )
    tick = Markup("")
    words = "seeds: " + ", ".join(f"{value:.4g}" for value in result.values)
    if result.published:
        at = x(result.published.mean)
        tick = Markup('<path class="known" d="M{} 2V{}"/>').format(at, HEIGHT - 2)
        words += f"; published {result.published}"
    return Markup(
        '<svg class="strip" viewBox="0 0 {w} {h}" width="{w}" height="{h}" role="img" '
        'aria-label="{words}"><title>{words}</title><path class="axis" d="M{m} {y}H{end}"/>'
        "{dots}{tick}</svg>"
    ).format(w=WIDTH, h=HEIGHT, words=words, m=MARGIN, y=middle, end=WIDTH - MARGIN,
             dots=dots, tick=tick)  # fmt: skip
