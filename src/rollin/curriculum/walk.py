"""The curriculum of the paper as a teacher: ω_0 … ω_K one by one, each until it is mastered.

When a context is mastered and where the next one lies can be told by others than the curriculum's
own rule and list (`rollin.curriculum.mastery`, `rollin.curriculum.steps`), and β can follow need.
"""

import math
import os
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from rollin.checks import at_least, check_beta, one_of
from rollin.curriculum.contexts import Curriculum
from rollin.curriculum.mastery import Mastery
from rollin.curriculum.rules import Window
from rollin.curriculum.steps import EARLY, OneByOne, Steps
from rollin.curriculum.teacher import EpisodeEnd, Plan, check_ticket
from rollin.errors import RollinError
from rollin.texts import short_repr

Counted = Literal["all", "main"]
Relabelled = Callable[[Any, Any], float]
"""The return of an episode's outcomes (T, U) under another context."""
NEED = 10  # own episodes that β by need looks at


class Walk:
    """Walks a curriculum; a share β of episodes rolls in with the guide of the context before.

    counted: which episodes the rule looks at, all, or main: only those without roll-in. An episode
    counts with the rewards of its roll-in. Those that end late, under a context already left, and
    abandoned ones count for nothing but their steps.

    when: who says that a context is mastered, the curriculum's own rule if not given; where: who
    chooses the next context, the curriculum's list if not given; need: β only in the share in which
    the agent's own last episodes under ω_k showed no reward; relabelled: what an episode would have
    earned under another context, which `when` compares with; successes: whether a long row of
    successes masters a context, too, for environments that define what a success is.

    >>> import rollin
    >>> walk = rollin.Walk(rollin.Curriculum.listed([[0.0], [1.0]], rule=5.0, episodes=1))
    >>> plan = walk.sample()
    >>> plan.context.tolist(), plan.beta
    ([0.0], 0.0)
    """

    def __init__(
        self,
        curriculum: Curriculum,
        beta: float = 0.1,
        *,
        counted: Counted = "all",
        scratch: bool = False,
        when: Mastery | None = None,
        where: Steps | None = None,
        need: bool = False,
        relabelled: Relabelled | None = None,
        successes: bool = False,
    ) -> None:
        if not isinstance(curriculum, Curriculum):
            raise RollinError(
                f"A walk needs a rollin.Curriculum, got {type(curriculum).__name__}: "
                "Curriculum.listed(contexts, R) makes one of a list."
            )
        one_of("counted", counted, ("all", "main"))
        for name, part, kind in (("when", when, Mastery), ("where", where, Steps)):
            if part is not None and not isinstance(part, kind):
                raise RollinError(
                    f"{name} must be a {kind.__name__} such as "
                    f"{'rollin.Gap()' if name == 'when' else 'rollin.Halving()'}, got "
                    f"{type(part).__name__}."
                )
        if when is None and curriculum.rule is None:
            raise RollinError(
                "This curriculum has no rule that says when a context is mastered: give the walk "
                "when=rollin.Gap(), or the curriculum a return threshold."
            )
        self.curriculum, self.beta, self.counted = curriculum, check_beta(beta), counted
        self.scratch, self.when, self.need = scratch, when, need
        self.successes = successes and when is not None
        self.where: Steps = where or OneByOne()
        self._relabelled = relabelled if when is not None else None
        self.wants: frozenset[str] = frozenset({"trace"} if self._relabelled else set())
        self.progress = curriculum.progress(scratch=scratch)
        self.window = Window(curriculum.episodes)
        self.steps = self.late = self.abandoned = 0
        self.home = os.getpid()  # a copy in another process would hear of no other's episodes
        self._ticket = 1  # the next one
        self._firsts = [(1, self.progress.k)]  # first ticket of each context
        self._early: list[bool] = []  # whether the first own episodes under ω_k showed it
        self._recent: list[bool] = []  # and the last ones
        self._traces: list[Any] = []  # outcomes of the last own episodes
        self._before = math.nan  # the mean return that mastered the last context

    def __repr__(self) -> str:
        return short_repr(self, k=self.k, K=self.curriculum.K, beta=self.beta)

    @property
    def k(self) -> int:
        """The context that is learned now."""
        return self.progress.k

    @property
    def here(self) -> Any:
        """The same as a vector."""
        return self.curriculum.contexts[self.k]

    @property
    def previous(self) -> int | None:
        """The last context that was mastered, whose policy rolls in; None before there is one."""
        if self.scratch or self.k == 0:
            return None
        return self.where.previous if self.where.previous >= 0 else self.k - 1

    @property
    def threshold(self) -> float:
        """What the window's mean must exceed; NaN where nothing can be said yet."""
        if self.when is not None:
            return self.when.threshold(self.window)
        return self.curriculum.threshold(self.k)

    @property
    def adapts(self) -> bool:
        """Whether there is more to keep than progress and window."""
        return self.when is not None or self.need or not isinstance(self.where, OneByOne)

    def sample(self, env: int = 0) -> Plan:
        """The current context, for all environments alike."""
        ticket, k, previous = self._ticket, self.k, self.previous
        self._ticket += 1
        contexts = self.curriculum.contexts
        context, trace, standing = contexts[k].copy(), "trace" in self.wants, not self.need
        if previous is None or self.beta == 0:
            return Plan(ticket, context, trace=trace)
        guide = {"guide": self.guides, "guide_context": contexts[previous].copy()}
        return Plan(ticket, context, self._share(), **guide, standing=standing, trace=trace)

    @property
    def guides(self) -> int:
        """How many guides there were: one for each step forward, none for a way back."""
        ks = [self.progress.first, *(advance.k for advance in self.progress.advances)]
        return sum(later > earlier for earlier, later in pairwise(ks))

    def _share(self) -> float:
        """β, or what is needed of it."""
        if not self.need or not self._recent:
            return self.beta
        last = self._recent[-NEED:]
        return self.beta * (1 - sum(last) / len(last))

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
        if not end.rolled_in:
            self._remember(end)
        if not end.rolled_in or self.counted == "all":
            total = end.prefix_return + end.total
            success = self.successes and end.success
            self.window.add(self._measure(total, end.success), success=success)
            if self.when is not None:
                self.when.add(total)
        return self._judge()

    def _measure(self, total: float, success: bool) -> float:
        """What an episode counts for in the window."""
        rule = None if self.when is not None else self.curriculum.rule
        return total if rule is None else rule.measure(total, success)

    def shown(self, end: EpisodeEnd) -> bool:
        """Whether an episode saw anything of ω_k that earlier behaviour would not have."""
        floor = -math.inf if self.when is None else self.when.floor
        return end.success or end.prefix_return + end.total > floor > -math.inf

    def _remember(self, end: EpisodeEnd) -> None:
        """Keep what later decisions need of the agent's own episode."""
        shown = self.shown(end)
        if len(self._early) < EARLY:
            self._early.append(shown)
        self._recent = [*self._recent, shown][-max(NEED, getattr(self.where, "patience", 0)) :]
        if self._relabelled is not None and end.trace is not None:
            outcomes = np.asarray(end.trace, np.float32)  # as they will be after a resume
            self._traces = [*self._traces, outcomes][-self.curriculum.episodes :]

    def context_of(self, ticket: int) -> int:
        """Index of the context that a ticket was given for."""
        check_ticket(ticket, self._ticket)
        return next(k for first, k in reversed(self._firsts) if first <= ticket)

    def still_mastered(self) -> str | None:
        """Why ω_k is mastered as things stand, or None."""
        if self.when is not None:
            return self.when.mastered(self.window)
        return self.curriculum.mastered(self.k, self.window)

    def _judge(self) -> str | None:
        progress, positions = self.progress, self.curriculum.positions
        mastered = self.still_mastered()
        if mastered and progress.finished:
            known = progress.completed is not None
            progress.complete(self.steps, mastered)
            return None if known else mastered
        if mastered:
            k, skipped = self._next()
            self._before = self.window.mean
            self._enter(k, mastered + skipped)
            return mastered + skipped
        easier = self.where.back(positions, progress.k, self._recent)
        if easier == progress.k:
            return None
        reason = (
            f"no reward in {getattr(self.where, 'patience', NEED)} episodes under context "
            f"{progress.k}: back to context {easier}"
        )
        self._enter(easier, reason)
        return reason

    def _next(self) -> tuple[int, str]:
        """The next context, without those on which the old behaviour earns enough already."""
        positions, bar, skipped = self.curriculum.positions, self._least(), []
        k = self.where.forward(positions, self.k, self._early)
        while k < self.curriculum.K:
            earned = self._base(k)
            if earned is None or not math.fsum(earned) / len(earned) > bar:
                break
            skipped.append(str(k))
            k = self.where.forward(positions, k, [])
        told = f"; so do they under {', '.join(skipped)}, which is left out" if skipped else ""
        return k, told

    def _least(self) -> float:
        """What the mean of any window must exceed, however much its returns scatter."""
        return self.threshold if self.when is None else self.when.threshold(Window(1))

    def _enter(self, k: int, reason: str) -> None:
        """Go to another context."""
        self.progress.move(self.steps, k, reason)
        self.window.restart()
        self._firsts.append((self._ticket, k))
        self._early, self._recent = [], []
        if self.when is not None:
            self.when.begin(self._base(k), self._before)

    def _base(self, k: int) -> Sequence[float] | None:
        """What the agent's last episodes would have earned under a context."""
        if self._relabelled is None or not self._traces:
            return None
        context = self.curriculum.contexts[k]
        return [float(self._relabelled(trace, context)) for trace in self._traces]

    def go_on(self, steps: int) -> None:
        """Go on after these steps where progress and window stand, with no ticket given yet."""
        self.steps, self._ticket, self._firsts = steps, 1, [(1, self.k)]
        if not self.adapts:
            self.where.previous = self.k - 1

    def get_state(self) -> dict[str, Any]:
        """Everything needed to go on, as JSON-able values."""
        state = {
            "progress": self.progress.get_state(),
            "window": self.window.get_state(),
            "steps": self.steps,
            "late": self.late,
            "abandoned": self.abandoned,
            "ticket": self._ticket,
            "firsts": [list(pair) for pair in self._firsts],
        }
        return {**state, "adapted": self._adapted()} if self.adapts else state

    def _adapted(self) -> dict[str, Any]:
        """What there is to keep besides."""
        return {
            "early": list(self._early),
            "recent": list(self._recent),
            "traces": [np.asarray(trace).tolist() for trace in self._traces],
            "before": self._before if math.isfinite(self._before) else None,
            "when": None if self.when is None else self.when.get_state(),
            "where": self.where.get_state(),
        }

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Take back what `get_state` gave."""
        contexts = int(state["progress"]["K"]) + 1
        if contexts != self.curriculum.K + 1:
            raise RollinError(
                f"This teacher's curriculum has {self.curriculum.K + 1} contexts, the saved one "
                f"had {contexts}: make it as it was when it was saved."
            )
        if ("adapted" in state) != self.adapts:
            raise RollinError(
                "The saved teacher had another rule or other steps than this one: make it as it "
                "was when it was saved."
            )
        self.progress.set_state(state["progress"])
        self.window.set_state(state["window"])
        self.steps = at_least(0, "steps", state["steps"])
        self.late, self.abandoned = int(state["late"]), int(state["abandoned"])
        self._ticket = at_least(1, "ticket", state["ticket"])
        self._firsts = [(int(first), int(k)) for first, k in state["firsts"]]
        if self.adapts:
            self._set_adapted(state["adapted"])
        else:
            self.where.previous = self.k - 1

    def _set_adapted(self, state: Mapping[str, Any]) -> None:
        self._early = [bool(shown) for shown in state["early"]]
        self._recent = [bool(shown) for shown in state["recent"]]
        self._traces = [np.asarray(trace, np.float32) for trace in state["traces"]]
        self._before = math.nan if state["before"] is None else float(state["before"])
        if self.when is not None:
            self.when.set_state(state["when"])
        self.where.set_state(state["where"])
