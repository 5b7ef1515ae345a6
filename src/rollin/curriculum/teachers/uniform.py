"""No curriculum: every context is as likely as any other."""

from rollin.curriculum.teachers.sampling import SamplingTeacher


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
