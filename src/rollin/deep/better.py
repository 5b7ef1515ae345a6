"""Rows of the better episodes under ω_k, of which a share of every batch may be made.

Where rewards are rare, a uniform batch holds next to none of them. Ours, not the paper's.
"""

from typing import Any

import numpy as np
from numpy.random import Generator

from rollin.errors import RollinError
from rollin.sac.ages import Rows
from rollin.sac.replay import Replay

MOST = 100  # episodes that are kept in mind


class Better:
    """Episodes under ω_k whose return lies above the mean of all of them so far.

    >>> import numpy as np
    >>> import rollin
    >>> D = rollin.Replay(rollin.RowLayout(observation=1, action=1), capacity=9)
    >>> better = Better(D)
    >>> for t in range(6):
    ...     D.append([t], [0.0], 0.0, [t + 1], terminated=False, truncated=t % 3 == 2)
    ...     if t % 3 == 2:
    ...         better.take(rows=3, total=float(t))
    >>> sorted(set(better.draw(50, np.random.default_rng(0)).tolist()))
    [3, 4, 5]
    """

    def __init__(self, replay: Replay) -> None:
        self.replay = replay
        self._begin: list[int] = []
        self._rows: list[int] = []
        self._totals: list[float] = []
        self._pool = np.empty((2, 0), np.int64)

    def take(self, rows: int, total: float) -> None:
        """Keep the episode that just ended, whose last row is the replay's newest."""
        if rows:
            self._begin.append(self.replay.total - rows)
            self._rows.append(rows)
            self._totals.append(total)
        self._choose()

    def _choose(self) -> None:
        """The last ones above the mean whose rows are all still held."""
        totals, begin = np.array(self._totals), np.array(self._begin, np.int64)
        held = begin >= self.replay.total - self.replay.capacity
        mean = totals.mean() if len(totals) else 0.0
        above = np.flatnonzero((totals > mean) & held)[-MOST:]
        self._pool = np.array([begin[above], np.array(self._rows, np.int64)[above]], np.int64)

    def __len__(self) -> int:
        """Episodes to draw from; rows go as the replay takes in those of the episode under way."""
        oldest = self.replay.total - self.replay.capacity
        if self._pool.shape[1] and self._pool[0, 0] < oldest:
            self._choose()
        return self._pool.shape[1]

    def clear(self) -> None:
        """Forget all: a new context."""
        self._begin, self._rows, self._totals = [], [], []
        self._pool = np.empty((2, 0), np.int64)

    def draw(self, size: int, generator: Generator) -> Rows:
        """Numbers of `size` random rows: an episode each, and a row of it."""
        picked = self._pool[:, generator.integers(len(self), size=size)]
        return picked[0] + (generator.random(size) * picked[1]).astype(np.int64)

    def get_state(self) -> dict[str, Any]:
        """First row, number of rows and return of every episode under ω_k."""
        return {
            "begin": np.array(self._begin, np.int64),
            "rows": np.array(self._rows, np.int64),
            "totals": np.array(self._totals, np.float64),
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Go back to a state; the replay must be back already."""
        begin, rows, totals = (np.asarray(state[n]) for n in ("begin", "rows", "totals"))
        shapes = {begin.shape, rows.shape, totals.shape}
        if len(shapes) > 1 or begin.ndim != 1 or not np.isfinite(totals).all():
            raise RollinError("The better episodes of a checkpoint are damaged.")
        if len(begin) and not (
            begin.min() >= 0 and rows.min() > 0 and (begin + rows).max() <= self.replay.total
        ):
            raise RollinError("The better episodes of a checkpoint belong to another replay.")
        self._begin, self._rows = begin.tolist(), rows.tolist()
        self._totals = totals.tolist()
        self._choose()
