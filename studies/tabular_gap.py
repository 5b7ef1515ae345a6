"""The tabular engine without a threshold: the paper's rule of 50 % success beside `--rule gap`.

    rollin sweep studies.tabular_gap:ROOMS --jobs 2 --out runs/gap-rooms
    rollin sweep studies.tabular_gap:FAMILIES --jobs 2 --out runs/gap-families
    python -m studies.tabular_gap runs/gap-rooms runs/gap-families      # results/tabular-gap

The share λ was looked at on seed 0 of four rooms (0.4, 0.6 and 0.8) and kept at 0.6. Seeds from 20
on are for reporting. Exact gradients have no noise: one run tells all.
"""

import sys
from pathlib import Path

from rollin.runs.directory import RunDirectory
from rollin.runs.engines import read_record
from rollin.runs.records import Reading
from rollin.sweeps.study import Condition, Study
from studies.kept import keep

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
    (Reading("kappa"), Reading("return")),
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
    (Reading("steps_to_solve"), Reading("solved")),
    seeds=SEEDS,
    rows=("family", "n", "beta"),
    columns=("rule",),
    baseline="rule=success",
    title="Families of MDPs without a threshold",
)

RECORDS = Path(__file__).parents[1] / "results" / "tabular-gap"


def collect(sweeps: list[Path]) -> None:
    """Write the records of all finished runs beside those that are committed."""
    results = sorted(path for out in sweeps for path in out.glob("*/seed=*/result.json"))
    keep([read_record(RunDirectory(path.parent)) for path in results], RECORDS)


if __name__ == "__main__":
    collect([Path(name) for name in sys.argv[1:]])
