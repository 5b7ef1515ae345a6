"""What teachers share that draw a context for each episode from a fine curriculum.

A fine curriculum has its contexts close together on a path, such as 97 of them at the positions
j/96 (`Curriculum.along(path, delta=1 / 96, rule=…)`); its rule is not asked. A teacher draws their
indices. Whatever it draws, a share β of its episodes can roll in with the policy of the nearest
mastered context below the drawn one.
"""

import os
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.random import PCG64, Generator
from numpy.typing import NDArray

from rollin.checks import at_least, check_beta
from rollin.curriculum.contexts import Curriculum
from rollin.curriculum.rules import Window
from rollin.curriculum.teacher import EpisodeEnd, Plan, check_ticket
from rollin.curriculum.teachers.cells import MASTERED, Cells
from rollin.curriculum.teachers.returns import Range
from rollin.errors import RollinError
from rollin.streams import pack_generator, unpack_generator
from rollin.texts import short_repr


class Given(NamedTuple):
    """What a ticket was given for: the index of a context, and a teacher's own note."""

    context: int
    note: int = 0


class SamplingTeacher:
    """Draws a context for each episode; a subclass says which.

    curriculum: a fine one; beta: share of episodes that roll in, where a context below is mastered;
    stream: of random numbers, a PCG64, of this teacher alone.

    A guide is the learner's policy when `progress` last advanced, shown the context that it is to
    go to. Success and return of an episode include those of its roll-in. Mastery is judged by
    episodes without roll-in, which show what the learner can do alone; `progress` only advances.
    Episodes that are abandoned, only looked at, or told of twice count for nothing but their steps.
    """

    about: ClassVar[str]
    wants: frozenset[str] = frozenset()

    def __init__(self, curriculum: Curriculum, beta: float, stream: Generator) -> None:
        if not isinstance(curriculum, Curriculum):
            raise RollinError(
                f"A teacher needs a rollin.Curriculum, got {type(curriculum).__name__}: "
                "Curriculum.along(path, delta=1 / 96, rule=0.0) makes a fine one of a path."
            )
        if not (isinstance(stream, Generator) and isinstance(stream.bit_generator, PCG64)):
            raise RollinError(
                f"A teacher needs a random stream of its own, got {type(stream).__name__}: "
                "numpy.random.default_rng(seed) makes one."
            )
        self.curriculum, self.beta, self.stream = curriculum, check_beta(beta), stream
        self.positions: NDArray[np.float64] = np.array(curriculum.positions)
        self.cells = Cells(curriculum.positions)
        self.progress = curriculum.progress()
        self.window = Window(curriculum.episodes)
        self.range = Range()
        self.steps = self.late = self.abandoned = 0
        self.home = os.getpid()  # a copy in another process would hear of no other's episodes
        self._ticket = 1  # the next one
        self._open: dict[int, Given] = {}  # tickets whose episodes have not ended
        self._k = 0  # context and guide of the last plan
        self._previous: int | None = None
        self.guides = 1  # version of the guide: one more whenever more is mastered

    def __repr__(self) -> str:
        return short_repr(self, k=self.k, K=self.curriculum.K, beta=self.beta)

    @property
    def k(self) -> int:
        """The context that the last plan was given for; `progress.k` is how far was mastered."""
        return self._k

    @property
    def here(self) -> Any:
        """The farthest mastered context."""
        return self.curriculum.contexts[self.progress.k]

    @property
    def previous(self) -> int | None:
        """The context whose policy rolls in by the last plan; None if none does."""
        return self._previous

    @property
    def threshold(self) -> float:
        """What the slow mean of success must reach in a cell; the window shows successes, too."""
        return MASTERED

    @property
    def adapts(self) -> bool:
        """There is always more to keep than progress and window."""
        return True

    def shown(self, end: EpisodeEnd) -> bool:
        """Whether an episode was a success."""
        return end.success

    def still_mastered(self) -> str | None:
        """Nothing: the frontier is told when it moves."""
        return None

    def sample(self, env: int = 0) -> Plan:
        """A plan for one episode."""
        plan, given = self._plan(self._ticket)
        self._open[self._ticket] = given
        self._ticket += 1
        return plan

    def context_of(self, ticket: int) -> int:
        """Index of the context that a ticket was given for, if its episode has not ended yet."""
        if ticket not in self._open:
            raise RollinError(f"Ticket {ticket} is of no episode that is being played.")
        return self._open[ticket].context

    def update(self, end: EpisodeEnd) -> str | None:
        """Count an episode; returns why the frontier advanced or the last cell is mastered."""
        check_ticket(end.ticket, self._ticket)
        self.steps += end.steps
        if end.purpose != "train":
            return None
        given = self._open.pop(end.ticket, None)
        if given is None or end.abandoned:
            self.abandoned += end.abandoned
            self.late += not end.abandoned
            return None
        total = end.prefix_return + end.total
        self.window.add(float(end.success))
        self.range.add(total)
        self._ended(given, end, total)
        if end.rolled_in:
            return None
        self.cells.add(given.context, end.success)
        self._learned(given, end, total)
        return self._judge()

    def go_on(self, steps: int) -> None:
        """Go on after these steps with what was learned, with no ticket given yet."""
        self.steps, self._ticket, self._open = steps, 1, {}

    def get_state(self) -> dict[str, Any]:
        """Everything needed to go on, as JSON-able values."""
        return {
            "teacher": type(self).__name__,
            "progress": self.progress.get_state(),
            "window": self.window.get_state(),
            "cells": self.cells.get_state(),
            "range": self.range.get_state(),
            "steps": self.steps,
            "late": self.late,
            "abandoned": self.abandoned,
            "ticket": self._ticket,
            "plan": [self._k, self._previous],
            "guides": self.guides,
            "open": [[ticket, *given] for ticket, given in self._open.items()],
            "stream": [f"{word:x}" for word in pack_generator(self.stream)],  # too large to count
            "own": self._own_state(),
        }

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Take back what `get_state` gave."""
        if state["teacher"] != type(self).__name__:
            raise RollinError(
                f"This is the teacher {type(self).__name__}, and the saved one was "
                f"{state['teacher']}: make it as it was when it was saved."
            )
        contexts = int(state["progress"]["K"]) + 1
        if contexts != self.curriculum.K + 1:
            raise RollinError(
                f"This teacher's curriculum has {self.curriculum.K + 1} contexts, the saved one "
                f"had {contexts}: make it as it was when it was saved."
            )
        self.progress.set_state(state["progress"])
        self.window.set_state(state["window"])
        self.cells.set_state(state["cells"])
        self.range.set_state(state["range"])
        self.steps = at_least(0, "steps", state["steps"])
        self.late, self.abandoned = int(state["late"]), int(state["abandoned"])
        self._ticket = at_least(1, "ticket", state["ticket"])
        self._open = {int(t): Given(int(index), int(note)) for t, index, note in state["open"]}
        k, previous = state["plan"]
        self._k, self._previous = int(k), None if previous is None else int(previous)
        self.guides = at_least(1, "guides", state["guides"])
        words = [int(word, 16) for word in state["stream"]]
        unpack_generator(self.stream, np.array(words, np.uint64))
        self._take_own(state["own"])

    # ------------------------------------------------------------------ for subclasses

    def _draw(self) -> int:
        """Index of the next context."""
        raise NotImplementedError

    def _plan(self, ticket: int) -> tuple[Plan, Given]:
        """The next plan, and what is kept about it until its episode ends."""
        index = self._draw()
        guide = self._guide_for(index) if self.beta > 0 else None
        return self._planned(ticket, index, guide, self.beta), Given(index, self._note())

    def _guide_for(self, index: int) -> int | None:
        """The context whose policy rolls in for another, or None."""
        return self.cells.below(index)

    def _note(self) -> int:
        """What to keep about a plan beside its context."""
        return 0

    def _ended(self, given: Given, end: EpisodeEnd, total: float) -> None:
        """Take an episode, be it with roll-in or without."""

    def _learned(self, given: Given, end: EpisodeEnd, total: float) -> None:
        """Take an episode that the learner played alone."""

    def _own_state(self) -> dict[str, Any]:
        """What a subclass needs to go on, as JSON-able values."""
        return {}

    def _take_own(self, state: Mapping[str, Any]) -> None:
        """Take back what `_own_state` gave."""

    def _planned(
        self, ticket: int, index: int, guide: int | None, beta: float, **more: Any
    ) -> Plan:
        """A plan for a context, with a roll-in from the context `guide` if there is one."""
        self._k, self._previous = index, guide
        context = self.curriculum.contexts[index].copy()
        if guide is not None:
            shown = self.curriculum.contexts[guide].copy()
            more = {"beta": beta, "guide": self.guides, "guide_context": shown, **more}
        return Plan(ticket, context, standing=False, **more)

    def _nearest(self, position: float) -> int:
        """Index of the context nearest to a position."""
        return int(np.abs(self.positions - position).argmin())

    def _nearest_of(self, indices: Iterable[int], index: int) -> int | None:
        """Of some contexts the nearest to another, the first of those as near."""
        at = self.positions[index]
        return min(
            indices,
            key=lambda j: round(abs(float(self.positions[j] - at)), 9),  # 49/96 - 48/96 is 1/96
            default=None,
        )

    def _any_of(self, cell: int) -> int:
        """A context of a cell."""
        return int(self.stream.choice(self.cells.members[cell]))

    # ------------------------------------------------------------------ inside

    def _judge(self) -> str | None:
        frontier, progress = self.cells.frontier, self.progress
        if frontier is None:
            return None
        reached = self.cells.members[frontier][-1]
        known = progress.k >= reached and (reached < progress.K or progress.completed is not None)
        if known:
            return None
        reason = (
            f"slow mean {self.cells.slow[frontier]:.3f} of successes around position "
            f"{self.positions[reached]:.3g} ≥ {MASTERED:g}"
        )
        self.guides += 1
        if progress.k < reached:
            progress.move(self.steps, reached, reason)
        if progress.finished:
            progress.complete(self.steps, reason)
        return reason
