"""Table of docs/results/curricula.md on curricula without a path, from results/visited."""

import statistics
from pathlib import Path

from rollin.runs.records import Reading, Record, read_records
from studies.point_umaze_page import markdown

RESULTS = Path(__file__).parents[1] / "results" / "visited"
GOALS, RETURN = Reading("goals"), Reading("return_final")
NAMES = {
    ("visited", "0.1"): "visited places, β = 0.1",
    ("visited", "0"): "visited places, without roll-in",
    ("straight", "0.1"): "straight on, β = 0.1",
}


def runs(way: str, beta: str) -> list[Record]:
    """The finished runs of an arm, seed by seed."""
    found = [r for r in read_records(RESULTS) if (r.labels["way"], r.labels["beta"]) == (way, beta)]
    return sorted((r for r in found if r.finished), key=lambda r: r.seed)


def table() -> str:
    """How both ways did; 24 goals on the path around the wall, or on the straight line."""
    head = ["contexts", "seeds", "goals solved of 24, by seed", "mean", "return on the last goal"]
    rows = [head, ["---"] * len(head)]
    for (way, beta), name in NAMES.items():
        records = runs(way, beta)
        solved = [round(24 * (record.value(GOALS) or 0.0)) for record in records]
        final = statistics.mean(record.value(RETURN) or 0.0 for record in records)
        along = " (on its straight line)" if way == "straight" else ""
        told = ", ".join(map(str, solved)) + along
        rows.append(
            [name, str(len(records)), told, f"{statistics.mean(solved):.1f}", f"{final:.1f}"]
        )
    return markdown(rows)


def texts() -> dict[str, str]:
    """Every table by the name of its markers."""
    return {"visited": table()}
