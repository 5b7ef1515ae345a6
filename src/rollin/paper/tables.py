"""Every table and figure of the paper as a study: conditions, readings, seeds and layout."""

from collections.abc import Iterable, Sequence
from functools import cache

from rollin.checks import did_you_mean
from rollin.errors import RollinError
from rollin.paper import antmaze, four_rooms, velocity
from rollin.runs.records import Reading
from rollin.sweeps.study import METHOD, Condition, Study

BASELINE, ROLLIN = "method=baseline", "method=rollin"  # what is compared with what


def _table(
    name: str,
    printed: str,
    title: str,
    family: str,
    conditions: Iterable[Condition],
    readings: Sequence[Reading],
    rows: Sequence[str],
    seeds: int,
) -> Study:
    """A table; without readings, a figure of curves."""
    return Study(
        name,
        tuple(conditions),
        tuple(readings),
        seeds,
        tuple(rows),
        METHOD,
        BASELINE,
        ROLLIN,
        family,
        "table" if readings else "curves",
        title,
        printed,
    )


def _four_rooms() -> list[Study]:
    every, seeds = four_rooms.conditions(), four_rooms.SEEDS
    kappa, final = (Reading(quantity, four_rooms.STEPS) for quantity in ("kappa", "return"))
    main = [c for c in every if c.labels["beta"] in ("0", f"{four_rooms.HEADLINE_BETA:g}")]

    def table(
        name: str, printed: str, title: str, of: Iterable[Condition], *read: Reading
    ) -> Study:
        rows = ("reward", "alpha")
        return _table(name, printed, title, four_rooms.TASK, of, read, rows, seeds)

    return [
        table("four-rooms", "Tables 6, 7", "Four rooms: progress and return, all β",
              every, kappa, final),
        table("four-rooms-summary", "Table 1", "Four rooms: progress and return, β = 0.75",
              main, kappa, final),
        table("four-rooms-progress", "Table 6", "Four rooms: progress, all β", every, kappa),
        table("four-rooms-return", "Table 7", "Four rooms: final return, all β", every, final),
        *(
            table(f"four-rooms-{reward}-curves", figure, f"Four rooms, {reward}: learning curves",
                  (c for c in every if c.labels["reward"] == reward))
            for reward, figure in (("easy", "Figure 4"), ("hard", "Figure 5"))
        ),
    ]  # fmt: skip


def _antmaze() -> list[Study]:
    every, seeds, family = antmaze.conditions(), antmaze.SEEDS, "antmaze"
    kappa = (Reading("kappa", antmaze.STEP),)
    main = [
        c for c in every
        if c.labels["beta"] in ("0", "0.1") and c.labels["delta"] in ("1/24", "1/12")
        and c.labels["noise"] in ("0", "0.1")
    ]  # fmt: skip
    rows = ("setting", "sampling", "delta")
    title = "Ant maze: progress, β = 0.1"
    found = [_table("antmaze-summary", "Table 2", title, family, main, kappa, rows, seeds)]
    settings = {"vanilla": ("Table 8", "vanilla goal reaching"),
                "relabel": ("Table 9", "relabelling"),
                "go-explore": ("Table 10", "Go-Explore")}  # fmt: skip
    for setting, (printed, words) in settings.items():
        some = [c for c in every if c.labels["setting"] == setting]
        rows = ("noise", "sampling", "delta") if setting == "go-explore" else ("sampling", "delta")
        title = f"Ant maze, {words}: progress, all β and Δ"
        found.append(_table(f"antmaze-{setting}", printed, title, family, some, kappa, rows, seeds))
    for number, setting, noise in ((6, "vanilla", "0"), (7, "relabel", "0"),
                                   (8, "go-explore", "0.1"), (9, "go-explore", "0.25"),
                                   (10, "go-explore", "0.5")):  # fmt: skip
        name = f"{setting}-{noise}" if noise != "0" else setting
        words = settings[setting][1] + (f" with noise {noise}" if noise != "0" else "")
        some = [c for c in every if (c.labels["setting"], c.labels["noise"]) == (setting, noise)]
        title, figure = f"Ant maze, {words}: learning curves", f"Figure {number}"
        rows = ("sampling", "delta")
        found.append(_table(f"antmaze-{name}-curves", figure, title, family, some, (), rows, seeds))
    return found


def _velocity() -> list[Study]:
    every, seeds, family = velocity.conditions(), velocity.SEEDS, "velocity"
    main = [c for c in every if c.labels["beta"] in ("0", "0.1")]
    walked = [c for c in every if c.labels["method"] != "scratch"]
    rows = ("env",)
    title = "Velocities: progress, speed and return, β = 0.1"
    read = [Reading(q, step) for step in velocity.STEPS for q in velocity.QUANTITIES]
    found = [_table("velocity-summary", "Table 3", title, family, main, read, rows, seeds)]
    for quantity, name, printed, words in (
        ("kappa", "progress", "Table 11", "progress"),
        ("x_velocity", "speed", "Table 12", "x-velocity"),
        ("return", "return", "Table 13", "return"),
    ):
        read = [Reading(quantity, step) for step in velocity.STEPS]
        title = f"Velocities: {words}, all β"
        found.append(_table(f"velocity-{name}", printed, title, family, walked, read, rows, seeds))
    title = "Velocities: learning curves, β = 0.1"
    curves = _table("velocity-curves", "Figure 11", title, family, main, (), rows, seeds)
    return [*found, curves]


def _picture(name: str, printed: str, title: str) -> Study:
    return Study(name, (), (), 0, kind="picture", title=title, printed=printed)


@cache
def tables() -> dict[str, Study]:
    """All of them by name, in groups of one environment each."""
    drawn = [
        _picture("reward-maps", "Figure 2", "Four rooms: the two rewards and the goals"),
        _picture("goal-path", "Figure 3", "Ant maze: the path of goals"),
    ]
    found = [*_four_rooms(), *_antmaze(), *_velocity(), *drawn]
    return {study.name: study for study in found}


def find_table(name: str, *, others: Iterable[str] = ()) -> Study:
    """The table of a name; an unknown one is refused with the nearest name of all there are."""
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
