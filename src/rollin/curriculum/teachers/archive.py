"""An archive of cells to return to, after Go-Explore (Ecoffet et al. 2021, arXiv 2004.12919).

Policy-based Go-Explore goes back to a cell that it has reached, with a policy that was told which,
and explores from there. A cell is a piece of the path here. The policy π(·|ω) of a cell's context
goes back as a roll-in, then the explorer acts under the last context. Somebody has to learn to go
back: a share 1 - β of the episodes is played under a context of the drawn cell itself.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from rollin.curriculum.contexts import Curriculum
from rollin.curriculum.teacher import EpisodeEnd, Plan
from rollin.curriculum.teachers.sampling import Given, SamplingTeacher


class Archive(SamplingTeacher):
    """Draws a reached cell ∝ 1 / √(visits + 1); goes back there and explores, or practises it.

    A cell is visited by episodes drawn for it, or, if the plan's `trace` is answered with outcomes
    that have a context's form, by every episode with an outcome next to it. Reached are the first
    cell, those visited by a trace, and the one behind each cell in which the learner succeeded.

    >>> import numpy as np
    >>> import rollin
    >>> path = rollin.Curriculum.along([[0.0], [8.0]], delta=1 / 96, rule=0.0)
    >>> teacher = rollin.teachers.Archive(path, beta=0.5, stream=np.random.default_rng(2))
    >>> plan = teacher.sample()
    >>> plan.context.item(), plan.beta, plan.guide_context.item()
    (8.0, 1.0, 0.25)
    """

    about = "rarely visited cells of the path, to go back to and explore from: after Go-Explore"
    wants = frozenset({"trace", "rollin-trace"})

    def __init__(self, curriculum: Curriculum, beta: float, stream: Generator) -> None:
        super().__init__(curriculum, beta, stream)
        self.visits = [0] * len(self.cells)
        self.reached = [cell == 0 for cell in range(len(self.cells))]

    @property
    def probabilities(self) -> NDArray[np.float64]:
        """Of the cells."""
        weights = np.array(self.reached) / np.sqrt(np.array(self.visits) + 1.0)
        return weights / weights.sum()

    def _plan(self, ticket: int) -> tuple[Plan, Given]:
        cell = int(self.stream.choice(len(self.cells), p=self.probabilities))
        if self.stream.random() < self.beta:
            guide = self.cells.members[cell][-1]
            plan = self._planned(ticket, self.curriculum.K, guide, 1.0, trace=True)
            return plan, Given(self.curriculum.K, cell)
        index = self._any_of(cell)
        return self._planned(ticket, index, None, 0.0, trace=True), Given(index, cell)

    def _ended(self, given: Given, end: EpisodeEnd, total: float) -> None:
        for cell in self._visited(end.trace) or {given.note}:
            self.visits[cell] += 1
            self.reached[cell] = True
        if end.success:
            following = min(self.cells.of[given.context] + 1, len(self.cells) - 1)
            self.reached[following] = True

    def _visited(self, trace: Any) -> set[int]:
        """Cells whose contexts are nearest to outcomes; none if these are no contexts."""
        contexts = self.curriculum.contexts
        outcomes = np.empty((0, 0)) if trace is None else np.asarray(trace, np.float64)
        if outcomes.ndim != 2 or outcomes.shape[1] != contexts.shape[1]:
            return set()
        away = ((outcomes[:, None] - contexts[None]) ** 2).sum(-1)
        return {self.cells.of[index] for index in away.argmin(1)}

    def _own_state(self) -> dict[str, Any]:
        return {"visits": list(self.visits), "reached": list(self.reached)}

    def _take_own(self, state: Mapping[str, Any]) -> None:
        self.visits = [int(count) for count in state["visits"]]
        self.reached = [bool(reached) for reached in state["reached"]]
