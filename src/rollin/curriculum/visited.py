"""A curriculum without a path: contexts are places that episodes came by, ever farther on.

Known are a start and a goal. A context is learned until a rule without a threshold says that it is
mastered (`rollin.curriculum.mastery`). The next one is a place that a tenth to nine tenths of the
last episodes came by, and of those the one that takes the most steps to get to: not the one nearest
to the goal, which may lie behind a wall. Ours, not the paper's.
"""

import math
import os
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rollin.checks import at_least, check_beta
from rollin.curriculum.contexts import Curriculum
from rollin.curriculum.mastery import Gap, Mastery
from rollin.curriculum.places import GOAL, Fulfils, Places
from rollin.curriculum.rules import Window
from rollin.curriculum.teacher import EpisodeEnd, Plan, check_ticket
from rollin.curriculum.walk import Relabelled
from rollin.errors import RollinError
from rollin.texts import short_repr

Array = NDArray[Any]
LEAST, MOST = 0.1, 0.9  # share of the last episodes that come by a place that is worth learning
SURE = 3  # windows of successes in a row
START = -1  # in the place of an index: where the curriculum begins


class Visited:
    """Learns to go to places that episodes came by, each farther than the one before.

    curriculum: its first context is the start and its last the goal; those between are for
    evaluation alone. to_context: contexts (T, C) of outcomes (T, U), NaN for those that stand for
    none; fulfils: whether outcomes fulfil contexts; relabelled: what an episode would have earned
    under another context; patience: own episodes without a success after which a place is given up.

    κ is the share of an episode's steps that the way to the farthest mastered place takes, and 1
    once the goal is mastered.

    >>> import numpy as np
    >>> import rollin
    >>> near = lambda outcomes, contexts: np.abs(outcomes - contexts.T) <= 0.5
    >>> way = rollin.Curriculum.between(start=[0.0], goal=[9.0])
    >>> teacher = rollin.Visited(way, to_context=np.asarray, fulfils=near)
    >>> teacher.sample().context.tolist()  # the start, until it is mastered
    [0.0]
    """

    about = "places that episodes came by, ever farther on; needs no path"
    wants = frozenset({"trace", "rollin-trace"})

    def __init__(
        self,
        curriculum: Curriculum,
        beta: float = 0.1,
        *,
        to_context: Callable[[Array], Array],
        fulfils: Fulfils,
        relabelled: Relabelled | None = None,
        when: Mastery | None = None,
        recent: int = 20,
        patience: int = 10,
    ) -> None:
        if not isinstance(curriculum, Curriculum):
            raise RollinError(
                f"A teacher needs a rollin.Curriculum, got {type(curriculum).__name__}: "
                "Curriculum.between(start, goal) makes one."
            )
        self.curriculum, self.beta = curriculum, check_beta(beta)
        self.when: Mastery = when or Gap(window=curriculum.episodes)
        self.places = Places(curriculum.contexts[-1], fulfils, recent)
        self.patience = at_least(1, "patience", patience)
        self._to_context, self._relabelled = to_context, relabelled
        self.progress = curriculum.progress()
        self.window = Window(curriculum.episodes)
        self.steps = self.late = self.abandoned = 0
        self.home = os.getpid()  # a copy in another process would hear of no other's episodes
        self.here: Array = curriculum.contexts[0].copy()
        self._index = START
        self._mastered: Array | None = None  # the last mastered context, which rolls in
        self._mastered_index = START
        self._given_up: list[int] = []  # places, since more was mastered
        self._farthest = 0  # steps to the farthest mastered place
        self._longest = 1  # episode
        self._before = math.nan  # the mean return that mastered the last context
        self._failures = self._successes = 0  # own episodes in a row without a success, and with
        self._traces: list[Array] = []  # outcomes of the last own episodes
        self.guides = 0
        self._ticket = 1  # the next one
        self._firsts = [1]  # first ticket of each stay at a context

    def __repr__(self) -> str:
        return short_repr(self, k=self.k, K=self.curriculum.K, beta=self.beta)

    @property
    def k(self) -> int:
        """How far was mastered, in K-ths."""
        return self.progress.k

    @property
    def previous(self) -> int | None:
        """None: a plan says whose policy rolls in."""
        return None

    @property
    def threshold(self) -> float:
        """What the window's mean must exceed; NaN where nothing can be said yet."""
        return self.when.threshold(self.window)

    @property
    def adapts(self) -> bool:
        """There is always more to keep than progress and window."""
        return True

    def sample(self, env: int = 0) -> Plan:
        """The place that is learned, for all environments alike."""
        ticket = self._ticket
        self._ticket += 1
        if self._mastered is None or self.beta == 0:
            return Plan(ticket, self.here.copy(), trace=True)
        guide = {"guide": self.guides, "guide_context": self._mastered.copy()}
        return Plan(ticket, self.here.copy(), self.beta, **guide, trace=True)

    def context_of(self, ticket: int) -> int:
        """How far was mastered, in K-ths: a place has no number of its own."""
        return self.progress.k

    def shown(self, end: EpisodeEnd) -> bool:
        """Whether an episode was a success."""
        return end.success

    def still_mastered(self) -> str | None:
        """Why the goal is mastered as things stand, or None."""
        return self._is_mastered() if self._index == GOAL else None

    def update(self, end: EpisodeEnd) -> str | None:
        """Count an episode, and go to another place if this one is mastered or too hard."""
        check_ticket(end.ticket, self._ticket)
        self.steps += end.steps
        if end.abandoned or end.purpose != "train":
            self.abandoned += end.abandoned
            return None
        self._longest = max(self._longest, end.hidden + end.length)
        self._look(end)
        if end.ticket < self._firsts[-1]:
            self.late += 1
            return None
        if end.rolled_in:  # which shows where one can come, and nothing of the learner alone
            return None
        total = end.prefix_return + end.total
        self.window.add(total)
        self.when.add(total)
        self._failures = 0 if end.success else self._failures + 1
        self._successes = self._successes + 1 if end.success else 0
        return self._judge()

    def _look(self, end: EpisodeEnd) -> None:
        """Note the places that an episode came by."""
        if end.trace is None or not len(end.trace):
            return
        outcomes = np.asarray(end.trace, np.float32)
        kept = (self._index, self._mastered_index, *self._given_up)
        self.places.add(outcomes, self._to_context(outcomes), end.hidden, kept)
        if not end.rolled_in:
            self._traces = [*self._traces, outcomes][-self.curriculum.episodes :]

    def _is_mastered(self) -> str | None:
        """Why this place is mastered, or None.

        Where untrained behaviour succeeds as well, no return rises: successes alone then tell.
        """
        enough = SURE * self.curriculum.episodes
        if self._successes >= enough:
            return f"success in the last {enough} episodes"
        return self.when.mastered(self.window)

    def _judge(self) -> str | None:
        mastered = self._is_mastered()
        if mastered:
            return self._go_on(mastered)
        if self._failures < self.patience or self._index == START:
            return None
        return self._go_back()

    def _go_on(self, mastered: str) -> str | None:
        """The place is mastered: note it, and choose one that is farther on, if there is one."""
        index, progress = self._index, self.progress
        steps = 0 if index == START else self.places.steps_to(index)
        if index == GOAL:
            known = progress.completed is not None
            if not progress.finished:
                progress.move(self.steps, progress.K, mastered)
            progress.complete(self.steps, mastered)
            return None if known else mastered
        if steps > self._farthest:
            self._farthest, self._given_up = steps, []
        found = self._next(steps)
        if found is None:
            return None  # nothing farther was seen yet: learn on here
        self._mastered, self._mastered_index = self.here, index
        self._before, self.guides = self.window.mean, self.guides + 1
        reason = f"{mastered}; on to {self._told(found)}"
        self._enter(found, reason)
        return reason

    def _next(self, steps: int) -> int | None:
        """A place that takes more steps: one seen now and then, lately, or at any time."""
        places, without = self.places, self._given_up
        for least, most in ((LEAST, MOST), (1e-9, 1.0)):
            found = places.farthest(least, most, above=steps, without=without)
            if found is not None:
                return found
        half = (steps + max(places.steps_to(i) for i in range(len(places.contexts)))) / 2
        return places.between(steps, half, without=without)

    def _go_back(self) -> str:
        """Nothing was seen of the place for long: one half-way to it, or the mastered one again."""
        low = 0 if self._mastered_index == START else self.places.steps_to(self._mastered_index)
        self._given_up.append(self._index)
        half = (low + self.places.steps_to(self._index)) / 2
        found = self.places.between(low, half, without=self._given_up)
        if found is None:
            found = self._mastered_index
        reason = f"no success in {self._failures} episodes: back to {self._told(found)}"
        self._enter(found, reason)
        return reason

    def _told(self, index: int) -> str:
        """A place in words."""
        if index == START:
            return "the start"
        context = ", ".join(f"{x:.3g}" for x in self.places.contexts[index])
        if index == GOAL:
            return f"the goal ({context})"
        return f"({context}), reached in {self.places.steps_to(index)} steps"

    def _enter(self, index: int, reason: str) -> None:
        """Go to another place; progress tells how far was mastered."""
        self._index = index
        first = self.curriculum.contexts[0]
        self.here = (first if index == START else self.places.contexts[index]).copy()
        K = self.progress.K
        level = min(math.floor(K * self._farthest / self._longest), K - 1)
        self.progress.move(self.steps, max(level, self.progress.k), reason)
        self.window.restart()
        self._firsts.append(self._ticket)
        self._failures = self._successes = 0
        self.when.begin(self._base(), self._before)

    def _base(self) -> list[float] | None:
        """What the last episodes would have earned here."""
        if self._relabelled is None or not self._traces:
            return None
        return [float(self._relabelled(trace, self.here)) for trace in self._traces]

    def go_on(self, steps: int) -> None:
        """Go on after these steps where everything stands, with no ticket given yet."""
        self.steps, self._ticket, self._firsts = steps, 1, [1]

    def get_state(self) -> dict[str, Any]:
        """Everything needed to go on, as JSON-able values."""
        mastered = None if self._mastered is None else self._mastered.tolist()
        return {
            "progress": self.progress.get_state(),
            "window": self.window.get_state(),
            "when": self.when.get_state(),
            "places": self.places.get_state(),
            "steps": self.steps,
            "late": self.late,
            "abandoned": self.abandoned,
            "ticket": self._ticket,
            "firsts": list(self._firsts),
            "here": [self._index, self.here.tolist()],
            "mastered": [self._mastered_index, mastered],
            "given_up": list(self._given_up),
            "farthest": self._farthest,
            "longest": self._longest,
            "before": self._before if math.isfinite(self._before) else None,
            "failures": self._failures,
            "successes": self._successes,
            "traces": [trace.tolist() for trace in self._traces],
            "guides": self.guides,
        }

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Take back what `get_state` gave."""
        for name in ("progress", "window", "when", "places"):
            getattr(self, name).set_state(state[name])
        self.steps = at_least(0, "steps", state["steps"])
        self.late, self.abandoned = int(state["late"]), int(state["abandoned"])
        self._ticket = at_least(1, "ticket", state["ticket"])
        self._firsts = [int(first) for first in state["firsts"]]
        self._index, self.here = int(state["here"][0]), np.array(state["here"][1], np.float64)
        self._mastered_index, mastered = int(state["mastered"][0]), state["mastered"][1]
        self._mastered = None if mastered is None else np.array(mastered, np.float64)
        self._given_up = [int(i) for i in state["given_up"]]
        self._farthest, self._longest = int(state["farthest"]), int(state["longest"])
        self._before = math.nan if state["before"] is None else float(state["before"])
        self._failures, self._successes = int(state["failures"]), int(state["successes"])
        self.guides = int(state["guides"])
        self._traces = [np.array(trace, np.float32) for trace in state["traces"]]
