"""Where training steps of runs ended, by context: what `rollin plot --visits` draws."""

import os
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rollin.errors import RollinError
from rollin.runs.directory import RunDirectory
from rollin.runs.engines.rollin_visits import COLUMNS, VISITS, cell_size
from rollin.runs.records import Array, Record
from rollin.runs.rows import read_metrics

PANELS = 12  # of a run: more contexts share panels


@dataclass(frozen=True)
class VisitPanel:
    """Steps under one context, or under some that follow each other.

    ks: the contexts; goals: (n, 2); places: (m, 2) centres of cells; steps: (m,) in each.
    """

    ks: Sequence[int]
    goals: Array
    places: Array
    steps: Array


@dataclass(frozen=True)
class VisitMaps:
    """A run: its panels, and the side of a cell."""

    record: Record
    cell: float
    panels: Sequence[VisitPanel]


def has_visits(record: Record) -> bool:
    """Whether a run has recorded where its steps ended."""
    return record.path is not None and os.path.lexists(record.path / VISITS)


def visit_maps(record: Record, most: int = PANELS) -> VisitMaps:
    """The visits of a run that has recorded them, on at most so many panels."""
    assert record.path is not None
    run = RunDirectory(record.path)
    file = run.path / VISITS
    told = {name: np.array(column) for name, column in read_metrics(file).items()}
    contexts = np.array((run.config.curriculum or {}).get("contexts", []), np.float64)
    if [*told] != [*COLUMNS] or contexts.ndim != 2 or contexts.shape[1] != 2:
        raise RollinError(f"{file} does not hold what a run writes: restore the original.")
    return VisitMaps(record, cell_size(contexts), panels_of(told, contexts, most))


def panels_of(told: dict[str, Array], contexts: Array, most: int) -> list[VisitPanel]:
    """Panels of the contexts that were entered, evenly grouped where there are too many."""
    entered = np.unique(told["k"]).astype(int)
    if not len(entered) or entered[0] < 0 or entered[-1] >= len(contexts):
        raise RollinError(f"{VISITS} must have contexts 0 … {len(contexts) - 1}.")
    found = []
    for ks in np.array_split(entered, min(most, len(entered))):
        rows = np.isin(told["k"], ks)
        places = np.stack([told["x"][rows], told["y"][rows]], axis=1)
        cells, where = np.unique(places, axis=0, return_inverse=True)
        steps = np.bincount(where.ravel(), told["steps"][rows]).astype(np.float64)
        found.append(VisitPanel(ks.tolist(), contexts[ks], cells, steps))
    return found
