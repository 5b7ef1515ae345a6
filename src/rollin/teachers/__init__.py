"""Other curricula as teachers, each after its paper; `rollin.teachers` in Python.

All draw a context for each episode from a fine curriculum (`rollin.teachers.sampling`),
and take `curriculum, beta, stream` and options of their own, whose defaults are their papers' where
these have some that fit a path. A new one needs a line in `TEACHERS`.
"""

import inspect
from typing import Any

from numpy.random import Generator

from rollin.checks import did_you_mean, shown
from rollin.curriculum.contexts import Curriculum
from rollin.errors import RollinError
from rollin.teachers.alp_gmm import ALPGMM as ALPGMM
from rollin.teachers.plr import PLR as PLR
from rollin.teachers.sampling import Fixed as Fixed
from rollin.teachers.sampling import Frontier as Frontier
from rollin.teachers.sampling import SamplingTeacher as SamplingTeacher
from rollin.teachers.sampling import Uniform as Uniform
from rollin.teachers.self_paced import CURROT as CURROT
from rollin.teachers.self_paced import SPDL as SPDL
from rollin.teachers.starts import JSRL as JSRL
from rollin.teachers.starts import Archive as Archive
from rollin.teachers.starts import Reverse as Reverse

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
    """Make the teacher of a name; options are its own.

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
    """Return a teacher's options with their defaults.

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
