"""The curriculum of the paper as a teacher: ω_0 … ω_K one by one, each until it is mastered."""

import os
from collections.abc import Mapping
from typing import Any, Literal

from rollin.checks import at_least, check_beta, one_of
from rollin.curriculum.contexts import Curriculum
from rollin.curriculum.rules import Window
from rollin.curriculum.teacher import EpisodeEnd, Plan
from rollin.errors import RollinError

Counted = Literal["all", "main"]


class Walk:
    """Walks a curriculum; a share β of episodes rolls in with the guide of the context before.

    counted: which episodes the rule looks at, all, or main: only those without roll-in. An episode
    counts with the rewards of its roll-in. Those that end late, under a context already left, and
    abandoned ones count for nothing but their steps.

    >>> import rollin
    >>> walk = rollin.Walk(rollin.Curriculum.listed([[0.0], [1.0]], rule=5.0, episodes=1))
    >>> plan = walk.sample()
    >>> plan.context.tolist(), plan.beta
    ([0.0], 0.0)
    """

    wants: frozenset[str] = frozenset()

    def __init__(
        self,
        curriculum: Curriculum,
        beta: float = 0.1,
        *,
        counted: Counted = "all",
        scratch: bool = False,
    ) -> None:
        if not isinstance(curriculum, Curriculum):
            raise RollinError(
                f"A walk needs a rollin.Curriculum, got {type(curriculum).__name__}: "
                "Curriculum.listed(contexts, R) makes one of a list."
            )
        one_of("counted", counted, ("all", "main"))
        self.curriculum, self.beta, self.counted = curriculum, check_beta(beta), counted
        self.scratch = scratch
        self.progress = curriculum.progress(scratch=scratch)
        self.window = Window(curriculum.episodes)
        self.steps = self.late = self.abandoned = 0
        self.home = os.getpid()  # a copy in another process would hear of no other's episodes
        self._ticket = 1  # the next one
        self._firsts = [(1, self.progress.k)]  # first ticket of each context

    @property
    def k(self) -> int:
        """The context that is learned now."""
        return self.progress.k

    @property
    def threshold(self) -> float:
        """What the window's mean must exceed."""
        return self.curriculum.threshold(self.k)

    def sample(self, env: int = 0) -> Plan:
        """The current context, for all environments alike."""
        ticket, k = self._ticket, self.k
        self._ticket += 1
        context = self.curriculum.contexts[k].copy()
        if k == 0 or self.beta == 0 or self.scratch:
            return Plan(ticket, context)
        previous = self.curriculum.contexts[k - 1].copy()
        return Plan(ticket, context, self.beta, guide=k, guide_context=previous)

    def update(self, end: EpisodeEnd) -> str | None:
        """Count an episode, and go on to the next context if the rule says so.

        Returns why, and why the last context is mastered, the first time.
        """
        planned = self.context_of(end.ticket)
        self.steps += end.steps
        if end.abandoned or end.purpose != "train":
            self.abandoned += end.abandoned
            return None
        if planned != self.k:
            self.late += 1
            return None
        if not end.rolled_in or self.counted == "all":
            total = end.prefix_return + end.total
            self.window.add(self.curriculum.rule.measure(total, end.success))
        return self._judge()

    def context_of(self, ticket: int) -> int:
        """Index of the context that a ticket was given for."""
        if not 1 <= ticket < self._ticket:
            raise RollinError(
                f"This teacher has given the tickets 1 to {self._ticket - 1}, and an episode of "
                f"{ticket} has ended: each teacher must be told of its own plans alone."
            )
        return next(k for first, k in reversed(self._firsts) if first <= ticket)

    def _judge(self) -> str | None:
        progress = self.progress
        mastered = self.curriculum.mastered(progress.k, self.window)
        if mastered and progress.finished:
            known = progress.completed is not None
            progress.complete(self.steps, mastered)
            return None if known else mastered
        if mastered:
            progress.advance(self.steps, mastered)
            self.window.restart()
            self._firsts.append((self._ticket, progress.k))
        return mastered

    def go_on(self, steps: int) -> None:
        """Go on after these steps where progress and window stand, with no ticket given yet."""
        self.steps, self._ticket, self._firsts = steps, 1, [(1, self.k)]

    def get_state(self) -> dict[str, Any]:
        """Everything needed to go on, as JSON-able values."""
        return {
            "progress": self.progress.get_state(),
            "window": self.window.get_state(),
            "steps": self.steps,
            "late": self.late,
            "abandoned": self.abandoned,
            "ticket": self._ticket,
            "firsts": [list(pair) for pair in self._firsts],
        }

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Take back what `get_state` gave."""
        contexts = int(state["progress"]["K"]) + 1
        if contexts != self.curriculum.K + 1:
            raise RollinError(
                f"This teacher's curriculum has {self.curriculum.K + 1} contexts, the saved one "
                f"had {contexts}: make it as it was when it was saved."
            )
        self.progress.set_state(state["progress"])
        self.window.set_state(state["window"])
        self.steps = at_least(0, "steps", state["steps"])
        self.late, self.abandoned = int(state["late"]), int(state["abandoned"])
        self._ticket = at_least(1, "ticket", state["ticket"])
        self._firsts = [(int(first), int(k)) for first, k in state["firsts"]]
