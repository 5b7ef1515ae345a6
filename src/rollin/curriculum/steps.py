"""Where the next context lies: one by one as listed, or a step that adapts itself.

`Halving` needs no Δ: where the agent sees no reward under ω_k it goes back half of the step, and
where it succeeds at once the step is doubled. Ours, not the paper's, whose Δ is set by hand.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np

from rollin.checks import at_least, require_number
from rollin.errors import RollinError
from rollin.texts import short_repr

EARLY, ENOUGH = 5, 4  # succeeds at once: 4 of the first 5 own episodes under ω_k show it
SLACK = 1e-9  # of positions, which are rounded


@runtime_checkable
class Steps(Protocol):
    """Chooses the next context of a curriculum by its index."""

    previous: int
    """The last context that was mastered; below the first at the beginning."""

    def forward(self, positions: Sequence[float], k: int, early: Sequence[bool]) -> int:
        """The context after k, which is mastered; early: whether its first episodes showed it."""
        ...

    def back(self, positions: Sequence[float], k: int, recent: Sequence[bool]) -> int:
        """Where to go if k is too hard; k itself to stay. recent: whether episodes showed it."""
        ...

    def get_state(self) -> dict[str, Any]:
        """Everything needed to go on, as JSON-able values."""
        ...

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Take back what `get_state` gave."""
        ...


class Halving:
    """A step along the path that halves itself after failure and doubles itself after success.

    first: the step at the beginning, as a share of the path; most: it never grows beyond; patience:
    own episodes in a row without a reward after which ω_k counts as too hard. No step is smaller
    than that from one context of the curriculum to the next.

    >>> at = [j / 8 for j in range(9)]
    >>> steps = Halving(first=0.5, most=0.5, patience=3)
    >>> steps.forward(at, 0, [])
    4
    >>> steps.back(at, 4, [False, False, False])
    2
    >>> steps.back(at, 2, [False, True, False])  # something was seen: stay
    2
    >>> steps.forward(at, 2, [True] * 5)  # at once: the step of 1/4 is doubled
    6
    """

    def __init__(self, first: float = 1 / 12, most: float = 1 / 12, patience: int = 10) -> None:
        require_number("first", first)
        require_number("most", most)
        if not 0 < first <= most <= 1:
            raise RollinError(
                f"The first step must lie in (0, 1] and not exceed the largest, got {first!r} and "
                f"{most!r}."
            )
        self.step, self.most = float(first), float(most)
        self.patience = at_least(1, "patience", patience)
        self.previous = -1

    def __repr__(self) -> str:
        return short_repr(self, step=self.step, most=self.most, patience=self.patience)

    def forward(self, positions: Sequence[float], k: int, early: Sequence[bool]) -> int:
        """A step beyond k, the farthest context within it."""
        if self.previous >= 0 and len(early) >= EARLY and sum(early[:EARLY]) >= ENOUGH:
            self.step = min(2 * self.step, self.most)
        self.previous = k
        end = positions[k] + self.step
        within = int(np.searchsorted(positions, end + SLACK, side="right")) - 1
        return min(max(within, k + 1), len(positions) - 1)

    def back(self, positions: Sequence[float], k: int, recent: Sequence[bool]) -> int:
        """Half of the way back to the last mastered context, if nothing was seen for long."""
        if self.previous < 0 or k - self.previous < 2:
            return k
        if len(recent) < self.patience or any(recent[-self.patience :]):
            return k
        begin = positions[self.previous]
        self.step = (positions[k] - begin) / 2
        half = int(np.searchsorted(positions, begin + self.step - SLACK))
        return min(max(half, self.previous + 1), k - 1)

    def get_state(self) -> dict[str, Any]:
        """Everything needed to go on, as JSON-able values."""
        return {"step": self.step, "previous": self.previous}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Take back what `get_state` gave."""
        self.step, self.previous = float(state["step"]), int(state["previous"])


class OneByOne:
    """The contexts as they are listed, each until it is mastered: the paper's curriculum."""

    def __init__(self) -> None:
        self.previous = -1

    def forward(self, positions: Sequence[float], k: int, early: Sequence[bool]) -> int:
        """The next one."""
        self.previous = k
        return k + 1

    def back(self, positions: Sequence[float], k: int, recent: Sequence[bool]) -> int:
        """Never."""
        return k

    def get_state(self) -> dict[str, Any]:
        """Everything needed to go on, as JSON-able values."""
        return {"previous": self.previous}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Take back what `get_state` gave."""
        self.previous = int(state["previous"])
