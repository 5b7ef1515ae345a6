"""What the runs of conditions cost: steps, and seconds at a measured speed."""

from collections.abc import Mapping, Sequence
from typing import Any

from rollin.runs.spec import RunSpec
from rollin.sweeps.condition import Condition

SHORT = 20_000  # steps of the runs that speed is measured with


def sample_specs(conditions: Sequence[Condition]) -> dict[str, RunSpec[Any]]:
    """A short run of every task, with roll-in if any condition has that."""
    found: dict[str, Condition] = {}
    for condition in conditions:
        if condition.labels.get("method") == "rollin" or condition.task not in found:
            found.setdefault(condition.task, condition)
            if found[condition.task].labels.get("method") != "rollin":
                found[condition.task] = condition
    return {task: one.spec(0, SHORT / one.steps) for task, one in found.items()}


def core_seconds(
    conditions: Sequence[Condition], seeds: int, speed: Mapping[str, float], scale: float = 1.0
) -> float:
    """Seconds of one core for all seeds of some conditions; speed: steps per second by task."""
    return seeds * scale * sum(one.steps / speed[one.task] for one in conditions)
