"""Table of docs/results/curricula.md on MDPs without a threshold, from results/tabular-gap."""

import statistics
from collections import defaultdict
from collections.abc import Sequence

from rollin.runs.records import Reading, Record, read_records
from studies.point_umaze_page import markdown
from studies.tabular_gap import BETAS, CELLS, FAMILY, RECORDS, RULES

STEPS = Reading("steps_to_solve")
NAMES = {"success": "success rate of one half", "gap": "gap"}
NONE = "No records of this study have been committed yet."


def table() -> str:
    """Gradient steps until the last context is solved, by family and size."""
    found: dict[tuple[str, int, str, str], list[float]] = defaultdict(list)
    for record in read_records(RECORDS):
        told, steps = record.labels, record.value(STEPS)
        if record.family == "tabular-gap-families" and steps is not None:
            found[told["family"], int(told["n"]), told["beta"], told["rule"]].append(steps)
    head = ["MDP", "n", "β", *NAMES.values(), "gap over the other"]
    rows = [head, ["---"] * len(head)]
    for family, (sizes, _) in FAMILY.items():
        for n in sizes:
            for beta in ("0", "0.5"):
                means = [statistics.mean(found[family, n, beta, rule]) for rule in RULES]
                told = [f"{mean:,.0f}" for mean in means]
                rows.append([family, str(n), beta, *told, f"{means[1] / means[0]:.2f}"])
    return markdown(rows)


def rooms() -> str:
    """Four rooms: the last context of each seed with either rule, and how many master the last."""
    found: dict[tuple[str, ...], list[Record]] = defaultdict(list)
    for record in sorted(read_records(RECORDS), key=lambda r: r.seed):
        if record.family == "tabular-gap" and record.finished:
            told = record.labels
            found[told["reward"], told["alpha"], told["beta"], told["rule"]].append(record)
    head = ["reward, entropy", "β", *(f"{name}: k of 16, by seed" for name in NAMES.values())]
    rows = [head, ["---"] * len(head)]
    for reward, alpha in CELLS:
        for beta in BETAS:
            arms = [found[reward, f"{alpha:g}", f"{beta:g}", rule] for rule in RULES]
            if all(arms):
                rows.append([f"{reward}, α = {alpha:g}", f"{beta:g}", *map(_walked, arms)])
    return markdown(rows) if len(rows) > 2 else NONE


def _walked(records: Sequence[Record]) -> str:
    ks = ", ".join(str(record.k) for record in records)
    mastered = sum(record.completed is not None for record in records)
    return f"{ks}; {mastered} of {len(records)} master the last"


def texts() -> dict[str, str]:
    """Every table by the name of its markers."""
    return {"tabular-gap": table(), "tabular-gap-rooms": rooms()}
