"""The paper's curriculum as a teacher: ω_0 … ω_K one by one, each until it is mastered.

Another rule than the curriculum's own can decide when a context is mastered
(`rollin.curriculum.mastery`), and other steps than one by one where the next context lies:
`Halving` and `Bold` need no Δ (our extension; the paper's Δ is hand-set).
"""

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from rollin.checks import at_least, check_literal, require_number
from rollin.curriculum.contexts import Curriculum
from rollin.curriculum.mastery import MasteryRule
from rollin.curriculum.progress import HasState, State, Stateful, Window
from rollin.curriculum.teacher import CurriculumTeacher, EpisodeEnd, Plan
from rollin.errors import RollinError, short_repr

Counted = Literal["all", "main"]
Relabelled = Callable[[Any, Any], float]
"""The return of an episode's outcomes (T, U) under another context."""
RECENT = 10  # own episodes under ω_k that are remembered, or as many as the steps look at
EARLY, ENOUGH = 5, 4  # succeeds at once: 4 of the first 5 own episodes under ω_k show it
LOOKS = 64  # plans under the final context that are remembered, more than envs side by side
CONFIRMED = 3  # successes in a row under the final context, looked at ahead, lead there
SLACK = 1e-9  # of positions, which are rounded


@runtime_checkable
class Steps(HasState, Protocol):
    """Chooses the next context of a curriculum by its index."""

    previous: int
    """The last context that was mastered; below the first at the beginning."""

    def forward(self, positions: Sequence[float], k: int, early: Sequence[bool]) -> int:
        """Return the context after k, now mastered; early: whether its first episodes showed it."""
        ...

    def back(self, positions: Sequence[float], k: int, recent: Sequence[bool]) -> int:
        """Return an easier context if k is too hard, else k; recent: whether episodes showed it."""
        ...


class OneByOne(Stateful):
    """The contexts as they are listed, each until it is mastered: the paper's curriculum."""

    previous: State[int] = -1

    def forward(self, positions: Sequence[float], k: int, early: Sequence[bool]) -> int:
        """Return the next one."""
        self.previous = k
        return k + 1

    def back(self, positions: Sequence[float], k: int, recent: Sequence[bool]) -> int:
        """Return k: this never moves back."""
        return k


class Halving(Stateful):
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
    >>> steps.back(at, 2, [False, True, False])  # one had a reward: stay
    2
    >>> steps.forward(at, 2, [True] * 5)  # at once: the step of 1/4 is doubled
    6
    """

    step: State[float]
    previous: State[int] = -1

    def __init__(self, first: float = 1 / 12, most: float = 1 / 12, patience: int = 10) -> None:
        require_number("first", first)
        require_number("most", most)
        if not 0 < first <= most <= 1:
            raise RollinError(
                f"The first step must lie in (0, 1] and not exceed the largest, got {first!r} and "
                f"{most!r}."
            )
        self.step = float(first)
        self.most = float(most)
        self.patience = at_least(1, "patience", patience)

    def __repr__(self) -> str:
        return short_repr(self, step=self.step, most=self.most, patience=self.patience)

    def forward(self, positions: Sequence[float], k: int, early: Sequence[bool]) -> int:
        """Return the farthest context within a step from k."""
        if self.previous >= 0 and len(early) >= EARLY and sum(early[:EARLY]) >= ENOUGH:
            self.step = max(self.step, min(2 * self.step, self.most))
        self.previous = k
        end = positions[k] + self.step
        within = int(np.searchsorted(positions, end + SLACK, side="right")) - 1
        return min(max(within, k + 1), len(positions) - 1)

    def back(self, positions: Sequence[float], k: int, recent: Sequence[bool]) -> int:
        """Return a context half-way back to the last mastered one after episodes without reward."""
        if self.previous < 0 or k - self.previous < 2:
            return k
        patience = self._patience(positions, k)
        if len(recent) < patience or any(recent[-patience:]):
            return k
        begin = positions[self.previous]
        self.step = (positions[k] - begin) / 2
        half = int(np.searchsorted(positions, begin + self.step - SLACK))
        return min(max(half, self.previous + 1), k - 1)

    def _patience(self, positions: Sequence[float], k: int) -> int:
        """Return how many own episodes without a reward show that ω_k is too hard."""
        return self.patience


class Bold(Halving):
    """Halving steps that grow up to the whole path, until one of them was too long.

    first: the step at the beginning, and the largest once one has failed; patience: as of
    `Halving`, and half of it where ω_k is more than a first step away.

    >>> at = [j / 8 for j in range(9)]
    >>> steps = Bold(first=1 / 8)
    >>> k = steps.forward(at, 0, [])
    >>> k, steps.forward(at, k, [True] * 5)  # twice the step
    (1, 3)
    >>> steps.forward(at, 3, [True] * 5)
    7
    >>> steps.back(at, 7, [False] * 5)
    5
    """

    most: State[float]

    def __init__(self, first: float = 1 / 12, patience: int = 10) -> None:
        super().__init__(first, 1.0, patience)
        self.first = float(first)

    def back(self, positions: Sequence[float], k: int, recent: Sequence[bool]) -> int:
        """Return a context half-way back to the last mastered one after episodes without reward."""
        easier = super().back(positions, k, recent)
        if easier != k:
            self.most = self.first
        return easier

    def _patience(self, positions: Sequence[float], k: int) -> int:
        far = positions[k] - positions[self.previous] > self.first + SLACK
        return (self.patience + 1) // 2 if far else self.patience


class SequentialTeacher(CurriculumTeacher):
    """Follows a curriculum; a share β of episodes rolls in with the guide of the context before.

    counted: which episodes the rule looks at, all, or main: only those without roll-in. An episode
    counts with the rewards of its roll-in. Those that end late, under a context already left, and
    abandoned ones count only by their steps.

    when: decides whether a context is mastered, by default the curriculum's own rule; where:
    chooses the next context, by default the next of the list; relabelled: what an episode would
    have earned under another context, which `when` compares with; successes: whether a long row of
    successes masters a context as well, for environments that define what a success is; look_every:
    one episode in so many is played under the final context, which is next once three of these in a
    row succeed; 0 for none.

    >>> import rollin
    >>> listed = rollin.Curriculum.listed([[0.0], [1.0]], rule=5.0, episodes=1)
    >>> plan = rollin.SequentialTeacher(listed).sample()
    >>> plan.context.tolist(), plan.beta
    ([0.0], 0.0)
    """

    when: State[MasteryRule | None] = None
    where: State[Steps]
    _firsts: State[tuple[tuple[int, int], ...]]  # first plan of each context
    _early: State[tuple[bool, ...]] = ()  # whether the first own episodes under ω_k showed it
    _recent: State[tuple[bool, ...]] = ()  # and the last ones
    _traces: State[tuple[NDArray[np.float32], ...]] = ()  # outcomes of the last own episodes
    _before: State[float] = math.nan  # the mean return that mastered the last context
    _since: State[int] = 0  # episodes since the last one that looked ahead
    _looks: State[tuple[int, ...]] = ()  # plans that do, the last ones
    _confirmed: State[int] = 0  # successes in a row among them

    def __init__(
        self,
        curriculum: Curriculum,
        beta: float = 0.1,
        *,
        counted: Counted = "all",
        scratch: bool = False,
        when: MasteryRule | None = None,
        where: Steps | None = None,
        relabelled: Relabelled | None = None,
        successes: bool = False,
        look_every: int = 0,
    ) -> None:
        super().__init__(curriculum, beta)
        check_literal("counted", counted, Counted)
        _check_part("when", when, MasteryRule, "rollin.Gap()")
        _check_part("where", where, Steps, "rollin.Halving()")
        if when is None and curriculum.rule is None:
            raise RollinError(
                "This curriculum has no rule that says when a context is mastered: give the "
                "teacher when=rollin.Gap(), or the curriculum a return threshold."
            )
        self.counted = counted
        self.scratch = scratch
        self.when = when
        self.where = where or OneByOne()
        self.successes = successes and when is not None
        self.look_every = at_least(0, "look_every", look_every)
        self._relabelled = relabelled if when is not None else None
        self.wants = frozenset({"trace"} if self._relabelled else set())
        self.progress = curriculum.progress(scratch=scratch)
        self._firsts = ((1, self.k),)

    @property
    def previous(self) -> int | None:
        """The last context that was mastered, whose policy rolls in; None before there is one."""
        if self.scratch or self.k == 0:
            return None
        return self.where.previous if self.where.previous >= 0 else self.k - 1

    @property
    def threshold(self) -> float:
        """What the window's mean must exceed; NaN while that is unknown."""
        if self.when is not None:
            return self.when.threshold(self.window)
        return self.curriculum.threshold(self.k)

    @property
    def adapts(self) -> bool:
        """Whether the state holds more than progress and window."""
        return self.when is not None or not isinstance(self.where, OneByOne)

    @property
    def guides(self) -> int:
        """Number of guides so far: one for each step forward, none for a step back."""
        ks = [self.progress.first, *(advance.k for advance in self.progress.advances)]
        return sum(later > earlier for earlier, later in pairwise(ks))

    def _make_plan(self, plan_id: int) -> Plan:
        """Return a plan for the current context, the same for all environments, or a look ahead."""
        standing = not self.look_every
        if self._looks_ahead():
            self._looks = (*self._looks, plan_id)[-LOOKS:]
            self._since = 0
            return Plan(plan_id, self.curriculum.contexts[-1].copy(), standing=standing)
        self._since += 1
        context = self.curriculum.contexts[self.k].copy()
        more: dict[str, Any] = {"standing": standing, "trace": "trace" in self.wants}
        previous = self.previous
        if previous is not None and self.beta > 0:
            guide_context = self.curriculum.contexts[previous].copy()
            more |= {"beta": self.beta, "guide": self.guides, "guide_context": guide_context}
        return Plan(plan_id, context, **more)

    def _looks_ahead(self) -> bool:
        """Return whether the next plan is for the final context, wherever the curriculum is."""
        if not self.look_every or self.progress.finished:
            return False
        return self._confirmed > 0 or self._since + 1 >= self.look_every

    def context_of(self, plan_id: int) -> int:
        """Return the index of a plan's context."""
        self._check_plan_id(plan_id)
        if plan_id in self._looks:
            return self.curriculum.K
        return next(k for first, k in reversed(self._firsts) if first <= plan_id)

    def _take(self, end: EpisodeEnd) -> str | None:
        """Count an episode, and advance if the context is mastered."""
        if end.plan_id in self._looks:
            return self._look(end)
        if self.context_of(end.plan_id) != self.k:
            self.late += 1
            return None
        if not end.rolled_in:
            self._remember(end)
        if not end.rolled_in or self.counted == "all":
            total = end.prefix_return + end.total
            success = self.successes and end.success
            ended = success and end.terminated
            self.window.add(self._measure(end), success=success, ended=ended)
            if self.when is not None:
                self.when.add(total)
        return self._judge()

    def _look(self, end: EpisodeEnd) -> str | None:
        """Count an episode under the final context; go there if it is solved already."""
        success = end.success if self.successes else end.total > self.threshold
        self._confirmed = self._confirmed + 1 if success else 0
        if self.progress.finished or self._confirmed < CONFIRMED:
            return None
        reason = f"{CONFIRMED} episodes in a row succeeded under the final context, looked at ahead"
        self.where.previous = self.k  # whose policy goes this far
        self._enter(self.curriculum.K, reason)
        return reason

    def _measure(self, end: EpisodeEnd) -> float:
        """Return the number that an episode adds to the window."""
        total = end.prefix_return + end.total
        rule = None if self.when is not None else self.curriculum.rule
        return total if rule is None else rule.measure(total, end.success)

    def _remember(self, end: EpisodeEnd) -> None:
        """Record what later decisions need of an episode without roll-in.

        It shows ω_k if it earned more there than earlier behaviour would have.
        """
        floor = -math.inf if self.when is None else self.when.floor
        showed = end.success or end.prefix_return + end.total > floor > -math.inf
        self._early = (*self._early, showed)[:EARLY]
        recent = max(RECENT, getattr(self.where, "patience", 0))
        self._recent = (*self._recent, showed)[-recent:]
        if self._relabelled is not None and end.trace is not None:
            outcomes = np.asarray(end.trace, np.float32)  # as they will be after a resume
            self._traces = (*self._traces, outcomes)[-self.curriculum.episodes :]

    def still_mastered(self) -> str | None:
        """Return the reason why ω_k is mastered at the moment, or None."""
        if self.when is not None:
            return self.when.mastered(self.window)
        return self.curriculum.mastered(self.k, self.window)

    def _judge(self) -> str | None:
        """Move to another context if this one is mastered or too hard; return the reason."""
        progress = self.progress
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
        if progress.completed is not None:  # the final context is never too hard again
            return None
        easier = self.where.back(self.curriculum.positions, progress.k, self._recent)
        if easier == progress.k:
            return None
        lost = len(self._recent) - max((i for i, s in enumerate(self._recent, 1) if s), default=0)
        reason = (
            f"no reward in {lost} episodes under context {progress.k}: back to context {easier}"
        )
        self._enter(easier, reason)
        return reason

    def _next(self) -> tuple[int, str]:
        """Return the next context on which the old behaviour does not earn enough already."""
        positions = self.curriculum.positions
        # what the mean of any window must exceed, however much its returns scatter
        bar = self.threshold if self.when is None else self.when.threshold(Window(1))
        skipped: list[str] = []
        k = self.where.forward(positions, self.k, self._early)
        while k < self.curriculum.K:
            earned = self._base(k)
            if earned is None or not math.fsum(earned) / len(earned) > bar:
                break
            skipped.append(str(k))
            k = self.where.forward(positions, k, [])
        reason = f"; so do they under {', '.join(skipped)}, which is left out" if skipped else ""
        return k, reason

    def _enter(self, k: int, reason: str) -> None:
        """Move to another context."""
        self.progress.move(self.steps, k, reason)
        self.window.restart()
        self._firsts = (*self._firsts, (self._next_id, k))
        self._early = self._recent = ()
        self._confirmed = 0
        if self.when is not None:
            self.when.begin(self._base(k), self._before)

    def _base(self, k: int) -> Sequence[float] | None:
        """Return what the agent's last episodes would have earned under a context."""
        if self._relabelled is None or not self._traces:
            return None
        context = self.curriculum.contexts[k]
        return [float(self._relabelled(trace, context)) for trace in self._traces]

    def resume_at(self, steps: int) -> None:
        """Resume from progress and window after these steps, before the first plan."""
        super().resume_at(steps)
        self._firsts = ((1, self.k),)
        if not self.adapts:
            self.where.previous = self.k - 1

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Restore what `get_state` returned, in version 0.2.0 as well."""
        where = {"previous": int(state["progress"]["k"]) - 1}
        super().set_state({"where": where, **state, **state.get("adapted", {})})


def _check_part(name: str, part: object, kind: type, example: str) -> None:
    """Raise if a rule or steps lack the methods of their protocol."""
    if part is not None and not isinstance(part, kind):
        raise RollinError(
            f"{name} must be a {kind.__name__} such as {example}, got {type(part).__name__}."
        )
