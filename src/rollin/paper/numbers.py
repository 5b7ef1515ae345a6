"""What the published tables say of themselves: on which lattice κ lies, and where seeds stand."""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import NamedTuple

from rollin.analysis.lattice import Error, Lattice, count, mixture, seed_sets
from rollin.analysis.sheet import Findings, Sheet, sheet
from rollin.paper import antmaze, four_rooms, thresholds, velocity
from rollin.sweeps.published import Published, published
from rollin.sweeps.study import Condition, Reading

DIVISIONS = {"n": 0, "n - 1": 1}  # by what the squares are divided, and its ddof
POOLED = 500  # ten seeds × fifty: the divisor that the four-room errors have
ROOMS = Lattice(16, 0, 16)
ALL = 0.999  # a share of seeds from which on all of them earn something
MISPRINT, CORRECTED = published("0.939 ± 0.0014"), published("0.939 ± 0.014")
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
    walked = [cell for cell in velocity.conditions() if cell.labels["method"] != "scratch"]
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
            "velocities", walked, velocity.SEEDS, {"s/√8": 8},
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
    """Cells without spread that are neither 0 nor 1: all seeds stand at one k, and it shows."""
    ways = {(row[1], row[2], row[6]): row[10] for row in cells.rows if row[8] == "n"}
    rows: dict[tuple[str, ...], int] = {}
    for family in families()[:2]:
        own, plain, *_ = family.candidates.items()
        for cell, step, printed in progress(family.cells):
            if printed.error > 0 or printed.mean in (0, 1):
                continue
            lattice = own[1](contexts(cell))
            sets = seed_sets(lattice, family.seeds, *printed, Error(family.seeds))
            seeds = "; ".join(thresholds.shown(one) for one in sets)
            where = cell.labels.get("delta", cell.task)
            possible = "yes" if ways[cell.name, str(step), plain[0]] != "0" else "no"
            key = (family.name, where, str(printed), f"{seeds} of {lattice.parts}", possible)
            rows[key] = rows.get(key, 0) + 1
    columns = "tables | Δ or robot | printed | seeds × k | possible on k/N or k/10 | cells"
    shown = [[*key, number] for key, number in rows.items()]
    return sheet("telling", "Cells in which all seeds agree", columns, shown)


def _rooms() -> Iterator[tuple[Condition, Published, Published]]:
    for cell in four_rooms.conditions():
        at = four_rooms.STEPS
        kappa, total = (cell.published[Reading(name, at)] for name in ("kappa", "return"))
        yield cell, kappa, total


def _row(cell: Condition) -> list[object]:
    return [f"{cell.labels['reward']}, α = {cell.labels['alpha']}", cell.labels["beta"]]


def rooms_progress() -> Sheet:
    """Where ten seeds stand in the four-room cells whose seeds differ."""
    rows: list[list[object]] = []
    for cell, kappa, _ in _rooms():
        total = round(ROOMS.parts * four_rooms.SEEDS * kappa.mean)
        if total % four_rooms.SEEDS == 0:  # all at one k
            continue
        sets = seed_sets(ROOMS, four_rooms.SEEDS, *kappa, Error(POOLED))
        seeds = thresholds.shown(sets[0]) if len(sets) == 1 else f"{len(sets)} ways"
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
            read, note = CORRECTED, f"{total}, read as {CORRECTED.printed_error}"
        else:
            read, note = total, str(total)
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
    """All that the published numbers tell, without a run."""
    cells = enumeration()
    shown = (
        lattices(cells), telling(cells), thresholds.by_robot(), thresholds.hopper(),
        thresholds.last_hoppers(), rooms_progress(), rooms_returns(),
    )  # fmt: skip
    return Findings(shown, (cells, thresholds.records()))
