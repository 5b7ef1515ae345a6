"""`Frontier`: practise where success changes, and roll in beyond what is mastered.

No switch, no return threshold and no step: 24 cells of the path, each with a fast and a slow mean
of success, whose difference is the learning progress there (Baranes & Oudeyer 2013 draw regions of
goals by it).
"""

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from rollin.checks import positive
from rollin.curriculum.contexts import Curriculum
from rollin.curriculum.teachers.sampling import SamplingTeacher


class Frontier(SamplingTeacher):
    """Draws a cell with probability ∝ |fast - slow| + floor, then any context of it.

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
