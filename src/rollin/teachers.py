"""Other curricula as teachers: the public names of `rollin.curriculum.teachers`."""

from rollin.curriculum.teachers import (
    ALPGMM,
    CURROT,
    JSRL,
    PLR,
    SPDL,
    TEACHERS,
    Archive,
    Fixed,
    Frontier,
    Reverse,
    SamplingTeacher,
    Uniform,
    make_teacher,
    options_of,
)

__all__ = [
    "ALPGMM",
    "CURROT",
    "JSRL",
    "PLR",
    "SPDL",
    "TEACHERS",
    "Archive",
    "Fixed",
    "Frontier",
    "Reverse",
    "SamplingTeacher",
    "Uniform",
    "make_teacher",
    "options_of",
]
