"""Every teacher on every small task: tables and pictures of docs/results/curricula.md.

They show whatever seeds the records in results/teachers have, and say how many; without records
they say how to make some.
"""

import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy import stats

from rollin.analysis.sheets import markdown
from rollin.analysis.statistics import exact_permutation, improvement_interval, summarise
from rollin.paper.curricula import FAMILY, GOALS, READINGS, SMALL_TASKS, studies
from rollin.report.style import ADAPTIVE, SPARE, beta_colour
from rollin.runs.records import Record
from studies import shared
from studies.shared import committed, finished, minus

RESULTS = shared.RESULTS / FAMILY
SOLVED = READINGS[0]
OURS, HAND = ("adaptive", "0"), ("hand", "0.1")
WORDS = {
    "adaptive": "adaptive",
    "ours": "adaptive before 0.3.0",
    "ours-plain": "adaptive before 0.3.0, without better episodes",
    "hand": "hand-set R and Δ",
}
OWN = {"adaptive": ADAPTIVE, "ours": ADAPTIVE, "ours-plain": ADAPTIVE}
OTHERS = SPARE[0]  # of the teachers in `rollin.teachers`, whose names stand beside their rows
NONE = "No records of this study have been committed yet: `rollin reproduce curricula` makes them."

Arm = tuple[str, str]
"""Teacher and β."""
Runs = Mapping[tuple[str, Arm], Sequence[Record]]
"""Finished runs by task and arm, seed by seed."""


def order() -> list[Arm]:
    """All arms, as the studies have them, after those that are no teacher's."""
    every = [c.labels for study in studies().values() for c in study.conditions]
    arms = dict.fromkeys((labels["teacher"], labels["beta"]) for labels in every)
    return sorted(arms, key=lambda arm: ([*WORDS, arm[0]].index(arm[0]), arm[1]))


def runs_in(directory: Path) -> Runs:
    """The finished runs of a directory of records; none if there is none."""
    found = finished(committed(directory), "task", "teacher", "beta")
    return {(task, (teacher, beta)): records for (task, teacher, beta), records in found.items()}


@cache
def runs() -> Runs:
    """The committed runs."""
    return runs_in(RESULTS)


def goals(records: Sequence[Record]) -> list[int]:
    """How many of the goals along the path each seed solves at the end."""
    return [round(GOALS * (record.value(SOLVED) or 0.0)) for record in records]


def name(arm: Arm) -> str:
    """An arm in words."""
    teacher, beta = arm
    return WORDS.get(teacher, f"`{teacher}`") + (f", β = {beta}" if beta != "0" else "")


def seeds_text(found: Runs) -> str:
    """How many seeds there are, in a sentence."""
    counts = sorted({len(records) for records in found.values()})
    every = str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    length = max(record.step for records in found.values() for record in records)
    return f"Seeds of each arm: {every}. Steps of a run: {length:,}."


def _table(arms: Iterable[Arm], cell: Callable[[str, Arm], str]) -> str:
    """A row for each arm that has runs, a column for each task."""
    rows: list[list[str]] = []
    for arm in arms:
        cells = [cell(task, arm) for task in SMALL_TASKS]
        if set(cells) != {"–"}:
            rows.append([name(arm), *cells])
    return markdown(["curriculum", *SMALL_TASKS], rows)


def table(found: Runs) -> str:
    """Goals solved by every arm on every task."""
    return _table(order(), lambda task, arm: _mean(found.get((task, arm), ())))


def _mean(records: Sequence[Record]) -> str:
    if not records:
        return "–"
    mean, error, n = summarise([float(n) for n in goals(records)])
    spread = f" ± {error:.1f}" if n > 1 else ""
    return f"{mean:.1f}{spread} ({n})"


def compared(found: Runs) -> str:
    """Every other arm against our extension without roll-in."""
    others = (arm for arm in order() if arm != OURS)
    return _table(others, lambda task, arm: _against(found, task, arm))


def _against(found: Runs, task: str, arm: Arm) -> str:
    theirs, ours = (goals(found.get((task, key), ())) for key in (arm, OURS))
    if not theirs or not ours:
        return "–"
    apart = statistics.mean(theirs) - statistics.mean(ours)
    difference = minus(f"{apart:+.1f}")
    if min(len(theirs), len(ours)) < 2:
        return difference
    better = improvement_interval([theirs], [ours])
    chance = f"{better.value:.2f} [{better.low:.2f}, {better.high:.2f}]"
    return f"{difference}; {chance}; {exact_permutation(theirs, ours):.2g}"


def against_hand(found: Runs) -> str:
    """Our extension against the paper's rule with roll-in, as shares with a lower bound."""
    own = (arm for arm in order() if arm[0] in OWN)
    return _table(own, lambda task, arm: _ahead(*(found.get((task, a), ()) for a in (arm, HAND))))


def _ahead(ours: Sequence[Record], hand: Sequence[Record]) -> str:
    if min(len(ours), len(hand)) < 2:
        return "–"
    x, y = (np.array(goals(records)) / GOALS for records in (ours, hand))
    low = lower_bound(x, y)
    return f"{x.mean() - y.mean():+.2f}, above {low:+.2f}".replace("-", "−")


def lower_bound(x: NDArray[Any], y: NDArray[Any]) -> float:
    """What the difference of two means exceeds with a confidence of 95 %, by Welch's t."""
    parts = [sample.var(ddof=1) / len(sample) for sample in (x, y)]
    if not sum(parts):
        return float(x.mean() - y.mean())
    freedom = sum(parts) ** 2 / sum(p**2 / (len(z) - 1) for p, z in zip(parts, (x, y), strict=True))
    return float(x.mean() - y.mean() - stats.t.ppf(0.95, freedom) * math.sqrt(sum(parts)))


def texts() -> dict[str, str]:
    """Every table by the name of its markers."""
    found = runs()
    if not found:
        return dict.fromkeys(("teachers", "teachers-compared", "teachers-hand"), NONE)
    return {
        "teachers": "\n".join([seeds_text(found), "", table(found)]),
        "teachers-compared": compared(found),
        "teachers-hand": against_hand(found),
    }


# ------------------------------------------------------------------ pictures


def colour(arm: Arm) -> str:
    """ROLLIN's and the baseline's colours where R and Δ are set by hand, one for other teachers."""
    teacher, beta = arm
    return beta_colour(float(beta)) if teacher == "hand" else OWN.get(teacher, OTHERS)


def tasks_of(found: Runs) -> list[str]:
    """Tasks that have runs."""
    return [task for task in SMALL_TASKS if any(key[0] == task for key in found)]


def plain(arm: Arm) -> str:
    """An arm in words, for a picture."""
    return name(arm).replace("`", "").replace("--", "")


def seeds_figure(found: Runs) -> Figure:
    """Goals solved by each seed: a dot each, and a line at the mean."""
    tasks, arms = tasks_of(found), [arm for arm in order() if any(k[1] == arm for k in found)]
    figure = Figure(figsize=(2.2 + 2.3 * len(tasks), 0.8 + 0.27 * len(arms)), layout="constrained")
    axes: Any = figure.subplots(1, len(tasks), sharey=True, squeeze=False)
    for axis, task in zip(axes[0], tasks, strict=True):
        for row, arm in enumerate(arms):
            solved = goals(found.get((task, arm), ()))
            if not solved:
                continue
            spread = 0.5 * (np.arange(len(solved)) / max(len(solved) - 1, 1) - 0.5)
            tint = colour(arm)
            axis.plot(solved, row + spread, "o", ms=3.5, mew=0, color=tint, alpha=0.7)
            axis.plot([statistics.mean(solved)] * 2, [row - 0.35, row + 0.35], color=tint, lw=2)
        axis.set(title=task, xlim=(-0.8, GOALS + 0.8), xticks=range(0, GOALS + 1, 8))
        axis.set_yticks(range(len(arms)), [plain(arm) for arm in arms])
        axis.set_ylim(len(arms) - 0.5, -0.5)
    figure.supxlabel(f"goals solved of {GOALS} at the end", fontsize=9)
    return figure


PICTURES: dict[str, Callable[[], Figure]] = (
    {"teachers-seeds": lambda: seeds_figure(runs())} if runs() else {}
)
