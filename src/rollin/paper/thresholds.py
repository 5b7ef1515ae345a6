"""At which κ the threshold R(κ) of a velocity task is read: what the published returns allow.

A robot at index k = 0 … 9 is paid for the band [λκ, λ(κ + 0.1)) with κ = (k + 1)/10, and goes on
when the mean return of ten episodes exceeds R. The text does not say at which κ this R is taken
once progress is k/9. A seed at k has passed R at k - 1 and not yet R at k; the published κ say at
which k the seeds stand, and the published returns and velocities what they earned there.
"""

from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import cache
from typing import NamedTuple

import numpy as np

from rollin.analysis.lattice import Error, Lattice, fastest, seed_sets
from rollin.analysis.sheet import Sheet, sheet
from rollin.envs.velocity import HORIZON, ROBOTS, Robot
from rollin.paper import velocity
from rollin.sweeps.published import Published
from rollin.sweeps.study import Condition, Reading

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
"""What no text says, but the test must be able to tell apart."""
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


class Standing(NamedTuple):
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
        return shown(self.sets[0]) if len(self.sets) == 1 else f"{len(self.sets)} ways"


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


def shown(seeds: Iterable[int]) -> str:
    """Seeds in words: 3 × 7, 5 × 8."""
    values = list(seeds)
    return ", ".join(f"{values.count(k)} × {k}" for k in sorted(set(values)))


@cache
def standings() -> tuple[Standing, ...]:
    """All 40 printed cells of progress, in the order of the tables."""
    found: list[Standing] = []
    for cell in velocity.conditions():
        for step in velocity.STEPS if cell.labels["method"] != "scratch" else ():
            kappa, speed, total = (cell.published[Reading(n, step)] for n in velocity.QUANTITIES)
            n = velocity.SEEDS
            sets = {
                one
                for ddof in (0, 1)
                for one in seed_sets(INDICES, n, *kappa, Error(divisor=n, ddof=ddof))
            }
            found.append(Standing(cell, step, kappa, speed, total, tuple(sorted(sets))))
    return tuple(found)


def weigh(at: Standing, reading: Argument, band: Argument = READINGS["(k + 1)/10"]) -> Evidence:
    """What one cell says of a reading of R."""
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
    for at in standings():
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
    """How many cells speak against each reading, robot by robot."""
    rows: list[list[object]] = []
    for name, reading in (READINGS | LOWER).items():
        for robot in (*(ROBOTS if name in READINGS else ()), "all"):
            some = [weigh(at, reading) for at in standings() if robot in (at.cell.task, "all")]
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
    for at in standings():
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
    """What the seeds must have done that stand at the last index after a million steps."""
    (at,) = (at for at in standings() if (at.cell.task, at.cell.labels["beta"], at.step) == FASTEST)
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
