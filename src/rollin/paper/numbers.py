"""What the published tables imply: on which lattice κ lies, the context k of each seed, where R is.

A robot at index k = 0 … 9 is rewarded for the band [λκ, λ(κ + 0.1)) with κ = (k + 1)/10, and
advances when the mean return of ten episodes exceeds the threshold R(κ). The text does not say at
which κ this R is taken once progress is k/9. A seed at k has passed R at k - 1 and not yet R at k;
the published κ give the k of the seeds, and the published returns and velocities what they earned
there.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import cache
from typing import NamedTuple

import numpy as np

from rollin.analysis.sheets import Findings, Sheet, sheet
from rollin.envs.velocity import HORIZON, ROBOTS, Robot
from rollin.paper import antmaze, four_rooms, velocity
from rollin.paper.lattice import Error, Lattice, count, fastest, mixture, seed_sets
from rollin.runs.records import MetricAt
from rollin.sweeps.condition import Condition, Published

Argument = Callable[[int], Fraction]

LAST = 9  # the index of the last band
INDICES = Lattice(LAST, 0, LAST)
READINGS: dict[str, Argument] = {
    "(k + 1)/10": lambda k: Fraction(k + 1, 10),
    "k/9": lambda k: Fraction(k, LAST),
    "k/10": lambda k: Fraction(k, 10),
}
"""κ at index k, as the text can be read: the band's number, progress, and one band before."""
LOWER: dict[str, Argument] = {
    "(k - 1)/10": lambda k: Fraction(k - 1, 10),
    "(k - 2)/10": lambda k: Fraction(k - 2, 10),
}
"""Readings without a text, which the test must be able to reject."""
FAR = 2.0  # standard errors from which on a return counts as far from a threshold
FASTEST = ("hopper", "0.2", 1_000_000)  # the cell in which hoppers stand at the last index


def threshold(robot: Robot, kappa: Fraction) -> float:
    """R(κ)."""
    return float(Fraction(robot.threshold) + Fraction(robot.slope) * kappa)


def ceiling(robot: Robot, kappa: Fraction) -> float:
    """What no return inside a band can reach.

    All steps at its upper edge, none without the high reward, no control cost, no fall.
    """
    top = Fraction(robot.lam) * (kappa + Fraction(1, 10))
    return float(HORIZON * (Fraction(robot.forward) * top + Fraction(robot.high)))


def share_needed(robot: Robot, total: float, speed: float) -> float:
    """The share of steps inside the band that a return needs at an x-velocity; costs left out."""
    return (total / HORIZON - robot.low - robot.forward * speed) / (robot.high - robot.low)


class SeedsOfCell(NamedTuple):
    """A printed cell, and all seeds' k that give its κ ± error, with either deviation."""

    cell: Condition
    step: int
    kappa: Published
    speed: Published
    total: Published
    sets: tuple[tuple[int, ...], ...]

    @property
    def robot(self) -> Robot:
        """The robot's constants."""
        return ROBOTS[self.cell.task]

    @property
    def seeds(self) -> str:
        """Its seeds' k, if there is one way alone."""
        return seeds_text(self.sets[0]) if len(self.sets) == 1 else f"{len(self.sets)} ways"


class Evidence(NamedTuple):
    """A cell against a reading of R; of all sets of seeds the one that fits best counts.

    passed: mean of the thresholds that the seeds passed last; below: by how many standard errors
    the return lies below it; share: steps in the band that this took at the published velocity;
    over: seeds that must have passed an R that no return in its band can reach; above: by how many
    standard errors the return exceeds the thresholds not yet passed (None: a seed may stand at the
    last index, which has none).
    """

    passed: float
    below: float
    share: float
    over: int
    above: float | None


def seeds_text(seeds: Sequence[int]) -> str:
    """Seeds as text: 3 × 7, 5 × 8."""
    return ", ".join(f"{seeds.count(k)} × {k}" for k in sorted(set(seeds)))


@cache
def seeds_of_cells() -> tuple[SeedsOfCell, ...]:
    """All 40 printed cells of progress, in the order of the tables."""
    found: list[SeedsOfCell] = []
    for cell in velocity.conditions():
        for step in velocity.STEPS if cell.labels["method"] != "scratch" else ():
            kappa, speed, total = (cell.published[MetricAt(n, step)] for n in velocity.QUANTITIES)
            n = velocity.SEEDS
            sets = {
                one
                for ddof in (0, 1)
                for one in seed_sets(INDICES, n, *kappa, Error(divisor=n, ddof=ddof))
            }
            found.append(SeedsOfCell(cell, step, kappa, speed, total, tuple(sorted(sets))))
    return tuple(found)


def weigh(at: SeedsOfCell, reading: Argument, band: Argument = READINGS["(k + 1)/10"]) -> Evidence:
    """The evidence of one cell on a reading of R."""
    robot = at.robot
    limits = [threshold(robot, reading(k)) for k in range(LAST + 1)]
    unreachable = [limits[k] >= ceiling(robot, band(k)) for k in range(LAST + 1)]
    passed = min(float(np.mean([limits[k - 1] for k in one if k > 0])) for one in at.sets)
    over = min(sum(any(unreachable[:k]) for k in one) for one in at.sets)
    ahead = None
    if not any(LAST in one for one in at.sets):
        ahead = max(float(np.mean([limits[k] for k in one])) for one in at.sets)
    return Evidence(
        passed,
        (passed - at.total.mean) / at.total.error,
        share_needed(robot, passed, at.speed.mean),
        over,
        None if ahead is None else (at.total.mean - ahead) / at.total.error,
    )


def records() -> Sheet:
    """One row for each cell and reading."""
    rows: list[list[object]] = []
    for at in seeds_of_cells():
        for name, reading in (READINGS | LOWER).items():
            e = weigh(at, reading)
            above = "" if e.above is None else f"{e.above:.2f}"
            rows.append(
                [at.cell.name, at.step, *at.kappa, *at.speed, *at.total, len(at.sets),
                 at.seeds if len(at.sets) == 1 else "", name, f"{e.passed:.1f}", f"{e.below:.2f}",
                 f"{e.share:.3f}", e.over, above]
            )  # fmt: skip
    columns = (
        "cell|step|kappa|kappa_error|x_velocity|x_velocity_error|return|return_error|seed_sets|"
        "seeds|threshold_at|passed|standard_errors_below|share_needed|over_ceiling|"
        "standard_errors_above"
    )
    return sheet("thresholds", "Every cell against every reading of R", columns, rows)


def by_robot() -> Sheet:
    """How many cells contradict each reading, robot by robot."""
    rows: list[list[object]] = []
    for name, reading in (READINGS | LOWER).items():
        for robot in (*(ROBOTS if name in READINGS else ()), "all"):
            some = [weigh(at, reading) for at in seeds_of_cells() if robot in (at.cell.task, "all")]
            ahead = [e.above for e in some if e.above is not None]
            row = [name, robot, len(some), sum(e.below > 0 for e in some),
                   sum(e.below > FAR for e in some), sum(e.share > 1 for e in some),
                   sum(e.over > 0 for e in some),
                   f"{sum(z > FAR for z in ahead)} of {len(ahead)}"]  # fmt: skip
            rows.append([f"**{value}**" for value in row] if robot == "all" else row)
    columns = "R at | robot | cells | below | far below | too slow | out of reach | far above"
    return sheet("thresholds", "Cells that speak against a reading of R", columns, rows)


def hopper() -> Sheet:
    """The hopper's cells, in which the bands leave little room."""
    rows: list[list[object]] = []
    for at in seeds_of_cells():
        if at.cell.task == "hopper":
            found = [weigh(at, reading) for reading in READINGS.values()]
            rows.append(
                [at.cell.labels["beta"], f"{at.step / 1e6:g}", at.kappa, at.seeds, at.speed,
                 at.total, *(f"{e.passed:.0f} ({100 * e.share:.0f} %)" for e in found)]
            )  # fmt: skip
    columns = "β | M steps | κ | seeds × k | x-velocity | return | " + " | ".join(
        f"R at {name}" for name in READINGS
    )
    title = "Hopper: mean R passed last, and the share of steps in the band that it took"
    return sheet("hopper", title, columns, rows)


def last_hoppers() -> Sheet:
    """What the seeds at the last index after a million steps must have done."""
    (at,) = (
        at for at in seeds_of_cells() if (at.cell.task, at.cell.labels["beta"], at.step) == FASTEST
    )
    seeds = min(sum(k == LAST for k in one) for one in at.sets)
    speed = fastest(seeds, velocity.SEEDS, *at.speed)
    pairs = [("(k + 1)/10", name) for name in READINGS]
    pairs += [("k/9", "k/9"), ("k/9", "k/10"), ("k/10", "k/10")]
    rows: list[list[object]] = []
    for band, name in pairs:
        limit = threshold(at.robot, READINGS[name](LAST - 1))
        best = ceiling(at.robot, READINGS[band](LAST - 1))
        share = share_needed(at.robot, limit, speed)
        rows.append([band, name, f"{limit:.0f}", f"{best:.0f}", "no" if limit >= best else "yes",
                     f"{100 * share:.0f} %"])  # fmt: skip
    title = (
        f"Hopper, β = {FASTEST[1]}, a million steps: {seeds} or more of eight seeds have passed "
        f"index {LAST - 1}"
    )
    columns = (
        "band at | R at | R of index 8 | best return in the band | can be passed in it | "
        f"share of steps in it at {speed:.1f} m/s"
    )
    return sheet("hopper-last", title, columns, rows)


# ------------------------------------------------------------------ lattices and seeds


DIVISIONS = {"n": 0, "n - 1": 1}  # by what the squares are divided, and its ddof
POOLED = 500  # ten seeds × fifty: the divisor that the four-room errors have
ROOMS = Lattice(16, 0, 16)
ALL = 0.999  # a share of seeds from which on all of them earn something
MISPRINT = Published.parse("0.939 ± 0.0014")
CORRECTED = Published.parse("0.939 ± 0.014")
"""The one error with a fourth digit, and what fits to the progress of the same runs."""


class Family(NamedTuple):
    """Tables with one lattice: its candidates, the one that fits first, by 1/Δ contexts N."""

    name: str
    cells: list[Condition]
    seeds: int
    divisors: dict[str, int]
    candidates: dict[str, Callable[[int], Lattice]]


def _fixed(parts: int, first: int = 0) -> Callable[[int], Lattice]:
    return lambda _: Lattice(parts, first, parts)


def families() -> list[Family]:
    """The three groups of tables that print progress."""
    with_curriculum = [cell for cell in velocity.conditions() if cell.labels["method"] != "scratch"]
    return [
        Family(
            "ant maze", antmaze.conditions(), antmaze.SEEDS, {"s/√8": 8},
            {
                "k/(N - 1)": lambda n: Lattice(n - 1, 0, n - 1),
                "k/N, k = 0 … N": lambda n: Lattice(n, 0, n),
                "k/N, k = 1 … N": lambda n: Lattice(n, 1, n),
                "k/N, k = 0 … N - 1": lambda n: Lattice(n, 0, n - 1),
                "k/(N + 1)": lambda n: Lattice(n + 1, 0, n + 1),
                "k/(N - 2)": lambda n: Lattice(n - 2, 0, n - 2),
            },
        ),
        Family(
            "velocities", with_curriculum, velocity.SEEDS, {"s/√8": 8},
            {
                "k/9": _fixed(9),
                "k/10, k = 0 … 10": _fixed(10),
                "0.1 … 1 as the text has κ": _fixed(10, first=1),
                "k/8": _fixed(8),
                "k/11": _fixed(11),
                "k/18": _fixed(18),
                "k/19": _fixed(19),
            },
        ),
        Family(
            "four rooms", four_rooms.conditions(), four_rooms.SEEDS,
            {"s/√10": 10, "s/√500": POOLED},
            {"k/16": _fixed(16), "k/15": _fixed(15), "k/17": _fixed(17)},
        ),
    ]  # fmt: skip


def progress(cells: list[Condition]) -> Iterator[tuple[Condition, int, Published]]:
    """Every printed κ, with its cell and step."""
    for cell in cells:
        for (quantity, step), value in cell.published.items():
            if quantity == "kappa" and step is not None:
                yield cell, step, value


def contexts(cell: Condition) -> int:
    """N = 1/Δ of a cell of the maze; 0 where Δ is no label."""
    return int(cell.labels.get("delta", "1/0").removeprefix("1/"))


def enumeration() -> Sheet:
    """One row for each cell, lattice, error and division: how many multisets of seeds give it."""
    rows: list[list[object]] = []
    for family in families():
        for cell, step, printed in progress(family.cells):
            for name, lattice in family.candidates.items():
                for error, divisor in family.divisors.items():
                    for division, ddof in DIVISIONS.items():
                        ways = count(lattice(contexts(cell)), family.seeds, *printed,
                                     Error(divisor, ddof))  # fmt: skip
                        rows.append(
                            [family.name, cell.name, step, *printed, family.seeds, name, error,
                             division, "yes" if ways else "no", ways]
                        )  # fmt: skip
    columns = "tables|cell|step|kappa|error|seeds|lattice|error_is|squares_over|possible|multisets"
    return sheet("cells", "Every printed κ on every lattice", columns, rows)


def lattices(cells: Sheet) -> Sheet:
    """How many cells are impossible on each lattice."""
    impossible: Counter[tuple[str, ...]] = Counter()
    printed: dict[tuple[str, ...], set[tuple[str, str]]] = {}
    for table, cell, step, _, _, seeds, lattice, error, division, possible, _ in cells.rows:
        printed.setdefault((table, seeds, error, lattice), set()).add((cell, step))
        impossible[table, seeds, error, lattice, division] += possible == "no"
    rows: list[list[object]] = []
    for key, some in printed.items():
        numbers = [impossible[*key, division] for division in DIVISIONS]
        bold = "" if any(numbers) else "**"
        table, seeds, error, lattice = key
        row = [table, f"{len(some)} × {seeds}", error, f"{bold}{lattice}{bold}"]
        rows.append([*row, *(f"{bold}{number}{bold}" for number in numbers)])
    columns = "tables | cells × seeds | ± is | lattice | impossible, s² over n | … over n - 1"
    return sheet("lattices", "Cells that no seeds on a lattice can give", columns, rows)


def telling(cells: Sheet) -> Sheet:
    """Cells without spread that are neither 0 nor 1: all seeds are at one k."""
    ways = {(row[1], row[2], row[6]): row[10] for row in cells.rows if row[8] == "n"}
    rows: dict[tuple[str, ...], int] = {}
    for family in families()[:2]:
        own, plain, *_ = family.candidates.items()
        for cell, step, printed in progress(family.cells):
            if printed.error > 0 or printed.mean in (0, 1):
                continue
            lattice = own[1](contexts(cell))
            sets = seed_sets(lattice, family.seeds, *printed, Error(family.seeds))
            seeds = "; ".join(seeds_text(one) for one in sets)
            where = cell.labels.get("delta", cell.task)
            possible = "yes" if ways[cell.name, str(step), plain[0]] != "0" else "no"
            key = (family.name, where, str(printed), f"{seeds} of {lattice.parts}", possible)
            rows[key] = rows.get(key, 0) + 1
    columns = "tables | Δ or robot | printed | seeds × k | possible on k/N or k/10 | cells"
    counted = [[*key, number] for key, number in rows.items()]
    return sheet("telling", "Cells in which all seeds agree", columns, counted)


def _rooms() -> Iterator[tuple[Condition, Published, Published]]:
    for cell in four_rooms.conditions():
        at = four_rooms.STEPS
        kappa, total = (cell.published[MetricAt(name, at)] for name in ("kappa", "return"))
        yield cell, kappa, total


def _row(cell: Condition) -> list[object]:
    return [f"{cell.labels['reward']}, α = {cell.labels['alpha']}", cell.labels["beta"]]


def rooms_progress() -> Sheet:
    """The k of ten seeds in the four-room cells whose seeds differ."""
    rows: list[list[object]] = []
    for cell, kappa, _ in _rooms():
        total = round(ROOMS.parts * four_rooms.SEEDS * kappa.mean)
        if total % four_rooms.SEEDS == 0:  # all at one k
            continue
        sets = seed_sets(ROOMS, four_rooms.SEEDS, *kappa, Error(POOLED))
        seeds = seeds_text(sets[0]) if len(sets) == 1 else f"{len(sets)} ways"
        reach = sorted({one.count(ROOMS.last) for one in sets})
        last = " to ".join(str(number) for number in dict.fromkeys((*reach[:1], *reach[-1:])))
        rows.append([*_row(cell), kappa, f"{total} of 160", seeds if sets else "none", last or "–"])
    columns = "row | β | κ | Σk | seeds × k, with ± as s/√500 | seeds at the last context"
    return sheet("rooms-progress", "Four rooms: where ten seeds stand", columns, rows)


def rooms_returns() -> Sheet:
    """The four-room returns that spread, as seeds at one value and seeds at 0."""
    rows: list[list[object]] = []
    for cell, _, total in _rooms():
        if total == MISPRINT:
            read = CORRECTED
            note = f"{total}, read as {CORRECTED.printed_error}"
        else:
            read = total
            note = str(total)
        if read.error == 0 or (found := mixture(*read, POOLED)).share > ALL:
            continue
        low, high = (10 * share for share in (found.share_low, found.share_high))
        other = 10 * mixture(*read, four_rooms.SEEDS).share
        rows.append(
            [*_row(cell), note, f"{low:.2f} – {high:.2f}", f"{found.value:.2f}", f"{other:.2f}"]
        )
    columns = "row | β | return | seeds of ten, ± as s/√500 | each earns | seeds of ten, ± as s/√10"
    title = "Four rooms: returns as a mixture of 0 and one value"
    return sheet("rooms-returns", title, columns, rows)


def numbers() -> Findings:
    """All that the published numbers imply, without a run."""
    cells = enumeration()
    found = (
        lattices(cells), telling(cells), by_robot(), hopper(),
        last_hoppers(), rooms_progress(), rooms_returns(),
    )  # fmt: skip
    return Findings(found, (cells, records()))
