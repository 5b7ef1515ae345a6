"""Where training steps ended, context by context, for tasks whose contexts are places in the plane.

Counts of square cells, which take a few kilobytes where the file of all transitions takes hundreds
of megabytes. `rollin plot --visits` draws them.
"""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rollin.errors import RollinError
from rollin.runs.files import write_atomically
from rollin.texts import csv_text

VISITS = "visits.csv"
COLUMNS = ("k", "x", "y", "steps")
PARTS = 32  # cells along the longer side of the box that holds all contexts

Counts = dict[tuple[int, int, int], int]
"""Steps by context and cell."""


def cell_size(contexts: ArrayLike) -> float:
    """The side of a cell, for a curriculum of contexts (K + 1, 2); 0 if they all coincide."""
    return float(np.ptp(np.asarray(contexts, np.float64), axis=0).max()) / PARTS


class Visits:
    """Counts of the steps that ended in each cell, by context.

    Steps farther from all contexts than these are from each other count in the outermost cells.

    >>> import numpy as np
    >>> visits = Visits([[0.0, 0.0], [8.0, 0.0]])
    >>> visits.take(1, np.array([[0.1, 0.1], [0.2, 0.1], [0.3, -0.1]]))
    >>> visits.rows()
    [(1, 0.125, 0.125, 2), (1, 0.375, -0.125, 1)]
    """

    def __init__(self, contexts: ArrayLike) -> None:
        self.cell = cell_size(contexts)
        corners = np.floor(np.asarray(contexts, np.float64) / self.cell)
        self._low, self._high = corners.min(0) - PARTS, corners.max(0) + PARTS
        self._counts: Counts = {}

    def take(self, k: int, places: NDArray[Any]) -> None:
        """Count the places (T, 2) of steps under context k."""
        inside = np.clip(np.floor(places / self.cell), self._low, self._high)
        cells, counts = np.unique(inside, axis=0, return_counts=True)
        for (i, j), count in zip(cells.astype(int).tolist(), counts.tolist(), strict=True):
            self._counts[k, i, j] = self._counts.get((k, i, j), 0) + count

    def rows(self) -> list[tuple[int, float, float, int]]:
        """Rows of visits.csv: context, centre of a cell, steps."""
        return [
            (k, (i + 0.5) * self.cell, (j + 0.5) * self.cell, count)
            for (k, i, j), count in sorted(self._counts.items())
        ]

    def write(self, directory: Path) -> None:
        """Write visits.csv."""
        rows = [(k, f"{x:.9g}", f"{y:.9g}", count) for k, x, y, count in self.rows()]
        write_atomically(directory / VISITS, csv_text([COLUMNS, *rows]).encode())

    def get_state(self) -> NDArray[np.int64]:
        """All counts (n, 4): context, cell, steps."""
        found = [(*cell, count) for cell, count in sorted(self._counts.items())]
        return np.array(found, np.int64).reshape(-1, 4)

    def set_state(self, state: NDArray[Any]) -> None:
        """Take back what `get_state` gave."""
        if state.ndim != 2 or state.shape[1] != 4 or (state[:, 3] < 1).any():
            raise RollinError("The visits of a checkpoint are damaged.")
        self._counts = {(k, i, j): count for k, i, j, count in state.tolist()}
