"""The tabular engine without a threshold: the paper's rule of 50 % success beside `--rule gap`.

    rollin sweep studies.tabular_gap:ROOMS --jobs 2 --out runs/gap-rooms
    rollin sweep studies.tabular_gap:FAMILIES --jobs 2 --out runs/gap-families
    python -m studies.tabular_gap runs/gap-rooms runs/gap-families      # results/tabular-gap

The share λ was looked at on seed 0 of four rooms (0.4, 0.6 and 0.8) and kept at 0.6. Seeds from 20
on are for reporting. Exact gradients have no noise: one run tells all.
"""

import statistics
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from rollin.analysis.sheets import markdown
from rollin.runs.directory import RunDirectory
from rollin.runs.engines import read_record
from rollin.runs.records import MetricAt, Record, read_records
from rollin.sweeps.condition import Condition
from rollin.sweeps.study import Study
from studies.shared import NONE, RESULTS, finished, keep, mastered

FIRST_SEED, SEEDS, STEPS = 20, 5, 30_000
RULES = ("success", "gap")
CELLS = (("hard", 0.01), ("hard", 0.001), ("easy", 0.01))
BETAS = (0.0, 0.75)
FAMILY = {  # a family's sizes, and its η in units of 1-γ, as in the study of complexity
    "combination-lock": ((8, 16, 32), 8.0),
    "corridor": ((8, 16, 32), 1.0),
    "square-grid": ((4, 8), 1.0),
    "random-mdp": ((16, 32), 1.0),
}


def _room(reward: str, alpha: float, beta: float, rule: str) -> Condition:
    labels = {"reward": reward, "alpha": f"{alpha:g}", "beta": f"{beta:g}", "rule": rule}
    options = {"reward": reward, "alpha": alpha, "beta": beta, "rule": rule, "steps": STEPS}
    return Condition(labels, "four-rooms", options, first_seed=FIRST_SEED)


def _member(task: str, n: int, beta: float, rule: str) -> Condition:
    labels = {"family": task, "n": str(n), "beta": f"{beta:g}", "rule": rule}
    options = {"n": n, "beta": beta, "rule": rule, "learning_rate": FAMILY[task][1]}
    drawn = task == "random-mdp"
    return Condition(labels, task, options, first_seed=FIRST_SEED if drawn else 0, drawn=drawn)


ROOMS = Study(
    "tabular-gap",
    tuple(_room(*cell, beta, rule) for cell in CELLS for beta in BETAS for rule in RULES),
    (MetricAt("kappa"), MetricAt("return")),
    seeds=SEEDS,
    rows=("reward", "alpha", "beta"),
    columns=("rule",),
    baseline="rule=success",
    title="Four rooms without a threshold",
)
FAMILIES = Study(
    "tabular-gap-families",
    tuple(
        _member(task, n, beta, rule)
        for task, (sizes, _) in FAMILY.items()
        for n in sizes
        for beta in (0.0, 0.5)
        for rule in RULES
    ),
    (MetricAt("steps_to_solve"), MetricAt("solved")),
    seeds=SEEDS,
    rows=("family", "n", "beta"),
    columns=("rule",),
    baseline="rule=success",
    title="Families of MDPs without a threshold",
)

RECORDS = RESULTS / "tabular-gap"


def collect(sweeps: list[Path]) -> None:
    """Write the records of all finished runs beside those that are committed."""
    results = sorted(path for out in sweeps for path in out.glob("*/seed=*/result.json"))
    keep([read_record(RunDirectory(path.parent)) for path in results], RECORDS)


# ------------------------------------------------------------------ tables

NAMES = {"success": "success rate of one half", "gap": "gap"}


def table() -> str:
    """Gradient steps until the last context is solved, by family and size."""
    found: dict[tuple[str, int, str, str], list[float]] = defaultdict(list)
    for record in read_records(RECORDS):
        labels = record.labels
        steps = record.value(MetricAt("steps_to_solve"))
        if record.family == "tabular-gap-families" and steps is not None:
            found[labels["family"], int(labels["n"]), labels["beta"], labels["rule"]].append(steps)
    head = ["MDP", "n", "β", *NAMES.values(), "gap over the other"]
    rows: list[list[str]] = []
    for family, (sizes, _) in FAMILY.items():
        for n in sizes:
            for beta in ("0", "0.5"):
                means = [statistics.mean(found[family, n, beta, rule]) for rule in RULES]
                steps = [f"{mean:,.0f}" for mean in means]
                rows.append([family, str(n), beta, *steps, f"{means[1] / means[0]:.2f}"])
    return markdown(head, rows)


def rooms() -> str:
    """Four rooms: the last context of each seed with either rule, and how many master the last."""
    records = [record for record in read_records(RECORDS) if record.family == "tabular-gap"]
    found = finished(records, "reward", "alpha", "beta", "rule")
    head = ["reward, entropy", "β", *(f"{name}: k of 16, by seed" for name in NAMES.values())]
    rows: list[list[str]] = []
    for reward, alpha in CELLS:
        for beta in BETAS:
            arms = [found[reward, f"{alpha:g}", f"{beta:g}", rule] for rule in RULES]
            if all(arms):
                rows.append([f"{reward}, α = {alpha:g}", f"{beta:g}", *map(_walked, arms)])
    return markdown(head, rows) if rows else NONE


def _walked(records: Sequence[Record]) -> str:
    ks = ", ".join(str(record.k) for record in records)
    return f"{ks}; {mastered(records)} master the last"


def texts() -> dict[str, str]:
    """Every table by the name of its markers."""
    return {"tabular-gap": table(), "tabular-gap-rooms": rooms()}


if __name__ == "__main__":
    collect([Path(name) for name in sys.argv[1:]])
