"""How quantities, conditions and numbers are called on pages, in tables and on charts."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from rollin.analysis.findings import ENOUGH
from rollin.analysis.results import Place, ReadingTable, StudyResults
from rollin.analysis.statistics import Summary
from rollin.errors import one_line
from rollin.runs.engines import metric
from rollin.runs.records import MetricAt
from rollin.runs.spec import digest

_SYMBOLS = {"alpha": "α = ", "delta": "Δ = ", "noise": "noise ", "beta": "β = "}
_PLAIN = ("reward", "setting", "sampling", "env", "method", "options")
"""Labels whose value says enough."""
_METHODS = {"scratch": "scratch", "baseline": "baseline"}
NONE = "–"
SUCCESS = "Success: episodes with at least one successful step."
LONGEST = 200  # letters of a name


def quantity_text(quantity: str, engine: str) -> str:
    """The label that an engine declares for a quantity."""
    return shown(metric(quantity, engine).text)


def shown(name: str) -> str:
    """A name that comes from a file, fit to stand in a table or a figure."""
    whole = one_line(name)
    if len(whole) <= LONGEST:
        return whole
    return f"{whole[:LONGEST]}… {digest(whole)}"  # apart from others that begin alike


def method_text(labels: Mapping[str, str]) -> str:
    """Return a method's name: from scratch, the baseline, or ROLLIN with its β."""
    method = labels["method"]
    if method in _METHODS or "beta" not in labels:
        return _METHODS.get(method, "ROLLIN" if method == "rollin" else method)
    name = {"rollin": "ROLLIN", "fresh": "fresh explorer"}.get(method, method)
    return f"{name} β = {labels['beta']}"


def label_text(labels: Mapping[str, str], names: Iterable[str] | None = None) -> str:
    """Return the text of some of a condition's labels, or of all; method and β are one."""
    chosen = [name for name in (labels if names is None else names) if name in labels]
    words = []
    for name in chosen:
        if name == "method":
            words.append(method_text(labels))
        elif name == "noise" and labels[name] == "0":
            continue
        elif name != "beta" or "method" not in chosen:
            words.append(_named(name, labels[name]))
    return ", ".join(map(shown, words))


def _named(name: str, value: str) -> str:
    """Return the text of a label; a switch is called as it is typed: adaptive, no relabel."""
    if value in ("true", "false") and name not in _PLAIN:
        return name if value == "true" else f"no {name}"
    return _SYMBOLS.get(name, "" if name in _PLAIN else f"{name} = ") + value


def steps_text(step: int) -> str:
    """A number of steps in short: 3M, 500k, 2,400."""
    if step >= 1_000_000 and step % 100_000 == 0:
        return f"{step / 1_000_000:g}M"
    return f"{step // 1000}k" if step >= 1000 and step % 1000 == 0 else f"{step:,}"


def reading_text(of: StudyResults | ReadingTable, reading: MetricAt, step: int | None) -> str:
    """A quantity and where it is read; of shortened runs, their own step."""
    at = "at the end" if step is None else f"at {steps_text(step)} steps"
    return f"{quantity_text(reading.quantity, of.engine)} {at}"


def table_title(table: ReadingTable) -> str:
    """What a table of one reading shows."""
    return reading_text(table, table.reading, table.step)


def published_at(table: ReadingTable) -> str:
    """Where the paper reads it, if the runs are of another length; else empty."""
    step = table.reading.step
    return f"{steps_text(step)} steps" if table.scaled and step is not None else ""


class PlaceText(NamedTuple):
    """A place of a table, as it is printed."""

    published: str
    ours: str
    difference: str
    solved: str


def place_text(place: Place) -> PlaceText:
    """Return the published value, the measured one and their difference."""
    difference = place.result and place.result.difference
    return PlaceText(
        str(place.published) if place.published else NONE,
        summary_text(place.result.summary, place.digits) if place.result else NONE,
        NONE if difference is None else signed(difference, place.digits),
        "" if place.solved is None else solved_text(place.solved),
    )


def solved_text(solved: tuple[int, int]) -> str:
    """How many seeds mastered the last context: what κ does not say."""
    return f"{solved[0]} of {solved[1]} master the last"


def summary_text(summary: Summary, digits: int) -> str:
    """Mean ± standard error; one seed has none."""
    mean, error, n = summary
    return f"{mean:.{digits}f}" + (f" ± {error:.{digits}f}" if n > 1 else "")


def too_few_text(fewest: int) -> str:
    """The sentence about conditions of which one has so few seeds."""
    seeds = "One seed decides nothing" if fewest == 1 else f"{fewest} seeds decide nothing"
    return f"{seeds}: compare at least {ENOUGH} of each condition."


def p_text(p: float) -> str:
    """A p-value."""
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"


def length_text(results: StudyResults) -> str:
    """How long the runs are."""
    low, *_, high = (*results.steps(), results.steps()[-1])
    count = f"{low:,}" if low == high else f"{low:,} – {high:,}"
    return f"{count} {results.step_words}"


def percent(scale: float) -> str:
    """A scale as a percentage."""
    return f"{100 * scale:.3g} %"


def signed(value: float, digits: int) -> str:
    """A difference with its sign; none before a zero."""
    text = f"{value:+.{digits}f}"
    return text[1:] if float(text) == 0 else text.replace("-", "−")


def warnings(results: StudyResults) -> list[str]:
    """Where the runs differ from the study's protocol."""
    notes: list[str] = []
    study = results.study
    whole = "the paper's" if results.of_the_paper else "their full length"
    if results.scale != 1:
        change = "shortened" if results.scale < 1 else "lengthened"
        published = ": published values are of the full length" * results.of_the_paper
        notes.append(f"Training {change} to {percent(results.scale)} of {whole}{published}.")
    sizes = results.seed_counts()
    if sizes != {study.seeds}:
        low, high = min(sizes), max(sizes)
        count = str(low) if low == high else f"{low} to {high}"
        wanted = f"{study.seeds} are planned"
        if results.of_the_paper:
            wanted = f"the paper used {study.seeds}"
        planned = "" if results.own else f"; {wanted}"
        notes.append(f"Seeds per condition: {count}{planned}.")
    if missing := results.missing():
        notes.append(f"{missing} of the {len(study.conditions)} conditions have no runs here.")
    if short := results.short_readings():
        steps = " and ".join(f"{step:,}" for step in short)
        notes.append(f"Some runs end before the reading at {steps} steps.")
    silent: dict[str, list[str]] = {}
    for condition, reading, seeds in results.silent():
        who = (
            f"seed {', '.join(map(str, seeds))} of {label_text(condition.labels) or condition.task}"
        )
        silent.setdefault(who, []).append(reading_text(results, reading, results.step_of(reading)))
    return notes + [f"Not recorded by {who}: {', '.join(what)}." for who, what in silent.items()]
