"""Teachers that draw a context for each episode from a fine curriculum.

A fine curriculum has its contexts close together on a path, such as 97 of them at the positions
j/96 (`Curriculum.along(path, delta=1 / 96, rule=…)`); its rule is not used. A teacher draws their
indices. Whatever it draws, a share β of its episodes can roll in with the policy of the nearest
mastered context below the drawn one.

`SamplingTeacher` is the base of all of them. `Uniform`, `Fixed` and `Frontier` are here as well.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import PCG64, Generator
from numpy.typing import ArrayLike, NDArray

from rollin.checks import positive
from rollin.curriculum.contexts import Curriculum
from rollin.curriculum.progress import State, Stateful
from rollin.curriculum.teacher import CurriculumTeacher, EpisodeEnd, Plan
from rollin.errors import RollinError

CELLS = 24
FAST, SLOW = 0.3, 0.03  # weight of the newest episode
MASTERED = 0.5  # least slow mean of a mastered cell: 23 successes in a row, or more with failures


@dataclass(frozen=True)
class Given:
    """What a plan is for: the index of a context, and a teacher's own note."""

    context: int
    note: int = 0


class Cells(Stateful):
    """Success along the path: cells of positions, each with two running means.

    A cell is mastered while its slow mean is at least one half. That needs neither a threshold of
    returns nor an order of contexts, so that every teacher can measure progress, and roll in from
    the nearest mastered context.

    of: cell of each context; members: contexts of each cell. Cells without a context are left out.
    """

    fast: State[list[float]]
    slow: State[list[float]]

    def __init__(self, positions: Sequence[float], count: int = CELLS) -> None:
        raw = [min(int(position * count + 1e-9), count - 1) for position in positions]
        known = sorted(set(raw))
        self.of = tuple(known.index(cell) for cell in raw)
        self.members = tuple(
            tuple(j for j, cell in enumerate(self.of) if cell == number)
            for number in range(len(known))
        )
        self.fast = [0.0] * len(known)
        self.slow = [0.0] * len(known)

    def __len__(self) -> int:
        return len(self.members)

    def add(self, index: int, success: bool) -> None:
        """Add an episode under a context."""
        cell = self.of[index]
        value = float(success)
        self.fast[cell] += FAST * (value - self.fast[cell])
        self.slow[cell] += SLOW * (value - self.slow[cell])

    def mastered(self, cell: int) -> bool:
        """Return whether a cell is mastered."""
        return self.slow[cell] >= MASTERED

    @property
    def frontier(self) -> int | None:
        """The farthest mastered cell."""
        return self._nearest_below(len(self))

    def below(self, index: int) -> int | None:
        """Return the last context of the nearest mastered cell below that of a context."""
        cell = self._nearest_below(self.of[index])
        return None if cell is None else self.members[cell][-1]

    def _nearest_below(self, end: int) -> int | None:
        return next((cell for cell in reversed(range(end)) if self.mastered(cell)), None)


class Range(Stateful):
    """The smallest and the largest return so far.

    What a teacher decides by returns it decides by their place in this range, so that rewards
    r → ar + b with a > 0 in episodes of one length change nothing.
    """

    low: State[float] = math.inf
    high: State[float] = -math.inf

    def add(self, total: float) -> None:
        """Add a return."""
        self.low = min(self.low, total)
        self.high = max(self.high, total)

    @property
    def width(self) -> float:
        """The largest less the smallest; 0 before there are two."""
        return max(self.high - self.low, 0.0)

    def place(self, returns: ArrayLike) -> NDArray[np.float64]:
        """Return returns scaled to this range, 0 to 1; only shifted while it has no width."""
        return (np.asarray(returns, np.float64) - self.low) / (self.width or 1.0)


class SamplingTeacher(CurriculumTeacher):
    """Draws a context for each episode; a subclass says which.

    curriculum: a fine one; beta: share of episodes that roll in, where a context below is mastered;
    stream: of random numbers, a PCG64, for this teacher only.

    A guide is the learner's policy when `progress` last advanced, which observes the context that
    it is to reach. Success and return of an episode include those of its roll-in. Mastery is judged
    by episodes without roll-in, which show what the learner can do alone; `progress` only advances.
    Episodes that are abandoned, only observed, or reported twice count only by their steps.
    """

    maker = "Curriculum.along(path, delta=1 / 96, rule=0.0) makes a fine one of a path"
    cells: State[Cells]
    range: State[Range]
    stream: State[Generator]
    _guides: State[int] = 1  # one more whenever more is mastered
    _open: State[dict[int, Given]]  # plans whose episodes have not ended
    _k: State[int] = 0  # context of the last plan
    _previous: State[int | None] = None  # and of its guide

    def __init__(self, curriculum: Curriculum, beta: float, stream: Generator) -> None:
        super().__init__(curriculum, beta)
        if not (isinstance(stream, Generator) and isinstance(stream.bit_generator, PCG64)):
            raise RollinError(
                f"A teacher needs a random stream of its own, got {type(stream).__name__}: "
                "numpy.random.default_rng(seed) makes one."
            )
        self.stream = stream
        self.positions: NDArray[np.float64] = np.array(curriculum.positions)
        self.cells = Cells(curriculum.positions)
        self.range = Range()
        self._open = {}

    @property
    def k(self) -> int:
        """The context of the last plan; `progress.k` is how far was mastered."""
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
        """What the slow mean of success must reach in a cell; the window holds successes."""
        return MASTERED

    def context_of(self, plan_id: int) -> int:
        """Return the index of the context of a plan whose episode has not ended."""
        if plan_id not in self._open:
            raise RollinError(f"Plan {plan_id} is of no episode that is being played.")
        return self._open[plan_id].context

    def update(self, end: EpisodeEnd) -> str | None:
        """Count an episode; return why the frontier advanced or the last cell is mastered."""
        reason = super().update(end)
        if end.purpose == "train":
            self._open.pop(end.plan_id, None)
        return reason

    def _make_plan(self, plan_id: int) -> Plan:
        plan, self._open[plan_id] = self._plan(plan_id)
        return plan

    def _take(self, end: EpisodeEnd) -> str | None:
        given = self._open.get(end.plan_id)
        if given is None:
            self.late += 1
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

    def resume_at(self, steps: int) -> None:
        """Resume after these steps with what was learned, before the first plan."""
        super().resume_at(steps)
        self._open = {}

    # ------------------------------------------------------------------ for subclasses

    def _draw(self) -> int:
        """Return the index of the next context."""
        raise NotImplementedError

    def _plan(self, plan_id: int) -> tuple[Plan, Given]:
        """Return the next plan, and what to remember until its episode ends."""
        index = self._draw()
        guide = self._guide_for(index) if self.beta > 0 else None
        return self._planned(plan_id, index, guide, self.beta), Given(index, self._note())

    def _guide_for(self, index: int) -> int | None:
        """Return the context whose policy rolls in for another, or None."""
        return self.cells.below(index)

    def _note(self) -> int:
        """Return a number to remember with a plan."""
        return 0

    def _ended(self, given: Given, end: EpisodeEnd, total: float) -> None:
        """Use the end of an episode, with roll-in or without."""

    def _learned(self, given: Given, end: EpisodeEnd, total: float) -> None:
        """Use the end of an episode without roll-in."""

    def _planned(
        self, plan_id: int, index: int, guide: int | None, beta: float, **more: Any
    ) -> Plan:
        """Return a plan for a context, with a roll-in from the context `guide` if there is one."""
        self._k = index
        self._previous = guide
        context = self.curriculum.contexts[index].copy()
        if guide is not None:
            observed = self.curriculum.contexts[guide].copy()
            more = {"beta": beta, "guide": self.guides, "guide_context": observed, **more}
        return Plan(plan_id, context, standing=False, **more)

    def _nearest(self, position: float) -> int:
        """Return the index of the context nearest to a position."""
        return int(np.abs(self.positions - position).argmin())

    def _nearest_of(self, indices: Iterable[int], index: int) -> int | None:
        """Return the first of the contexts nearest to another, of some."""
        at = self.positions[index]
        return min(
            indices,
            key=lambda j: round(abs(float(self.positions[j] - at)), 9),  # 49/96 - 48/96 is 1/96
            default=None,
        )

    def _any_of(self, cell: int) -> int:
        """Draw a context of a cell."""
        return int(self.stream.choice(self.cells.members[cell]))

    # ------------------------------------------------------------------ inside

    def _judge(self) -> str | None:
        """Advance if the frontier has moved; return the reason."""
        frontier = self.cells.frontier
        progress = self.progress
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
        self._guides += 1
        if progress.k < reached:
            progress.move(self.steps, reached, reason)
        if progress.finished:
            progress.complete(self.steps, reason)
        return reason


# ------------------------------------------------------------------ three teachers


class Uniform(SamplingTeacher):
    """Draws every context with the same probability, which is domain randomisation.

    >>> import numpy as np
    >>> import rollin
    >>> path = rollin.Curriculum.along([[0.0], [8.0]], delta=1 / 96, rule=0.0)
    >>> teacher = rollin.teachers.Uniform(path, beta=0.0, stream=np.random.default_rng(0))
    >>> [round(teacher.sample().context.item(), 3) for _ in range(3)]
    [6.833, 5.083, 4.083]
    """

    about = "every context with the same probability"

    def _draw(self) -> int:
        return int(self.stream.integers(len(self.positions)))


class Fixed(SamplingTeacher):
    """Draws the final context always; no other is ever mastered, so it never rolls in.

    >>> import numpy as np
    >>> import rollin
    >>> path = rollin.Curriculum.along([[0.0], [8.0]], delta=1 / 96, rule=0.0)
    >>> teacher = rollin.teachers.Fixed(path, beta=0.1, stream=np.random.default_rng(0))
    >>> plan = teacher.sample()
    >>> plan.context.item(), plan.beta
    (8.0, 0.0)
    """

    about = "only the last context"

    def _draw(self) -> int:
        return self.curriculum.K


class Frontier(SamplingTeacher):
    """Draws a cell with probability ∝ |fast - slow| + floor, then any context of it.

    The difference of the two means of success is the learning progress there, by which Baranes &
    Oudeyer (2013) draw regions of goals. It needs no switch, no return threshold and no step.

    Contexts beyond the farthest mastered cell roll in with the policy of the nearest mastered one,
    a share β of their episodes; the others do not. floor: keeps every cell in view, forgotten and
    unreached ones too.

    >>> import numpy as np
    >>> import rollin
    >>> path = rollin.Curriculum.along([[0.0], [8.0]], delta=1 / 96, rule=0.0)
    >>> teacher = rollin.teachers.Frontier(path, beta=0.1, stream=np.random.default_rng(0))
    >>> teacher.probabilities[:2].round(4).tolist()
    [0.0417, 0.0417]
    """

    about = "cells of the path where success changes, with roll-in beyond what is mastered"

    def __init__(
        self, curriculum: Curriculum, beta: float, stream: Generator, *, floor: float = 0.05
    ) -> None:
        super().__init__(curriculum, beta, stream)
        self.floor = positive("floor", floor)

    @property
    def probabilities(self) -> NDArray[np.float64]:
        """Of the cells."""
        weights = np.abs(np.subtract(self.cells.fast, self.cells.slow)) + self.floor
        return weights / weights.sum()

    def _draw(self) -> int:
        return self._any_of(int(self.stream.choice(len(self.cells), p=self.probabilities)))

    def _guide_for(self, index: int) -> int | None:
        frontier = self.cells.frontier
        beyond = frontier is not None and self.cells.of[index] > frontier
        return self.cells.below(index) if beyond else None
