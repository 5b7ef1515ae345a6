"""Tasks that others made: adaptive curricula beside hand-set ones and learning from scratch.

Our study, not the paper's. All conditions of a task have the same learner, steps and evaluation:
deterministic episodes on the full task, which is the final context. What a user would use instead
is trained by `studies/standard_alternatives.py`, on the same steps. The hand-set curriculum is the
first that a user would write: steps of 1/12 of the path, each at 8 successes of 10 episodes.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from rollin.runs.records import MetricAt
from rollin.sweeps.condition import Condition, block
from rollin.sweeps.study import Study
from rollin.untrusted import name_code

FAMILY = "standard"
SEEDS = 5
FIRST_SEED = 30  # held out from every choice
FIRST_TUNING_SEED = 0
SOLVED = 0.9  # of the episodes of an evaluation succeed
READINGS = (MetricAt("success_final"), MetricAt("return_final"))
BETA = 0.0  # roll-in made no measurable difference with an adaptive curriculum
CURRICULA: Mapping[str, Mapping[str, Any]] = {
    "scratch": {"method": "scratch"},
    "hand": {"rule": "success", "threshold": 0.8, "delta": 1 / 12},
    "adaptive": {"adaptive": True},
    "relabel": {"adaptive": True, "relabel": True},
}
"""Options of each curriculum."""
SMALL: Mapping[str, Any] = {"hidden": (64, 64), "batch": 128, "gamma": 0.99, "warmup": 1000}
# with the default of 1, the entropy of an episode outweighs rewards of 1 and -1
SPARSE: Mapping[str, Any] = {**SMALL, "initial_temperature": 0.1}
LARGE: Mapping[str, Any] = {**SPARSE, "hidden": (256, 256), "batch": 256}
PUBLISHED: Mapping[str, Any] = {
    **SPARSE, "hidden": (128, 128, 128), "batch": 512, "gamma": 0.995, "update_every": 5
}  # fmt: skip
"""CURROT's, but for the temperature."""


@dataclass(frozen=True)
class StandardTask:
    """A task of the suite.

    factory: its adapter in `rollin.envs.standard`; options: of all its runs; relabels: whether it
    has goals, which can be relabelled.
    """

    factory: str
    steps: int
    log_every: int
    eval_episodes: int
    options: Mapping[str, Any] = field(default_factory=dict)
    relabels: bool = True

    @property
    def task(self) -> str:
        """The task's name in runs."""
        return f"rollin.envs.standard:{self.factory}"

    @property
    def shared(self) -> dict[str, Any]:
        """Options of all its conditions."""
        lengths = {name: getattr(self, name) for name in ("steps", "log_every", "eval_episodes")}
        return {**self.options, **lengths}


TASKS: Mapping[str, StandardTask] = {
    "mountain-car": StandardTask("mountain_car", 60_000, 3_000, 10, SMALL, relabels=False),
    "point-maze-umaze": StandardTask("point_maze_umaze", 120_000, 5_000, 10, SPARSE),
    "point-maze-medium": StandardTask("point_maze_medium", 300_000, 10_000, 10, SPARSE),
    "fetch-reach": StandardTask("fetch_reach", 30_000, 2_500, 10, SPARSE),
    "fetch-push": StandardTask("fetch_push", 500_000, 20_000, 20, LARGE),
    "fetch-pick-and-place": StandardTask("fetch_pick_and_place", 1_500_000, 50_000, 20, LARGE),
    "sparse-goals": StandardTask("SparseGoals", 1_000_000, 25_000, 50, PUBLISHED),
}
"""The suite, by the names of its labels."""


def _conditions(first_seed: int) -> list[Condition]:
    found = []
    for name, task in TASKS.items():
        name_code(task.task)  # our own code
        for curriculum, own in CURRICULA.items():
            if curriculum == "relabel" and not task.relabels:
                continue
            options = {"beta": BETA, **task.shared, **own}
            (made,) = block(task.task, {}, options, {"task": name, "curriculum": curriculum})
            found.append(replace(made, first_seed=first_seed))
    return found


def _study(name: str, title: str, first_seed: int) -> Study:
    return Study(
        name,
        tuple(_conditions(first_seed)),
        READINGS,
        SEEDS,
        rows=("task",),
        columns=("curriculum",),
        baseline="curriculum=scratch",
        family=name,  # the tuning seeds have a directory of their own
        title=title,
    )


@cache
def studies() -> dict[str, Study]:
    """Both by name: the held-out seeds, and the same conditions on tuning seeds."""
    found = [
        _study(FAMILY, "Adaptive curricula on tasks that others made", FIRST_SEED),
        _study(f"{FAMILY}-tuning", "Tasks that others made, tuning seeds", FIRST_TUNING_SEED),
    ]
    return {study.name: study for study in found}
