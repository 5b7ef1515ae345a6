"""What the paper's runs cost: steps, and seconds at a measured speed."""

from collections.abc import Mapping, Sequence
from typing import Any

from rollin.paper.tables import all_cells
from rollin.runs.spec import RunSpec
from rollin.sweeps.study import Condition, scaled

SHORT = 20_000  # steps of the runs that speed is measured with


def sample_specs() -> dict[str, RunSpec[Any]]:
    """A short run with roll-in of every task of the paper."""
    found: dict[str, RunSpec[Any]] = {}
    for cell in all_cells():
        if cell.rolls_in and cell.task not in found:
            config = scaled(cell.config, SHORT / cell.config.steps)
            found[cell.task] = RunSpec(cell.task, config)
    return found


def core_seconds(
    cells: Sequence[Condition], seeds: int, speed: Mapping[str, float], scale: float = 1.0
) -> float:
    """Seconds of one core for all seeds of some cells; speed: steps a second by task."""
    return seeds * scale * sum(cell.config.steps / speed[cell.task] for cell in cells)
