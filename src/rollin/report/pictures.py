"""Pictures of tabular runs: the first batch after a switch, and maps of the four rooms."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rollin.analysis import maps as computed
from rollin.analysis.maps import Distributions, FirstBatch, Learned
from rollin.report import maps
from rollin.report.looks import BASELINE, ROLLIN
from rollin.runs.records import Record
from rollin.tabular.four_rooms import GRID, path
from rollin.tabular.grid import COLLECT


@dataclass(frozen=True)
class Picture:
    """A figure of the page: its anchor, title, caption and drawing; plate: on white always."""

    name: str
    title: str
    caption: str
    figure: Figure
    plate: bool = True


def pictures(records: Sequence[Record]) -> list[Picture]:
    """All that finished runs allow: the others have no policy yet."""
    runs = computed.tabular([record for record in records if record.finished])
    found: list[Picture] = []
    batches = computed.first_batches(runs)
    if batches:
        found.append(
            Picture(
                "first-batch",
                "Why it works: the first batch after a switch",
                "Exact probability that a trajectory succeeds on context k with the policy of "
                "context k-1, started from ρ and from the roll-in distribution μₖ; "
                "median and range over seeds.",
                first_batch_figure(batches),
                plate=False,
            )
        )
    if any(r.task == "four-rooms" for r in runs):
        caption = "Reward of collecting in a cell on the last context; darker is more."
        title = "The two rewards and the path of goals"
        found.append(Picture("rewards", title, caption, maps.reward_maps()))
    return found + _map_pictures(runs)


def _map_pictures(records: Sequence[Record]) -> list[Picture]:
    """Maps of the run that came farthest with roll-in, and the baseline's policy beside its own."""
    rolled, plain = computed.farthest(records)
    found: list[Picture] = []
    if rolled is not None and (told := computed.distributions(rolled)) is not None:
        found += _distribution_pictures(told)
    for record, name in ((plain, "baseline"), (rolled, "ROLLIN")):
        if record is not None:
            found.append(_policy_picture(computed.learned(record), name))
    return found


def _policy_picture(learned: Learned, name: str) -> Picture:
    k = learned.record.k or 0
    caption = (
        "Likeliest action per cell at the end: arrows move, squares collect, crosses are dummy "
        "actions, dots mean that none stands out. Green: the reward on the run's last context."
    )
    title = f"{name}, seed {learned.record.seed}: k = {k}"
    rewards = learned.rewards[:, COLLECT]
    figure = maps.policy_map(GRID, learned.log_pi, path()[k], rewards, title)
    return Picture(f"policy-{name.lower()}", f"What it learned: {name}", caption, figure)


def _distribution_pictures(told: Distributions) -> list[Picture]:
    options = told.record.options
    run = (
        f"reward {options['reward']}, α = {options['alpha']:g}, β = {options['beta']:g}, "
        f"seed {told.record.seed}"
    )
    return [
        Picture(
            "mu",
            "Where trajectories start: μₖ",
            f"Roll-in distribution of every context ({run}), logarithmic; the star is the goal.",
            maps.distribution_maps(GRID, told.starts, path(), r"\mu"),
        ),
        Picture(
            "visitation",
            "Where the learned policy goes: d",
            f"Discounted visitation from μₖ of the policy that mastered context k ({run}).",
            maps.distribution_maps(GRID, told.visits, path(), "d"),
        ),
    ]


def first_batch_figure(found: Sequence[FirstBatch]) -> Figure:
    """Probability that a trajectory succeeds right after a switch, from ρ and from μ_k.

    Of each setting: the median, and the range over seeds.
    """
    columns = max(1, min(2, len(found)))
    rows = max(1, -(-len(found) // columns))
    figure = Figure(figsize=(4.4 * columns + 0.6, 2.7 * rows + 0.4))
    axes = np.atleast_1d(figure.subplots(rows, columns)).ravel()
    for ax in axes[len(found) :]:
        ax.set_axis_off()
    for ax, batch in zip(axes, found, strict=False):
        _draw_first_batch(ax, batch)
        ax.set_title(f"{batch.setting}, β = {batch.beta:g}", parse_math=False)
    figure.tight_layout()
    return figure


def _draw_first_batch(ax: Axes, batch: FirstBatch) -> None:
    _draw_range(ax, batch.from_rho, BASELINE, "from ρ")
    _draw_range(ax, batch.from_mu, ROLLIN, "from μₖ")
    ax.set_xlabel("context k")
    ax.set_ylabel("first-batch success")
    ax.set_yscale("log")
    ax.axhline(0.5, color="#9ca3af", linewidth=0.8, linestyle=":")
    ax.legend(fontsize=8, loc="lower left")


def _draw_range(ax: Axes, curves: Sequence[Sequence[float]], colour: str, label: str) -> None:
    longest = max(len(curve) for curve in curves)
    at = [[c[i] for c in curves if len(c) > i] for i in range(longest)]
    ks = np.arange(1, longest + 1)
    low, middle, high = (np.array([f(v) for v in at]) for f in (np.min, np.median, np.max))
    ax.fill_between(ks, np.maximum(low, 1e-12), high, color=colour, alpha=0.2, linewidth=0)
    ax.plot(ks, np.maximum(middle, 1e-12), color=colour, marker="o", markersize=3, label=label)
