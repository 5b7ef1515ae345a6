"""Tables of docs/results/curricula.md on what a wrong R costs, and on the slow maze."""

from pathlib import Path

from rollin.runs.records import RUNS, Record, read_records
from studies.curricula_page import standings

RESULTS = Path(__file__).parents[1] / "results"
CHECKS = {
    "wrong-threshold": ("threshold", "R"),
    "slow-gamma": ("gamma", "γ"),
    "slow-maze": ("beta", "β"),
}
"""Studies by name: the label that tells their arms apart, and what that is called."""
NONE = "No records of this study have been committed yet."


def arms(study: str, label: str) -> dict[str, list[Record]]:
    """Finished runs of a study by the value of a label, from small to large."""
    place = RESULTS / study
    found: dict[str, list[Record]] = {}
    for record in read_records(place) if (place / RUNS).exists() else []:
        if record.finished:
            found.setdefault(record.labels[label], []).append(record)
    return dict(sorted(found.items(), key=lambda arm: float(arm[0])))


def texts() -> dict[str, str]:
    """Every table by the name of its markers."""
    told = {}
    for study, (label, title) in CHECKS.items():
        found = arms(study, label)
        told[study] = standings(found, title) if found else NONE
    return told
