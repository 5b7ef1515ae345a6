"""Which published figures belong to a run on a robot: by its task and options."""

import math
from functools import cache

from rollin.paper import antmaze, velocity
from rollin.paper.velocity import Figures
from rollin.runs.spec import RollinConfig, RunSpec
from rollin.sweeps.study import DELTAS, Condition

VARIED = ("method", "beta", "sampling", "relabel", "go_explore")
"""Options in which the paper's conditions differ, besides Δ."""


def parts_of(spec: RunSpec[RollinConfig]) -> int | None:
    """n of a step Δ = 1/n that is not the task's own; None if it is, 0 if there is no such n."""
    delta, own = spec.config.delta, DELTAS.get(spec.task)
    if delta is None or (own is not None and math.isclose(delta, own)):
        return None
    parts = round(1 / delta)
    return parts if math.isclose(delta * parts, 1) else 0


@cache
def _cells(task: str) -> list[Condition]:
    return [cell for cell in (*antmaze.cells(), *velocity.cells()) if cell.task == task]


def published_for(spec: RunSpec[RollinConfig]) -> dict[int, Figures]:
    """Published figures of a run's condition by step; nothing if the paper has no such one."""
    found: dict[int, Figures] = {}
    for cell in _cells(spec.task):
        if cell.scale_of(spec) == 1:
            for (figure, step), value in cell.published.items():
                found.setdefault(step, {})[figure] = value
    return found
