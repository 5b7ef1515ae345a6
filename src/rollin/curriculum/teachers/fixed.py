"""No curriculum: the last context alone."""

from rollin.curriculum.teachers.sampling import SamplingTeacher


class Fixed(SamplingTeacher):
    """Draws the last context always. None below is ever played, so there is no roll-in either.

    >>> import numpy as np
    >>> import rollin
    >>> path = rollin.Curriculum.along([[0.0], [8.0]], delta=1 / 96, rule=0.0)
    >>> teacher = rollin.teachers.Fixed(path, beta=0.1, stream=np.random.default_rng(0))
    >>> plan = teacher.sample()
    >>> plan.context.item(), plan.beta
    (8.0, 0.0)
    """

    about = "the last context alone"

    def _draw(self) -> int:
        return self.curriculum.K
