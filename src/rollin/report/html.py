"""One self-contained HTML page from collected runs: tables, curves and maps."""

from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Environment, StrictUndefined
from markupsafe import Markup
from matplotlib.figure import Figure
from safetensors import SafetensorError
from safetensors.numpy import load_file
from threadpoolctl import threadpool_limits

from rollin import __version__
from rollin.paper.four_rooms import HEADLINE_BETA
from rollin.report import curves, maps
from rollin.report.collect import Collection, RunRecord
from rollin.report.style import styled, to_png, to_svg
from rollin.report.tables import PaperTable, group_runs, is_above, paper_table
from rollin.runs.files import make_directory, write_atomically
from rollin.runs.tabular import start_distributions
from rollin.runs.tasks import load_mdp
from rollin.tabular import soft
from rollin.tabular.four_rooms import GRID, path
from rollin.tabular.grid import COLLECT


@dataclass(frozen=True)
class Picture:
    """A figure of the page: its anchor, title, caption and drawing."""

    name: str
    title: str
    caption: str
    figure: Figure


def pictures(records: list[RunRecord]) -> list[Picture]:
    """All figures that the runs allow."""
    found: list[Picture] = []
    betas = {r.config.beta for r in records}
    headline = [r for r in records if r.config.beta in (0.0, HEADLINE_BETA)]
    if len(betas) > 2 and {r.config.beta for r in headline} == {0.0, HEADLINE_BETA}:
        found.append(_progress("progress", headline, "baseline against ROLLIN"))
        found.append(_progress("progress-all", records, "all mixing ratios"))
        found.append(_returns(headline))
    else:
        found.append(_progress("progress", records, "the curriculum over time"))
        found.append(_returns(records))
    if any(r.success_mu for r in records if r.config.beta > 0):
        found.append(
            Picture(
                "first-batch",
                "Why it works: the first batch after a switch",
                "Exact probability that a trajectory succeeds on context k with the policy of "
                "context k-1, started from ρ and from the roll-in distribution μₖ; "
                "median and range over seeds.",
                curves.first_batch_figure(records),
            )
        )
    if all(r.spec.task == "four-rooms" for r in records):
        found.append(
            Picture(
                "rewards",
                "The two rewards and the path of goals",
                "Reward of collecting in a cell on the last context; darker is more.",
                maps.reward_maps(),
            )
        )
        found += _map_pictures(records)
    return found


def _progress(name: str, records: list[RunRecord], what: str) -> Picture:
    return Picture(
        name,
        f"Progress: {what}",
        "Current context k against gradient steps, one line per seed (lines of different seeds are "
        "shifted a little).",
        curves.progress_figure(records),
    )


def _returns(records: list[RunRecord]) -> Picture:
    return Picture(
        "returns",
        "Return on the last context",
        "Exact discounted return from ρ over one horizon, without entropy; one line per seed.",
        curves.return_figure(records),
    )


def _map_pictures(records: list[RunRecord]) -> list[Picture]:
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


def _pair_to_show(records: list[RunRecord]) -> tuple[RunRecord | None, RunRecord | None]:
    """The best run with and without roll-in, of the setting where roll-in shows most."""
    settings: dict[tuple[str, float], list[RunRecord]] = {}
    for record in records:
        settings.setdefault((record.config.reward, record.config.alpha), []).append(record)
    pairs = [
        (
            max((r for r in runs if r.config.beta > 0), key=_farthest, default=None),
            max((r for r in runs if r.config.beta == 0), key=_farthest, default=None),
        )
        for runs in settings.values()
    ]

    def worth(pair: tuple[RunRecord | None, RunRecord | None]) -> tuple[int, int]:
        rolled, plain = pair
        reached = rolled.k if rolled else -1
        return reached, reached - (plain.k if plain else reached)

    return max(pairs, key=worth, default=(None, None))


def _farthest(record: RunRecord) -> tuple[int, bool, int]:
    return record.k, record.config.beta == HEADLINE_BETA, -record.config.seed


@cache
def _load(path: Path) -> dict[str, np.ndarray[Any, Any]]:
    try:
        return load_file(path)
    except (OSError, SafetensorError):  # the page does without its maps
        return {}


def _tensors(record: RunRecord) -> dict[str, np.ndarray[Any, Any]]:
    """A run's learned parameters; empty if they were not kept or cannot be read."""
    return {} if record.path is None else _load(record.path / "policy.safetensors")


def _distribution_pictures(record: RunRecord) -> list[Picture]:
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


def verdict(table: PaperTable) -> list[str]:
    """What agrees with the paper and what does not, in plain words, from the numbers."""
    cells = [c for row in table.rows.values() for c in row]
    near = [c for c in cells if abs(c.ours.progress.mean - c.progress.mean) <= 0.05]
    pairs = [(c, table.baseline(c)) for c in cells if not c.is_baseline]
    compared = [(c, b) for c, b in pairs if b is not None]
    lines = [f"Progress is within 0.05 of the published mean in {len(near)} of {len(cells)} cells."]
    if compared:
        for name, quantity in (("progress", "progress"), ("return", "final_return")):
            ahead = sum(table.beats_baseline(c, quantity) for c, _ in compared)
            behind = sum(
                is_above(getattr(b.ours, quantity).mean, getattr(c.ours, quantity).mean)
                for c, b in compared
            )
            said = sum(is_above(getattr(c, quantity).mean, getattr(b, quantity).mean)
                       for c, b in compared)  # fmt: skip
            lines.append(
                f"ROLLIN's mean {name} is above the baseline's in {ahead} and below it in {behind} "
                f"of {len(compared)} cells; published: above in {said}."
            )
    return lines


def render(collection: Collection, title: str) -> tuple[str, list[Picture]]:
    """The page and its pictures."""
    records = collection.records
    table = paper_table(records)
    source = files("rollin.report").joinpath("templates/report.html.j2").read_text("utf-8")
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    with styled(), threadpool_limits(1):  # many small solves, which threads only slow down
        drawn = pictures(records)
        svgs = [Markup(to_svg(p.figure)) for p in drawn]
    page = environment.from_string(source).render(
        title=title,
        table=table,
        betas=table.betas() if table else (),
        verdict=verdict(table) if table else [],
        groups=group_runs(records),
        pictures=list(zip(drawn, svgs, strict=True)),
        collection=collection,
        n_runs=len(records),
        seconds=sum(r.figures["seconds"] for r in records),
        gradient_steps=sum(r.config.steps for r in records),
        version=__version__,
    )
    return page, drawn


def write_report(collection: Collection, out: Path, title: str, *, images: bool = False) -> Path:
    """Write the page to `out`; with `images`, its figures as PNG beside it too."""
    page, drawn = render(collection, title)
    make_directory(out.parent)
    write_atomically(out, page.encode())
    if images:
        make_directory(out.parent / "figures")
        with styled():
            for picture in drawn:
                write_atomically(
                    out.parent / "figures" / f"{picture.name}.png", to_png(picture.figure)
                )
    return out
