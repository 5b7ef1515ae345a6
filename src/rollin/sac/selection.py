"""Some rows of a replay as a replay of their own: D_exp is those rows of D that π_exp collected.

Only row numbers are kept, so that rows are stored once and a checkpoint needs no second file.
"""

from typing import Any

import numpy as np
from numpy.random import Generator

from rollin.errors import RollinError
from rollin.sac.ages import Rows, draw_ages
from rollin.sac.replay import Replay


class Selection:
    """Rows of `replay` in the order in which they were taken; those it no longer holds are gone."""

    def __init__(self, replay: Replay) -> None:
        self.replay = replay
        self._numbers = np.empty(1024, np.int64)
        self._begin, self._end = 0, 0

    def __len__(self) -> int:
        oldest = self.replay.total - self.replay.capacity
        while self._begin < self._end and self._numbers[self._begin] < oldest:
            self._begin += 1
        return self._end - self._begin

    @property
    def rows(self) -> Rows:
        """Their numbers in the replay."""
        return self._numbers[self._end - len(self) : self._end]

    def take_newest(self) -> None:
        """Add the row that was appended last."""
        if self._end == len(self._numbers):
            kept = self.rows
            self._numbers = np.empty(max(2 * len(kept), 1024), np.int64)
            self._numbers[: len(kept)] = kept
            self._begin, self._end = 0, len(kept)
        self._numbers[self._end] = self.replay.total - 1
        self._end += 1

    def clear(self) -> None:
        """Forget all rows; the replay keeps them."""
        self._begin = self._end = 0

    def draw(self, size: int, generator: Generator, p: float | None = None) -> Rows:
        """Numbers of `size` random rows, by their age within this selection; see `Replay.draw`."""
        ages = draw_ages(size, len(self), generator, p)
        return self._numbers[self._end - 1 - ages]

    def get_state(self) -> dict[str, Any]:
        """The row numbers."""
        return {"rows": self.rows.copy()}

    def set_state(self, state: dict[str, Any]) -> None:
        """Go back to a state; the replay must be back already."""
        rows = np.asarray(state["rows"])
        if rows.ndim != 1 or rows.dtype != np.int64 or (np.diff(rows) <= 0).any():
            raise RollinError("The selection's rows must be rising whole numbers: it is damaged.")
        if len(rows) and not 0 <= rows[0] <= rows[-1] < self.replay.total:
            raise RollinError(
                f"The selection names row {rows[-1]} of a replay with {self.replay.total}: "
                "the state belongs to another replay."
            )
        self._numbers = np.concatenate([rows, np.empty(1024, np.int64)])
        self._begin, self._end = 0, len(rows)
