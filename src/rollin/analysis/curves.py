"""Quantities against steps: seeds of a condition together, lines of a study panel by panel."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from rollin.analysis.results import StudyResults
from rollin.analysis.statistics import summarise
from rollin.runs.records import Array, Record, Trace
from rollin.sweeps.published import Published
from rollin.sweeps.study import Condition, differing

POINTS = 300  # of a line, at most
BEYOND = 1.05  # of the last step: how far ahead a published value is still shown


@dataclass(frozen=True)
class Line:
    """A condition: its seeds, and what was published of it by step."""

    condition: Condition
    traces: Sequence[Trace]
    published: Mapping[int, Published] = field(default_factory=dict)

    def published_inside(self) -> dict[int, Published]:
        """What was published of steps that all seeds have reached, or nearly so."""
        end = min(trace.steps[-1] for trace in self.traces)
        return {step: value for step, value in self.published.items() if step <= BEYOND * end}


@dataclass(frozen=True)
class Panel:
    """One quantity in one setting; setting: the labels that its lines share.

    every: the labels of all lines of the study, here or on other panels, which all look their own.
    """

    quantity: str
    task: str
    setting: Mapping[str, str]
    lines: list[Line]
    across: tuple[str, ...]
    step_words: str
    every: tuple[Mapping[str, str], ...] = ()

    def labels_of(self, line: Line) -> dict[str, str]:
        """The labels that tell a line from others of its panel."""
        return line_labels(line.condition, self.across)


def panels(results: StudyResults) -> dict[str, list[Panel]]:
    """Panels by quantity: those that the study reads, or that were published of its conditions."""
    study = results.study
    read = [r.quantity for r in study.readings]
    read = read or [r.quantity for condition in results.runs for r in condition.published]
    settings: dict[tuple[str, ...], list[Condition]] = {}
    names = _names(results)
    for condition in results.runs:
        key = (condition.task, *(condition.labels.get(name, "") for name in names))
        settings.setdefault(key, []).append(condition)
    told = [tuple(line_labels(c, study.across).items()) for c in results.runs]
    every = tuple(dict(labels) for labels in dict.fromkeys(told))
    found: dict[str, list[Panel]] = {}
    for quantity in dict.fromkeys(read):
        for conditions in settings.values():
            lines = _lines(results, quantity, conditions)
            if lines:
                first = conditions[0]
                shared = {n: first.labels[n] for n in names if n in first.labels}
                words = results.step_words
                panel = Panel(quantity, first.task, shared, lines, study.across, words, every)
                found.setdefault(quantity, []).append(panel)
    return found


def line_labels(condition: Condition, across: Sequence[str]) -> dict[str, str]:
    """The labels that tell a condition's line from others of its panel."""
    return {name: condition.labels[name] for name in across if name in condition.labels}


def _names(results: StudyResults) -> list[str]:
    """Labels that a panel is called by: those that lay out the table, and those that differ."""
    conditions = list(results.runs)
    across = results.study.across
    names = dict.fromkeys(n for c in conditions for n in c.labels if n not in across)
    shown = (*differing(conditions), *results.study.rows)
    return [name for name in names if name in shown] or list(names)


def _lines(results: StudyResults, quantity: str, conditions: Sequence[Condition]) -> list[Line]:
    lines = []
    for condition in conditions:
        traces = traces_of(results.runs[condition], quantity)
        known = {
            reading.step: value
            for reading, value in condition.published.items()
            if reading.quantity == quantity and reading.step is not None
        }
        if traces:
            lines.append(Line(condition, traces, known))
    return lines


def traces_of(records: Sequence[Record], quantity: str) -> list[Trace]:
    """A quantity of some runs, as far as they tell it."""
    return [trace for run in records if (trace := run.trace(quantity)) is not None]


def over_seeds(traces: Sequence[Trace]) -> tuple[Array, Array, Array]:
    """Steps, mean and standard error, up to where the slowest seed stands.

    Seeds may have been logged at other steps: each counts with its last value before a step.
    """
    begin = max(trace.steps[0] for trace in traces)
    end = min(trace.steps[-1] for trace in traces)
    steps = np.unique(np.concatenate([trace.steps for trace in traces]))
    steps = few_enough(steps[(steps >= begin) & (steps <= end)])
    values = [held(trace, steps) for trace in traces]
    found = [summarise(column) for column in zip(*values, strict=True)]
    return steps, np.array([s.mean for s in found]), np.array([s.error for s in found])


def held(trace: Trace, steps: Array) -> Array:
    """The last value before each step."""
    return trace.values[np.searchsorted(trace.steps, steps, "right") - 1]


def few_enough(steps: Array) -> Array:
    """No more steps than a picture can show, the first and the last among them."""
    if len(steps) <= POINTS:
        return steps
    return steps[np.unique(np.linspace(0, len(steps) - 1, POINTS).round().astype(int))]
