"""A curriculum without a path: its contexts are places that episodes reached.

Known are a start and a goal. A context is learned until a rule without a threshold decides that it
is mastered (`rollin.curriculum.mastery`). The next one is a place that a tenth to nine tenths of
the last episodes reached, and of those the one that takes the most steps: not the one nearest to
the goal, which may lie behind a wall. Our extension.
"""

import math
from collections.abc import Callable, Collection
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from rollin.checks import at_least
from rollin.curriculum.contexts import Curriculum
from rollin.curriculum.mastery import Gap, MasteryRule
from rollin.curriculum.progress import State, Stateful
from rollin.curriculum.sequential import Relabelled
from rollin.curriculum.teacher import CurriculumTeacher, EpisodeEnd, Plan

Array = NDArray[Any]
Fulfils = Callable[[Array, Array], Array]
"""Whether outcomes (T, U) fulfil contexts (N, C): (T, N)."""
LEAST, MOST = 0.1, 0.9  # share of the last episodes that reach a place that is worth learning
SURE = 3  # windows of successes in a row
MOST_PLACES = 256  # beyond, the one that takes the fewest steps goes
GOAL = 0  # the first place is the goal, even before an episode has reached it
START = -1  # in the place of an index: where the curriculum begins


class Places(Stateful):
    """Contexts that episodes fulfilled, and the goal.

    A context is added if no known place was fulfilled with it, so that the net is as fine as the
    environment's own definition of success, and no distance is needed.

    fewest: of each place, the fewest steps in which an episode reached it, None if none did;
    recent: of the last episodes, the places that each reached.

    >>> import numpy as np
    >>> near = lambda outcomes, contexts: np.abs(outcomes - contexts.T) <= 0.5
    >>> places = Places(np.array([9.0]), near, recent=2)
    >>> visited = np.arange(1.0, 4.0)[:, None]
    >>> places.add(visited, visited)
    >>> [context.item() for context in places.contexts], places.fewest
    ([9.0, 1.0, 2.0, 3.0], [None, 1, 2, 3])
    >>> places.add(visited[:2], visited[:2])
    >>> places.shares().tolist(), places.farthest(0.1, 0.9)
    ([0.0, 1.0, 1.0, 0.5], 3)
    """

    contexts: State[list[NDArray[np.float64]]]
    fewest: State[list[int | None]]
    recent: State[list[list[int]]]

    def __init__(
        self, goal: Array, fulfils: Fulfils, recent: int = 20, most: int = MOST_PLACES
    ) -> None:
        self.contexts = [np.array(goal, np.float64)]
        self.fewest = [None]
        self.recent = []
        self._fulfils = fulfils
        self._size = at_least(1, "recent", recent)
        self._most = at_least(2, "most", most)

    def add(
        self, outcomes: Array, contexts: Array, before: int = 0, keep: Collection[int | None] = ()
    ) -> None:
        """Add an episode: its outcomes, and the context that each fulfils, NaN where there is none.

        before: steps before the first outcome; keep: places that must not give way to new ones.
        """
        fulfilled = self._fulfils(outcomes, np.array(self.contexts))
        visited = [self._reach(i, fulfilled[:, i], before) for i in range(len(self.contexts))]
        new = ~fulfilled.any(1) & np.isfinite(contexts).all(1)
        while new.any():
            at = int(new.argmax())
            here = self._fulfils(outcomes, contexts[at : at + 1])[:, 0]
            new &= ~here
            new[at] = False
            if here[at] and (index := self._keep(contexts[at], keep)) is not None:
                visited.append(self._reach(index, here, before))
        self.recent = [*self.recent, sorted({i for i in visited if i is not None})][-self._size :]

    def _reach(self, index: int, when: Array, before: int) -> int | None:
        """Record the steps in which an episode reached a place; return the place if it did."""
        if not when.any():
            return None
        steps = before + int(when.argmax()) + 1
        known = self.fewest[index]
        self.fewest[index] = steps if known is None else min(known, steps)
        return index

    def _keep(self, context: Array, keep: Collection[int | None]) -> int | None:
        """Add a new place if there is room; return its index."""
        if len(self.contexts) < self._most:
            self.contexts.append(np.array(context, np.float64))
            self.fewest.append(None)
            return len(self.contexts) - 1
        old = [i for i in range(1, self._most) if i not in keep]
        index = min(old, key=lambda i: (self.steps_to(i), i), default=None)
        if index is None:
            return None
        self.contexts[index] = np.array(context, np.float64)
        self.fewest[index] = None
        self.recent = [[i for i in places if i != index] for places in self.recent]
        return index

    def shares(self) -> NDArray[np.float64]:
        """Return, for each place, the share of the last episodes that reached it."""
        counts = np.zeros(len(self.contexts))
        for places in self.recent:
            counts[places] += 1
        return counts / max(len(self.recent), 1)

    def steps_to(self, index: int) -> int:
        """Return the fewest steps in which a place was reached; 0 if it never was."""
        return self.fewest[index] or 0

    def farthest(
        self, least: float, most: float, *, above: int = 0, without: Collection[int] = ()
    ) -> int | None:
        """Return the place that takes the most steps, of those reached in such a share of episodes.

        above: it takes more steps than this; without: places to leave out. The goal is before all
        others once it was reached, in however few steps.
        """
        shares = self.shares()
        matches = [
            i
            for i in range(len(self.contexts))
            if least <= shares[i] <= most
            and self.steps_to(i) > (0 if i == GOAL else above)
            and i not in without
        ]
        if GOAL in matches:
            return GOAL
        return max(matches, key=lambda i: (self.steps_to(i), -i), default=None)

    def between(self, low: float, high: float, *, without: Collection[int] = ()) -> int | None:
        """Return the reached place that takes the most steps in (low, high]."""
        matches = [
            i
            for i in range(1, len(self.contexts))
            if low < self.steps_to(i) <= high and i not in without
        ]
        return max(matches, key=lambda i: (self.steps_to(i), -i), default=None)


class ReachedGoalsTeacher(CurriculumTeacher):
    """Learns to reach places that episodes reached, each farther than the one before.

    curriculum: its first context is the start and its final one the goal; those between are only
    for evaluation. to_context: contexts (T, C) of outcomes (T, U), NaN for those that fulfil none;
    fulfils: whether outcomes fulfil contexts; relabelled: what an episode would have earned under
    another context; patience: own episodes without a success after which a place is given up.

    κ is the fraction of an episode's steps that it takes to the farthest mastered place, and 1
    once the goal is mastered.

    >>> import numpy as np
    >>> import rollin
    >>> near = lambda outcomes, contexts: np.abs(outcomes - contexts.T) <= 0.5
    >>> way = rollin.Curriculum.between(start=[0.0], goal=[9.0])
    >>> teacher = rollin.ReachedGoalsTeacher(way, to_context=np.asarray, fulfils=near)
    >>> teacher.sample().context.tolist()  # the start, until it is mastered
    [0.0]
    """

    about = "places that episodes reached, ever farther; needs no path"
    maker: ClassVar[str] = "Curriculum.between(start, goal) makes one"
    wants = frozenset({"trace", "rollin-trace"})
    when: State[MasteryRule]
    places: State[Places]
    _index: State[int] = START  # of the current place
    _mastered: State[int | None] = None  # the last mastered place, whose policy rolls in
    _given_up: State[tuple[int, ...]] = ()  # places, since more was mastered
    _farthest: State[int] = 0  # steps to the farthest mastered place
    _longest: State[int] = 1  # steps of an episode
    _before: State[float] = math.nan  # the mean return that mastered the last context
    _failures: State[int] = 0  # own episodes in a row without a success
    _successes: State[int] = 0  # and with one
    _traces: State[tuple[NDArray[np.float32], ...]] = ()  # outcomes of the last own episodes
    _first: State[int] = 1  # plan of the stay at the current place

    def __init__(
        self,
        curriculum: Curriculum,
        beta: float = 0.1,
        *,
        to_context: Callable[[Array], Array],
        fulfils: Fulfils,
        relabelled: Relabelled | None = None,
        when: MasteryRule | None = None,
        recent: int = 20,
        patience: int = 10,
    ) -> None:
        super().__init__(curriculum, beta)
        self.when = when or Gap(window=curriculum.episodes)
        self.places = Places(curriculum.contexts[-1], fulfils, recent)
        self.patience = at_least(1, "patience", patience)
        self._to_context = to_context
        self._relabelled = relabelled

    @property
    def here(self) -> Any:
        """The context of the current place."""
        return self._context_at(self._index)

    @property
    def threshold(self) -> float:
        """What the window's mean must exceed; NaN while that is unknown."""
        return self.when.threshold(self.window)

    def _context_at(self, index: int) -> Array:
        """Return the context of a place."""
        return self.curriculum.contexts[0] if index == START else self.places.contexts[index]

    def _steps_to(self, index: int | None) -> int:
        """Return the fewest steps to a place."""
        return 0 if index is None or index == START else self.places.steps_to(index)

    def _make_plan(self, plan_id: int) -> Plan:
        """Return a plan for the current place, the same for all environments."""
        context = self.here.copy()
        if self._mastered is None or self.beta == 0:
            return Plan(plan_id, context, trace=True)
        guide_context = self._context_at(self._mastered).copy()
        return Plan(
            plan_id, context, self.beta, guide=self.guides, guide_context=guide_context, trace=True
        )

    def context_of(self, plan_id: int) -> int:
        """Return k of the progress: a place has no index of its own."""
        return self.progress.k

    def still_mastered(self) -> str | None:
        """Return the reason why the goal is mastered at the moment, or None."""
        return self._is_mastered() if self._index == GOAL else None

    def _take(self, end: EpisodeEnd) -> str | None:
        """Count an episode, and move to another place if this one is mastered or too hard."""
        self._longest = max(self._longest, end.rollin_steps + end.length)
        self._add_trace(end)
        if end.plan_id < self._first:
            self.late += 1
            return None
        if end.rolled_in:  # which shows what can be reached, but not by the learner alone
            return None
        total = end.prefix_return + end.total
        self.window.add(total)
        self.when.add(total)
        self._failures = 0 if end.success else self._failures + 1
        self._successes = self._successes + 1 if end.success else 0
        mastered = self._is_mastered()
        if mastered:
            return self._advance(mastered)
        if self._failures < self.patience or self._index == START:
            return None
        return self._go_back()

    def _add_trace(self, end: EpisodeEnd) -> None:
        """Record the places that an episode reached."""
        if end.trace is None or not len(end.trace):
            return
        outcomes = np.asarray(end.trace, np.float32)
        keep = (self._index, self._mastered, *self._given_up)
        self.places.add(outcomes, self._to_context(outcomes), end.rollin_steps, keep)
        if not end.rolled_in:
            self._traces = (*self._traces, outcomes)[-self.curriculum.episodes :]

    def _is_mastered(self) -> str | None:
        """Return the reason why this place is mastered, or None.

        Where untrained behaviour succeeds as well, no return rises: then successes decide.
        """
        enough = SURE * self.curriculum.episodes
        if self._successes >= enough:
            return f"success in the last {enough} episodes"
        return self.when.mastered(self.window)

    def _advance(self, mastered: str) -> str | None:
        """Record that the place is mastered, and choose a farther one if there is one."""
        progress = self.progress
        if self._index == GOAL:
            known = progress.completed is not None
            if not progress.finished:
                progress.move(self.steps, progress.K, mastered)
            progress.complete(self.steps, mastered)
            return None if known else mastered
        steps = self._steps_to(self._index)
        if steps > self._farthest:
            self._farthest = steps
            self._given_up = ()
        following = self._next(steps)
        if following is None:
            return None  # no farther place was reached yet: learn on here
        self._mastered = self._index
        self._before = self.window.mean
        self._guides += 1
        reason = f"{mastered}; on to {self._in_words(following)}"
        self._enter(following, reason)
        return reason

    def _next(self, steps: int) -> int | None:
        """Return a place that takes more steps: reached sometimes, lately, or at any time."""
        places = self.places
        for least, most in ((LEAST, MOST), (1e-9, 1.0)):
            index = places.farthest(least, most, above=steps, without=self._given_up)
            if index is not None:
                return index
        half = (steps + max(places.steps_to(i) for i in range(len(places.contexts)))) / 2
        return places.between(steps, half, without=self._given_up)

    def _go_back(self) -> str:
        """Move to a place half-way back, or to the mastered one; return the reason."""
        low = self._steps_to(self._mastered)
        self._given_up = (*self._given_up, self._index)
        half = (low + self.places.steps_to(self._index)) / 2
        easier = self.places.between(low, half, without=self._given_up)
        if easier is None:
            easier = START if self._mastered is None else self._mastered
        reason = f"no success in {self._failures} episodes: back to {self._in_words(easier)}"
        self._enter(easier, reason)
        return reason

    def _in_words(self, index: int) -> str:
        """Return the text of a place, for reasons."""
        if index == START:
            return "the start"
        context = ", ".join(f"{x:.3g}" for x in self.places.contexts[index])
        if index == GOAL:
            return f"the goal ({context})"
        return f"({context}), reached in {self.places.steps_to(index)} steps"

    def _enter(self, index: int, reason: str) -> None:
        """Move to another place; progress is how far was mastered."""
        self._index = index
        K = self.progress.K
        level = min(math.floor(K * self._farthest / self._longest), K - 1)
        self.progress.move(self.steps, max(level, self.progress.k), reason)
        self.window.restart()
        self._first = self._next_id
        self._failures = self._successes = 0
        self.when.begin(self._base(), self._before)

    def _base(self) -> list[float] | None:
        """Return what the last episodes would have earned here."""
        if self._relabelled is None or not self._traces:
            return None
        return [float(self._relabelled(trace, self.here)) for trace in self._traces]

    def resume_at(self, steps: int) -> None:
        """Resume after these steps, before the first plan."""
        super().resume_at(steps)
        self._first = 1
