"""Other curricula as teachers, each after its paper; `rollin.teachers` in Python.

All draw a context for each episode from a fine curriculum (`rollin.curriculum.teachers.sampling`),
and take `curriculum, beta, stream` and options of their own, whose defaults are their papers' where
these have some that fit a path.
"""

import inspect
from typing import Any

from numpy.random import Generator

from rollin.checks import did_you_mean, shown
from rollin.curriculum.contexts import Curriculum
from rollin.curriculum.teachers.alp_gmm import ALPGMM
from rollin.curriculum.teachers.archive import Archive
from rollin.curriculum.teachers.currot import CURROT
from rollin.curriculum.teachers.fixed import Fixed
from rollin.curriculum.teachers.frontier import Frontier
from rollin.curriculum.teachers.jsrl import JSRL
from rollin.curriculum.teachers.plr import PLR
from rollin.curriculum.teachers.reverse import Reverse
from rollin.curriculum.teachers.sampling import SamplingTeacher
from rollin.curriculum.teachers.spdl import SPDL
from rollin.curriculum.teachers.uniform import Uniform
from rollin.errors import RollinError

TEACHERS: dict[str, type[SamplingTeacher]] = {
    "uniform": Uniform,
    "fixed": Fixed,
    "alp-gmm": ALPGMM,
    "plr": PLR,
    "spdl": SPDL,
    "currot": CURROT,
    "frontier": Frontier,
    "jsrl": JSRL,
    "archive": Archive,
    "reverse": Reverse,
}
"""Teachers by their names on the command line; `about` of each says in a line what it does."""


def make_teacher(
    name: str, curriculum: Curriculum, beta: float, stream: Generator, **options: Any
) -> SamplingTeacher:
    """The teacher of a name; options are its own.

    >>> import numpy as np
    >>> import rollin
    >>> path = rollin.Curriculum.along([[0.0], [8.0]], delta=1 / 96, rule=0.0)
    >>> stream = np.random.default_rng(0)
    >>> teacher = rollin.teachers.make_teacher("alp-gmm", path, 0.1, stream, every=100)
    >>> teacher.about
    'contexts around which returns change: ALP-GMM'
    """
    known = options_of(name)
    if unknown := [option for option in options if option not in known]:
        takes = f"its options are {', '.join(known)}" if known else "it has none"
        raise RollinError(f"The teacher {name} has no option {unknown[0]}: {takes}.")
    made: Any = TEACHERS[name]
    return made(curriculum, beta, stream, **options)


def options_of(name: str) -> dict[str, Any]:
    """Options of a teacher with their defaults.

    >>> options_of("frontier")
    {'floor': 0.05}
    """
    if not isinstance(name, str) or name not in TEACHERS:
        raise RollinError(
            f"There is no teacher {shown(name)}: choose one of {', '.join(TEACHERS)}."
            f"{did_you_mean(str(name), TEACHERS)}"
        )
    parameters = inspect.signature(TEACHERS[name]).parameters.values()
    return {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}
