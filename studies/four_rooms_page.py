"""Tables and pictures of the four rooms, from results/four-rooms, four-rooms-rules and choices."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import cache

from matplotlib.figure import Figure

from rollin.analysis.collect import group
from rollin.analysis.results import StudyResults, panels
from rollin.analysis.sheets import markdown
from rollin.analysis.statistics import outcomes
from rollin.paper.four_rooms import BETAS, HEADLINE_BETA, ROWS, STEPS
from rollin.paper.tables import find_table
from rollin.report.charts import panels_figure
from rollin.report.labels import summary_text
from rollin.report.maps import first_batch_figure, first_batches, reward_maps
from rollin.runs.records import MetricAt, Record, read_records
from rollin.sweeps.condition import Condition
from studies.shared import RESULTS

FLAGS = {
    "ours": "default",
    "literal": "`--as-printed`",
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


def _grid(quantity: str, *, contexts: bool) -> str:
    """Published mean, ours, and the last contexts of the seeds, for every cell."""
    found = results("four-rooms")
    by_cell = {
        (c.labels["reward"], float(c.labels["alpha"]), float(c.labels["beta"])): c
        for c in found.study.conditions
    }
    head = ["", *(f"β = {beta:g}" if beta else "baseline" for beta in BETAS)]
    rows: list[list[str]] = []
    reading = MetricAt(quantity, STEPS)
    for reward, alpha in ROWS:
        cells = [_row_name((reward, alpha))]
        for beta in BETAS:
            condition = by_cell[reward, alpha, beta]
            result = found.at(condition, reading)
            assert result is not None
            lines = [condition.published[reading].printed_mean]
            lines.append(f"**{summary_text(result.summary, 3)}**")
            if contexts:
                lines.append(_contexts(found.runs[condition]))
                lines.append(_mastered(found, condition, reading))
            cells.append("<br>".join(lines))
        rows.append(cells)
    return markdown(head, rows)


def _mastered(found: StudyResults, condition: Condition, reading: MetricAt) -> str:
    """How many seeds master the last context."""
    solved = found.solved(condition, reading)
    assert solved is not None
    return f"{solved[0]} of {solved[1]}"


def readme_table() -> str:
    """The headline cells, published and ours, with how many seeds master the last context."""
    found = results("four-rooms-summary")
    reading = MetricAt("kappa", STEPS)
    head = ["reward, entropy", "baseline", f"ROLLIN, β = {HEADLINE_BETA:g}"]
    rows: list[list[str]] = []
    for reward, alpha in ROWS:
        cells = [_row_name((reward, alpha))]
        for condition in found.study.conditions:
            labels = condition.labels
            if (labels["reward"], float(labels["alpha"])) == (reward, alpha):
                result = found.at(condition, reading)
                assert result is not None
                printed = condition.published[reading].printed_mean
                done = _mastered(found, condition, reading)
                cells.append(f"{printed} → **{result.summary.mean:.3f}**, {done}")
        rows.append(cells)
    return markdown(head, rows)


def choices_table() -> str:
    """What each choice does: last contexts and returns of the seeds."""
    found: dict[tuple[str, str], list[Record]] = defaultdict(list)
    for record in read_records(RESULTS / "choices"):
        found[record.labels["setting"], record.labels["beta"]].append(record)
    head = ["setting", "baseline: k", "ROLLIN, β = 0.75: k", "ROLLIN: return"]
    rows: list[list[str]] = []
    for setting, flag in FLAGS.items():
        plain, rolled = (found[setting, beta] for beta in ("0", "0.75"))
        ks = [", ".join(str(record.k) for record in some) for some in (plain, rolled)]
        returns = (record.value(MetricAt("return")) or 0.0 for record in rolled)
        rows.append([flag, *ks, ", ".join(_short(value) for value in returns)])
    return markdown(head, rows)


def _short(value: float) -> str:
    return f"{value:.3f}" if value >= 5e-4 else "0"


RETURN_BETAS = 0.0, 0.1, 0.3, 0.75  # of the picture of returns: more lines hide each other
RETURN_ROWS = ("hard", "0.001"), ("easy", "0.01")  # in the others, all methods earn the same
Row = tuple[str, float]
"""Reward and α."""


def _runs(study: str) -> dict[tuple[str, str, float, float], list[Record]]:
    """A study's runs by setting, reward, α and β; those of the paper's table have no setting."""
    found: dict[tuple[str, str, float, float], list[Record]] = defaultdict(list)
    for record in read_records(RESULTS / study):
        label = {"setting": "", "reward": "hard", "alpha": "0.001", **record.labels}
        row = label["setting"], label["reward"], float(label["alpha"]), float(label["beta"])
        found[row].append(record)
    return found


def _published(quantity: str, row: Row, beta: float) -> str:
    for condition in results("four-rooms").study.conditions:
        label = condition.labels
        if (label["reward"], float(label["alpha"])) == row and float(label["beta"]) == beta:
            return condition.published[MetricAt(quantity, STEPS)].printed_mean
    raise KeyError(row, beta)


def _contexts(runs: Sequence[Record]) -> str:
    """Last contexts, the farthest first."""
    return outcomes(run.k or 0 for run in runs)


def _pair(runs: list[list[Record]]) -> str:
    """Last contexts of baseline and ROLLIN; an en dash where nothing was run."""
    return " → ".join(map(_contexts, runs)) if any(runs) else "–"


def success_rules_table() -> str:
    """Last contexts under the rule of success that we use, and under the two printed."""
    columns = (
        ("any rewarded collect (default)", "four-rooms", ""),
        ("`--success reached` (Section 4.4)", "four-rooms-rules", "success-reached"),
        ("`--success goal` (Appendix F.2)", "choices", "success-goal"),
    )
    head = ["baseline → ROLLIN, β = 0.75", "published κ", *(title for title, _, _ in columns)]
    rows: list[list[str]] = []
    found = {study: _runs(study) for _, study, _ in columns}
    betas = (0.0, HEADLINE_BETA)
    for row in ROWS:
        kappas = " → ".join(_published("kappa", row, beta) for beta in betas)
        cells = [
            _pair([found[study][setting, *row, beta] for beta in betas])
            for _, study, setting in columns
        ]
        rows.append([_row_name(row), kappas, *cells])
    return markdown(head, rows)


def success_from_table() -> str:
    """Last contexts where success is measured over the batch, and where it is measured from ρ.

    Without the row that the baseline finishes.
    """
    head = ["baseline → ROLLIN, β = 0.75", "over the batch (default)", "`--success-from rho`"]
    rows: list[list[str]] = []
    default, other = _runs("four-rooms"), _runs("four-rooms-rules")
    for row in ROWS[:-1]:
        cells = [
            _pair([found[setting, *row, beta] for beta in (0.0, HEADLINE_BETA)])
            for found, setting in ((default, ""), (other, "success-from-rho"))
        ]
        rows.append([_row_name(row), *cells])
    return markdown(head, rows)


def recursive_table() -> str:
    """Published values beside roll-in from ρ and from μ_{k-1}: last contexts and returns."""
    head = ["ROLLIN", "published κ", "published return", "from ρ (default): k", "return"]
    head += ["`--mu recursive`: k", "return"]
    rows: list[list[str]] = []
    default, other = _runs("four-rooms"), _runs("four-rooms-rules")
    for (setting, reward, alpha, beta), runs in other.items():
        if setting == "mu-recursive":
            row = reward, alpha
            cells = [_published(name, row, beta) for name in ("kappa", "return")]
            for some in (default["", reward, alpha, beta], runs):
                cells += [_contexts(some), _range(some)]
            rows.append([f"{_row_name(row)}, β = {beta:g}", *cells])
    return markdown(head, rows)


def _range(runs: list[Record]) -> str:
    """The smallest and the largest return of the seeds."""
    returns = [run.value(MetricAt("return")) or 0.0 for run in runs]
    low, high = _short(min(returns)), _short(max(returns))
    return low if low == high else f"{low} – {high}"


def _row_name(row: Row) -> str:
    reward, alpha = row
    return f"{reward}, α = {alpha:g}"


def texts() -> dict[str, str]:
    """Tables of docs/results/four-rooms.md by the name of their markers."""
    return {
        "rooms-headline": readme_table(),
        "choices": choices_table(),
        "rooms-kappa": _grid("kappa", contexts=True),
        "rooms-return": _grid("return", contexts=False),
        "rooms-success": success_rules_table(),
        "rooms-success-from": success_from_table(),
        "rooms-mu": recursive_table(),
    }


def draw_returns() -> Figure:
    """Returns against steps in the rows in which methods differ, for a few β."""
    every = results("four-rooms")
    shown = [
        condition
        for condition, runs in every.runs.items()
        if float(condition.labels["beta"]) in RETURN_BETAS
        and (condition.labels["reward"], condition.labels["alpha"]) in RETURN_ROWS
        and runs
    ]
    some = StudyResults(every.study.only(shown), 1.0, {c: every.runs[c] for c in shown})
    return panels_figure(panels(some)["return"])


PICTURES: dict[str, Callable[[], Figure]] = {
    "progress": lambda: panels_figure(panels(results("four-rooms-summary"))["kappa"]),
    "returns": draw_returns,
    "first-batch": lambda: first_batch_figure(first_batches(records())),
    "rewards": reward_maps,
}
