"""Tables and pictures of the study on point-umaze, from the CSVs in results/point-umaze.

python -m benchmarks.umaze_page      # prints the tables, writes docs/images/point-umaze-*.png
"""

import csv
import math
import statistics
from collections import defaultdict
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from scipy import stats

from rollin.analysis.statistics import outcomes, summarise
from rollin.report.style import BASELINE, beta_colour, styled, to_png

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results" / "point-umaze"
IMAGES = ROOT / "docs" / "images"
TITLES = {
    "demo": "the task as it comes: Δ = 1/12",
    "slow": "half the speed, without the first goal",
    "fine": "half the step: Δ = 1/24",
}
WAYS = {
    "main": ("π_main(·|ω_k) from the start", BASELINE),
    "fresh": ("a fresh π_exp from the start", "#d97706"),
    "rollin": ("roll-in, then a fresh π_exp", "#7c3aed"),
}

Key = tuple[str, str, float]


def read(name: str) -> list[dict[str, str]]:
    with (RESULTS / name).open(newline="") as file:
        return list(csv.DictReader(file))


def runs() -> dict[Key, list[dict[str, str]]]:
    """Rows of runs.csv by setting, method and β."""
    found: dict[Key, list[dict[str, str]]] = defaultdict(list)
    for row in read("runs.csv"):
        found[row["setting"], row["method"], float(row["beta"])].append(row)
    return found


def label(method: str, beta: float) -> str:
    names = {"baseline": "baseline", "scratch": "scratch (last context alone)"}
    kinds = {"rollin": "ROLLIN", "fresh": "fresh explorer, no roll-in"}
    return names.get(method) or f"{kinds[method]}, β = {beta:g}"


def last_mastered(row: dict[str, str]) -> int | None:
    """The step at which the last context was mastered, if it was."""
    last = row["mastered_at"].split(" ")[-1]
    return int(last) if last else None


def table(setting: str) -> list[str]:
    """Markdown rows: κ after the run, contexts reached by seed, seeds that mastered all."""
    rows = []
    found = runs()
    against = [float(row["kappa"]) for row in found[setting, "baseline", 0.0]]
    for (where, method, beta), cell in found.items():
        if where != setting:
            continue
        done = [step for step in map(last_mastered, cell) if step is not None]
        when = f"{statistics.median(done):,.0f}" if done else "–"
        mastered = f"{len(done)} of {len(cell)}"
        if method == "scratch":
            rows.append(f"| {label(method, beta)} | – | – | {mastered} | {when} | – |")
            continue
        kappas = [float(row["kappa"]) for row in cell]
        mean, error, _ = summarise(kappas)
        reached = outcomes(int(row["k"]) for row in cell)
        p = "" if method == "baseline" else f"{chance(kappas, against):.2g}"
        rows.append(
            f"| {label(method, beta)} | {mean:.2f} ± {error:.2f} | {reached} | {mastered} | "
            f"{when} | {p} |"
        )
    return rows


def chance(one: list[float], other: list[float]) -> float:
    """p of a two-sided Mann-Whitney test: how surprising the difference would be by chance."""
    return float(stats.mannwhitneyu(one, other, alternative="two-sided").pvalue)


def ablation(setting: str) -> list[str]:
    """Markdown rows: ROLLIN beside the fresh explorer without roll-in, at the same β."""
    found, rows = runs(), []
    for (where, method, beta), cell in found.items():
        if where == setting and method == "fresh":
            fresh = [float(row["kappa"]) for row in cell]
            rolled = [float(row["kappa"]) for row in found[setting, "rollin", beta]]
            means = f"{statistics.mean(rolled):.2f} | {statistics.mean(fresh):.2f}"
            rows.append(f"| {setting}, β = {beta:g} | {means} | {chance(rolled, fresh):.2g} |")
    return rows


def mechanism() -> list[str]:
    """Markdown rows: share of episodes that touch the next goal, by context."""
    counts: dict[int, dict[str, list[int]]] = defaultdict(lambda: {way: [] for way in WAYS})
    episodes = 0
    for row in read("mechanism.csv"):
        episodes = int(row["episodes"])
        for way in WAYS:
            counts[int(row["k"])][way].append(int(row[way]))
    rows = []
    for k, ways in sorted(counts.items()):
        shares = [f"{statistics.mean(ways[way]) / episodes:.1%}" for way in WAYS]
        blind = sum(count == 0 for count in ways["main"])
        seeds = len(ways["main"])
        rows.append(
            f"| {k} | {seeds} | {shares[0]} ({blind} of {seeds}) | {' | '.join(shares[1:])} |"
        )
    return rows


# ------------------------------------------------------------------ pictures


def colour(method: str, beta: float) -> tuple[str, str]:
    """Colour and line style."""
    style = {"fresh": "--", "baseline": "-", "rollin": "-"}[method]
    return beta_colour(beta), style


def draw_progress() -> bytes:
    curves: dict[Key, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in read("curves.csv"):
        key = row["setting"], row["method"], float(row["beta"])
        curves[key][int(row["step"])].append(float(row["kappa"]))
    with styled():
        figure = Figure(figsize=(11, 3.6), layout="constrained")
        axes = figure.subplots(1, 3, sharey=True)
        for axis, setting in zip(axes, TITLES, strict=True):
            for (where, method, beta), points in curves.items():
                if where != setting or method == "scratch" or (method, beta) == ("fresh", 0.1):
                    continue
                tint, style = colour(method, beta)
                steps = sorted(points)
                means = [statistics.mean(points[step]) for step in steps]
                axis.plot(steps, means, style, color=tint, label=label(method, beta))
            axis.set_title(TITLES[setting])
            axis.set_xlabel("environment steps")
            axis.xaxis.set_major_formatter(lambda x, _: f"{x / 1000:.0f}k")
            axis.set_ylim(0, 1.05)
        axes[0].set_ylabel("κ, mean of 10 seeds")
        handles, names = axes[0].get_legend_handles_labels()
        figure.legend(handles, names, fontsize=8, loc="outside lower center", ncols=6)
        return to_png(figure)


def draw_mastered() -> bytes:
    with styled():
        figure = Figure(figsize=(11, 3.6), layout="constrained")
        axes = figure.subplots(1, 2)
        shown = [
            ("baseline", 0.0),
            ("fresh", 0.1),
            ("rollin", 0.1),
            ("rollin", 0.2),
            ("rollin", 0.5),
        ]
        for method, beta in shown:
            cell = runs()["demo", method, beta]
            at = [
                [int(s) if s else math.inf for s in row["mastered_at"].split(" ")] for row in cell
            ]
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
        axes[0].legend(fontsize=7, loc="lower right")
        axes[1].set_title("seeds (of 10) that mastered it")
        axes[1].set_ylim(0, 10.5)
        for axis in axes:
            axis.set_xlabel("context k of 12")
            axis.set_xlim(-0.3, 12.3)
        return to_png(figure)


def draw_mechanism() -> bytes:
    shares: dict[str, dict[int, list[float]]] = {way: defaultdict(list) for way in WAYS}
    for row in read("mechanism.csv"):
        for way in WAYS:
            shares[way][int(row["k"])].append(int(row[way]) / int(row["episodes"]))
    with styled():
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
        axis.set_xlabel("context k, when it begins")
        axis.set_ylabel("% of episodes that touch its goal")
        axis.set_title("Who touches the next goal?")
        figure.legend(fontsize=8, loc="outside lower center", ncols=3)
        return to_png(figure)


def main() -> None:
    for setting in TITLES:
        print(f"\n{setting}")
        print("\n".join(table(setting) + ablation(setting)))
    print("\nmechanism")
    print("\n".join(mechanism()))
    for name, draw in (
        ("progress", draw_progress), ("mastered", draw_mastered), ("mechanism", draw_mechanism)
    ):  # fmt: skip
        (IMAGES / f"point-umaze-{name}.png").write_bytes(draw())


if __name__ == "__main__":
    main()
