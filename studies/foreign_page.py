"""The table of other people's agents in docs/results/agents.md, from results/foreign-agents."""

import statistics
from functools import cache
from pathlib import Path

from rollin.analysis.statistics import outcomes
from rollin.runs.records import Reading, Record, read_records
from studies.foreign import ARMS
from studies.point_umaze_page import markdown

RESULTS = Path(__file__).parents[1] / "results" / "foreign-agents"
WORDS = {
    "bare": "the curriculum alone, β = 0",
    "rollin": "`RollIn`, one learner (`level=1`)",
    "fresh": "`RollIn` and a fresh explorer (`level=2`)",
}
NAMES = {"ppo": "PPO", "sac": "SAC"}

Key = tuple[str, str, str]


@cache
def runs() -> dict[Key, list[Record]]:
    """Finished runs by agent, Δ and arm."""
    found: dict[Key, list[Record]] = {}
    for record in read_records(RESULTS):
        told = record.labels
        found.setdefault((told["agent"], told["delta"], told["arm"]), []).append(record)
    deltas = sorted({delta for _, delta, _ in found})
    keys = [(agent, delta, arm) for agent in ARMS for delta in deltas for arm in ARMS[agent]]
    return {key: found[key] for key in keys if key in found}


def table() -> str:
    """How far every arm came, with the number of its seeds."""
    head = ["learner", "Δ", "with", "seeds", "last context k of K, by seed", "mean κ",
            "goals solved, of 24"]  # fmt: skip
    rows = [head, ["---"] * len(head)]
    for (agent, delta, arm), records in runs().items():
        ks = outcomes([record.k or 0 for record in records])
        kappa = statistics.mean(record.kappa_at(record.step) for record in records)
        solved = [24 * (record.value(Reading("goals")) or 0.0) for record in records]
        told = f"{ks} of {records[0].K}", f"{kappa:.2f}", f"{statistics.mean(solved):.1f}"
        rows.append([NAMES[agent], delta, WORDS[arm], str(len(records)), *told])
    return markdown(rows)


def texts() -> dict[str, str]:
    """What stands in the page, by the name of its markers."""
    return {"foreign-agents": table()}
