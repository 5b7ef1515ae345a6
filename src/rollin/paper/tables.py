"""Every table and figure of the paper by its name: cells, readings, seeds and layout."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal

from rollin.checks import did_you_mean
from rollin.errors import RollinError
from rollin.paper import antmaze, four_rooms, velocity
from rollin.sweeps.study import Condition, Reading

Kind = Literal["table", "curves", "picture"]


@dataclass(frozen=True, eq=False)
class Table:
    """A table or figure: its cells, and what is read from each.

    rows, columns: labels that lay it out, one grid for each reading; seeds: of the paper.
    A figure of curves has the cells whose runs it shows; a picture has none.
    """

    name: str
    printed: str
    title: str
    kind: Kind = "table"
    cells: tuple[Condition, ...] = ()
    readings: tuple[Reading, ...] = ()
    rows: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    seeds: int = 0

    @property
    def family(self) -> str:
        """What its environment belongs to: tables of one family have runs in common."""
        task = self.cells[0].task
        return {"four-rooms": task, antmaze.TASK: "antmaze"}.get(task, "velocity")

    @property
    def steps(self) -> int:
        """Steps of its longest run, at the paper's length."""
        return max((cell.config.steps for cell in self.cells), default=0)

    def only(self, chosen: Sequence[Condition]) -> "Table":
        """The same table with some of its cells."""
        return replace(self, cells=tuple(chosen))

    def baseline(self, cell: Condition) -> Condition | None:
        """What a cell is compared with: the baseline that shares its other labels."""
        return next((c for c in self.cells if c.is_baseline and c.setting == cell.setting), None)


def _curves(name: str, printed: str, title: str, cells: Iterable[Condition], seeds: int) -> Table:
    return Table(name, printed, title, "curves", tuple(cells), seeds=seeds)


def _four_rooms() -> list[Table]:
    cells, seeds = four_rooms.cells(), four_rooms.SEEDS
    kappa, final = (Reading(figure, four_rooms.STEPS) for figure in ("kappa", "final_return"))
    layout = {"rows": ("reward", "alpha"), "columns": ("method", "beta"), "seeds": seeds}
    main = [c for c in cells if c.labels["beta"] in ("0", f"{four_rooms.HEADLINE_BETA:g}")]

    def table(name: str, printed: str, title: str, of: list[Condition], *read: Reading) -> Table:
        return Table(name, printed, title, cells=tuple(of), readings=read, **layout)

    return [
        table("four-rooms", "Tables 6, 7", "Four rooms: progress and return, all β",
              cells, kappa, final),
        table("four-rooms-summary", "Table 1", "Four rooms: progress and return, β = 0.75",
              main, kappa, final),
        table("four-rooms-progress", "Table 6", "Four rooms: progress, all β", cells, kappa),
        table("four-rooms-return", "Table 7", "Four rooms: final return, all β", cells, final),
        *(
            _curves(f"four-rooms-{reward}-curves", figure, f"Four rooms, {reward}: learning curves",
                    (c for c in cells if c.labels["reward"] == reward), seeds)
            for reward, figure in (("easy", "Figure 4"), ("hard", "Figure 5"))
        ),
    ]  # fmt: skip


def _antmaze() -> list[Table]:
    cells, seeds = antmaze.cells(), antmaze.SEEDS
    kappa = (Reading("kappa", antmaze.STEP),)
    main = [
        c for c in cells
        if c.labels["beta"] in ("0", "0.1") and c.labels["delta"] in ("1/24", "1/12")
        and c.labels["noise"] in ("0", "0.1")
    ]  # fmt: skip
    found = [
        Table("antmaze-summary", "Table 2", "Ant maze: progress, β = 0.1", cells=tuple(main),
              readings=kappa, rows=("setting", "sampling", "delta"), columns=("method", "beta"),
              seeds=seeds)
    ]  # fmt: skip
    settings = {"vanilla": ("Table 8", "vanilla goal reaching"),
                "relabel": ("Table 9", "relabelling"),
                "go-explore": ("Table 10", "Go-Explore")}  # fmt: skip
    for setting, (printed, words) in settings.items():
        some = tuple(c for c in cells if c.labels["setting"] == setting)
        rows = ("noise", "sampling", "delta") if setting == "go-explore" else ("sampling", "delta")
        found.append(
            Table(f"antmaze-{setting}", printed, f"Ant maze, {words}: progress, all β and Δ",
                  cells=some, readings=kappa, rows=rows, columns=("method", "beta"), seeds=seeds)
        )  # fmt: skip
    for number, setting, noise in ((6, "vanilla", "0"), (7, "relabel", "0"),
                                   (8, "go-explore", "0.1"), (9, "go-explore", "0.25"),
                                   (10, "go-explore", "0.5")):  # fmt: skip
        name = f"{setting}-{noise}" if noise != "0" else setting
        words = settings[setting][1] + (f" with noise {noise}" if noise != "0" else "")
        some = (c for c in cells if (c.labels["setting"], c.labels["noise"]) == (setting, noise))
        title = f"Ant maze, {words}: learning curves"
        found.append(_curves(f"antmaze-{name}-curves", f"Figure {number}", title, some, seeds))
    return found


def _velocity() -> list[Table]:
    cells, seeds = velocity.cells(), velocity.SEEDS
    main = [c for c in cells if c.labels["beta"] in ("0", "0.1")]
    walked = [c for c in cells if c.labels["method"] != "scratch"]
    found = [
        Table("velocity-summary", "Table 3", "Velocities: progress, speed and return, β = 0.1",
              cells=tuple(main),
              readings=tuple(Reading(f, s) for s in velocity.STEPS for f in velocity.NAMES),
              rows=("env",), columns=("method", "beta"), seeds=seeds)
    ]  # fmt: skip
    for figure, name, printed, words in (
        ("kappa", "progress", "Table 11", "progress"),
        ("x_velocity_mean_last", "speed", "Table 12", "x-velocity"),
        ("return_mean_last", "return", "Table 13", "return"),
    ):
        readings = tuple(Reading(figure, step) for step in velocity.STEPS)
        found.append(
            Table(f"velocity-{name}", printed, f"Velocities: {words}, all β", cells=tuple(walked),
                  readings=readings, rows=("env",), columns=("method", "beta"), seeds=seeds)
        )  # fmt: skip
    title = "Velocities: learning curves, β = 0.1"
    return [*found, _curves("velocity-curves", "Figure 11", title, main, seeds)]


@cache
def tables() -> dict[str, Table]:
    """All of them by name, in groups of one environment each."""
    drawn = [
        Table("reward-maps", "Figure 2", "Four rooms: the two rewards and the goals", "picture"),
        Table("goal-path", "Figure 3", "Ant maze: the path of goals", "picture"),
    ]
    found = [*_four_rooms(), *_antmaze(), *_velocity(), *drawn]
    return {table.name: table for table in found}


def find_table(name: str, *, others: Iterable[str] = ()) -> Table:
    """The table of a name; an unknown one is refused with the nearest name of all there are."""
    known = tables()
    if name not in known:
        raise RollinError(
            f"Unknown table {name!r}: rollin reproduce --list shows all {len(known)}."
            f"{did_you_mean(name, [*known, *others])}"
        )
    return known[name]


def all_cells() -> list[Condition]:
    """Every condition of the paper, once."""
    return [*four_rooms.cells(), *antmaze.cells(), *velocity.cells()]
