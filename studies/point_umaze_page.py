"""Tables and pictures of results/point-umaze/README.md, from the records in results/point-umaze."""

import math
import statistics
from collections import defaultdict
from collections.abc import Callable
from functools import cache
from typing import Any

from matplotlib.figure import Figure
from scipy import stats

from rollin.analysis.results import over_seeds, traces_of
from rollin.analysis.sheets import markdown
from rollin.analysis.statistics import outcomes, summarise
from rollin.report.style import BASELINE, FRESH, ROLLIN, beta_colour
from rollin.runs.records import Record, Switch, read_records
from studies.shared import RESULTS, mastered

TITLES = {
    "demo": "the task's own step: Δ = 1/12",
    "slow": "half the speed, without the first goal",
    "fine": "half the step: Δ = 1/24",
}
WAYS = {
    "main": ("main agent from the start", BASELINE),
    "fresh": ("fresh explorer from the start", FRESH),
    "rollin": ("roll-in, then a fresh explorer", ROLLIN),
}
MASTERED = "seeds that master the last context"
CORNER = 5  # the first context behind the first corner at Δ = 1/12

Key = tuple[str, str, float]


@cache
def runs() -> dict[Key, list[Record]]:
    """The committed runs by setting, method and β."""
    found: dict[Key, list[Record]] = defaultdict(list)
    for record in read_records(RESULTS / "point-umaze"):
        labels = record.labels
        found[labels["setting"], labels["method"], float(labels["beta"])].append(record)
    return found


def kappas(key: Key) -> list[float]:
    """κ at the end of each seed."""
    return [record.kappa_at(record.step) for record in runs()[key]]


def label(method: str, beta: float) -> str:
    """A method in words."""
    names = {"baseline": "baseline", "scratch": "scratch (last context alone)"}
    kinds = {"rollin": "ROLLIN", "fresh": "fresh explorer, no roll-in"}
    return names.get(method) or f"{kinds[method]}, β = {beta:g}"


def mastered_at(record: Record) -> list[float]:
    """The step at which each context was mastered; inf if it was not."""
    assert record.K is not None
    entered = {switch.k: switch.step for switch in record.switches if switch.step > 0}
    found = [float(entered.get(k + 1, math.inf)) for k in range(record.K)]
    return [*found, math.inf if record.completed is None else float(record.completed)]


def table(setting: str) -> str:
    """κ after the run, contexts reached by seed, seeds that mastered all."""
    head = ["method", "κ after 300,000 steps", "last context k, by seed"]
    head += ["mastered the last context", "median step of that", "p against the baseline"]
    rows: list[list[str]] = []
    for key, records in runs().items():
        where, method, beta = key
        if where != setting:
            continue
        done = [r.completed for r in records if r.completed is not None]
        when = f"{statistics.median(done):,.0f}" if done else "–"
        count = mastered(records)
        if method == "scratch":
            rows.append([label(method, beta), "–", "–", count, when, "–"])
            continue
        values = kappas(key)
        mean, error, _ = summarise(values)
        reached = outcomes(record.k or 0 for record in records)
        against = kappas((setting, "baseline", 0.0))
        p = "" if method == "baseline" else f"{chance(values, against):.2g}"
        rows.append([label(method, beta), f"{mean:.2f} ± {error:.2f}", reached, count, when, p])
    return markdown(head, rows)


def chance(one: list[float], other: list[float]) -> float:
    """p of a two-sided Mann-Whitney test: how surprising the difference would be by chance."""
    return float(stats.mannwhitneyu(one, other, alternative="two-sided").pvalue)


def ablation() -> str:
    """ROLLIN beside the fresh explorer without roll-in, at the same β."""
    head = ["setting", "ROLLIN: κ", "fresh explorer: κ", "p", MASTERED]
    rows: list[list[str]] = []
    for setting, method, beta in runs():
        if method == "fresh":
            fresh, rolled = (kappas((setting, name, beta)) for name in ("fresh", "rollin"))
            means = [f"{statistics.mean(values):.2f}" for values in (rolled, fresh)]
            done = [mastered(runs()[setting, name, beta]) for name in ("rollin", "fresh")]
            both = f"{done[0]}, fresh explorer {done[1]}"
            rows.append([f"{setting}, β = {beta:g}", *means, f"{chance(rolled, fresh):.2g}", both])
    return markdown(head, rows)


@cache
def touches() -> list[Switch]:
    """The switches of the study `mechanism`: episodes played, and those that touch the goal."""
    found = [switch for record in read_records(RESULTS / "mechanism") for switch in record.switches]
    return [switch for switch in found if switch.numbers]


def mechanism() -> str:
    """Share of episodes that touch the next goal, by context."""
    counts: dict[int, dict[str, list[float]]] = defaultdict(lambda: {way: [] for way in WAYS})
    episodes = 0.0
    for switch in touches():
        episodes = switch.numbers["episodes"]
        for way in WAYS:
            counts[switch.k][way].append(switch.numbers[way])
    head = ["context k", "seeds that came there",
            "π_main from the start (seeds in which it never does)",
            "a fresh π_exp from the start", "roll-in, then a fresh π_exp"]  # fmt: skip
    rows: list[list[str]] = []
    for k, ways in sorted(counts.items()):
        shares = [f"{statistics.mean(ways[way]) / episodes:.1%}" for way in WAYS]
        blind, seeds = sum(count == 0 for count in ways["main"]), len(ways["main"])
        rows.append([str(k), str(seeds), f"{shares[0]} ({blind} of {seeds})", *shares[1:]])
    return markdown(head, rows)


def texts() -> dict[str, str]:
    """Every table by the name of its markers."""
    found = {f"umaze-{setting}": table(setting) for setting in TITLES}
    return found | {"umaze-ablation": ablation(), "umaze-mechanism": mechanism()}


# ------------------------------------------------------------------ pictures


def colour(method: str, beta: float) -> tuple[str, str]:
    """Colour and line style."""
    if method == "fresh":
        return FRESH, ":" if beta == 0.5 else "--"
    return beta_colour(beta), "-"


def draw_progress() -> Figure:
    """κ against steps in the three settings."""
    figure = Figure(figsize=(11, 3.6), layout="constrained")
    axes = figure.subplots(1, 3, sharey=True)
    for axis, setting in zip(axes, TITLES, strict=True):
        for (where, method, beta), records in runs().items():
            if where != setting or method == "scratch" or (method, beta) == ("fresh", 0.1):
                continue
            tint, style = colour(method, beta)
            steps, means, _ = over_seeds(traces_of(records, "kappa"))
            axis.plot(
                steps, means, style, color=tint, label=label(method, beta), drawstyle="steps-post"
            )
        axis.set_title(TITLES[setting])
        axis.set_xlabel("environment steps")
        axis.xaxis.set_major_formatter(lambda x, _: f"{x / 1000:.0f}k")
        axis.set_ylim(0, 1.05)
    axes[0].set_ylabel("κ, mean of 10 seeds")
    handles, names = axes[0].get_legend_handles_labels()
    figure.legend(handles, names, fontsize=8, loc="outside lower center", ncols=6)
    return figure


def draw_mastered() -> Figure:
    """Steps until each context is mastered, and by how many seeds."""
    figure = Figure(figsize=(11, 3.8), layout="constrained")
    axes = figure.subplots(1, 2)
    shown = (("baseline", 0.0), ("fresh", 0.1), ("rollin", 0.1), ("rollin", 0.2), ("rollin", 0.5))
    for method, beta in shown:
        at = [mastered_at(record) for record in runs()["demo", method, beta]]
        steps = [statistics.median(column) for column in zip(*at, strict=True)]
        seeds = [sum(math.isfinite(s) for s in column) for column in zip(*at, strict=True)]
        tint, style = colour(method, beta)
        contexts = range(len(steps))
        axes[0].plot(
            contexts, steps, style, marker="o", ms=3, color=tint, label=label(method, beta)
        )
        axes[1].plot(contexts, seeds, style, marker="o", ms=3, color=tint)
    axes[0].set_title("median steps until mastered")
    axes[0].set_ylabel("environment steps")
    axes[0].yaxis.set_major_formatter(lambda y, _: f"{y / 1000:.0f}k")
    figure.legend(fontsize=8, loc="outside lower center", ncols=5)
    axes[1].set_title("seeds (of 10) that mastered it")
    axes[1].set_ylim(0, 10.5)
    for axis in axes:
        axis.set_xlabel("context k of 12")
        axis.set_xlim(-0.3, 12.3)
    return figure


def draw_mechanism() -> Figure:
    """Share of episodes that touch the next goal, by context."""
    shares: dict[str, dict[int, list[float]]] = {way: defaultdict(list) for way in WAYS}
    for switch in touches():
        for way in WAYS:
            shares[way][switch.k].append(switch.numbers[way] / switch.numbers["episodes"])
    figure = Figure(figsize=(7, 3.6), layout="constrained")
    axis: Any = figure.subplots()
    for way, (name, tint) in WAYS.items():
        contexts = sorted(shares[way])
        means = [100 * statistics.mean(shares[way][k]) for k in contexts]
        axis.plot(contexts, means, marker="o", color=tint, label=name)
        for k in contexts:
            values = [100 * share for share in shares[way][k]]
            axis.plot([k] * len(values), values, ".", ms=3, alpha=0.4, color=tint)
    axis.set_yscale("symlog", linthresh=1)
    axis.set_yticks([0, 1, 3, 10, 30, 100], ["0", "1", "3", "10", "30", "100"])
    axis.set_ylim(-0.1, 130)
    axis.set_xlabel("context k")
    axis.set_ylabel("% of episodes")
    axis.set_title("Episodes that touch the next goal, when its context begins")
    figure.legend(fontsize=8, loc="outside lower center", ncols=3)
    return figure


PICTURES: dict[str, Callable[[], Figure]] = {
    "point-umaze-progress": draw_progress,
    "point-umaze-mastered": draw_mastered,
}
