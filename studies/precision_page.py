"""Table of benchmarks/README.md: does SAC learn the same with bfloat16 products as with float32?

    python -m studies.precision_page runs/precision runs/precision-small   # collects finished runs

Score, test and margin were fixed in studies/precision.toml before the first run.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from rollin.analysis.collect import collect
from rollin.analysis.sheets import markdown
from rollin.runs.records import MetricAt, Record
from studies import shared
from studies.shared import committed, keep

RESULTS = shared.RESULTS / "precision"
GOALS = MetricAt("goals")
SEEDS = {
    "Hopper-v5": 5,
    "Ant-v5": 3,
    "point-umaze": 5,
    "InvertedDoublePendulum-v5": 10,
    "Pendulum-v1": 10,
}
"""For each task and precision, before a verdict; Ant-v5 may get five."""
MARGIN, LEVEL = 0.1, 0.05


def score(record: Record) -> float:
    """Of a run: the share of goals that it solves, or its mean return after half of its steps."""
    if record.task == "point-umaze":
        return record.value(GOALS) or 0.0
    trace = record.trace("return")
    assert trace is not None, "every run of plain SAC has evaluated its return"
    return float(np.mean(trace.values[trace.steps > record.steps / 2]))


def equivalence(single: ArrayLike, half: ArrayLike) -> float:
    """The p-value of means within a tenth of float32's; Welch's two one-sided tests."""
    low, high = 1 - MARGIN, 1 + MARGIN
    base = np.asarray(single, float)
    if base.mean() < 0:
        low, high = high, low
    above: Any = stats.ttest_ind(half, low * base, equal_var=False, alternative="greater")
    below: Any = stats.ttest_ind(half, high * base, equal_var=False, alternative="less")
    return float(max(above.pvalue, below.pvalue))


def verdict(single: Sequence[float], half: Sequence[float], planned: int) -> tuple[str, str]:
    """The p-value in words, and what it decides; nothing before all planned seeds are there."""
    if min(len(single), len(half)) < planned:
        return "–", "seeds missing"
    if np.std(single) == np.std(half) == 0:  # where the test has nothing to divide by
        same = abs(np.mean(half) - np.mean(single)) <= MARGIN * abs(np.mean(single))
        return "no spread", "equivalent" if same else "not shown"
    p = equivalence(single, half)
    return f"{p:.3f}" if p >= 0.001 else "< 0.001", "equivalent" if p < LEVEL else "not shown"


def _cell(scores: Sequence[float]) -> str:
    if not scores:
        return "–"
    digits = 0 if abs(np.mean(scores)) >= 100 else 2
    spread = f" ± {np.std(scores, ddof=1):,.{digits}f}" if len(scores) > 1 else ""
    return f"{np.mean(scores):,.{digits}f}{spread} ({len(scores)})"


def table(records: Sequence[Record]) -> str:
    """A row for each task: mean ± standard deviation of the scores (seeds), ratio, test."""
    head = ["task (seeds needed)", "float32", "bfloat16", "ratio", "p", "within a tenth"]
    rows: list[list[str]] = []
    for task, planned in SEEDS.items():
        of_task = sorted((r for r in records if r.task == task), key=lambda r: r.seed)
        single, half = (
            [score(r) for r in of_task if r.labels["precision"] == precision]
            for precision in ("float32", "bfloat16")
        )
        ratio = f"{np.mean(half) / np.mean(single):.2f}" if single and half else "–"
        found = verdict(single, half, planned)
        rows.append([f"{task} ({planned})", _cell(single), _cell(half), ratio, *found])
    return markdown(head, rows)


def texts() -> dict[str, str]:
    """Every table by the name of its markers."""
    return {"precision": table(committed(RESULTS))}


if __name__ == "__main__":
    keep(collect([Path(name) for name in sys.argv[1:]]).records, RESULTS)
