"""Every table and figure of the paper as a study, and the names of studies beyond them.

A new one is made here and in the module of its environment, and nowhere else.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from typing import NamedTuple

from rollin.checks import did_you_mean
from rollin.errors import RollinError
from rollin.paper import antmaze, four_rooms, velocity
from rollin.runs.records import MetricAt
from rollin.sweeps.condition import Condition
from rollin.sweeps.study import METHOD, Study


def _table(
    family: str,
    seeds: int,
    name: str,
    printed: str,
    title: str,
    conditions: Iterable[Condition],
    readings: Sequence[MetricAt],
    *rows: str,
) -> Study:
    """A table; without readings, a figure of curves."""
    return Study(
        name,
        tuple(conditions),
        tuple(readings),
        seeds,
        rows,
        columns=METHOD,
        baseline="method=baseline",
        compared="method=rollin",
        family=family,
        kind="table" if readings else "curves",
        title=title,
        printed=printed,
    )


def _with(conditions: Iterable[Condition], **labels: Sequence[str]) -> list[Condition]:
    """The conditions whose labels have one of the given values."""
    return [c for c in conditions if all(c.labels[n] in values for n, values in labels.items())]


def _four_rooms() -> list[Study]:
    every = four_rooms.conditions()
    kappa = MetricAt("kappa", four_rooms.STEPS)
    final = MetricAt("return", four_rooms.STEPS)
    main = _with(every, beta=("0", f"{four_rooms.HEADLINE_BETA:g}"))
    make = partial(_table, four_rooms.TASK, four_rooms.SEEDS)
    rows = ("reward", "alpha")
    found = [
        make("four-rooms", "Tables 6, 7", "Four rooms: progress and return, all β",
             every, (kappa, final), *rows),
        make("four-rooms-summary", "Table 1", "Four rooms: progress and return, β = 0.75",
             main, (kappa, final), *rows),
        make("four-rooms-progress", "Table 6", "Four rooms: progress, all β",
             every, (kappa,), *rows),
        make("four-rooms-return", "Table 7", "Four rooms: final return, all β",
             every, (final,), *rows),
    ]  # fmt: skip
    for reward, figure in (("easy", "Figure 4"), ("hard", "Figure 5")):
        title = f"Four rooms, {reward}: learning curves"
        some = _with(every, reward=(reward,))
        found.append(make(f"four-rooms-{reward}-curves", figure, title, some, (), *rows))
    return found


def _antmaze() -> list[Study]:
    every = antmaze.conditions()
    kappa = (MetricAt("kappa", antmaze.STEP),)
    make = partial(_table, "antmaze", antmaze.SEEDS)
    main = _with(every, beta=("0", "0.1"), delta=("1/24", "1/12"), noise=("0", "0.1"))
    title = "Ant maze: progress, β = 0.1"
    rows = ("sampling", "delta")
    found = [make("antmaze-summary", "Table 2", title, main, kappa, "setting", *rows)]
    settings = {"vanilla": "vanilla goal reaching", "relabel": "relabelling",
                "go-explore": "Go-Explore"}  # fmt: skip
    for number, (setting, words) in enumerate(settings.items(), start=8):
        some = _with(every, setting=(setting,))
        title = f"Ant maze, {words}: progress, all β and Δ"
        down = ("noise", *rows) if setting == "go-explore" else rows
        found.append(make(f"antmaze-{setting}", f"Table {number}", title, some, kappa, *down))
    figures = (("vanilla", "0"), ("relabel", "0"), ("go-explore", "0.1"), ("go-explore", "0.25"),
               ("go-explore", "0.5"))  # fmt: skip
    for number, (setting, noise) in enumerate(figures, start=6):
        name = f"antmaze-{setting}-{noise}-curves" if noise != "0" else f"antmaze-{setting}-curves"
        words = settings[setting] + (f" with noise {noise}" if noise != "0" else "")
        some = _with(every, setting=(setting,), noise=(noise,))
        title = f"Ant maze, {words}: learning curves"
        found.append(make(name, f"Figure {number}", title, some, (), *rows))
    return found


def _velocity() -> list[Study]:
    every = velocity.conditions()
    make = partial(_table, "velocity", velocity.SEEDS)
    main = _with(every, beta=("0", "0.1"))
    with_curriculum = _with(every, method=("baseline", "rollin"))
    title = "Velocities: progress, speed and return, β = 0.1"
    read = [MetricAt(q, step) for step in velocity.STEPS for q in velocity.QUANTITIES]
    found = [make("velocity-summary", "Table 3", title, main, read, "env")]
    for quantity, name, printed, words in (
        ("kappa", "progress", "Table 11", "progress"),
        ("x_velocity", "speed", "Table 12", "x-velocity"),
        ("return", "return", "Table 13", "return"),
    ):
        read = [MetricAt(quantity, step) for step in velocity.STEPS]
        title = f"Velocities: {words}, all β"
        found.append(make(f"velocity-{name}", printed, title, with_curriculum, read, "env"))
    title = "Velocities: learning curves, β = 0.1"
    return [*found, make("velocity-curves", "Figure 11", title, main, (), "env")]


@cache
def tables() -> dict[str, Study]:
    """All of them by name, in groups of one environment each; pictures have no runs."""
    pictures = (
        ("reward-maps", "Figure 2", "Four rooms: the two rewards and the goals"),
        ("goal-path", "Figure 3", "Ant maze: the path of goals"),
    )
    drawn = [
        Study(name, (), (), 0, kind="picture", title=title, printed=printed)
        for name, printed, title in pictures
    ]
    found = [*_four_rooms(), *_antmaze(), *_velocity(), *drawn]
    return {study.name: study for study in found}


def find_table(name: str, *, others: Iterable[str] = ()) -> Study:
    """Return the table of a name; raise RollinError with the nearest of all names if unknown."""
    known = tables()
    if name not in known:
        raise RollinError(
            f"Unknown table {name!r}: rollin reproduce --list shows all {len(known)}."
            f"{did_you_mean(name, [*known, *others])}"
        )
    return known[name]


@cache
def all_conditions() -> tuple[Condition, ...]:
    """Every condition of the paper, once."""
    found = (condition for study in tables().values() for condition in study.conditions)
    return tuple(dict.fromkeys(found))


# ------------------------------------------------------------------ beyond the tables


class Extra(NamedTuple):
    """A study beyond the tables: what of the paper it is about, its title, its whole family."""

    about: str
    title: str
    family: Callable[[], dict[str, Study]]


def _curricula() -> dict[str, Study]:
    from rollin.paper import curricula  # configures all its conditions

    return curricula.studies()


def _decisive() -> dict[str, Study]:
    from rollin.paper import decisive  # configures all its conditions

    return decisive.studies()


def _standard() -> dict[str, Study]:
    from rollin.paper import standard  # configures all its conditions

    return standard.studies()


EXTRAS: dict[str, Extra] = {
    "curricula": Extra(
        "extension", "Ten teachers, hand-set R and Δ, and neither, on four small tasks", _curricula
    ),
    "curricula-rollin": Extra(
        "extension", "The teachers that know nothing of roll-in, with it, on two mazes", _curricula
    ),
    "antmaze-decisive": Extra(
        "Table 8", "Ant maze, Δ = 1/12, uniform sampling: the one row that four seeds decide",
        _decisive,
    ),
    "antmaze-tuning": Extra("extension", "Ant maze, adaptive curriculum: γ", _decisive),
    "antmaze-adaptive": Extra(
        "extension", "Ant maze, adaptive curriculum, held-out seeds", _decisive
    ),
    "antmaze-scratch": Extra("extension", "Ant maze, the final goal only", _decisive),
    "standard": Extra(
        "extension", "Adaptive curricula on tasks that others made (extra robotics)", _standard
    ),
    "standard-tuning": Extra("extension", "Tasks that others made, tuning seeds", _standard),
}  # fmt: skip
