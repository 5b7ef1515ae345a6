"""Pictures of tabular runs: the first batch after a switch, and maps of the four rooms."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from safetensors import SafetensorError
from safetensors.numpy import load_file

from rollin.paper.four_rooms import HEADLINE_BETA
from rollin.report import maps
from rollin.report.records import RunRecord, TabularRecord
from rollin.report.style import BASELINE, ROLLIN
from rollin.runs.engines.tabular import start_distributions
from rollin.runs.mdps import load_mdp
from rollin.tabular import soft
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


def pictures(records: Sequence[RunRecord]) -> list[Picture]:
    """All that the runs allow."""
    runs = [r for r in records if isinstance(r, TabularRecord)]
    found: list[Picture] = []
    if any(r.success_mu for r in runs if r.config.beta > 0):
        found.append(
            Picture(
                "first-batch",
                "Why it works: the first batch after a switch",
                "Exact probability that a trajectory succeeds on context k with the policy of "
                "context k-1, started from ρ and from the roll-in distribution μₖ; "
                "median and range over seeds.",
                first_batch_figure(runs),
                plate=False,
            )
        )
    rooms = [r for r in runs if r.spec.task == "four-rooms"]
    if rooms:
        caption = "Reward of collecting in a cell on the last context; darker is more."
        title = "The two rewards and the path of goals"
        found.append(Picture("rewards", title, caption, maps.reward_maps()))
    return found + _map_pictures(rooms)


def _map_pictures(records: list[TabularRecord]) -> list[Picture]:
    """Maps of the run that came farthest with roll-in, and the baseline's policy beside its own."""
    rolled, plain = _pair_to_show([r for r in records if _tensors(r)])
    found: list[Picture] = []
    if rolled is not None:
        found += _distribution_pictures(rolled)
    for record, name in ((plain, "baseline"), (rolled, "ROLLIN")):
        if record is None:
            continue
        mdp = load_mdp("four-rooms", reward=record.config.reward, gamma=record.config.gamma)
        log_pi = soft.log_softmax(_tensors(record)["theta"])
        k = record.k
        caption = (
            "Likeliest action per cell at the end: arrows move, squares collect, crosses are dummy "
            "actions, dots mean that none stands out. Green: the reward on the run's last context."
        )
        rewards = mdp.task(k).r[:, COLLECT]
        title = f"{name}, seed {record.config.seed}: k = {k}"
        figure = maps.policy_map(GRID, log_pi, path()[k], rewards, title)
        found.append(Picture(f"policy-{name.lower()}", f"What it learned: {name}", caption, figure))
    return found


Pair = tuple[TabularRecord | None, TabularRecord | None]


def _pair_to_show(records: list[TabularRecord]) -> Pair:
    """The best run with and without roll-in, of the setting where roll-in shows most."""
    pairs = [
        (
            max((r for r in runs if r.config.beta > 0), key=_farthest, default=None),
            max((r for r in runs if r.config.beta == 0), key=_farthest, default=None),
        )
        for runs in _by_setting(records).values()
    ]

    def worth(pair: Pair) -> tuple[int, int]:
        rolled, plain = pair
        reached = rolled.k if rolled else -1
        return reached, reached - (plain.k if plain else reached)

    return max(pairs, key=worth, default=(None, None))


def _by_setting(records: Sequence[TabularRecord]) -> dict[str, list[TabularRecord]]:
    found: dict[str, list[TabularRecord]] = {}
    for record in sorted(records, key=lambda r: (r.config.reward != "hard", -r.config.alpha)):
        task, config = record.spec.task, record.config
        name = config.reward if task == "four-rooms" else task
        found.setdefault(f"{name}, α = {config.alpha:g}", []).append(record)
    return found


def _farthest(record: TabularRecord) -> tuple[int, bool, int]:
    return record.k, record.config.beta == HEADLINE_BETA, -record.config.seed


@cache
def _load(path: Path) -> dict[str, np.ndarray[Any, Any]]:
    try:
        return load_file(path)
    except (OSError, SafetensorError):  # the page does without its maps
        return {}


def _tensors(record: TabularRecord) -> dict[str, np.ndarray[Any, Any]]:
    """A run's learned parameters; empty if they were not kept or cannot be read."""
    return {} if record.path is None else _load(record.path / "policy.safetensors")


def _distribution_pictures(record: TabularRecord) -> list[Picture]:
    policies = [p.astype(np.float64) for p in _tensors(record).get("log_policies", ())]
    if not policies:
        return []
    config = record.config
    mdp = load_mdp("four-rooms", reward=config.reward, gamma=config.gamma)
    starts = start_distributions(mdp, policies, config)
    visits = [soft.visitation(mdp, p, s.mu) for p, s in zip(policies, starts, strict=False)]
    run = f"reward {config.reward}, α = {config.alpha:g}, β = {config.beta:g}, seed {config.seed}"
    return [
        Picture(
            "mu",
            "Where trajectories start: μₖ",
            f"Roll-in distribution of every context ({run}), logarithmic; the star is the goal.",
            maps.distribution_maps(GRID, [s.mu for s in starts], path(), r"\mu"),
        ),
        Picture(
            "visitation",
            "Where the learned policy goes: d",
            f"Discounted visitation from μₖ of the policy that mastered context k ({run}).",
            maps.distribution_maps(GRID, visits, path(), "d"),
        ),
    ]


def first_batch_figure(records: Sequence[TabularRecord]) -> Figure:
    """Probability that a trajectory succeeds right after a switch, from ρ and from μ_k.

    Over the runs with roll-in of each setting: median, and the range over seeds.
    """
    rolled = _by_setting([r for r in records if r.config.beta > 0])
    found = {name: rs for name, rs in rolled.items() if any(r.success_mu for r in rs)}
    columns = max(1, min(2, len(found)))
    rows = max(1, -(-len(found) // columns))
    figure = Figure(figsize=(4.4 * columns + 0.6, 2.7 * rows + 0.4))
    axes = np.atleast_1d(figure.subplots(rows, columns)).ravel()
    for ax in axes[len(found) :]:
        ax.set_axis_off()
    for ax, (name, runs) in zip(axes, found.items(), strict=False):
        beta = HEADLINE_BETA
        if all(r.config.beta != beta for r in runs):
            beta = runs[0].config.beta
        _draw_first_batch(ax, [r for r in runs if r.config.beta == beta])
        ax.set_title(f"{name}, β = {beta:g}")
    figure.tight_layout()
    return figure


def _draw_first_batch(ax: Axes, runs: Sequence[TabularRecord]) -> None:
    _draw_range(ax, [r.success_rho for r in runs], BASELINE, "from ρ")
    _draw_range(ax, [r.success_mu for r in runs], ROLLIN, "from μₖ")
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
