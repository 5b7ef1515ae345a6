"""Table of docs/results/curricula.md on MDPs without a threshold, from results/tabular-gap."""

import statistics
from collections import defaultdict

from rollin.runs.records import Reading, read_records
from studies.point_umaze_page import markdown
from studies.tabular_gap import FAMILY, RECORDS, RULES

STEPS = Reading("steps_to_solve")


def table() -> str:
    """Gradient steps until the last context is solved, by family and size."""
    found: dict[tuple[str, int, str, str], list[float]] = defaultdict(list)
    for record in read_records(RECORDS):
        told, steps = record.labels, record.value(STEPS)
        if record.family == "tabular-gap-families" and steps is not None:
            found[told["family"], int(told["n"]), told["beta"], told["rule"]].append(steps)
    head = ["MDP", "n", "β", "success rate of one half", "gap", "gap over the other"]
    rows = [head, ["---"] * len(head)]
    for family, (sizes, _) in FAMILY.items():
        for n in sizes:
            for beta in ("0", "0.5"):
                means = [statistics.mean(found[family, n, beta, rule]) for rule in RULES]
                told = [f"{mean:,.0f}" for mean in means]
                rows.append([family, str(n), beta, *told, f"{means[1] / means[0]:.2f}"])
    return markdown(rows)


def texts() -> dict[str, str]:
    """Every table by the name of its markers."""
    return {"tabular-gap": table()}
