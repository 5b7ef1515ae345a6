"""Tables and picture of docs/results/antmaze.md, from the records in results/antmaze."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure

from rollin.analysis.collect import group
from rollin.analysis.sheets import Sheet, sheet
from rollin.analysis.statistics import exact_permutation, exact_test, summarise
from rollin.curriculum.contexts import Curriculum
from rollin.envs.point_umaze import PATH
from rollin.paper.antmaze import STEP
from rollin.paper.decisive import AT, PASSED, studies
from rollin.report.labels import label_text, summary_text
from rollin.report.maps import VisitMaps, VisitPanel, visits_figure
from rollin.runs.engines.rollin_options import SOLVED
from rollin.runs.records import MetricAt, Record
from rollin.sweeps.condition import Condition
from studies.antmaze import CELL, RESULTS
from studies.shared import committed, key_of, rows_by_run

R = 200.0  # the paper's threshold: what a goal must earn to be mastered
NONE = "–"


class Goals(NamedTuple):
    """A policy on the fixed goals: how many it solves, how many earn more than R, whether the last.

    of: how many there are.
    """

    solved: int
    paid: int
    final: bool
    of: int


def runs_of(name: str) -> dict[Condition, list[Record]]:
    """The committed runs of a study that have reached the step at which they are read."""
    study = studies()[name]
    found = group(committed(RESULTS), [study]).runs
    return {
        condition: [r for r in found.get(condition, {}).get(1.0, []) if r.step >= AT]
        for condition in study.conditions
    }


def k_at(record: Record, step: int = AT) -> int:
    """The context that was reached by a step."""
    kappa = record.value(MetricAt("kappa", step))
    assert kappa is not None
    assert record.K is not None
    return round(kappa * record.K)


def goals_at(record: Record, drawn: bool, step: int = AT) -> Goals | None:
    """How the policy did on the goals at a step; drawn: with drawn actions; None: not evaluated."""
    prefix = "drawn_" if drawn else ""
    rows = rows_by_run(RESULTS / "goals.csv").get(key_of(record), [])
    here = [row for row in rows if int(row["step"]) == step]
    if not here:
        return None
    solved = [float(row[f"{prefix}success"]) >= SOLVED for row in here]
    paid = [float(row[f"{prefix}return"]) > R for row in here]
    return Goals(sum(solved), sum(paid), solved[-1], len(here))


def decisive() -> Sheet:
    """k and κ of each condition at the step, and what its policies solve."""
    rows = []
    for condition, records in runs_of("antmaze-decisive").items():
        ks = [k_at(record) for record in records]
        kappas = [k / (record.K or 1) for k, record in zip(ks, records, strict=True)]
        printed = condition.published[MetricAt("kappa", STEP)]
        rows.append([
            label_text(condition.labels, ("method", "beta")),
            str(len(records)),
            str(printed),
            f"**{summary_text(summarise(kappas), 2)}**" if kappas else NONE,
            ", ".join(map(str, ks)) or NONE,
            f"{sum(k >= PASSED for k in ks)} of {len(ks)}" if ks else NONE,
            *_goals(records),
        ])  # fmt: skip
    columns = (
        "method | seeds | published κ at 3 million steps | κ at 1.5 million | k of each seed | "
        f"seeds with k ≥ {PASSED} | goals solved of 12 | … with drawn actions | return above R"
    )
    return sheet("antmaze decisive", "Δ = 1/12, uniform sampling", columns, rows)


def beyond() -> Sheet:
    """What the adaptive curriculum and learning from scratch solve at the step."""
    rows = []
    for name in ("antmaze-adaptive", "antmaze-scratch"):
        for condition, records in runs_of(name).items():
            final = [goals_at(record, drawn=False) for record in records]
            drawn = [goals_at(record, drawn=True) for record in records]
            label = "scratch" if name == "antmaze-scratch" else "adaptive"
            rows.append([
                f"{label}, {label_text(condition.labels, ('method', 'beta'))}"
                if label == "adaptive"
                else label,
                str(len(records)),
                *_goals(records),
                *(_final(goals) for goals in (final, drawn)),
            ])  # fmt: skip
    columns = (
        "method | seeds | goals solved of 24 | … with drawn actions | return above R | "
        "seeds that solve the final goal | … with drawn actions"
    )
    return sheet("antmaze adaptive", "The adaptive curriculum", columns, rows)


def _goals(records: Sequence[Record]) -> list[str]:
    """Goals solved by each seed, with drawn actions, and those that earn more than R."""
    means = [goals for r in records if (goals := goals_at(r, drawn=False)) is not None]
    drawn = [goals for r in records if (goals := goals_at(r, drawn=True)) is not None]
    counts = [[g.solved for g in means], [g.solved for g in drawn], [g.paid for g in means]]
    return [", ".join(map(str, count)) or NONE for count in counts]


def _final(found: Sequence[Goals | None]) -> str:
    told = [goals.final for goals in found if goals is not None]
    return f"{sum(told)} of {len(told)}" if told else NONE


def tests() -> Sheet:
    """The tests that were fixed before the first run."""
    found = {c.labels["beta"]: runs for c, runs in runs_of("antmaze-decisive").items()}
    base = [k_at(record) for record in found["0"]]
    rows = []
    for beta, kind in (("0.9", "**confirmatory**"), ("0.5", "exploratory")):
        ks = [k_at(record) for record in found[beta]]
        cells = [NONE] * 2
        if ks and base:
            passed = [sum(k >= PASSED for k in side) for side in (ks, base)]
            cells = [
                f"{exact_test(passed[0], len(ks), passed[1], len(base)):.3f}",
                f"{exact_permutation(ks, base):.3f}",
            ]
        rows.append([f"β = {beta} against 0", kind, f"{len(ks)} and {len(base)}", *cells])
    columns = f"comparison | kind | seeds | p, k ≥ {PASSED} (Fisher) | p, κ (permutation)"
    return sheet("antmaze tests", "Tests fixed before the first run", columns, rows)


def tables() -> list[Sheet]:
    """Every table of the page."""
    return [decisive(), tests(), beyond()]


# ------------------------------------------------------------------ picture


def visits() -> list[VisitMaps]:
    """Where steps of the first seed of each decisive condition ended, under each context."""
    goals = Curriculum.along(PATH, 1 / 12, start="delta").contexts
    rows = rows_by_run(RESULTS / "visits.csv")
    found = []
    for records in runs_of("antmaze-decisive").values():
        if records and (cells := rows.get(key_of(records[0]))):
            panels = [_panel(int(row["k"]), row["cells"], goals) for row in cells]
            found.append(VisitMaps(records[0], CELL, panels))
    return found


def _panel(k: int, cells: str, goals: np.ndarray) -> VisitPanel:
    """Return the visits under a context, from a row of visits.csv."""
    parts = np.array([cell.split() for cell in cells.split(";")], np.float64)
    return VisitPanel([k], goals[[k]], (parts[:, :2] + 0.5) * CELL, parts[:, 2])


PICTURES: Mapping[str, Callable[[], Figure]] = (
    {"antmaze-visits": lambda: visits_figure(visits())} if visits() else {}
)
"""The picture, once there are runs."""
