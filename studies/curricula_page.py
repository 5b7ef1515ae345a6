"""Tables and picture of docs/results/curricula.md on single tasks.

From the records in results/curricula, wrong-threshold, slow-gamma, slow-maze and visited.
"""

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from rollin.analysis.sheets import markdown
from rollin.analysis.statistics import exact_permutation, exact_test
from rollin.report.style import ADAPTIVE, beta_colour
from rollin.runs.records import MetricAt, Record, read_records
from studies import shared
from studies.shared import NONE, RESULTS, committed, finished, minus

GOALS = MetricAt("goals")
RETURN = MetricAt("return_final")
Key = tuple[str, ...]

NAMES: dict[Key, str] = {
    ("fast", "kept", "adaptive", "0"): "adaptive, without roll-in",
    ("fast", "kept", "ours", "0.1"): "adaptive before 0.3.0, β = 0.1",
    ("fast", "kept", "ours", "0"): "adaptive before 0.3.0, without roll-in",
    ("fast", "kept", "more", "0.5"): "the same with β by need, redrawn explorers and more",
    ("fast", "kept", "no-better", "0.1"): "the same without better episodes, β = 0.1",
    ("fast", "kept", "hand", "0.1"): "ROLLIN with R = 80, Δ = 1/12",
    ("fast", "kept", "hand-fine", "0.1"): "ROLLIN with R = 80, Δ = 1/48",
    ("fast", "relabelled", "ours", "0.1"): "adaptive before 0.3.0, goals relabelled",
    ("fast", "relabelled", "hand", "0"): "baseline with R = 80, Δ = 1/12, goals relabelled",
    ("slow", "kept", "ours", "0.1"): "adaptive before 0.3.0, at half the speed",
    ("slow", "kept", "ours", "0"): "adaptive before 0.3.0, at half the speed, without roll-in",
}
"""Conditions in the order of the table: maze, goals, scheme, β."""


@cache
def runs() -> dict[Key, list[Record]]:
    """Finished runs by condition, seed by seed."""
    found = finished(read_records(RESULTS / "curricula"), "maze", "goals", "scheme", "beta")
    return {key: found[key] for key in NAMES if key in found}


def solved(records: Sequence[Record]) -> list[float]:
    """Share of the 24 goals that each seed's policy solves at the end."""
    return [record.value(GOALS) or 0.0 for record in records]


def mastered(records: Sequence[Record]) -> list[int]:
    """Steps at which seeds mastered the last context, of those that did."""
    return sorted(record.completed for record in records if record.completed is not None)


def median_step(records: Sequence[Record]) -> float:
    """The median step of mastery over all seeds; those that never did count as infinity."""
    done = mastered(records)
    return statistics.median([*done, *[math.inf] * (len(records) - len(done))])


def median_text(records: Sequence[Record]) -> str:
    """The same for a table."""
    middle = median_step(records)
    return f"{middle:,.0f}" if math.isfinite(middle) else "–"


def last_solved(records: Sequence[Record]) -> int:
    """Seeds whose policy earns more than half of what standing at the last goal would."""
    return sum((record.value(RETURN) or 0.0) > 80 for record in records)


def standings(found: Mapping[str, Sequence[Record]], first: str = "curriculum") -> str:
    """A table of how each did, by its name; first: the title of the names."""
    head = [first, "seeds", "last goal: return > 80 at the end", "last context mastered",
            "median step of mastery", "goals solved of 24, mean", "all 24 solved"]  # fmt: skip
    rows: list[list[str]] = []
    for name, records in found.items():
        n = len(records)
        goals = solved(records)
        rows.append([name, str(n), f"{last_solved(records)} of {n}", shared.mastered(records),
                     median_text(records), f"{24 * statistics.mean(goals):.1f}",
                     f"{sum(share == 1 for share in goals)} of {n}"])  # fmt: skip
    return markdown(head, rows)


def compared() -> str:
    """Every curriculum of the unchanged maze against the adaptive one, without relabelling."""
    ours = ("fast", "kept", "adaptive", "0")
    head = ["curriculum", "last goal solved, p", "goals solved of 24, difference of means, p"]
    rows: list[list[str]] = []
    other, n = runs()[ours], len(runs()[ours])
    for key, records in runs().items():
        if key == ours or key[:2] != ours[:2]:
            continue
        m, here, there = len(records), last_solved(records), last_solved(other)
        p = exact_test(here, m, there, n)
        mine, theirs = ([round(24 * share) for share in solved(r)] for r in (records, other))
        difference = statistics.mean(mine) - statistics.mean(theirs)
        q = exact_permutation(mine, theirs)
        rows.append([NAMES[key], f"{here} of {m} against {there} of {n}, {p:.2g}",
                     minus(f"{difference:+.1f}, {q:.2g}")])  # fmt: skip
    return markdown(head, rows)


ARMS = {
    ("visited", "0.1"): "visited places, β = 0.1",
    ("visited", "0"): "visited places, without roll-in",
    ("straight", "0.1"): "straight on, β = 0.1",
}


def visited() -> str:
    """How both ways did; 24 goals on the path around the wall, or on the straight line."""
    head = ["contexts", "seeds", "goals solved of 24, by seed", "mean", "return on the last goal"]
    rows: list[list[str]] = []
    found = finished(read_records(RESULTS / "visited"), "way", "beta")
    for (way, beta), name in ARMS.items():
        records = found[way, beta]
        solved = [round(24 * (record.value(GOALS) or 0.0)) for record in records]
        final = statistics.mean(record.value(RETURN) or 0.0 for record in records)
        along = " (on its straight line)" if way == "straight" else ""
        rows.append([name, str(len(records)), ", ".join(map(str, solved)) + along,
                     f"{statistics.mean(solved):.1f}", f"{final:.1f}"])  # fmt: skip
    return markdown(head, rows)


CHECKS = {
    "wrong-threshold": ("threshold", "R"),
    "slow-gamma": ("gamma", "γ"),
    "slow-maze": ("beta", "β"),
}
"""Studies by name: the label that tells their arms apart, and what that is called."""


def checks() -> dict[str, str]:
    """The cost of a wrong R, and the slow maze: arms from the smallest value to the largest."""
    found = {}
    for study, (label, title) in CHECKS.items():
        arms = finished(committed(RESULTS / study), label)
        named = {value: arms[value,] for (value,) in sorted(arms, key=lambda arm: float(arm[0]))}
        found[study] = standings(named, title) if named else NONE
    return found


def texts() -> dict[str, str]:
    """Every table by the name of its markers."""
    named = {NAMES[key]: records for key, records in runs().items()}
    return {
        "curricula": standings(named),
        "curricula-compared": compared(),
        "visited": visited(),
        **checks(),
    }


def draw_steps() -> Figure:
    """When each seed mastered the last context; crosses at the right never did."""
    figure = Figure(figsize=(9, 4.2), layout="constrained")
    axis: Any = figure.subplots()
    names = [key for key in NAMES if key in runs()]
    for row, key in enumerate(names):
        tint = beta_colour(float(key[3])) if key[2].startswith("hand") else ADAPTIVE
        done, total = mastered(runs()[key]), len(runs()[key])
        spread = 0.3 * (np.arange(total) / max(total - 1, 1) - 0.5)
        axis.plot(np.array(done) / 1000, row + spread[: len(done)], "o", ms=4, color=tint, mew=0)
        never = total - len(done)
        axis.plot([312] * never, row + spread[:never], "x", ms=4, color=tint)
        if math.isfinite(middle := median_step(runs()[key]) / 1000):
            axis.plot([middle] * 2, [row - 0.32, row + 0.32], color=tint, lw=2)
    axis.set_yticks(range(len(names)), [NAMES[key] for key in names])
    axis.set_ylim(len(names) - 0.5, -0.5)
    axis.set_xlim(0, 322)
    axis.axvline(300, color="0.7", lw=1, ls=":")
    axis.set_xlabel("thousands of steps until the final context is mastered; ×: not within 300")
    return figure


PICTURES: dict[str, Callable[[], Figure]] = {"curricula-steps": draw_steps}
