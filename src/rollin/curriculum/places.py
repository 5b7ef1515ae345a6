"""Places that episodes came by, as contexts: what a curriculum is made of where there is no path.

A place is the context that an outcome fulfils. It is kept if no place that is known was fulfilled
there, so that the net is as fine as the environment's own idea of success, and no distance is
asked for. Of each it is known in how few steps an episode ever came there, and which of the last
episodes did.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rollin.checks import at_least

Array = NDArray[Any]
Fulfils = Callable[[Array, Array], Array]
"""Whether outcomes (T, U) fulfil contexts (N, C): (T, N)."""
MOST = 256  # places; beyond, the one that takes the fewest steps goes
GOAL = 0  # the first place is the goal, whether or not anybody came there


class Places:
    """A net of contexts that episodes fulfilled, and the goal.

    fewest: of each place, steps in which an episode came there, None if none did; recent: of the
    last episodes, the places that each came by.

    >>> import numpy as np
    >>> near = lambda outcomes, contexts: np.abs(outcomes - contexts.T) <= 0.5
    >>> places = Places(np.array([9.0]), near, recent=2)
    >>> walked = np.arange(1.0, 4.0)[:, None]
    >>> places.add(walked, walked)
    >>> [context.item() for context in places.contexts], places.fewest
    ([9.0, 1.0, 2.0, 3.0], [None, 1, 2, 3])
    >>> places.add(walked[:2], walked[:2])
    >>> places.shares().tolist(), places.farthest(0.1, 0.9)
    ([0.0, 1.0, 1.0, 0.5], 3)
    """

    def __init__(self, goal: Array, fulfils: Fulfils, recent: int = 20, most: int = MOST) -> None:
        self.contexts: list[Array] = [np.array(goal, np.float64)]
        self.fewest: list[int | None] = [None]
        self.recent: list[list[int]] = []
        self._fulfils = fulfils
        self._size, self._most = at_least(1, "recent", recent), at_least(2, "most", most)

    def add(
        self, outcomes: Array, contexts: Array, before: int = 0, kept: Collection[int] = ()
    ) -> None:
        """An episode: its outcomes, and the context that each fulfils, NaN where there is none.

        before: steps before the first outcome; kept: places that must not give way to new ones.
        """
        came = self._fulfils(outcomes, np.array(self.contexts))
        visited = [self._came(i, came[:, i], before) for i in range(len(self.contexts))]
        new = ~came.any(1) & np.isfinite(contexts).all(1)
        while new.any():
            at = int(new.argmax())
            here = self._fulfils(outcomes, contexts[at : at + 1])[:, 0]
            new &= ~here
            new[at] = False
            if here[at] and (index := self._keep(contexts[at], kept)) is not None:
                visited.append(self._came(index, here, before))
        self.recent = [*self.recent, sorted({i for i in visited if i is not None})][-self._size :]

    def _came(self, index: int, when: Array, before: int) -> int | None:
        """Note when an episode came by a place; returns the place if it did."""
        if not when.any():
            return None
        steps, known = before + int(when.argmax()) + 1, self.fewest[index]
        self.fewest[index] = steps if known is None else min(known, steps)
        return index

    def _keep(self, context: Array, kept: Collection[int]) -> int | None:
        """Room for a new place, if there is any."""
        if len(self.contexts) < self._most:
            self.contexts.append(np.array(context, np.float64))
            self.fewest.append(None)
            return len(self.contexts) - 1
        old = [i for i in range(1, self._most) if i not in kept]
        index = min(old, key=lambda i: (self.steps_to(i), i), default=None)
        if index is None:
            return None
        self.contexts[index], self.fewest[index] = np.array(context, np.float64), None
        self.recent = [[i for i in places if i != index] for places in self.recent]
        return index

    def shares(self) -> NDArray[np.float64]:
        """Of each place, the share of the last episodes that came by."""
        counts = np.zeros(len(self.contexts))
        for places in self.recent:
            counts[places] += 1
        return counts / max(len(self.recent), 1)

    def steps_to(self, index: int) -> int:
        """Fewest steps in which a place was reached; 0 of one that never was."""
        return self.fewest[index] or 0

    def farthest(
        self, least: float, most: float, *, above: int = 0, without: Collection[int] = ()
    ) -> int | None:
        """The place that takes the most steps, of those that come by in such a share of episodes.

        above: it takes more steps than this; without: places that are not meant. The goal is before
        all others once it was reached, in however few steps.
        """
        shares = self.shares()
        found = [
            i
            for i in range(len(self.contexts))
            if least <= shares[i] <= most
            and self.steps_to(i) > (0 if i == GOAL else above)
            and i not in without
        ]
        if GOAL in found:
            return GOAL
        return max(found, key=lambda i: (self.steps_to(i), -i), default=None)

    def between(self, low: float, high: float, *, without: Collection[int] = ()) -> int | None:
        """Of places that were ever reached, the one that takes the most steps in (low, high]."""
        found = [
            i
            for i in range(1, len(self.contexts))
            if low < self.steps_to(i) <= high and i not in without
        ]
        return max(found, key=lambda i: (self.steps_to(i), -i), default=None)

    def get_state(self) -> dict[str, Any]:
        """Everything needed to go on, as JSON-able values."""
        return {
            "contexts": [context.tolist() for context in self.contexts],
            "fewest": list(self.fewest),
            "recent": [list(places) for places in self.recent],
        }

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Take back what `get_state` gave."""
        self.contexts = [np.array(context, np.float64) for context in state["contexts"]]
        self.fewest = [None if steps is None else int(steps) for steps in state["fewest"]]
        self.recent = [_indices(places) for places in state["recent"]]


def _indices(places: Sequence[Any]) -> list[int]:
    return [int(i) for i in places]
