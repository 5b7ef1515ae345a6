"""Tables and picture of the ablations, from results/ablations and results/point-umaze.

The study of ablations shares baseline, ROLLIN and the fresh explorer with that of point-umaze: the
same options, seeds and bits.
"""

import statistics
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from rollin.analysis.sheets import markdown
from rollin.analysis.statistics import (
    exact_permutation,
    exact_test,
    improvement_interval,
    outcomes,
    summarise,
)
from rollin.report.style import BASELINE, FRESH, beta_colour
from rollin.runs.records import MetricAt, Record, read_records
from studies.shared import RESULTS, mastered, minus

BETA = 0.1
SETTINGS = {"1/12": "demo", "1/24": "fine"}  # Δ, and what the study of point-umaze calls it
METHODS = {
    "baseline": "baseline, β = 0",
    "fresh": "fresh explorer, no roll-in",
    "rollin": "ROLLIN",
    "frozen-guide": "ROLLIN with a frozen guide",
    "hidden-prefix": "ROLLIN, the roll-in not in the replay",
    "one-learner": "ROLLIN with one learner",
    "wrapper": "all three: a wrapper around one agent",
    "relabelled": "baseline with relabelled goals",
}
NOT_YET = "Not run yet."
LEVEL = 0.05  # of the tests that a verdict is made from
SHARED = ("baseline", "fresh", "rollin")  # of which results/point-umaze has the records

Key = tuple[str, str]


@cache
def runs() -> dict[Key, list[Record]]:
    """Runs by Δ and method, of the seeds that all methods of that Δ have finished."""
    found: dict[Key, list[Record]] = {}
    for record in read_records(RESULTS / "point-umaze"):
        labels = record.labels
        for delta, setting in SETTINGS.items():
            same = labels["setting"] == setting and labels["method"] in SHARED
            if same and float(labels["beta"]) in (0.0, BETA):
                found.setdefault((delta, labels["method"]), []).append(record)
    for record in read_records(RESULTS / "ablations"):
        if record.finished:
            key = record.labels["delta"], record.labels["method"]
            found.setdefault(key, []).append(record)
    ordered = {(d, m): found[d, m] for d in SETTINGS for m in METHODS if (d, m) in found}
    for delta in SETTINGS:
        keys = [key for key in ordered if key[0] == delta and key[1] != "relabelled"]
        common = set.intersection(*({record.seed for record in ordered[key]} for key in keys))
        for key in keys:
            ordered[key] = [record for record in ordered[key] if record.seed in common]
    return ordered


def seeds(delta: str) -> int:
    """How many seeds of a Δ are compared."""
    return len(runs()[delta, "baseline"])


def ks(key: Key) -> list[int]:
    """The last context of each seed."""
    return [record.k or 0 for record in runs()[key]]


def kappas(key: Key) -> list[float]:
    """κ at the end of each seed."""
    return [record.kappa_at(record.step) for record in runs()[key]]


def corner(last: int) -> int:
    """The first context behind the first corner, which is a third of the way to context `last`."""
    return last // 3 + 1


def around(key: Key) -> int:
    """Seeds that mastered the first goal behind the first corner."""
    return sum((record.k or 0) > corner(record.K or 0) for record in runs()[key])


def completed(key: Key) -> int:
    """Seeds that mastered the last context."""
    return sum(record.completed is not None for record in runs()[key])


def touched(key: Key) -> float:
    """Share of the last evaluation episodes that touch the last goal, over all seeds."""
    reading = MetricAt("success_final")
    return statistics.mean(record.value(reading) or 0.0 for record in runs()[key])


def table(delta: str) -> str:
    """How far every method comes."""
    head = ["method", "κ after 300,000 steps", "last context k, by seed", "past the first corner",
            "mastered the last context", "last goal touched at the end"]  # fmt: skip
    rows: list[list[str]] = []
    for key in runs():
        if key[0] == delta:
            mean, error, n = summarise(kappas(key))
            rows.append([METHODS[key[1]], f"{mean:.2f} ± {error:.2f}", outcomes(ks(key)),
                         f"{around(key)} of {n}", mastered(runs()[key]),
                         f"{touched(key):.0%}"])  # fmt: skip
    return markdown(head, rows)


def compared(delta: str, other: str) -> str:
    """Every method against one of them."""
    head = ["method", "difference of mean κ, p", "chance to come further [95 %]",
            "past the first corner, p", "mastered the last context, p"]  # fmt: skip
    rows: list[list[str]] = []
    against, n = (delta, other), seeds(delta)
    for key in runs():
        if key[0] != delta or key[1] in (other, "relabelled"):
            continue
        difference = statistics.mean(kappas(key)) - statistics.mean(kappas(against))
        p = exact_permutation(ks(key), ks(against))
        chance = improvement_interval([kappas(key)], [kappas(against)])
        cells = [METHODS[key[1]], minus(f"{difference:+.2f}, {p:.2g}")]
        cells.append(f"{chance.value:.2f} [{chance.low:.2f}, {chance.high:.2f}]")
        for count in (around, completed):
            here, there = count(key), count(against)
            cells.append(f"{here} against {there}, {exact_test(here, n, there, n):.2g}")
        rows.append(cells)
    return markdown(head, rows)


def verdicts(delta: str) -> str:
    """What the seeds can tell of every ablation, by the permutation test of its last contexts."""
    lines = []
    for method in METHODS:
        key = delta, method
        if key not in runs() or method in (*SHARED, "relabelled"):
            continue
        verdict = _verdict(ks(key), ks((delta, "baseline")), ks((delta, "rollin")))
        lines.append(f"- {METHODS[method]}: {verdict}.")
    return "\n".join(lines) or NOT_YET


def _verdict(here: list[int], baseline: list[int], rollin: list[int]) -> str:
    further = exact_permutation(here, baseline) < LEVEL and sum(here) > sum(baseline)
    short = exact_permutation(here, rollin) < LEVEL and sum(here) < sum(rollin)
    if further and short:
        return "further than the baseline, and less far than ROLLIN"
    if further:
        return "further than the baseline, and not to be told from ROLLIN"
    if short:
        return "less far than ROLLIN, and not to be told from the baseline"
    return f"{len(here)} seeds tell it neither from the baseline nor from ROLLIN"


def relabelled() -> str:
    """How the baseline with relabelled goals does, in a sentence."""
    key = "1/12", "relabelled"
    done = [r.completed for r in runs().get(key, ()) if r.completed is not None]
    if key not in runs():
        return NOT_YET
    if not done:
        return "With relabelled goals the plain baseline masters the last context in no seed."
    return (
        f"With relabelled goals the plain baseline, without any roll-in, masters the last context "
        f"in {len(done)} of {len(runs()[key])} seeds, after {statistics.median(done):,.0f} steps "
        f"in the median ({min(done):,} to {max(done):,})."
    )


def texts() -> dict[str, str]:
    """Every table by the name of its markers."""
    found: dict[str, str] = {"agents-relabelled": relabelled()}
    for delta in SETTINGS:
        name = delta.replace("/", "-")
        found[f"agents-{name}"] = table(delta)
        found[f"agents-{name}-baseline"] = compared(delta, "baseline")
        found[f"agents-{name}-rollin"] = compared(delta, "rollin")
        found[f"agents-{name}-verdicts"] = verdicts(delta)
    return found


# ------------------------------------------------------------------ picture


def colour(method: str) -> str:
    """As on the other pages; the ablations are of one hue."""
    known = {"baseline": BASELINE, "fresh": FRESH, "rollin": beta_colour(BETA)}
    return known.get(method, "#0f766e")


def draw_seeds() -> Figure:
    """κ of every seed, a row for each method."""
    figure = Figure(figsize=(11, 3.8), layout="constrained")
    axes: Any = figure.subplots(1, len(SETTINGS), sharey=True)
    names = [m for m in METHODS if m != "relabelled"]
    for axis, delta in zip(axes, SETTINGS, strict=True):
        for row, method in enumerate(names):
            if (delta, method) in runs():
                _draw_row(axis, row, kappas((delta, method)), colour(method))
        last = runs()[delta, "baseline"][0].K or 1
        border = (corner(last) + 0.5) / last
        axis.axvline(border, color="0.5", lw=1, ls=":", zorder=0)
        axis.text(border + 0.01, -0.5, "past the corner →", color="0.4", fontsize=7, va="center")
        axis.set_title(f"Δ = {delta}, {seeds(delta)} seeds")
        axis.set_xlim(-0.03, 1.05)
        axis.set_xlabel("κ after 300,000 steps")
    axes[0].set_yticks(range(len(names)), [METHODS[name] for name in names])
    axes[0].set_ylim(len(names) - 0.4, -0.7)
    return figure


def _draw_row(axis: Any, row: int, values: list[float], tint: str) -> None:
    """Dots of one value stand above each other; the bar is the mean."""
    for value in set(values):
        count = values.count(value)
        heights = row + 0.085 * (np.arange(count) - (count - 1) / 2)
        axis.plot([value] * count, heights, "o", ms=4, alpha=0.75, color=tint, mew=0)
    axis.plot([statistics.mean(values)] * 2, [row - 0.38, row + 0.38], color=tint, lw=2)


PICTURES: dict[str, Callable[[], Figure]] = {"agents-seeds": draw_seeds}
