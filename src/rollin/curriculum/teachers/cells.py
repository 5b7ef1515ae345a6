"""What the learner can do along the path: 24 cells of positions, each with two means of success.

A cell is mastered while its slow mean is at least one half. That needs neither a threshold of
returns nor an order of contexts, so that every teacher can say how far the learner has come, and
roll in from the nearest context that it has mastered.
"""

from collections.abc import Mapping, Sequence
from typing import Any

CELLS = 24
FAST, SLOW = 0.3, 0.03  # weight of the newest episode
MASTERED = 0.5  # least slow mean of a mastered cell: 23 successes in a row, or more with failures


class Cells:
    """Fast and slow means of success, by cell.

    of: cell of each context; members: contexts of each cell. Cells without a context are left out.
    """

    def __init__(self, positions: Sequence[float], count: int = CELLS) -> None:
        raw = [min(int(position * count + 1e-9), count - 1) for position in positions]
        known = sorted(set(raw))
        self.of = tuple(known.index(cell) for cell in raw)
        self.members = tuple(
            tuple(j for j, cell in enumerate(self.of) if cell == number)
            for number in range(len(known))
        )
        self.fast, self.slow = [0.0] * len(known), [0.0] * len(known)

    def __len__(self) -> int:
        return len(self.members)

    def add(self, index: int, success: bool) -> None:
        """Take an episode under a context."""
        cell, value = self.of[index], float(success)
        self.fast[cell] += FAST * (value - self.fast[cell])
        self.slow[cell] += SLOW * (value - self.slow[cell])

    def mastered(self, cell: int) -> bool:
        """Whether a cell is mastered."""
        return self.slow[cell] >= MASTERED

    @property
    def frontier(self) -> int | None:
        """The farthest mastered cell."""
        return self._nearest_below(len(self))

    def below(self, index: int) -> int | None:
        """The last context of the nearest mastered cell below that of a context."""
        cell = self._nearest_below(self.of[index])
        return None if cell is None else self.members[cell][-1]

    def _nearest_below(self, end: int) -> int | None:
        return next((cell for cell in reversed(range(end)) if self.mastered(cell)), None)

    def get_state(self) -> dict[str, Any]:
        """Everything needed to go on, as JSON-able values."""
        return {"fast": list(self.fast), "slow": list(self.slow)}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Take back what `get_state` gave."""
        self.fast = [float(value) for value in state["fast"]]
        self.slow = [float(value) for value in state["slow"]]
