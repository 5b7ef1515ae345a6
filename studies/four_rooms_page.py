"""Tables and pictures of the four rooms, from the records in results/four-rooms and choices."""

from collections import defaultdict
from collections.abc import Callable
from functools import cache
from pathlib import Path

from matplotlib.figure import Figure

from rollin.analysis.curves import panels
from rollin.analysis.group import group
from rollin.analysis.maps import first_batches
from rollin.analysis.results import StudyResults
from rollin.analysis.statistics import outcomes
from rollin.paper.four_rooms import BETAS, HEADLINE_BETA, ROWS, STEPS
from rollin.paper.tables import find_table
from rollin.report.charts import panels_figure
from rollin.report.maps import reward_maps
from rollin.report.pictures import first_batch_figure
from rollin.report.words import summary_text
from rollin.runs.records import Reading, Record, read_records
from rollin.sweeps.study import Condition

RESULTS = Path(__file__).parents[1] / "results"
FLAGS = {
    "ours": "ours",
    "literal": "`--literal`",
    "success-goal": "`--success goal`",
    "adam-kept": "`--no-reset-adam`",
    "gamma-0.9": "`--gamma 0.9`",
    "gamma-0.99": "`--gamma 0.99`",
    "mu-recursive": "`--mu recursive`",
    "rollin-sampled": "`--rollin sampled`",
    "exact-gradient": "`--gradient exact`",
}
"""The option behind each setting of the study of choices."""


@cache
def records() -> list[Record]:
    """The committed runs of the paper's table."""
    return read_records(RESULTS / "four-rooms")


@cache
def results(table: str) -> StudyResults:
    """A table of the paper as the committed runs fill it."""
    study = find_table(table)
    grouping = group(records(), [study])
    runs = {condition: by_scale[1.0] for condition, by_scale in grouping.runs.items()}
    return StudyResults(study, 1.0, runs)


def _markdown(rows: list[list[str]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _grid(quantity: str, *, contexts: bool) -> str:
    """Published mean, ours, and the last contexts of the seeds, for every cell."""
    found = results("four-rooms")
    by_cell = {
        (c.labels["reward"], float(c.labels["alpha"]), float(c.labels["beta"])): c
        for c in found.study.conditions
    }
    rows = [["", *(f"β = {beta:g}" if beta else "baseline" for beta in BETAS)], ["---"] * 8]
    reading = Reading(quantity, STEPS)
    for reward, alpha in ROWS:
        cells = [f"{reward}, α = {alpha:g}"]
        for beta in BETAS:
            condition = by_cell[reward, alpha, beta]
            result = found.at(condition, reading)
            assert result is not None
            told = [condition.published[reading].printed_mean]
            told.append(f"**{summary_text(result.summary, 3)}**")
            if contexts:
                told.append(outcomes(run.k or 0 for run in found.runs[condition]))
                told.append(_mastered(found, condition, reading))
            cells.append("<br>".join(told))
        rows.append(cells)
    return _markdown(rows)


def _mastered(found: StudyResults, condition: Condition, reading: Reading) -> str:
    """How many seeds master the last context."""
    solved = found.solved(condition, reading)
    assert solved is not None
    return f"{solved[0]} of {solved[1]}"


def readme_table() -> str:
    """The headline cells, published and ours, with how many seeds master the last context."""
    found = results("four-rooms-summary")
    reading = Reading("kappa", STEPS)
    rows = [["reward, entropy", "baseline", f"ROLLIN, β = {HEADLINE_BETA:g}"], ["---"] * 3]
    for reward, alpha in ROWS:
        cells = [f"{reward}, α = {alpha:g}"]
        for condition in found.study.conditions:
            told = condition.labels
            if (told["reward"], float(told["alpha"])) == (reward, alpha):
                result = found.at(condition, reading)
                assert result is not None
                printed = condition.published[reading].printed_mean
                mean, done = result.summary.mean, _mastered(found, condition, reading)
                cells.append(f"{printed} → **{mean:.3f}**, {done}")
        rows.append(cells)
    return _markdown(rows)


def choices_table() -> str:
    """What each choice does: last contexts and returns of the seeds."""
    found: dict[tuple[str, str], list[Record]] = defaultdict(list)
    for record in read_records(RESULTS / "choices"):
        found[record.labels["setting"], record.labels["beta"]].append(record)
    head = ["setting", "baseline: k", "ROLLIN, β = 0.75: k", "ROLLIN: return"]
    rows = [head, ["---"] * len(head)]
    for setting, flag in FLAGS.items():
        plain, rolled = (found[setting, beta] for beta in ("0", "0.75"))
        ks = [", ".join(str(record.k) for record in some) for some in (plain, rolled)]
        returns = (record.value(Reading("return")) or 0.0 for record in rolled)
        rows.append([flag, *ks, ", ".join(_short(value) for value in returns)])
    return _markdown(rows)


def _short(value: float) -> str:
    return f"{value:.3f}" if value >= 5e-4 else "0"


def texts() -> dict[str, str]:
    """Tables of docs/results/four-rooms.md by the name of their markers."""
    return {
        "rooms-kappa": _grid("kappa", contexts=True),
        "rooms-return": _grid("return", contexts=False),
    }


PICTURES: dict[str, Callable[[], Figure]] = {
    "progress": lambda: panels_figure(panels(results("four-rooms-summary"))["kappa"]),
    "progress-all": lambda: panels_figure(panels(results("four-rooms"))["kappa"]),
    "returns": lambda: panels_figure(panels(results("four-rooms"))["return"]),
    "first-batch": lambda: first_batch_figure(first_batches(records())),
    "rewards": reward_maps,
}
