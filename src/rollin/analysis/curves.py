"""Quantities against steps: seeds of a condition together, lines of a study panel by panel."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rollin.analysis.results import StudyResults
from rollin.analysis.statistics import summarise
from rollin.runs.records import Array, Record, Trace
from rollin.sweeps.condition import Condition, Published, differing

POINTS = 300  # of a line, at most
BEYOND = 1.05  # of the last step: how far ahead a published value is still shown


@dataclass(frozen=True)
class Line:
    """A condition, labels that distinguish it in its panel, its seeds, published values by step."""

    condition: Condition
    labels: Mapping[str, str]
    traces: Sequence[Trace]
    published: Mapping[int, Published]

    def published_inside(self) -> dict[int, Published]:
        """Published values at steps that all seeds have reached, or nearly so."""
        end = min(trace.steps[-1] for trace in self.traces)
        return {step: value for step, value in self.published.items() if step <= BEYOND * end}


@dataclass(frozen=True)
class Panel:
    """One quantity in one setting; setting: the labels that its lines share; engine: of the runs.

    every: the labels of all lines of the study, here or on other panels, each with its own look.
    """

    quantity: str
    task: str
    setting: Mapping[str, str]
    lines: list[Line]
    engine: str
    every: tuple[Mapping[str, str], ...] = ()


def panels(results: StudyResults) -> dict[str, list[Panel]]:
    """Panels by quantity: those that the study reads, or that were published of its conditions."""
    read = [r.quantity for r in results.study.readings]
    read = read or [r.quantity for condition in results.runs for r in condition.published]
    settings: dict[tuple[str, ...], list[Condition]] = {}
    names = _names(results)
    for condition in results.runs:
        key = (condition.task, *(condition.labels.get(name, "") for name in names))
        settings.setdefault(key, []).append(condition)
    across = dict.fromkeys(tuple(_chosen(c, results.study.across).items()) for c in results.runs)
    every = tuple(map(dict, across))
    found: dict[str, list[Panel]] = {}
    for quantity in dict.fromkeys(read):
        for conditions in settings.values():
            if lines := [line for c in conditions if (line := _line(results, quantity, c))]:
                setting = _chosen(conditions[0], names)
                panel = Panel(quantity, conditions[0].task, setting, lines, results.engine, every)
                found.setdefault(quantity, []).append(panel)
    return found


def _chosen(condition: Condition, names: Sequence[str]) -> dict[str, str]:
    """Some of a condition's labels."""
    return {name: condition.labels[name] for name in names if name in condition.labels}


def _names(results: StudyResults) -> list[str]:
    """Names of the labels of a panel: those that lay out the table, and those that differ."""
    across = results.study.across
    names = dict.fromkeys(n for c in results.runs for n in c.labels if n not in across)
    shown = (*differing(list(results.runs)), *results.study.rows)
    return [name for name in names if name in shown] or list(names)


def _line(results: StudyResults, quantity: str, condition: Condition) -> Line | None:
    """A condition's line; None if none of its runs recorded the quantity."""
    traces = traces_of(results.runs[condition], quantity)
    published = {
        reading.step: value
        for reading, value in condition.published.items()
        if reading.quantity == quantity and reading.step is not None
    }
    labels = _chosen(condition, results.study.across)
    return Line(condition, labels, traces, published) if traces else None


def traces_of(records: Sequence[Record], quantity: str) -> list[Trace]:
    """Return a quantity of some runs, as far as they recorded it."""
    return [trace for run in records if (trace := run.trace(quantity)) is not None]


def over_seeds(traces: Sequence[Trace]) -> tuple[Array, Array, Array]:
    """Steps, mean and standard error, up to the last step of the slowest seed.

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
